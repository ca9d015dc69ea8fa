/* Runs every memory/FILE.ptx on the machine (core.h) and compares with what the file expects. A file holds
   one entry and comment lines:

     // DEVICE: sm_100                     default sm_90
     // LAUNCH: grid=2 block=64 cluster=2 smem=1024          default grid=1 block=32 cluster=1 smem=0
     // SEEDS: 8                           runs with seeds 0 to 7; default 1
     // EXPECT: out[0..31] = 2 i + 5       i: index of the word; `= 7` is allowed too
     // FAULT: CUDA_ERROR_ILLEGAL_ADDRESS part of the message
     // COUNT: loads.global.accesses = 32
     // PRINT: a line of what the kernel prints (all of them, in order)

   Each file runs without an observer and with one, which must see the accesses that the counters count.

   The entry takes two u64 parameters, in and out: 4096 words each; in[i] = i, out is zeroed. */
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

#include "base/str.h"
#include "emu/core.h"
#include "emu/hook.h"

#define WORDS 4096u

struct run {
    const char *path;
    char device[16];
    uint32_t grid, block, cluster, shared_bytes, seeds;
    struct clab_counters counters;
    struct clab_error error;
    clab_status status;
    const uint32_t *out;
    char *printed; /* to stdout, heap */
};

static const char *next_line(const char *text, const char *tag, char *out_rest, size_t size)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "// %s: ", tag);
    const char *at = strstr(text, prefix);
    if (!at) {
        return NULL;
    }
    at += strlen(prefix);
    const size_t bytes = strcspn(at, "\n");
    snprintf(out_rest, size, "%.*s", (int)bytes, at);
    return at + bytes;
}

static void directives_read(const char *text, struct run *run)
{
    char line[256];
    snprintf(run->device, sizeof run->device, "sm_90");
    run->grid = run->cluster = run->seeds = 1;
    run->block = 32;
    if (next_line(text, "DEVICE", line, sizeof line)) {
        snprintf(run->device, sizeof run->device, "%.15s", line);
    }
    if (next_line(text, "SEEDS", line, sizeof line)) {
        run->seeds = (uint32_t)strtoul(line, NULL, 10);
    }
    if (!next_line(text, "LAUNCH", line, sizeof line)) {
        return;
    }
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        char name[16];
        unsigned value;
        if (sscanf(word, "%15[a-z]=%u", name, &value) != 2) {
            fail_msg("%s: cannot read LAUNCH word '%s'", run->path, word);
        }
        uint32_t *to = !strcmp(name, "grid")      ? &run->grid
                       : !strcmp(name, "block")   ? &run->block
                       : !strcmp(name, "cluster") ? &run->cluster
                       : !strcmp(name, "smem")    ? &run->shared_bytes
                                                  : NULL;
        assert_non_null(to);
        *to = value;
    }
}

static unsigned check_expects(const char *text, const struct run *run)
{
    char line[256];
    unsigned n = 0;
    for (const char *at = text; (at = next_line(at, "EXPECT", line, sizeof line)); n++) {
        unsigned first, last;
        long long a = 0, b = 0;
        int used = 0;
        if (sscanf(line, "out[%u..%u] = %lli i + %lli%n", &first, &last, &a, &b, &used) != 4 || line[used]) {
            a = 0;
            if (sscanf(line, "out[%u..%u] = %lli%n", &first, &last, &b, &used) != 3 || line[used]) {
                fail_msg("%s: cannot read EXPECT: %s", run->path, line);
            }
        }
        assert_true(first <= last && last < WORDS);
        for (unsigned i = first; i <= last; i++) {
            const uint32_t wanted = (uint32_t)(a * (long long)i + b);
            if (run->out[i] != wanted) {
                fail_msg("%s: out[%u] is 0x%x, wanted 0x%x (%s)", run->path, i, run->out[i], wanted, line);
            }
        }
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

static unsigned check_counts(const char *text, const struct run *run)
{
    char line[256];
    unsigned n = 0;
    for (const char *at = text; (at = next_line(at, "COUNT", line, sizeof line)); n++) {
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

static unsigned check_fault(const char *text, const struct run *run)
{
    char line[256], code[64];
    int used = 0;
    if (!next_line(text, "FAULT", line, sizeof line)) {
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
static unsigned check_prints(const char *text, const struct run *run)
{
    char line[256];
    unsigned n = 0;
    const char *got = run->printed;
    for (const char *at = text; (at = next_line(at, "PRINT", line, sizeof line)); n++) {
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
    assert_true(access->lane < 32 && access->bytes > 0 && access->space < CLAB_SPACE_COUNT);
    atomic_fetch_add(&seen[access->kind][access->space], 1);
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
        .grid = {run->grid, 1, 1},
        .block = {run->block, 1, 1},
        .cluster = {run->cluster, 1, 1},
        .explicit_cluster = run->cluster > 1,
        .dynamic_shared_bytes = run->shared_bytes,
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
    struct run run = {.path = path};
    size_t bytes;
    char *text = clab_file_read(path, 1u << 20, &bytes);
    assert_non_null(text);
    directives_read(text, &run);
    const struct emu_model *model = emu_model_get(run.device);
    assert_non_null(model);
    struct emu_machine *machine;
    struct emu_module *module;
    struct emu_kernel *kernel;
    assert_int_equal(emu_machine_new(model, &machine, &run.error), CLAB_OK);
    if (emu_module_load(machine, text, bytes, path, &module, &run.error) != CLAB_OK ||
        emu_module_kernel(module, emu_module_entry_name(module, 0), &kernel, &run.error) != CLAB_OK) {
        fail_msg("%s:%u: %s", path, run.error.line, run.error.message);
    }
    const uint64_t in = emu_memory_alloc(machine, WORDS * 4, EMU_MEMORY_DEVICE);
    const uint64_t out = emu_memory_alloc(machine, WORDS * 4, EMU_MEMORY_DEVICE);
    static const struct emu_hooks observer = {.access = see_access};
    for (uint32_t seed = 0; seed < 2 * run.seeds; seed++) {
        emu_machine_options(machine)->seed = seed / 2;
        emu_machine_options(machine)->hooks = seed % 2 ? &observer : NULL;
        launch_once(machine, kernel, &run, in, out);
        const unsigned checks = check_fault(text, &run) + check_expects(text, &run) +
                                check_counts(text, &run) + check_prints(text, &run);
        if (!checks) {
            fail_msg("%s: expects nothing", path);
        }
        if (seed % 2) {
            check_seen(&run);
        }
    }
    free(run.printed);
    emu_module_unload(module);
    emu_machine_free(machine);
    clab_error_clear(&run.error);
    free(text);
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
