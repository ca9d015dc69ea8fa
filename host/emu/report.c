/* What went wrong in a running kernel: faults of one operation, faults of a completion, kernels that make no
   progress. The first report of a launch is kept; the rest of the launch stops. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "emu/fragment.h"
#include "emu/mbarrier.h"
#include "emu/module.h"
#include "emu/report.h"

void emu_fault_kind_set(struct emu_warp *warp, enum emu_fault_kind kind)
{
    warp->cta->cluster->thread->fault_kind = kind;
}

static void fill_where(struct clab_error *error, const struct emu_cta *cta)
{
    error->where.has_cta = true;
    memcpy(error->where.cluster, cta->cluster->clusterid, sizeof error->where.cluster);
    memcpy(error->where.cta, cta->ctaid, sizeof error->where.cta);
    error->where.cta_rank = cta->rank;
}

/* The launch's error, to be filled by the caller, who holds run->lock; NULL when one is there already. */
static struct clab_error *first(struct emu_run *run, clab_status status, enum emu_fault_kind kind)
{
    if (run->status != CLAB_OK) {
        return NULL;
    }
    run->status = status;
    run->fault_kind = kind;
    return run->error ? run->error : &run->own_error;
}

/* "k.cu:12, inlined at k.cu:40"; nothing without line information. */
static void add_origin(struct clab_str *out, const struct ptx_module *ptx, const struct ptx_insn *insn)
{
    const char *file;
    uint32_t line, column;
    for (unsigned level = 0; level < 8 && ptx_insn_place(ptx, insn, level, &file, &line, &column); level++) {
        clab_str_addf(out, "%s%s:%u", level ? ", inlined at " : "", file, line);
    }
}

void emu_report_at(struct clab_error *error, const struct emu_code *code, uint32_t insn_index)
{
    const struct ptx_module *ptx = emu_module_ptx(code->image->module);
    const struct ptx_function *function = code->function;
    snprintf(error->kernel, sizeof error->kernel, "%s", code->image->entry->function->name);
    if (insn_index >= function->n_insns) {
        return;
    }
    const struct ptx_insn *insn = &function->insns[insn_index];
    ptx_insn_text(ptx, insn, error->instruction, sizeof error->instruction);
    clab_error_at(error, ptx->name, insn->line, insn->column);
    struct clab_str origin = {0};
    add_origin(&origin, ptx, insn);
    snprintf(error->origin, sizeof error->origin, "%s", origin.text ? origin.text : "");
    clab_str_free(&origin);
}

const struct emu_op *emu_fault(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                               clab_status status, const char *space, uint64_t address, const char *format,
                               ...)
{
    struct emu_run *run = warp->cta->run;
    struct emu_thread *thread = warp->cta->cluster->thread;
    enum emu_fault_kind kind = thread->fault_kind;
    thread->fault_kind = EMU_FAULT_NONE;
    kind = kind == EMU_FAULT_NONE ? EMU_FAULT_ILLEGAL_INSTRUCTION : kind;
    pthread_mutex_lock(&run->lock);
    struct clab_error *error = first(run, status, kind);
    if (error) {
        va_list args;
        va_start(args, format);
        clab_error_vset(error, status, format, args);
        va_end(args);
        const struct emu_frame *frame = warp->fragment ? warp->fragment->frame : NULL;
        if (frame) {
            emu_report_at(error, frame->code, op->insn);
        }
        fill_where(error, warp->cta);
        error->where.has_warp = true;
        error->where.warp = warp->index;
        error->where.has_lane = lane < EMU_LANES;
        error->where.lane = lane < EMU_LANES ? lane : 0;
        if (space) {
            snprintf(error->space, sizeof error->space, "%s", space);
            error->has_address = true;
            error->address = address;
        }
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stop, 1);
    warp->stop = EMU_STOP_FAULT;
    return NULL;
}

void emu_fault_async(struct emu_cluster *cluster, const struct emu_cta *cta, enum emu_fault_kind kind,
                     const char *space, uint64_t address, const char *format, ...)
{
    struct emu_run *run = cluster->run;
    pthread_mutex_lock(&run->lock);
    struct clab_error *error = first(run, CLAB_FAULT, kind);
    if (error) {
        va_list args;
        va_start(args, format);
        clab_error_vset(error, CLAB_FAULT, format, args);
        va_end(args);
        const struct emu_async *item = cluster->completing;
        snprintf(error->kernel, sizeof error->kernel, "%s", run->code->function->name);
        if (item && item->code) {
            fill_where(error, item->issuer);
            emu_report_at(error, item->code, item->insn);
            error->where.has_warp = true;
            error->where.warp = item->warp;
            error->where.has_lane = item->lane < EMU_LANES;
            error->where.lane = item->lane < EMU_LANES ? item->lane : 0;
        } else if (cta) {
            fill_where(error, cta);
        }
        if (space) {
            snprintf(error->space, sizeof error->space, "%s", space);
            error->has_address = true;
            error->address = address;
        }
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stop, 1);
}

void emu_fault_native(struct clab_error *error, enum emu_fault_kind kind)
{
    static const struct {
        int code;
        const char *name;
    } shows[] = {
        [EMU_FAULT_NONE] = {719, "CUDA_ERROR_LAUNCH_FAILED"},
        [EMU_FAULT_ILLEGAL_ADDRESS] = {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        [EMU_FAULT_MISALIGNED_ADDRESS] = {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        [EMU_FAULT_INVALID_ADDRESS_SPACE] = {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
        [EMU_FAULT_LAUNCH_FAILED] = {719, "CUDA_ERROR_LAUNCH_FAILED"},
        [EMU_FAULT_ILLEGAL_INSTRUCTION] = {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
        [EMU_FAULT_INVALID_PC] = {718, "CUDA_ERROR_INVALID_PC"},
        [EMU_FAULT_ASSERT] = {710, "CUDA_ERROR_ASSERT"},
    };
    clab_error_native(error, "cuStreamSynchronize", shows[kind].code, shows[kind].name);
}

void emu_run_fail(struct emu_run *run, clab_status status, const char *format, ...)
{
    pthread_mutex_lock(&run->lock);
    struct clab_error *error = first(run, status, EMU_FAULT_NONE);
    if (error) {
        va_list args;
        va_start(args, format);
        clab_error_vset(error, status, format, args);
        va_end(args);
        snprintf(error->kernel, sizeof error->kernel, "%s", run->code->function->name);
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stop, 1);
}

/* --- no progress */

static void describe_cta(struct clab_str *out, const struct emu_cta *cta)
{
    const struct emu_cluster *cluster = cta->cluster;
    clab_str_addf(out, "CTA (%u,%u,%u)", cta->ctaid[0], cta->ctaid[1], cta->ctaid[2]);
    if (cluster->size > 1) {
        clab_str_addf(out, " rank %u of cluster (%u,%u,%u)", cta->rank, cluster->clusterid[0],
                      cluster->clusterid[1], cluster->clusterid[2]);
    }
}

/* Warps of a CTA that a barrier still waits for. */
static void describe_missing(struct clab_str *out, const struct emu_cta *cta,
                             const struct emu_barrier *barrier)
{
    unsigned listed = 0;
    for (uint32_t w = 0; w < cta->n_warps; w++) {
        const uint32_t waiting = barrier->whole_warps >> w & 1 ? EMU_ALL : barrier->lanes[w];
        const uint32_t missing = cta->warps[w].live & ~waiting;
        if (missing && listed++ < 8) {
            clab_str_addf(out, "%s warp %u", listed == 1 ? "; not there:" : ",", w);
            if (missing != cta->warps[w].live) {
                clab_str_addf(out, " lanes %08x", missing);
            }
        }
    }
    if (listed > 8) {
        clab_str_addf(out, " and %u more", listed - 8);
    }
}

static void describe_cluster_missing(struct clab_str *out, const struct emu_cluster *cluster)
{
    unsigned listed = 0;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        const struct emu_cta *cta = &cluster->ctas[rank];
        for (uint32_t w = 0; w < cta->n_warps; w++) {
            const uint32_t current =
                cluster->barrier_phase & 1 ? cta->cluster_parity[w] : ~cta->cluster_parity[w];
            const uint32_t missing = cta->warps[w].live & ~(cta->cluster_arrived[w] & current);
            if (missing && listed++ < 8) {
                clab_str_addf(out, "%s rank %u warp %u", listed == 1 ? "; not there:" : ",", rank, w);
                if (missing != cta->warps[w].live) {
                    clab_str_addf(out, " lanes %08x", missing);
                }
            }
        }
    }
    if (listed > 8) {
        clab_str_addf(out, " and %u more", listed - 8);
    }
}

static void describe_mbarrier(struct clab_str *out, const struct emu_cta *cta, uint32_t address)
{
    clab_str_addf(out, "waits at the mbarrier at shared address 0x%x", (unsigned)address);
    if (!emu_mbarrier_is_live(cta, address)) {
        return;
    }
    const struct emu_mbarrier_view view = emu_mbarrier_view(cta, address);
    clab_str_addf(out, ": %u of %u arrivals missing", view.pending, view.expected);
    if (view.expected_bytes != 0 || view.arrived_bytes != 0) {
        clab_str_addf(out, "; %u bytes expected, %u arrived", view.expected_bytes, view.arrived_bytes);
    }
}

static void describe_wait(struct clab_str *out, const struct emu_warp *warp,
                          const struct emu_fragment *fragment)
{
    const struct emu_cta *cta = warp->cta;
    switch (fragment->wait) {
    case EMU_WAIT_BARRIER: {
        const struct emu_barrier *barrier = &cta->barriers[fragment->wait_key % EMU_NAMED_BARRIERS];
        clab_str_addf(out, "waits at barrier %u: %u threads of %u arrived", (unsigned)fragment->wait_key,
                      barrier->arrived, barrier->expected ? barrier->expected : cta->live_threads);
        describe_missing(out, cta, barrier);
        break;
    }
    case EMU_WAIT_CLUSTER_BARRIER:
        clab_str_addf(out, "waits at the cluster barrier: %u threads of %u live ones arrived",
                      cta->cluster->barrier_arrived, cta->cluster->live_threads);
        describe_cluster_missing(out, cta->cluster);
        break;
    case EMU_WAIT_COLLECTIVE:
        clab_str_addf(out, "waits for the lanes of member mask %08x; not there: %08x",
                      (unsigned)fragment->wait_key,
                      (unsigned)fragment->wait_key & warp->live & ~warp->gathered);
        break;
    case EMU_WAIT_MBARRIER:
        describe_mbarrier(out, cta, (uint32_t)fragment->wait_key);
        break;
    case EMU_WAIT_COPY:
        clab_str_add(out, "waits for asynchronous copies");
        break;
    case EMU_WAIT_SLEEP:
        clab_str_add(out, "sleeps");
        break;
    default:
        clab_str_add(out, "waits");
        break;
    }
}

static bool same_wait(const struct emu_warp *a, const struct emu_warp *b)
{
    if (b->used == 0 || (b->used & (b->used - 1)) != 0) {
        return false;
    }
    const struct emu_fragment *f = &a->fragments[__builtin_ctz(a->used)],
                              *g = &b->fragments[__builtin_ctz(b->used)];
    return f->state == g->state && f->pc == g->pc && f->wait == g->wait && f->wait_key == g->wait_key &&
           a->live == b->live;
}

static void describe_fragment(struct clab_str *out, const struct emu_warp *warp,
                              const struct emu_fragment *fragment, uint32_t last_warp)
{
    const struct emu_code *code = fragment->frame->code;
    const struct ptx_module *ptx = emu_module_ptx(code->image->module);
    describe_cta(out, warp->cta);
    if (last_warp > warp->index) {
        clab_str_addf(out, " warps %u to %u", warp->index, last_warp);
    } else {
        clab_str_addf(out, " warp %u", warp->index);
    }
    if (fragment->mask != warp->live) {
        clab_str_addf(out, " lanes %08x", fragment->mask);
    }
    const uint32_t index = fragment->pc->insn;
    if (index < code->function->n_insns) {
        /* A barrier's waiter goes on after it: name the barrier. */
        const bool passed =
            fragment->state == EMU_FRAGMENT_WAITING && fragment->wait == EMU_WAIT_NONE && index > 0;
        const struct ptx_insn *insn = &code->function->insns[passed ? index - 1 : index];
        char text[160];
        ptx_insn_text(ptx, insn, text, sizeof text);
        clab_str_addf(out, " at %s:%u `%s`", ptx->name, insn->line, text);
        struct clab_str origin = {0};
        add_origin(&origin, ptx, insn);
        clab_str_addf(out, "%s%s%s: ", origin.text ? " (" : "", origin.text ? origin.text : "",
                      origin.text ? ")" : "");
        clab_str_free(&origin);
    } else {
        clab_str_add(out, ": ");
    }
    if (fragment->state == EMU_FRAGMENT_WAITING) {
        describe_wait(out, warp, fragment);
    } else if (fragment->state == EMU_FRAGMENT_PARKED) {
        clab_str_add(out, "waits to meet the other lanes of its warp");
    } else {
        clab_str_add(out, "goes round a loop that sees nothing change");
    }
    clab_str_add(out, "\n");
}

bool emu_report_bytes(const struct emu_cluster *cluster, struct clab_error *error)
{
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        const struct emu_cta *cta = &cluster->ctas[rank];
        for (uint32_t w = 0; w < cta->n_warps; w++) {
            const struct emu_warp *warp = &cta->warps[w];
            for (uint32_t used = warp->used; used; used &= used - 1) {
                const struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
                const uint32_t address = (uint32_t)fragment->wait_key;
                if (fragment->state != EMU_FRAGMENT_WAITING || fragment->wait != EMU_WAIT_MBARRIER ||
                    !emu_mbarrier_is_live(cta, address)) {
                    continue;
                }
                const struct emu_mbarrier_view view = emu_mbarrier_view(cta, address);
                if (view.pending != 0 || view.outstanding_bytes == 0) {
                    continue;
                }
                struct clab_str what = {0};
                clab_str_addf(&what, "%s: ", error->message);
                describe_cta(&what, cta);
                clab_str_addf(&what, " waits at an mbarrier that expects %u bytes; %u arrived",
                              view.expected_bytes, view.arrived_bytes);
                if (what.text) {
                    snprintf(error->message, sizeof error->message, "%s", what.text);
                }
                clab_str_free(&what);
                return true;
            }
        }
    }
    return false;
}

void emu_report_stuck(const struct emu_cluster *cluster, struct clab_str *out, unsigned *lines)
{
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        const struct emu_cta *cta = &cluster->ctas[rank];
        for (uint32_t w = 0; w < cta->n_warps; w++) {
            const struct emu_warp *warp = &cta->warps[w];
            uint32_t last = w;
            if (warp->used != 0 && (warp->used & (warp->used - 1)) == 0) {
                while (last + 1 < cta->n_warps && same_wait(warp, &cta->warps[last + 1])) {
                    last++;
                }
            }
            for (uint32_t used = warp->used; used; used &= used - 1) {
                if (*lines == 0) {
                    return;
                }
                --*lines;
                describe_fragment(out, warp, &warp->fragments[__builtin_ctz(used)], last);
            }
            w = last;
        }
    }
}
