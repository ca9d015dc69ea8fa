/* Launches (core.h): sets a grid up, runs it on the calling thread and others, adds up what they counted. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu/float_mode.h"
#include "emu/hook.h"
#include "emu/log.h"
#include "emu/module.h"
#include "emu/pool.h"
#include "emu/report.h"
#include "emu/sched.h"
#include "emu/trace.h"

#define DEEP_STACK_BYTES                                                                                     \
    16384u /* per thread, of kernels whose need is not known: recursion, indirect calls. CU_LIMIT_STACK_SIZE \
              comes to it: frames are larger here than those that ptxas makes, which have parameters in      \
              registers */
#define REPORT_LINES 64u
/* Backward branches before a fragment gives way; those of polling loops count 8192 (decode.c). */
#define SLICE_FUEL      65536
#define SLICE_FUEL_FAIR 16 /* slices are short: their order is that of virtual time */

static uint64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* %globaltimer never runs backwards from one launch to the next, though virtual time may be ahead of the
 * host's. */
static uint64_t start_time(struct emu_machine *machine)
{
    uint64_t last = atomic_load(&machine->last_ns), now;
    do {
        const uint64_t host = realtime_ns();
        now = host > last ? host : last + 1;
    } while (!atomic_compare_exchange_weak(&machine->last_ns, &last, now));
    return now;
}

static void end_time(struct emu_machine *machine, uint64_t end)
{
    uint64_t last = atomic_load(&machine->last_ns);
    while (end > last && !atomic_compare_exchange_weak(&machine->last_ns, &last, end)) {
    }
}

static uint32_t thread_count(const struct emu_run *run)
{
    uint32_t n = run->machine->options.threads;
    if (run->machine->options.schedule == EMU_SCHEDULE_FAIR || (run->hooks && run->hooks->one_thread)) {
        return 1;
    }
    if (n == 0) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online > 0 ? (uint32_t)online : 1;
    }
    n = n > 256 ? 256 : n;
    return n > run->n_clusters ? (uint32_t)run->n_clusters : n;
}

static void *thread_main(void *argument)
{
    emu_thread_run(argument);
    return NULL;
}

/* Helper threads take no signals: those belong to the program. */
static void run_threads(struct emu_run *run)
{
    if (run->machine->options.schedule == EMU_SCHEDULE_FAIR) {
        emu_thread_run_fair(&run->threads[0]);
        return;
    }
    if (run->hooks && run->hooks->one_thread) {
        emu_thread_run_seeded(&run->threads[0]);
        return;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    uint32_t started = 1;
    while (started < run->n_threads &&
           pthread_create(&run->threads[started].handle, NULL, thread_main, &run->threads[started]) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* A thread that could not be had counts as done; the rest does its work. */
    for (uint32_t i = started; i < run->n_threads; i++) {
        atomic_store(&run->threads[i].done, true);
        atomic_fetch_sub(&run->machine->running, 1);
    }
    emu_thread_run(&run->threads[0]);
    for (uint32_t i = 1; i < started; i++) {
        pthread_join(run->threads[i].handle, NULL);
    }
}

static void add_counters(const struct emu_run *run, struct clab_counters *out)
{
    for (uint32_t i = 0; i < run->n_threads; i++) {
        const struct emu_thread *thread = &run->threads[i];
        emu_traffic_add(out, &thread->traffic);
        out->warp_instructions += thread->warp_insns[0];
        out->thread_instructions += thread->thread_insns[0];
        out->spin_warp_instructions += thread->warp_insns[1];
        out->spin_thread_instructions += thread->thread_insns[1];
        out->barriers += thread->barriers;
        out->cluster_barriers += thread->cluster_barriers;
        out->ctas += thread->ctas;
        out->clusters += thread->clusters;
    }
}

/* A launch without clusters fills the SMs' CTA slots; one with clusters has fewer (occupancy.c). */
static uint32_t residency(const struct emu_run *run)
{
    const struct emu_kernel *kernel = run->launch->kernel;
    const uint32_t clusters =
        run->machine->options.initial_clusters ? run->machine->options.initial_clusters
        : run->launch->explicit_cluster || run->cluster_size > 1
            ? emu_occupancy_clusters(run->model, kernel, run->threads_per_cta, run->dynamic_shared_bytes,
                                     run->cluster_size)
            : run->model->sms *
                  emu_occupancy_ctas(run->model, kernel, run->threads_per_cta, run->dynamic_shared_bytes);
    return (clusters ? clusters : 1) * run->cluster_size;
}

static clab_status hooks_init(struct emu_run *run, struct emu_trace **out_trace, struct clab_error *error)
{
    const struct emu_options *options = &run->machine->options;
    run->hooks = run->launch->hooks ? run->launch->hooks : options->hooks;
    if (options->trace_cta >= 0 && options->trace_warp >= 0) {
        *out_trace = emu_trace_new(options->trace_file, (uint64_t)options->trace_cta,
                                   (uint32_t)options->trace_warp, run->hooks, error);
        if (!*out_trace) {
            return error ? error->status : CLAB_OUTPUT;
        }
        run->hooks = emu_trace_hooks(*out_trace);
    }
    return CLAB_OK;
}

/* A trace of a warp that the launch does not have would be empty without a word. */
static void note_absent(const struct emu_run *run)
{
    const struct emu_options *options = &run->machine->options;
    const uint64_t ctas = run->n_clusters * run->cluster_size;
    if (options->trace_cta < 0 || options->trace_warp < 0 ||
        ((uint64_t)options->trace_cta < ctas && (uint32_t)options->trace_warp < run->warps_per_cta)) {
        return;
    }
    emu_log_once("nothing to trace: %s has no CTA %d, warp %d (CTAs 0 to %llu, warps 0 to %u)",
                 run->code->function->name, options->trace_cta, options->trace_warp,
                 (unsigned long long)ctas - 1, run->warps_per_cta - 1);
}

/* cooperative_groups.h traps when a grid's barrier is used that the launch did not provide. */
static void note_not_cooperative(const struct emu_run *run, struct clab_error *error)
{
    if (run->code->image->reads_workspace && !run->launch->cooperative &&
        run->fault_kind == EMU_FAULT_LAUNCH_FAILED && strncmp(error->instruction, "trap", 4) == 0) {
        clab_error_remedy(error,
                          "the kernel uses a barrier of the whole grid (grid_group::sync), which needs a "
                          "cooperative launch: cuLaunchCooperativeKernel, --cooperative, cooperative = true");
    }
}

/* Legal, and pointless: cluster launch control in a grid that leaves nothing to take over. */
static void note_nothing_to_take(const struct emu_run *run, const struct clab_counters *counters)
{
    if (counters->clc_declined == 0 || counters->clc_granted > 0 ||
        run->n_clusters > run->resident_limit / run->cluster_size) {
        return;
    }
    emu_log_once("%s asked for clusters that have not started, and there were none: all %llu start at once. "
                 "Launch one "
                 "for each piece of work, not one for each SM",
                 run->code->function->name, (unsigned long long)run->n_clusters);
}

/* A small budget is looked at more often: every 64 slices (sched.c), in which loops go round that often. */
static int32_t slice_fuel(const struct emu_run *run)
{
    const uint64_t budget = run->machine->options.instruction_budget;
    if (run->clocked) {
        return SLICE_FUEL_FAIR;
    }
    return budget == 0 || budget / 64 > SLICE_FUEL ? SLICE_FUEL
           : budget / 64 < SLICE_FUEL_FAIR         ? SLICE_FUEL_FAIR
                                                   : (int32_t)(budget / 64);
}

static clab_status run_init(struct emu_run *run, struct clab_error *error)
{
    const struct emu_launch *launch = run->launch;
    struct emu_machine *machine = run->machine;
    const struct emu_image *image;
    const bool hooks = run->hooks != NULL;
    clab_status status = emu_kernel_image(launch->kernel, machine->options.isa, hooks,
                                          machine->options.schedule == EMU_SCHEDULE_FAIR, &image, error);
    if (status != CLAB_OK) {
        return status;
    }
    run->code = image->entry; /* held until run_fini */
    run->cluster_size = run->threads_per_cta = 1;
    run->n_clusters = 1;
    for (unsigned k = 0; k < 3; k++) {
        run->grid[k] = launch->grid[k];
        run->block[k] = launch->block[k];
        run->cluster[k] = launch->cluster[k] ? launch->cluster[k] : 1;
        run->clusters[k] = run->grid[k] / run->cluster[k];
        run->cluster_size *= run->cluster[k];
        run->threads_per_cta *= run->block[k];
        run->n_clusters *= run->clusters[k];
    }
    if (run->threads_per_cta == 0 || run->threads_per_cta > EMU_MAX_WARPS * EMU_LANES ||
        run->cluster_size == 0 || run->cluster_size > EMU_MAX_CLUSTER || run->n_clusters == 0) {
        return clab_error_set(error, CLAB_LAUNCH,
                              "a launch of %llu clusters of %u CTAs of %u threads cannot run",
                              (unsigned long long)run->n_clusters, run->cluster_size, run->threads_per_cta);
    }
    run->end_cluster = run->n_clusters;
    run->warps_per_cta = (run->threads_per_cta + EMU_LANES - 1) / EMU_LANES;
    run->dynamic_shared_bytes = launch->dynamic_shared_bytes;
    run->shared_bytes = image->static_shared_bytes + launch->dynamic_shared_bytes;
    run->room_bytes = run->shared_bytes;
    /* Halide counts the addresses of its dynamic shared memory from 0, declaring no variable: on an H200 too
       that is memory (tests/emu/memory/fault_shared_reserved.ptx). */
    if (image->reads_reserved || (image->names_no_shared && launch->dynamic_shared_bytes > 0)) {
        run->room_bytes = ((run->shared_bytes + 15) & ~UINT32_C(15)) + EMU_SHARED_FIRST;
    }
    run->local_bytes = (image->local_bytes + 15) & ~UINT32_C(15);
    run->local_bytes += image->deep ? DEEP_STACK_BYTES + ((launch->stack_bytes + 15) & ~UINT32_C(15)) : 0;
    run->resident_limit = residency(run);
    run->clocked = machine->options.schedule == EMU_SCHEDULE_FAIR;
    run->counted = (hooks && run->hooks->op) || run->clocked || image->reads_clock;
    run->slice_fuel = slice_fuel(run);
    run->param_bytes = launch->kernel->info.param_bytes;
    if (run->param_bytes) {
        run->params = emu_space_params_take(machine->space, run->param_bytes);
        if (!run->params) {
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for %u bytes of parameters",
                                  run->param_bytes);
        }
        memcpy((void *)(uintptr_t)run->params, launch->params, run->param_bytes);
    }
    if (launch->cooperative) {
        run->workspace = emu_space_workspace_take(machine->space, EMU_WORKSPACE_BYTES);
        if (!run->workspace) {
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the barrier of a cooperative grid");
        }
        /* An H200 (driver 13.0, 2026-11-30): its size, the barrier, and a 1. */
        const uint32_t words[4] = {EMU_WORKSPACE_BYTES, 0, 1, 0};
        memcpy((void *)(uintptr_t)run->workspace, words, sizeof words);
    }
    run->n_threads = thread_count(run);
    run->threads = aligned_alloc(_Alignof(struct emu_thread), run->n_threads * sizeof *run->threads);
    if (!run->threads) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for %u host threads", run->n_threads);
    }
    memset(run->threads, 0, run->n_threads * sizeof *run->threads);
    for (uint32_t i = 0; i < run->n_threads; i++) {
        run->threads[i].run = run;
        run->threads[i].pool = emu_pool_new(image->n_codes);
        if (!run->threads[i].pool) {
            return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for %u host threads", run->n_threads);
        }
    }
    run->report_lines = REPORT_LINES;
    run->grid_id = atomic_fetch_add(&machine->next_grid, 1) + 1;
    run->start_ns = start_time(machine);
    return CLAB_OK;
}

static void run_fini(struct emu_run *run)
{
    for (uint32_t i = 0; run->threads && i < run->n_threads; i++) {
        emu_pool_free(run->threads[i].pool);
    }
    free(run->threads);
    if (run->params) {
        emu_space_params_give(run->machine->space, run->params);
    }
    emu_space_params_give(run->machine->space, run->workspace);
    clab_str_free(&run->report);
    clab_error_clear(&run->own_error);
    if (run->code) {
        emu_kernel_release(run->launch->kernel);
    }
}

clab_status emu_launch_run(struct emu_machine *machine, const struct emu_launch *launch,
                           struct clab_counters *out_counters, struct clab_error *error)
{
    struct emu_run run = {.machine = machine,
                          .model = launch->model != NULL ? launch->model : machine->model,
                          .launch = launch,
                          .error = error};
    memset(out_counters, 0, sizeof *out_counters);
    if (pthread_mutex_init(&run.lock, NULL) != 0) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for a launch");
    }
    struct emu_trace *trace = NULL;
    clab_status status = hooks_init(&run, &trace, error);
    if (status == CLAB_OK) {
        status = run_init(&run, error);
    }
    if (status == CLAB_OK) {
        note_absent(&run);
        if (run.hooks && run.hooks->begin) {
            run.hooks->begin(run.hooks->user, &run);
        }
        fenv_t program;
        atomic_fetch_add(&machine->running, run.n_threads);
        emu_float_enter(&program);
        run_threads(&run);
        emu_float_leave(&program);
        add_counters(&run, out_counters);
        note_nothing_to_take(&run, out_counters);
        end_time(machine, run.start_ns + atomic_load(&run.time_ns));
        emu_machine_progress(machine);
        status = run.status;
        if (status != CLAB_OK && error) {
            if (run.report.text) {
                clab_error_log(error, run.report.text, run.report.bytes);
            }
            if (status == CLAB_FAULT) {
                emu_fault_native(error, run.fault_kind);
                note_not_cooperative(&run, error);
            } else if (status == CLAB_TIMEOUT) {
                clab_error_remedy(error, "--emu-budget N gives another budget, 0 none (for programs that "
                                         "clusterlab does not start: CLUSTERLAB_EMU_BUDGET=N)");
            }
        }
        if (run.hooks && run.hooks->end) {
            run.hooks->end(run.hooks->user, &run, status, error ? error : &run.own_error);
        }
    }
    emu_trace_free(trace);
    run_fini(&run);
    pthread_mutex_destroy(&run.lock);
    return status;
}
