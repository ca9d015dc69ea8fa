/* Kernels on the machine itself (on_machine.h). With FUZZ_SHOW=1 in the environment it prints the text and
   how the launch ended. */
#include "on_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "emu/hook.h"

enum { BUDGET = 20000, MODELS = 16 }; /* warp instructions of a launch */

void fuzz_broken(const char *what, const char *text)
{
    fprintf(stderr, "fuzz: %s\n%s\n", what, text);
    abort();
}

static void op_seen(void *user, struct emu_warp *warp, const struct emu_op *op)
{
    (void)user, (void)warp, (void)op;
}

static void access_seen(void *user, const struct emu_warp *warp, const struct emu_op *op,
                        const struct emu_access *access)
{
    (void)user, (void)warp, (void)op, (void)access;
}

static void event_seen(void *user, const struct emu_cta *cta, const struct emu_warp *warp,
                       const struct emu_op *op, const struct emu_event *event)
{
    (void)user, (void)cta, (void)warp, (void)op, (void)event;
}

struct emu_machine *fuzz_machine(unsigned model)
{
    static struct emu_machine *machines[MODELS];
    struct clab_error error = {0};
    if (model >= MODELS ||
        (machines[model] == NULL && emu_machine_new(&emu_models[model], &machines[model], &error) != CLAB_OK))
        fuzz_broken("no machine", error.message);
    return machines[model];
}

static void options_set(struct emu_machine *machine, unsigned how)
{
    static const struct emu_hooks hooks = {.op = op_seen, .access = access_seen, .event = event_seen};
    struct emu_options *options = emu_machine_options(machine);
    options->schedule = how & FUZZ_FAIR ? EMU_SCHEDULE_FAIR : EMU_SCHEDULE_FAST;
    options->threads = how & FUZZ_THREADS ? 2 : 1;
    check_channel.enable(how & FUZZ_CHECK ? 1 : 0);
    options->hooks = how & FUZZ_CHECK ? check_hooks() : how & FUZZ_HOOKS ? &hooks : NULL;
    options->initial_clusters = how & FUZZ_ONE_CLUSTER ? 1 : 0;
    options->decline = how & FUZZ_DECLINE ? 1 : UINT32_MAX;
    options->driver_version = how & FUZZ_DRIVER ? 90 : 0;
    options->seed = how >> FUZZ_SEED_SHIFT;
    options->trace_cta = options->trace_warp = how & FUZZ_TRACE ? 0 : -1;
    options->trace_file = "/dev/null";
    options->instruction_budget = BUDGET;
}

static clab_status run(struct emu_machine *machine, struct emu_kernel *kernel, struct emu_launch *launch,
                       void (*fill)(void *user, uint64_t buffer), void *user, struct clab_error *error)
{
    struct emu_kernel_info info;
    struct clab_counters counters;
    emu_kernel_info_get(kernel, &info);
    uint64_t buffer = emu_memory_alloc(machine, FUZZ_BUFFER, EMU_MEMORY_DEVICE);
    unsigned char *params = calloc(1, info.param_bytes + 64u);
    if (buffer == 0 || params == NULL) {
        free(params);
        if (buffer != 0)
            emu_memory_free(machine, buffer);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the launch");
    }
    uint32_t *words = (uint32_t *)(uintptr_t)buffer;
    memset(words, 0, FUZZ_BUFFER);
    for (unsigned i = 0; i < FUZZ_BUFFER / 8; i++)
        words[i] = i;
    if (fill)
        fill(user, buffer);
    for (uint32_t i = 0; i < info.n_params; i++) {
        uint64_t value = info.param_sizes[i] == 8 ? buffer + (i ? FUZZ_BUFFER / 2 : 0) : 5 + i;
        if (info.param_sizes[i] >= 64)
            memcpy(params + info.param_offsets[i], words + FUZZ_MAPS / 4,
                   info.param_sizes[i] < 128 ? info.param_sizes[i] : 128);
        else
            memcpy(params + info.param_offsets[i], &value, info.param_sizes[i] < 8 ? info.param_sizes[i] : 8);
    }
    launch->kernel = kernel;
    launch->params = params;
    clab_status status = emu_launch_run(machine, launch, &counters, error);
    free(params);
    emu_memory_free(machine, buffer);
    return status;
}

void fuzz_launch(struct emu_machine *machine, unsigned how, const char *text, size_t bytes, const char *entry,
                 struct emu_launch *launch, void (*fill)(void *user, uint64_t buffer), void *user)
{
    bool show = getenv("FUZZ_SHOW") != NULL;
    uint64_t free_before, free_after, total;
    struct emu_module *module = NULL;
    struct emu_kernel *kernel = NULL;
    struct clab_error error = {0};
    if (show)
        fprintf(stderr, "%.*s\n", (int)bytes, text);
    options_set(machine, how);
    emu_memory_info(machine, &free_before, &total);
    clab_status status = emu_module_load(machine, text, bytes, "generated", &module, &error);
    if (status == CLAB_OK) {
        entry = entry ? entry : emu_module_entry_name(module, 0);
        if (entry)
            status = emu_module_kernel(module, entry, &kernel, &error);
        if (kernel)
            status = run(machine, kernel, launch, fill, user, &error);
        emu_module_unload(module);
    }
    if (show)
        fprintf(stderr, "ended with %d: %s\n", (int)status, status == CLAB_OK ? "" : error.message);
    if (status != CLAB_OK && error.message[0] == '\0')
        fuzz_broken("an error without words", text);
    clab_error_clear(&error);
    if (how & FUZZ_CHECK) {
        struct clab_hazard *hazards = NULL;
        size_t n = 0;
        if (check_channel.take(&hazards, &n) == 0)
            free(hazards);
        check_channel.enable(0);
    }
    emu_memory_heap_clear(machine);
    emu_memory_info(machine, &free_after, &total);
    if (free_after != free_before)
        fuzz_broken("the machine holds other memory than before", text);
}
