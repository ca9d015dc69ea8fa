/* Runs every memory/FILE.ptx (memory_file.h) on the machine (core.h), without an observer and with one, which
   must see the accesses that the counters count. With an argument: only the files with it in their names. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/core.h"
#include "emu/hook.h"
#include "memory_file.h"

#define WORDS MEMORY_WORDS

struct run {
    const char *path;
    struct memory_file file;
    struct clab_counters counters;
    struct clab_error error;
    clab_status status;
    const uint32_t *out;
    char *printed; /* to stdout, heap */
};

static unsigned check_expects(const struct run *run)
{
    char text[512];
    unsigned n = 0;
    if (!memory_file_expects(&run->file, run->out, false, &n, text, sizeof text)) {
        fail_msg("%s: %s", run->path, text);
    }
    return n;
}

static uint64_t counter_named(const struct run *run, const char *name)
{
    static const char *const spaces[CLAB_SPACE_COUNT] = {"global", "shared", "remote",
                                                         "local",  "const",  "param"};
    const struct clab_counters *c = &run->counters;
    for (unsigned i = 0; i < CLAB_SPACE_COUNT; i++) {
        for (unsigned store = 0; store < 2; store++) {
            for (unsigned bytes = 0; bytes < 2; bytes++) {
                char text[64];
                const struct clab_traffic *traffic = store ? &c->stores[i] : &c->loads[i];
                snprintf(text, sizeof text, "%s.%s.%s", store ? "stores" : "loads", spaces[i],
                         bytes ? "bytes" : "accesses");
                if (!strcmp(name, text)) {
                    return bytes ? traffic->bytes : traffic->accesses;
                }
            }
        }
    }
    const struct {
        const char *name;
        uint64_t value;
    } others[] = {
        {"atomics_global", c->atomics_global},
        {"atomics_shared", c->atomics_shared},
        {"atomics_remote", c->atomics_remote},
        {"mbarrier_arrives", c->mbarrier_arrives},
        {"mbarrier_phases", c->mbarrier_phases},
        {"async_stores", c->async_stores},
        {"bulk_copies", c->bulk_copies},
        {"bulk_requested_bytes", c->bulk_requested_bytes},
        {"bulk_delivered_bytes", c->bulk_delivered_bytes},
        {"clc_granted", c->clc_granted},
        {"clc_declined", c->clc_declined},
        {"clusters", c->clusters},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (!strcmp(name, others[i].name)) {
            return others[i].value;
        }
    }
    fail_msg("%s: no counter '%s'", run->path, name);
    return 0;
}

static unsigned check_counts(const struct run *run)
{
    char line[256];
    unsigned n = 0;
    for (const char *at = run->file.text; (at = memory_file_line(at, "COUNT", line, sizeof line)); n++) {
        char name[64];
        unsigned long long wanted;
        if (sscanf(line, "%63s = %llu", name, &wanted) != 2) {
            fail_msg("%s: cannot read COUNT: %s", run->path, line);
        }
        const uint64_t got = counter_named(run, name);
        if (got != wanted) {
            fail_msg("%s: %s is %llu, wanted %llu", run->path, name, (unsigned long long)got, wanted);
        }
    }
    return n;
}

static unsigned check_fault(const struct run *run)
{
    char line[256], code[64];
    int used = 0;
    if (!memory_file_line(run->file.text, "FAULT", line, sizeof line)) {
        if (run->status != CLAB_OK) {
            fail_msg("%s: %s", run->path, run->error.message);
        }
        return 0;
    }
    assert_int_equal(sscanf(line, "%63s %n", code, &used), 1);
    if (run->status != CLAB_FAULT || strcmp(run->error.native_name, code) ||
        !strstr(run->error.message, line + used)) {
        fail_msg("%s: wanted %s '%s', got %s '%s'", run->path, code, line + used, run->error.native_name,
                 run->status ? run->error.message : "success");
    }
    return 1;
}

/* The PRINT lines, which are all that may be printed. */
static unsigned check_prints(const struct run *run)
{
    char line[256];
    unsigned n = 0;
    const char *got = run->printed;
    for (const char *at = run->file.text; (at = memory_file_line(at, "PRINT", line, sizeof line)); n++) {
        const size_t bytes = strcspn(got, "\n");
        if (strlen(line) != bytes || strncmp(line, got, bytes)) {
            fail_msg("%s: printed '%.*s', wanted '%s'", run->path, (int)bytes, got, line);
        }
        got += bytes + (got[bytes] != 0);
    }
    if (*got) {
        fail_msg("%s: printed '%s', wanted no more", run->path, got);
    }
    return n;
}

/* Sends stdout to `file`; returns the descriptor to give to stdout_restore. */
static int stdout_catch(FILE *file)
{
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    return saved;
}

static char *stdout_restore(FILE *file, int saved)
{
    fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    rewind(file);
    text[fread(text, 1, 65535, file)] = 0;
    fclose(file);
    return text;
}

/* What the observer saw: accesses by kind and space. Clusters may run on several host threads. */
static _Atomic uint64_t seen[3][CLAB_SPACE_COUNT];

static void see_access(void *user, const struct emu_warp *warp, const struct emu_op *op,
                       const struct emu_access *access)
{
    (void)user, (void)warp, (void)op;
    assert_true(access->lanes != 0 && access->bytes > 0 && access->space < CLAB_SPACE_COUNT);
    assert_int_equal(access->owner != NULL,
                     access->space == CLAB_SPACE_SHARED || access->space == CLAB_SPACE_REMOTE);
    atomic_fetch_add(&seen[access->kind][access->space], (uint64_t)__builtin_popcount(access->lanes));
}

static void check_seen(const struct run *run)
{
    for (unsigned i = 0; i < CLAB_SPACE_COUNT; i++) {
        const uint64_t counted[3] = {run->counters.loads[i].accesses, run->counters.stores[i].accesses,
                                     i == CLAB_SPACE_GLOBAL   ? run->counters.atomics_global
                                     : i == CLAB_SPACE_SHARED ? run->counters.atomics_shared
                                     : i == CLAB_SPACE_REMOTE ? run->counters.atomics_remote
                                                              : 0};
        for (unsigned kind = 0; kind < 3; kind++) {
            const uint64_t got = atomic_exchange(&seen[kind][i], 0);
            if (got != counted[kind]) {
                fail_msg("%s: an observer saw %llu accesses of kind %u to space %u, %llu were counted",
                         run->path, (unsigned long long)got, kind, i, (unsigned long long)counted[kind]);
            }
        }
    }
}

static void launch_once(struct emu_machine *machine, struct emu_kernel *kernel, struct run *run, uint64_t in,
                        uint64_t out)
{
    struct emu_kernel_info info;
    emu_kernel_info_get(kernel, &info);
    assert_int_equal(info.param_bytes, 16);
    const uint64_t params[2] = {in, out};
    uint32_t *words = emu_memory_host(machine, in, WORDS * 4);
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = i;
    }
    memset(emu_memory_host(machine, out, WORDS * 4), 0, WORDS * 4);
    struct emu_launch launch = {
        .kernel = kernel,
        .grid = {run->file.grid, 1, 1},
        .block = {run->file.block, 1, 1},
        .cluster = {run->file.cluster, 1, 1},
        .explicit_cluster = run->file.clustered,
        .dynamic_shared_bytes = run->file.shared_bytes,
        .params = params,
    };
    clab_error_clear(&run->error);
    FILE *file = tmpfile();
    assert_non_null(file);
    const int saved = stdout_catch(file);
    run->status = emu_launch_run(machine, &launch, &run->counters, &run->error);
    free(run->printed);
    run->printed = stdout_restore(file, saved);
    run->out = emu_memory_host(machine, out, WORDS * 4);
}

static void file_run(const char *path)
{
    static const struct emu_hooks observer = {.access = see_access};
    struct run run = {.path = path};
    const char *wrong = memory_file_read(path, &run.file);
    if (wrong) {
        fail_msg("%s: %s", path, wrong);
    }
    const struct emu_model *model = emu_model_get(run.file.device);
    assert_non_null(model);
    struct emu_machine *machine;
    struct emu_module *module;
    struct emu_kernel *kernel;
    assert_int_equal(emu_machine_new(model, &machine, &run.error), CLAB_OK);
    if (emu_module_load(machine, run.file.text, strlen(run.file.text), path, &module, &run.error) !=
            CLAB_OK ||
        emu_module_kernel(module, emu_module_entry_name(module, 0), &kernel, &run.error) != CLAB_OK) {
        fail_msg("%s:%u: %s", path, run.error.line, run.error.message);
    }
    const uint64_t in = emu_memory_alloc(machine, WORDS * 4, EMU_MEMORY_DEVICE);
    const uint64_t out = emu_memory_alloc(machine, WORDS * 4, EMU_MEMORY_DEVICE);
    for (uint32_t i = 0; i < 2 * run.file.seeds; i++) {
        emu_machine_options(machine)->seed = i / 2;
        emu_machine_options(machine)->hooks = i % 2 ? &observer : NULL;
        launch_once(machine, kernel, &run, in, out);
        const unsigned checks =
            check_fault(&run) + check_expects(&run) + check_counts(&run) + check_prints(&run);
        if (!checks) {
            fail_msg("%s: expects nothing", path);
        }
        if (i % 2) {
            check_seen(&run);
        }
    }
    free(run.printed);
    emu_module_unload(module);
    emu_machine_free(machine);
    clab_error_clear(&run.error);
    memory_file_free(&run.file);
}

static void test_file(void **state)
{
    file_run(*state);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[256];
    size_t n = 0;
    DIR *folder = opendir("memory");
    if (!folder) {
        fprintf(stderr, "no folder memory here\n");
        return 1;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 4, ".ptx") ||
            (argc > 1 && !strstr(entry->d_name, argv[1]))) {
            continue;
        }
        char *path = malloc(length + 8);
        snprintf(path, length + 8, "memory/%s", entry->d_name);
        tests[n++] = (struct CMUnitTest){.name = path, .test_func = test_file, .initial_state = path};
    }
    closedir(folder);
    qsort(tests, n, sizeof tests[0], by_name);
    const int failed = _cmocka_run_group_tests("memory", tests, n, NULL, NULL);
    for (size_t i = 0; i < n; i++) {
        free(tests[i].initial_state);
    }
    return n ? failed : 1;
}
