/* Runs one PTX test file on the machine, without the driver surface, and compares what it did with what its
   comments expect. Directives, each on a line of its own after `//`:

     RUN: entry=NAME grid=X[,Y[,Z]] block=… [cluster=…] [shared=BYTES] [arch=sm_90] [budget=N] [initial=N]
   [local] ARG: u32 7 | u64 7 | f32 1.5           a scalar argument ARG: name u32[16] zero|ones|iota|N     a
   buffer of u32, f32 or u64, its address as the argument EXPECT: name[i] = v v v …              values from
   element i on EXPECT-ALL: name = v                   every element EXPECT-SUM: name = v sum of all elements
   (as double) EXPECT-STATUS: DEADLOCK                default OK EXPECT-TEXT: words                     found
   in the formatted error; may repeat EXPECT-COUNT: warp_instructions = 12   a member of struct clab_counters;
   may repeat

   Every file runs with one host thread and with three, without hooks and with them, with each instruction
   set, and with the schedule `fair`. Usage: emu_kernels FILE. A file without any expectation is an error. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "emu/code.h"
#include "emu/core.h"
#include "emu/hook.h"

#define MAX_ITEMS 64

struct item {
    char kind[24];
    char text[512];
};
struct buffer {
    char name[32];
    char type[8];
    uint64_t count, address;
    unsigned size;
};

static struct item items[MAX_ITEMS];
static unsigned n_items;

static int fail(const char *file, const char *format, const char *a, const char *b)
{
    fprintf(stderr, "%s: ", file);
    fprintf(stderr, format, a, b);
    fprintf(stderr, "\n");
    return 1;
}

static void read_items(const char *text)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        struct item item = {0};
        if (sscanf(line, "// %23[A-Z-]: %511[^\n]", item.kind, item.text) == 2 && n_items < MAX_ITEMS) {
            items[n_items++] = item;
        }
    }
}

static bool option(const char *text, const char *name, char *out, size_t size)
{
    char key[32];
    snprintf(key, sizeof key, "%s=", name);
    const char *at = strstr(text, key);
    if (!at) {
        return false;
    }
    at += strlen(key);
    snprintf(out, size, "%.*s", (int)strcspn(at, " "), at);
    return true;
}

static void dimensions(const char *text, const char *name, uint32_t out[3])
{
    char value[64];
    out[0] = out[1] = out[2] = 1;
    if (option(text, name, value, sizeof value)) {
        sscanf(value, "%u,%u,%u", &out[0], &out[1], &out[2]);
    }
}

static unsigned type_size(const char *type)
{
    return strcmp(type, "u64") == 0 || strcmp(type, "f64") == 0 ? 8 : 4;
}

static void put(void *to, const char *type, double value)
{
    const uint32_t u32 = (uint32_t)(int64_t)value;
    const uint64_t u64 = (uint64_t)(int64_t)value;
    const float f32 = (float)value;
    memcpy(to,
           type[0] == 'f'         ? (type_size(type) == 8 ? (const void *)&value : &f32)
           : type_size(type) == 8 ? (const void *)&u64
                                  : &u32,
           type_size(type));
}

static double get(const void *from, const char *type)
{
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    float f32;
    double f64;
    if (type[0] == 'f') {
        memcpy(&f32, from, 4);
        memcpy(&f64, from, type_size(type));
        return type_size(type) == 8 ? f64 : (double)f32;
    }
    memcpy(&u32, from, 4);
    memcpy(&u64, from, type_size(type));
    return type_size(type) == 8 ? (double)u64 : (double)u32;
}

static void fill(const struct buffer *buffer, const char *how)
{
    for (uint64_t i = 0; i < buffer->count; i++) {
        const double value = strcmp(how, "ones") == 0   ? 1
                             : strcmp(how, "iota") == 0 ? (double)i
                             : strcmp(how, "zero") == 0 ? 0
                                                        : strtod(how, NULL);
        put((char *)(uintptr_t)buffer->address + i * buffer->size, buffer->type, value);
    }
}

static const struct {
    const char *name;
    size_t offset;
} counters[] = {
#define COUNTER(name)                               \
    {                                               \
#name, offsetof(struct clab_counters, name) \
    }
    COUNTER(warp_instructions),
    COUNTER(thread_instructions),
    COUNTER(atomics_global),
    COUNTER(atomics_shared),
    COUNTER(atomics_remote),
    COUNTER(barriers),
    COUNTER(cluster_barriers),
    COUNTER(mbarrier_arrives),
    COUNTER(mbarrier_phases),
    COUNTER(async_stores),
    COUNTER(bulk_copies),
    COUNTER(bulk_requested_bytes),
    COUNTER(bulk_delivered_bytes),
    COUNTER(clc_granted),
    COUNTER(clc_declined),
    COUNTER(ctas),
    COUNTER(clusters),
    COUNTER(spin_warp_instructions),
    COUNTER(spin_thread_instructions)
#undef COUNTER
};

static int check_count(const char *file, const char *text, const struct clab_counters *got)
{
    char name[48];
    unsigned long long want;
    if (sscanf(text, "%47[a-z_] = %llu", name, &want) != 2) {
        return fail(file, "EXPECT-COUNT: cannot read '%s'%s", text, "");
    }
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        if (strcmp(counters[i].name, name) == 0) {
            uint64_t value;
            char have[64];
            memcpy(&value, (const char *)got + counters[i].offset, sizeof value);
            snprintf(have, sizeof have, "%llu", (unsigned long long)value);
            return value == want ? 0 : fail(file, "counter %s, got %s", text, have);
        }
    }
    return fail(file, "EXPECT-COUNT: unknown counter '%s'%s", name, "");
}

static int check_buffer(const char *file, const struct item *item, const struct buffer *buffers,
                        unsigned n_buffers)
{
    char name[32] = "";
    unsigned long long at = 0;
    sscanf(item->text, "%31[a-z_0-9]", name);
    const struct buffer *buffer = NULL;
    for (unsigned i = 0; i < n_buffers; i++) {
        buffer = strcmp(buffers[i].name, name) == 0 ? &buffers[i] : buffer;
    }
    const char *values = strchr(item->text, '=');
    if (!buffer || !values) {
        return fail(file, "%s: no buffer '%s'", item->kind, name);
    }
    const char *bracket = strchr(item->text, '[');
    if (bracket) {
        at = strtoull(bracket + 1, NULL, 10);
    }
    const char *data = (const char *)(uintptr_t)buffer->address;
    char *next = (char *)(uintptr_t)(values + 1);
    double sum = 0;
    for (uint64_t i = 0; i < buffer->count; i++) {
        sum += get(data + i * buffer->size, buffer->type);
    }
    const bool all = strcmp(item->kind, "EXPECT-ALL") == 0;
    for (uint64_t i = at; i < buffer->count; i++) {
        char *end;
        const double want = strtod(next, &end);
        if (end == next) {
            break;
        }
        const double got =
            strcmp(item->kind, "EXPECT-SUM") == 0 ? sum : get(data + i * buffer->size, buffer->type);
        if (got != want) {
            char text[96];
            snprintf(text, sizeof text, "element %llu is %.17g, wanted %.17g", (unsigned long long)i, got,
                     want);
            return fail(file, "%s: %s", item->text, text);
        }
        next = all ? next : end;
        if (strcmp(item->kind, "EXPECT-SUM") == 0) {
            break;
        }
    }
    return 0;
}

static int check(const char *file, clab_status status, const struct clab_error *error,
                 const struct clab_counters *got, const struct buffer *buffers, unsigned n_buffers)
{
    char *text = clab_error_format(error);
    int failures = 0;
    bool status_seen = false;
    for (unsigned i = 0; i < n_items; i++) {
        const struct item *item = &items[i];
        if (strcmp(item->kind, "EXPECT-STATUS") == 0) {
            static const char *const ids[] = {
#define CLAB_STATUS(id, words, exit_status) #id,
#include "base/errors.def"
#undef CLAB_STATUS
            };
            status_seen = true;
            if (strcmp(item->text, ids[status]) != 0) {
                failures += fail(file, "status %s, wanted %s", ids[status], item->text);
            }
        } else if (strcmp(item->kind, "EXPECT-TEXT") == 0) {
            if (!text || !strstr(text, item->text)) {
                failures += fail(file, "the error lacks '%s': %s", item->text, text);
            }
        } else if (strcmp(item->kind, "EXPECT-COUNT") == 0) {
            failures += check_count(file, item->text, got);
        } else if (strncmp(item->kind, "EXPECT", 6) == 0) {
            failures += check_buffer(file, item, buffers, n_buffers);
        }
    }
    if (!status_seen && status != CLAB_OK) {
        failures += fail(file, "failed: %s%s", text, "");
    }
    free(text);
    return failures;
}

static int run_once(struct emu_machine *machine, const char *file, const char *ptx, const char *run,
                    unsigned threads, const struct emu_hooks *hooks, uint64_t seed)
{
    struct clab_error error = {0};
    struct clab_counters got = {0};
    struct emu_module *module = NULL;
    struct emu_kernel *kernel = NULL;
    struct buffer buffers[16];
    unsigned n_buffers = 0;
    unsigned char params[1024] = {0};
    char entry[128] = "", value[64];
    option(run, "entry", entry, sizeof entry);
    struct emu_options *options = emu_machine_options(machine);
    options->threads = threads;
    options->hooks = hooks;
    options->schedule = seed ? EMU_SCHEDULE_FAIR : EMU_SCHEDULE_FAST;
    options->seed = seed;
    options->instruction_budget =
        option(run, "budget", value, sizeof value) ? strtoull(value, NULL, 10) : 200000000;
    options->initial_clusters =
        option(run, "initial", value, sizeof value) ? (uint32_t)strtoul(value, NULL, 10) : 0;
    clab_status status = emu_module_load(machine, ptx, strlen(ptx), file, &module, &error);
    if (status == CLAB_OK) {
        status = emu_module_kernel(module, entry, &kernel, &error);
    }
    if (status == CLAB_OK) {
        struct emu_kernel_info info;
        emu_kernel_info_get(kernel, &info);
        unsigned at = 0;
        for (unsigned i = 0; i < n_items; i++) {
            char type[8] = "", how[32] = "", name[32] = "";
            unsigned long long count;
            if (strcmp(items[i].kind, "ARG") != 0 || at >= info.n_params) {
                continue;
            }
            void *to = params + info.param_offsets[at++];
            if (sscanf(items[i].text, "%31[a-z_0-9] %7[a-z0-9][%llu] %31s", name, type, &count, how) == 4) {
                struct buffer *buffer = &buffers[n_buffers++];
                *buffer = (struct buffer){.count = count, .size = type_size(type)};
                snprintf(buffer->name, sizeof buffer->name, "%s", name);
                snprintf(buffer->type, sizeof buffer->type, "%s", type);
                buffer->address = emu_memory_alloc(machine, count * buffer->size, EMU_MEMORY_DEVICE);
                fill(buffer, how);
                memcpy(to, &buffer->address, 8);
            } else if (sscanf(items[i].text, "%7s %31s", type, how) == 2) {
                put(to, type, strtod(how, NULL));
            }
        }
        struct emu_launch launch = {.kernel = kernel, .params = params};
        dimensions(run, "grid", launch.grid);
        dimensions(run, "block", launch.block);
        dimensions(run, "cluster", launch.cluster);
        launch.explicit_cluster = strstr(run, "cluster=") != NULL;
        launch.dynamic_shared_bytes =
            option(run, "shared", value, sizeof value) ? (uint32_t)strtoul(value, NULL, 10) : 0;
        status = emu_launch_run(machine, &launch, &got, &error);
    }
    int failures = check(file, status, &error, &got, buffers, n_buffers);
    if (failures) {
        fprintf(stderr, "%s: with %u host thread%s%s, %s schedule\n", file, threads, threads == 1 ? "" : "s",
                hooks ? ", hooks" : "", seed ? "fair" : "fast");
    }
    if (getenv("EMU_SHOW")) {
        printf("warp_instructions %llu thread_instructions %llu spin %llu\n",
               (unsigned long long)got.warp_instructions, (unsigned long long)got.thread_instructions,
               (unsigned long long)got.spin_warp_instructions);
        char *text = clab_error_format(&error);
        printf("%s\n", error.status ? text : "ok");
        free(text);
    }
    for (unsigned i = 0; i < n_buffers; i++) {
        emu_memory_free(machine, buffers[i].address);
    }
    emu_module_unload(module);
    clab_error_clear(&error);
    return failures;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: emu_kernels FILE.ptx\n");
        return 2;
    }
    size_t bytes;
    char *ptx = clab_file_read(argv[1], 16 << 20, &bytes);
    if (!ptx) {
        return fail(argv[1], "%s%s", strerror(errno), "");
    }
    read_items(ptx);
    static const struct emu_hooks none; /* asks for the handlers that were compiled with hooks */
    int failures = 0;
    unsigned runs = 0, expectations = 0;
    for (unsigned i = 0; i < n_items; i++) {
        expectations += strncmp(items[i].kind, "EXPECT", 6) == 0;
        if (strcmp(items[i].kind, "RUN") != 0) {
            continue;
        }
        char arch[32] = "sm_90";
        option(items[i].text, "arch", arch, sizeof arch);
        struct emu_machine *machine = NULL;
        struct clab_error error = {0};
        if (emu_machine_new(emu_model_get(arch), &machine, &error) != CLAB_OK) {
            failures += fail(argv[1], "no machine: %s%s", error.message, "");
            continue;
        }
        runs++;
        failures += run_once(machine, argv[1], ptx, items[i].text, 1, NULL, 0);
        failures += run_once(machine, argv[1], ptx, items[i].text, 3, NULL, 0);
        failures += run_once(machine, argv[1], ptx, items[i].text, 1, &none, 0);
        static const char *const sets[] = {"base", "v3", "v4"};
        for (unsigned k = 0; k < sizeof sets / sizeof *sets; k++) {
            if (emu_set_get(sets[k], false)) {
                emu_machine_options(machine)->isa = sets[k];
                const int failed = run_once(machine, argv[1], ptx, items[i].text, 1, NULL, 0);
                failures += failed ? fail(argv[1], "with the instruction set %s%s", sets[k], "") : 0;
            }
        }
        emu_machine_options(machine)->isa = NULL;
        for (unsigned seed = 1; seed <= 3; seed++) {
            failures += run_once(machine, argv[1], ptx, items[i].text, 1, NULL, seed);
        }
        emu_machine_free(machine);
    }
    if (runs == 0 || expectations == 0) {
        failures += fail(argv[1], "no RUN or no EXPECT line%s%s", "", "");
    }
    free(ptx);
    return failures ? 1 : 0;
}
