/* Writes what one warp executes, one line per instruction: place, lanes, the instruction, the registers it
   wrote and the addresses it used. Values are those after the instruction, of the lanes whose guard is on; a
   value that is the same in all of them is written once.

     CTA 0 warp 0 ffffffff reduce.ptx:31 add.u32 %r9, %r7, %r8 | %r9 = 400 404 408 … | …

   Numbers are hexadecimal. Lanes that do not execute show as '-'. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "emu/module.h"
#include "emu/trace.h"

struct emu_trace {
    struct emu_hooks hooks;
    const struct emu_hooks *next;
    FILE *file;
    bool close;
    uint64_t cta;
    uint32_t warp;
    /* The instruction that is running, to be written when the next one begins. */
    const struct emu_code *code;
    const unsigned char *regs;
    uint32_t insn, lanes;
    uint32_t writing; /* those of the lanes whose guard is on */
    bool pending;
    char space[16];
    uint64_t addresses[EMU_LANES];
    uint32_t address_lanes;
};

static uint64_t lane_value(const unsigned char *row, enum ptx_type type, unsigned lane)
{
    uint64_t value = 0;
    const unsigned bytes = emu_lane_bytes(type);
    memcpy(&value, row + (size_t)lane * bytes, bytes < 8 ? bytes : 8);
    return value;
}

static void add_lanes(struct clab_str *out, const uint64_t values[EMU_LANES], uint32_t lanes)
{
    const uint64_t first = values[__builtin_ctz(lanes)];
    bool same = true;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        same &= !(lanes >> i & 1) || values[i] == first;
    }
    if (same) {
        clab_str_addf(out, " %llx", (unsigned long long)first);
        return;
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (lanes >> i & 1) {
            clab_str_addf(out, " %llx", (unsigned long long)values[i]);
        } else {
            clab_str_add(out, " -");
        }
    }
}

static void add_register(struct clab_str *out, const struct emu_trace *trace,
                         const struct ptx_operand *operand)
{
    for (uint32_t i = 0; i < operand->n_elements; i++) {
        add_register(out, trace, &operand->elements[i]);
    }
    if (operand->kind != PTX_OPERAND_REG) {
        return;
    }
    const struct ptx_reg *reg = &trace->code->function->regs[operand->reg];
    const unsigned char *row = trace->regs + trace->code->reg_rows[operand->reg];
    clab_str_addf(out, " | %s =", reg->name);
    if (reg->type == PTX_PRED) {
        uint32_t word;
        memcpy(&word, row, sizeof word);
        clab_str_addf(out, " %08x", word & trace->writing);
        return;
    }
    uint64_t values[EMU_LANES];
    for (unsigned i = 0; i < EMU_LANES; i++) {
        values[i] = lane_value(row, reg->type, i);
    }
    add_lanes(out, values, trace->writing);
}

/* The row's roles, one word per operand: those that start with w (written) or x (both) change. */
static bool written(const char *roles, uint32_t index)
{
    const char *at = roles;
    for (uint32_t i = 0; i < index && at; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    at = at ? at + strspn(at, "{") : NULL;
    return at && (*at == 'w' || *at == 'x');
}

/* The lanes of `lanes` that the instruction's guard lets execute. */
static uint32_t guarded(const struct emu_code *code, const unsigned char *regs, uint32_t index,
                        uint32_t lanes)
{
    const struct ptx_insn *insn = index < code->function->n_insns ? &code->function->insns[index] : NULL;
    uint32_t word;
    if (!insn || !insn->has_guard) {
        return lanes;
    }
    memcpy(&word, regs + code->reg_rows[insn->guard], sizeof word);
    return lanes & (insn->guard_negated ? ~word : word);
}

static void flush(struct emu_trace *trace)
{
    if (!trace->pending) {
        return;
    }
    trace->pending = false;
    const struct ptx_function *function = trace->code->function;
    if (trace->insn >= function->n_insns || trace->lanes == 0) {
        return;
    }
    const struct ptx_module *ptx = emu_module_ptx(trace->code->image->module);
    const struct ptx_insn *insn = &function->insns[trace->insn];
    char text[256];
    ptx_insn_text(ptx, insn, text, sizeof text);
    struct clab_str line = {0};
    clab_str_addf(&line, "CTA %llu warp %u %08x %s:%u %s", (unsigned long long)trace->cta, trace->warp,
                  trace->lanes, ptx->name, insn->line, text);
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        if (trace->writing && written(ptx_rows[insn->row].roles, i)) {
            add_register(&line, trace, &insn->operands[i]);
        }
    }
    if (trace->address_lanes) {
        clab_str_addf(&line, " | %s", trace->space);
        add_lanes(&line, trace->addresses, trace->address_lanes);
    }
    clab_str_add(&line, "\n");
    if (line.text && !line.failed) {
        fputs(line.text, trace->file);
    }
    clab_str_free(&line);
}

static void on_op(void *user, struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_trace *trace = user;
    if (trace->next && trace->next->op) {
        trace->next->op(trace->next->user, warp, op);
    }
    if (warp->cta->linear != trace->cta || warp->index != trace->warp) {
        return;
    }
    const struct emu_code *code = warp->fragment->frame->code;
    if (trace->pending && trace->code == code && trace->insn == op->insn && trace->regs == warp->regs &&
        trace->lanes == warp->exec) {
        return; /* another operation of the same instruction */
    }
    flush(trace);
    trace->pending = op->u8[1] != 1 || op->full != code->image->set->framework->join_full;
    trace->code = code;
    trace->regs = warp->regs;
    trace->insn = op->insn;
    trace->lanes = warp->exec;
    trace->writing = guarded(code, warp->regs, op->insn, warp->exec);
    trace->address_lanes = 0;
}

static void on_access(void *user, const struct emu_warp *warp, const struct emu_op *op,
                      const struct emu_access *access)
{
    static const char *const spaces[CLAB_SPACE_COUNT] = {"global", "shared", "remote",
                                                         "local",  "const",  "param"};
    struct emu_trace *trace = user;
    if (trace->next && trace->next->access) {
        trace->next->access(trace->next->user, warp, op, access);
    }
    if (!warp || warp->cta->linear != trace->cta || warp->index != trace->warp) {
        return;
    }
    snprintf(trace->space, sizeof trace->space, "%s", spaces[access->space]);
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint64_t host = (uint64_t)(uintptr_t)emu_access_host(access, lane);
        trace->addresses[lane] =
            access->owner ? host - (uint64_t)(uintptr_t)access->owner->shared + EMU_SHARED_FIRST
            : access->space == CLAB_SPACE_LOCAL ? host - (uint64_t)(uintptr_t)emu_local(warp, lane)
                                                : host;
    }
    trace->address_lanes |= access->lanes;
}

static void on_event(void *user, const struct emu_cta *cta, const struct emu_warp *warp,
                     const struct emu_op *op, const struct emu_event *event)
{
    struct emu_trace *trace = user;
    if (trace->next && trace->next->event) {
        trace->next->event(trace->next->user, cta, warp, op, event);
    }
}

static void on_transfer(void *user, const struct emu_warp *warp, const struct emu_op *op,
                        const struct emu_transfer *transfer)
{
    struct emu_trace *trace = user;
    if (trace->next && trace->next->transfer) {
        trace->next->transfer(trace->next->user, warp, op, transfer);
    }
}

static void on_begin(void *user, struct emu_run *run)
{
    struct emu_trace *trace = user;
    if (trace->next && trace->next->begin) {
        trace->next->begin(trace->next->user, run);
    }
}

static void on_end(void *user, struct emu_run *run, clab_status status, const struct clab_error *error)
{
    struct emu_trace *trace = user;
    if (trace->next && trace->next->end) {
        trace->next->end(trace->next->user, run, status, error);
    }
}

struct emu_trace *emu_trace_new(const char *path, uint64_t cta, uint32_t warp, const struct emu_hooks *next,
                                struct clab_error *error)
{
    struct emu_trace *trace = calloc(1, sizeof *trace);
    if (!trace) {
        clab_error_set(error, CLAB_NO_MEMORY, "out of memory for a trace");
        return NULL;
    }
    trace->file = path ? fopen(path, "a") : stderr;
    if (!trace->file) {
        clab_error_set(error, CLAB_OUTPUT, "cannot append the trace to '%s': %s", path, strerror(errno));
        free(trace);
        return NULL;
    }
    trace->close = path != NULL;
    trace->cta = cta;
    trace->warp = warp;
    trace->next = next;
    trace->hooks = (struct emu_hooks){.user = trace,
                                      .one_thread = next && next->one_thread,
                                      .whole_lives = next && next->whole_lives,
                                      .begin = on_begin,
                                      .end = on_end,
                                      .op = on_op,
                                      .access = on_access,
                                      .event = on_event,
                                      .transfer = on_transfer};
    return trace;
}

const struct emu_hooks *emu_trace_hooks(const struct emu_trace *trace)
{
    return &trace->hooks;
}

void emu_trace_free(struct emu_trace *trace)
{
    if (trace) {
        flush(trace);
        if (trace->close) {
            fclose(trace->file);
        } else {
            fflush(trace->file);
        }
        free(trace);
    }
}
