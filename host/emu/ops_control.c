/* Control flow: bra, brx.idx, call, ret, exit, trap, brkpt, nanosleep, griddepcontrol and hints. PTX
   ISA 9.0, 9.7.12 "Control Flow Instructions" and 9.7.19 "Miscellaneous Instructions". Compiled per set.

   alloca takes as much for all lanes as for the one that asks for most. griddepcontrol does nothing: a launch
   of the emulator starts after the one before it in its stream has ended. */
#include <string.h>

#include "emu/builtin.h"
#include "emu/emitting.h"
#include "emu/fragment.h"
#include "emu/hook.h"

/* Fields of a branch: a predicate word, c what it is XORed with to get the lanes that jump, d fuel of a
   backward branch, target, imm the join (or 0), u8[0] 1 when it only leads round a guarded instruction
   (emu_guard_branch). */
#define JOIN(op) ((const struct emu_op *)(uintptr_t)(op)->imm)

static const struct emu_op *bra_full(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn + 1, EMU_ALL, op->target->insn);
    return op->target;
}

static const struct emu_op *bra_masked(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn + 1, warp->exec, op->target->insn);
    return op->target;
}

static const struct emu_op *burn(struct emu_warp *warp, const struct emu_op *op)
{
    warp->fuel -= (int32_t)op->d;
    return warp->fuel >= 0 ? op->target : emu_yield(warp, op->target);
}

static const struct emu_op *bra_back_full(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn + 1, EMU_ALL, op->target->insn);
    return burn(warp, op);
}

static const struct emu_op *bra_back_masked(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn + 1, warp->exec, op->target->insn);
    return burn(warp, op);
}

/* Lanes part: out of the run loop when it was the full one. */
static const struct emu_op *part(struct emu_warp *warp, const struct emu_op *op, uint32_t taken)
{
    const bool full = warp->exec == EMU_ALL;
    /* A guarded instruction counts for the lanes that execute it; a branch for all of them. */
    const uint32_t counted = op->insn + (op->u8[0] ? 0 : 1);
    emu_count(warp, op, counted, warp->exec, counted);
    const struct emu_op *next = emu_diverge(warp, op, taken, op->target, JOIN(op));
    warp->count_from = next->insn;
    return full ? emu_remask(warp, next) : next;
}

static const struct emu_op *branch_full(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t taken = EMU_PRED(warp, op->a) ^ op->c;
    if (taken == 0) {
        return op + 1;
    }
    if (taken == EMU_ALL) {
        emu_count(warp, op, op->insn + (op->u8[0] ? 0 : 1), EMU_ALL, op->target->insn);
        return op->target;
    }
    return part(warp, op, taken);
}

static const struct emu_op *branch_masked(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t taken = (EMU_PRED(warp, op->a) ^ op->c) & warp->exec;
    if (taken == 0) {
        return op + 1;
    }
    if (taken == warp->exec) {
        emu_count(warp, op, op->insn + (op->u8[0] ? 0 : 1), taken, op->target->insn);
        return op->target;
    }
    return part(warp, op, taken);
}

static const struct emu_op *branch_back_full(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t taken = EMU_PRED(warp, op->a) ^ op->c;
    if (taken == EMU_ALL) {
        emu_count(warp, op, op->insn + 1, EMU_ALL, op->target->insn);
        return burn(warp, op);
    }
    if (taken == 0) {
        return op + 1;
    }
    warp->fuel -= (int32_t)op->d; /* looked at by the next branch */
    return part(warp, op, taken);
}

static const struct emu_op *branch_back_masked(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t taken = (EMU_PRED(warp, op->a) ^ op->c) & warp->exec;
    if (taken == warp->exec) {
        emu_count(warp, op, op->insn + 1, taken, op->target->insn);
        return burn(warp, op);
    }
    if (taken == 0) {
        return op + 1;
    }
    const struct emu_op *next = part(warp, op, taken);
    return next == op->target ? burn(warp, op) : next;
}

/* One side of a region in place: from `from` to `join` with `lanes`. NULL after a fault. */
static const struct emu_op *run_side(struct emu_warp *warp, const struct emu_op *from,
                                     const struct emu_op *join, uint32_t lanes)
{
    if (from == join) {
        return join;
    }
    const struct emu_op *first = from;
    emu_exec_set(warp, lanes);
    warp->count_from = from->insn;
    do {
        EMU_HOOK(warp->cta->run, op, warp, from);
        from = from->masked(warp, from);
    } while (from != join && from);
    if (from) {
        emu_count(warp, first, join->insn, lanes, join->insn);
    }
    return from;
}

static const struct emu_op *inplace(struct emu_warp *warp, const struct emu_op *op, uint32_t taken)
{
    const uint32_t exec = warp->exec;
    const struct emu_op *join = JOIN(op);
    emu_count(warp, op, op->insn + 1, exec, op->insn + 1);
    if (!run_side(warp, op + 1, join, exec & ~taken) || !run_side(warp, op->target, join, taken)) {
        return NULL;
    }
    emu_exec_set(warp, exec);
    warp->count_from = join->insn;
    return join;
}

static const struct emu_op *inplace_full(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t taken = EMU_PRED(warp, op->a) ^ op->c;
    if (taken == 0) {
        return op + 1;
    }
    if (taken == EMU_ALL) {
        emu_count(warp, op, op->insn + 1, EMU_ALL, op->target->insn);
        return op->target;
    }
    return inplace(warp, op, taken);
}

static const struct emu_op *inplace_masked(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t taken = (EMU_PRED(warp, op->a) ^ op->c) & warp->exec;
    if (taken == 0) {
        return op + 1;
    }
    if (taken == warp->exec) {
        emu_count(warp, op, op->insn + 1, taken, op->target->insn);
        return op->target;
    }
    return inplace(warp, op, taken);
}

EMU_EMITTER(emu_bra)
{
    const uint32_t target = insn->operands[0].target;
    const bool back = target <= emit->insn_index;
    bool negated;
    const uint32_t guard = emu_guard(emit, &negated);
    struct emu_op *op;
    if (guard == EMU_NO_GUARD) {
        op = back ? emu_push_unguarded(emit, bra_back_full, bra_back_masked)
                  : emu_push_unguarded(emit, bra_full, bra_masked);
    } else if (emit->inplace) {
        op = emu_push_unguarded(emit, inplace_full, inplace_masked);
    } else if (back) {
        op = emu_push_unguarded(emit, branch_back_full, branch_back_masked);
    } else {
        op = emu_push_unguarded(emit, branch_full, branch_masked);
    }
    op->a = guard;
    op->c = negated ? EMU_ALL : 0;
    op->d = emit->weight;
    emu_emit_fix(emit, emit->n_ops - 1, target, emit->join_insn, NULL);
    return CLAB_OK;
}

/* --- brx.idx */

struct brx {
    uint32_t n;
    const struct emu_op *targets[];
};

static const struct emu_op *brx(struct emu_warp *warp, const struct emu_op *op)
{
    const struct brx *table = op->extra;
    const uint32_t *index = EMU_ROW(uint32_t, warp, op->a);
    const uint32_t exec = warp->exec;
    uint32_t left = exec;
    emu_count(warp, op, op->insn + 1, exec, op->insn + 1);
    for (;;) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        if (index[lane] >= table->n) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            return emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0, "brx.idx index %u of a list of %u targets",
                             index[lane], table->n);
        }
        const struct emu_op *target = table->targets[index[lane]];
        uint32_t same = 0;
        for (unsigned i = 0; i < EMU_LANES; i++) {
            same |=
                (left >> i & 1 && index[i] < table->n && table->targets[index[i]] == target) ? 1u << i : 0;
        }
        warp->fuel -= target <= op ? (int32_t)op->d : 0;
        if (same != left) {
            emu_send(warp, same, target, JOIN(op));
            left &= ~same;
            continue;
        }
        warp->count_from = target->insn;
        if (warp->fuel < 0) {
            return emu_yield(warp, target);
        }
        if (left == exec) {
            return target;
        }
        return emu_remask(warp, target);
    }
}

EMU_EMITTER(emu_brx)
{
    emu_guard_branch(emit);
    const struct ptx_table *list = insn->operands[1].table;
    if (!list || list->kind != PTX_TABLE_BRANCH) {
        return emu_unsupported(emit, "brx.idx without a .branchtargets list");
    }
    struct brx *table = emu_emit_alloc(emit, sizeof *table + (list->count + 1) * sizeof *table->targets);
    const uint32_t index = emu_source(emit, &insn->operands[0], PTX_U32);
    struct emu_op *op = emu_push_unguarded(emit, brx, brx);
    op->a = index;
    op->d = emit->weight;
    op->extra = table;
    if (table) {
        table->n = list->count;
        for (uint32_t i = 0; i < list->count; i++) {
            emu_emit_fix(emit, emit->n_ops - 1, list->targets[i], emit->join_insn, &table->targets[i]);
        }
    }
    return CLAB_OK;
}

/* --- call, ret */

enum { MAX_LANES = 4 }; /* of a vector register */

struct argument {
    uint32_t place; /* from the callee's local_base */
    uint32_t bytes;
    uint32_t row;    /* register, or EMU_NO_ROW */
    uint32_t source; /* else: variable of the caller, from its local_base */
};

struct call {
    const struct emu_code *code; /* NULL: op->a holds its address */
    uint32_t n_arguments, n_returns;
    struct emu_slot *slots;   /* places of the return values, then of the arguments, in the callee's frame */
    uint32_t n_in, n_out;     /* pieces: a vector register has one per member */
    struct argument pieces[]; /* of the return values, then of the arguments */
};

static void copy_row(struct emu_warp *warp, const struct argument *argument, uint32_t base, bool to_row)
{
    unsigned char *row = warp->regs + argument->row;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (warp->exec >> i & 1) {
            unsigned char *local = emu_local(warp, i) + base + argument->place,
                          *lane = row + i * argument->bytes;
            memcpy(to_row ? lane : local, to_row ? local : lane, argument->bytes);
        }
    }
}

/* Does a function that was found at run time take what a call passes, at the same places? (PTX ISA 9.0,
   "call": undefined when its signature differs from the prototype's.) */
static bool takes(const struct emu_code *code, const struct call *call)
{
    if (code->function->n_params != call->n_arguments || code->function->n_returns != call->n_returns) {
        return false;
    }
    for (uint32_t i = 0; i < call->n_returns + call->n_arguments; i++) {
        const struct emu_slot *slot =
            i < call->n_returns ? &code->returns[i] : &code->params[i - call->n_returns];
        if (slot->offset != call->slots[i].offset || slot->bytes != call->slots[i].bytes) {
            return false;
        }
    }
    return true;
}

static const struct emu_op *call(struct emu_warp *warp, const struct emu_op *op)
{
    const struct call *call = op->extra;
    const struct emu_frame *frame = warp->fragment->frame;
    const struct emu_image *image = frame->code->image;
    const uint32_t exec = warp->exec;
    const struct emu_code *code = call->code;
    uint32_t lanes = exec;
    if (!code) {
        /* Lanes that call different functions go one group after the other. */
        const uint64_t *address = EMU_ROW(uint64_t, warp, op->a);
        const unsigned lane = (unsigned)__builtin_ctz(exec);
        code = emu_function_find(image, address[lane]);
        if (!code || !takes(code, call)) {
            emu_fault_kind_set(warp, code ? EMU_FAULT_ILLEGAL_INSTRUCTION : EMU_FAULT_INVALID_PC);
            return emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                             code ? "indirect call of '%s' with other parameters than it has"
                                  : "indirect call of something that is no function%s",
                             code ? code->function->name : "");
        }
        lanes = 0;
        for (unsigned i = 0; i < EMU_LANES; i++) {
            lanes |= (exec >> i & 1 && address[i] == address[lane]) ? 1u << i : 0;
        }
        if (lanes != exec) {
            emu_count(warp, op, op->insn, exec, op->insn);
            emu_split(warp, exec & ~lanes, op);
            return emu_remask(warp, op);
        }
    }
    const uint32_t base = frame->local_base + frame->code->local_bytes + frame->dynamic;
    emu_count(warp, op, op->insn + 1, exec, 0);
    if (!emu_enter(warp, op, code, op + 1)) {
        return NULL;
    }
    unsigned char *callee = warp->regs;
    warp->regs = frame->regs;
    for (uint32_t i = 0; i < call->n_in; i++) {
        const struct argument *argument = &call->pieces[call->n_out + i];
        if (argument->row != EMU_NO_ROW) {
            copy_row(warp, argument, base, false);
        } else {
            emu_local_copy(warp, exec, base + argument->place, frame->local_base + argument->source,
                           argument->bytes);
        }
    }
    warp->regs = callee;
    /* Calls without any loop may still run for ever, or nearly. */
    warp->fuel -= 16;
    return warp->fuel >= 0 ? code->ops : emu_yield(warp, code->ops);
}

/* Where a call comes back to. The callee's local memory still holds what it returned. */
static const struct emu_op *call_back(struct emu_warp *warp, const struct emu_op *op)
{
    const struct call *call = op->extra;
    const struct emu_frame *frame = warp->fragment->frame;
    const uint32_t base = warp->fragment->returned;
    for (uint32_t i = 0; i < call->n_out; i++) {
        const struct argument *argument = &call->pieces[i];
        if (argument->row != EMU_NO_ROW) {
            copy_row(warp, argument, base, true);
        } else {
            emu_local_copy(warp, warp->exec, frame->local_base + argument->source, base + argument->place,
                           argument->bytes);
        }
    }
    return op + 1;
}

static bool argument_of(struct emu_emit *emit, const struct ptx_operand *operand,
                        const struct ptx_var *formal, bool written, struct argument *out)
{
    if (operand->kind == PTX_OPERAND_SYMBOL && operand->var && operand->var->space == PTX_SPACE_PARAM) {
        enum emu_place place;
        uint64_t offset;
        if (!emu_place_of(emit, operand->var, &place, &offset)) {
            return false;
        }
        if (place == EMU_PLACE_LOCAL) {
            if (operand->imm || operand->var->bytes < out->bytes) {
                emu_unsupported(emit, "a call that passes %llu bytes of '%s' for %u",
                                (unsigned long long)operand->var->bytes, operand->var->name, out->bytes);
                return false;
            }
            out->row = EMU_NO_ROW;
            out->source = (uint32_t)(offset + operand->imm);
            return true;
        }
    }
    const bool is_scalar = formal->space != PTX_SPACE_REG || formal->vector == 1;
    const enum ptx_type type =
        is_scalar && out->bytes == emu_lane_bytes(formal->type) ? formal->type : emu_bits_type(out->bytes);
    out->bytes = emu_lane_bytes(type);
    out->row = written ? emu_dest(emit, operand, type) : emu_source(emit, operand, type);
    return true;
}

/* The pieces of one argument or return value, whose place in the callee's frame is `slot`. */
static bool pieces_of(struct emu_emit *emit, const struct ptx_operand *operand, const struct ptx_var *formal,
                      bool written, const struct emu_slot *slot, struct argument *pieces, uint32_t *n)
{
    const bool is_literal = operand->kind == PTX_OPERAND_INT || operand->kind == PTX_OPERAND_FLOAT;
    const bool is_vector = formal->space == PTX_SPACE_REG && formal->vector > 1;
    const struct ptx_operand zero = {.kind = PTX_OPERAND_INT, .component = PTX_COMPONENT_NONE};
    uint32_t count = 1;
    if (operand->kind == PTX_OPERAND_VECTOR) {
        count = operand->n_elements;
    } else if (is_vector && is_literal) { /* the first member takes its low bits; the others hold anything on
                                             an H200, 0 here */
        count = formal->vector;
    }
    for (uint32_t k = 0; k < count; k++) {
        struct argument *piece = &pieces[(*n)++];
        const struct ptx_operand *part = operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[k]
                                         : k                                 ? &zero
                                                                             : operand;
        *piece = (struct argument){.place = slot->offset + k * (slot->bytes / count),
                                   .bytes = slot->bytes / count};
        if (!argument_of(emit, part, formal, written, piece)) {
            return false;
        }
    }
    return true;
}

EMU_EMITTER(emu_call)
{
    emu_guard_branch(emit);
    const struct ptx_operand *returns = NULL, *arguments = NULL, *target = NULL;
    const struct ptx_table *table = NULL;
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const struct ptx_operand *operand = &insn->operands[i];
        if (operand->kind == PTX_OPERAND_LIST) {
            *(target ? &arguments : &returns) = operand;
        } else if (!target) {
            target = operand;
        } else {
            table = operand->table;
        }
    }
    const struct ptx_function *function = target ? target->func : NULL;
    if (!target || (!function && target->kind != PTX_OPERAND_REG)) {
        return emu_unsupported(emit, "a call of this kind of operand");
    }
    if (function && !function->defined) {
        const struct emu_builtin *builtin = emu_builtin_get(function->name);
        return builtin ? EMU_SETNAME(emu_builtin_emit)(emit, builtin, function, arguments, returns)
                       : emu_unsupported(emit, "a call of '%s', which is not defined in this module",
                                         function->name);
    }
    struct ptx_var **formals = NULL, **formal_returns = NULL;
    uint32_t n_formals = 0, n_formal_returns = 0;
    if (function) {
        formals = function->params, n_formals = function->n_params;
        formal_returns = function->returns, n_formal_returns = function->n_returns;
    } else if (table && table->kind == PTX_TABLE_PROTOTYPE) {
        formals = table->params, n_formals = table->n_params;
        formal_returns = table->returns, n_formal_returns = table->n_returns;
    } else if (table && table->kind == PTX_TABLE_CALL && table->count > 0) {
        formals = table->functions[0]->params, n_formals = table->functions[0]->n_params;
        formal_returns = table->functions[0]->returns, n_formal_returns = table->functions[0]->n_returns;
    } else {
        return emu_unsupported(emit, "an indirect call without a prototype or list of targets");
    }
    const uint32_t n_arguments = arguments ? arguments->n_elements : 0,
                   n_returns = returns ? returns->n_elements : 0;
    if (n_arguments != n_formals || n_returns != n_formal_returns) {
        return emu_unsupported(emit,
                               "a call with %u parameters and %u return values of a function with %u and %u",
                               n_arguments, n_returns, n_formals, n_formal_returns);
    }
    struct call *extra =
        emu_emit_alloc(emit, sizeof *extra + MAX_LANES * (n_arguments + n_returns) * sizeof *extra->pieces);
    struct emu_slot *slots = emu_emit_alloc(emit, (n_arguments + n_returns + 1) * sizeof *slots);
    if (!extra || !slots) {
        return CLAB_NO_MEMORY;
    }
    *extra = (struct call){.code = function ? emu_image_code(emit->image, function) : NULL,
                           .slots = slots,
                           .n_arguments = n_arguments,
                           .n_returns = n_returns};
    uint64_t offset = 0;
    uint32_t n_pieces = 0;
    for (uint32_t i = 0; i < n_returns + n_arguments; i++) {
        const bool written = i < n_returns;
        const uint32_t k = written ? i : i - n_returns;
        const struct ptx_var *formal = written ? formal_returns[k] : formals[k];
        offset = emu_slot_take(offset, formal, &slots[i]);
        if (!pieces_of(emit, &(written ? returns : arguments)->elements[k], formal, written, &slots[i],
                       extra->pieces, &n_pieces)) {
            return emit->status;
        }
        extra->n_out = written ? n_pieces : extra->n_out;
    }
    extra->n_in = n_pieces - extra->n_out;
    const uint32_t address = function ? EMU_NO_ROW : emu_source(emit, target, PTX_U64);
    struct emu_op *op = emu_push_unguarded(emit, call, call);
    op->extra = extra;
    op->a = address;
    op = emu_push_unguarded(emit, call_back, call_back);
    op->extra = extra;
    op->insn = emit->insn_index + 1; /* the call itself is counted */
    /* Lanes that returned apart meet again here. */
    op = emu_push_unguarded(emit, emit->framework->join_full, emit->framework->join_masked);
    op->u8[1] = 1;
    op->insn = emit->insn_index + 1;
    return CLAB_OK;
}

static void carry(struct emu_warp *warp, const struct emu_carried *carried, bool in)
{
    const uint32_t base = warp->fragment->frame->local_base;
    for (uint32_t k = 0; k < carried->n; k++) {
        const struct argument argument = {
            .place = carried->items[k].place, .bytes = carried->items[k].bytes, .row = carried->items[k].row};
        copy_row(warp, &argument, base, in);
    }
}

static const struct emu_op *carry_in(struct emu_warp *warp, const struct emu_op *op)
{
    carry(warp, op->extra, true);
    return op + 1;
}

static const struct emu_op *carry_out(struct emu_warp *warp, const struct emu_op *op)
{
    carry(warp, op->extra, false);
    return op + 1;
}

static const struct emu_op *ret(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn + 1, warp->exec, 0);
    return emu_return(warp, op);
}

static const struct emu_op *leave(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn + 1, warp->exec, 0);
    return emu_exit_lanes(warp, op);
}

void EMU_SETNAME(emu_framework_branches)(struct emu_framework *framework);
void EMU_SETNAME(emu_framework_branches)(struct emu_framework *framework)
{
    framework->bra_full = bra_full;
    framework->bra_masked = bra_masked;
    framework->bra_back_full = bra_back_full;
    framework->bra_back_masked = bra_back_masked;
    framework->branch_full = branch_full;
    framework->branch_masked = branch_masked;
    framework->branch_back_full = branch_back_full;
    framework->branch_back_masked = branch_back_masked;
    framework->carry_in = carry_in;
    framework->carry_out = carry_out;
    framework->inplace_full = inplace_full;
    framework->inplace_masked = inplace_masked;
}

EMU_EMITTER(emu_ret)
{
    (void)insn;
    emu_guard_branch(emit);
    if (emit->returned) {
        emu_push_unguarded(emit, carry_out, carry_out)->extra = emit->returned;
    }
    emu_push_unguarded(emit, ret, ret);
    return CLAB_OK;
}

EMU_EMITTER(emu_exit)
{
    (void)insn;
    emu_guard_branch(emit);
    emu_push_unguarded(emit, leave, leave);
    return CLAB_OK;
}

/* --- the rest */

static const struct emu_op *trap(struct emu_warp *warp, const struct emu_op *op)
{
    emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
    return emu_fault(warp, op, (unsigned)__builtin_ctz(warp->exec), CLAB_FAULT, NULL, 0, "trap executed");
}

static const struct emu_op *brkpt(struct emu_warp *warp, const struct emu_op *op)
{
    emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
    return emu_fault(warp, op, (unsigned)__builtin_ctz(warp->exec), CLAB_FAULT, NULL, 0,
                     "brkpt executed, and no debugger is attached");
}

static const struct emu_op *nothing(struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp;
    return op + 1;
}

EMU_EMITTER(emu_trap)
{
    (void)insn;
    emu_push(emit, trap, trap);
    return CLAB_OK;
}

/* Without a debugger an H200 ends the launch with CUDA_ERROR_LAUNCH_FAILED (driver 13.0, 2026-11-30). */
EMU_EMITTER(emu_brkpt)
{
    (void)insn;
    emu_push(emit, brkpt, brkpt);
    return CLAB_OK;
}

/* Performance hints: counted, without effect. */
EMU_EMITTER(emu_hint)
{
    (void)insn;
    emu_push_unguarded(emit, nothing, nothing);
    return CLAB_OK;
}

EMU_EMITTER(emu_setmaxnreg)
{
    (void)insn;
    emu_push_unguarded(emit, nothing, nothing);
    return CLAB_OK;
}

/* For observers: a grid starts when those before it in its stream have ended. */
static const struct emu_op *griddepcontrol(struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp; /* not used without hooks */
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){.kind = EMU_EVENT_GRID_DEPENDENCY, .lanes = warp->exec});
    return op + 1;
}

EMU_EMITTER(emu_griddepcontrol)
{
    (void)insn;
    emu_push(emit, griddepcontrol, griddepcontrol);
    return CLAB_OK;
}

/* --- alloca, stacksave, stackrestore: the stack grows upwards, above the function's variables. PTX
   ISA 9.0, 9.7.15 "Stack Manipulation Instructions". */

static void put_address(struct emu_warp *warp, const struct emu_op *op, uint32_t address)
{
    uint64_t *d = EMU_ROW(uint64_t, warp, op->d);
    for (unsigned i = 0; i < EMU_LANES; i++) {
        d[i] = warp->exec >> i & 1 ? address : d[i];
    }
}

static const struct emu_op *alloca_(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_frame *frame = warp->fragment->frame;
    const uint64_t *bytes = EMU_ROW(uint64_t, warp, op->a);
    uint64_t most = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        most = warp->exec >> i & 1 && bytes[i] > most ? bytes[i] : most;
    }
    const uint64_t top = frame->local_base + frame->code->local_bytes + frame->dynamic;
    const uint64_t at = (top + op->imm - 1) & ~(op->imm - 1);
    if (most > warp->cta->local_bytes || at + most + 16 > warp->cta->local_bytes) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_ADDRESS);
        return emu_fault(warp, op, EMU_LANES, CLAB_FAULT, NULL, 0,
                         "stack overflow: alloca of %llu bytes beyond the %u of a thread's local memory",
                         (unsigned long long)most, warp->cta->local_bytes);
    }
    put_address(warp, op, (uint32_t)at);
    frame->dynamic += (uint32_t)((at + most + 15) & ~UINT64_C(15)) - (uint32_t)top;
    return op + 1;
}

/* .u32: addresses of local memory fit; a move from and to the lanes of 64 bits that the handlers use. */
static const struct emu_op *low_half(struct emu_warp *warp, const struct emu_op *op)
{
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        EMU_ROW(uint32_t, warp, op->d)[i] = (uint32_t)EMU_ROW(uint64_t, warp, op->a)[i];
    }
    return op + 1;
}

static const struct emu_op *zero_extended(struct emu_warp *warp, const struct emu_op *op)
{
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        EMU_ROW(uint64_t, warp, op->d)[i] = EMU_ROW(uint32_t, warp, op->a)[i];
    }
    return op + 1;
}

static void push_move(struct emu_emit *emit, emu_handler *handler, uint32_t d, uint32_t a)
{
    struct emu_op *op = emu_push(emit, handler, handler);
    op->d = d;
    op->a = a;
}

static uint32_t stack_source(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type)
{
    if (type == PTX_U64)
        return emu_source(emit, operand, PTX_U64);
    const uint32_t narrow = emu_source(emit, operand, PTX_U32), wide = emu_scratch(emit, PTX_U64);
    push_move(emit, zero_extended, wide, narrow);
    return wide;
}

/* Pushes an operation whose result of 64 bits goes to `operand`; only its other fields are left to fill. */
static void stack_push(struct emu_emit *emit, emu_handler *handler, const struct ptx_operand *operand,
                       enum ptx_type type, const struct emu_op *fields)
{
    const uint32_t narrow = type == PTX_U64 ? EMU_NO_ROW : emu_dest(emit, operand, PTX_U32);
    const uint32_t d = type == PTX_U64 ? emu_dest(emit, operand, PTX_U64) : emu_scratch(emit, PTX_U64);
    struct emu_op *op = emu_push(emit, handler, handler);
    op->a = fields->a;
    op->imm = fields->imm;
    op->d = d;
    if (narrow != EMU_NO_ROW)
        push_move(emit, low_half, narrow, d);
}

EMU_EMITTER(emu_alloca)
{
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    const uint32_t bytes = stack_source(emit, &insn->operands[1], type);
    const uint64_t align = insn->n_operands > 2 ? insn->operands[2].imm : 16;
    if (align == 0 || (align & (align - 1)) != 0 || align > 4096) {
        return emu_unsupported(emit, "an alignment of %llu bytes", (unsigned long long)align);
    }
    stack_push(emit, alloca_, &insn->operands[0], type, &(struct emu_op){.a = bytes, .imm = align});
    return CLAB_OK;
}

static const struct emu_op *stacksave(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_frame *frame = warp->fragment->frame;
    put_address(warp, op, frame->local_base + frame->code->local_bytes + frame->dynamic);
    return op + 1;
}

EMU_EMITTER(emu_stacksave)
{
    stack_push(emit, stacksave, &insn->operands[0], (enum ptx_type)insn->types[0],
               &(struct emu_op){.a = EMU_NO_ROW});
    return CLAB_OK;
}

/* Gives back what alloca took since, unless lanes that parted still use it. */
static const struct emu_op *stackrestore(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_frame *frame = warp->fragment->frame;
    const uint64_t to = EMU_ROW(uint64_t, warp, op->a)[__builtin_ctz(warp->exec)];
    const uint64_t least = frame->local_base + frame->code->local_bytes;
    if (to < least || to > least + frame->dynamic) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
        return emu_fault(warp, op, EMU_LANES, CLAB_FAULT, NULL, 0,
                         "stackrestore of a value that no stacksave of this function gave");
    }
    if (frame->refs == 1) {
        frame->dynamic = (uint32_t)(to - least);
    }
    return op + 1;
}

EMU_EMITTER(emu_stackrestore)
{
    const uint32_t a = stack_source(emit, &insn->operands[0], (enum ptx_type)insn->types[0]);
    emu_push(emit, stackrestore, stackrestore)->a = a;
    return CLAB_OK;
}

/* Sleeps [0, 2t] (PTX ISA, "nanosleep"); here exactly t of virtual time, of the lane that asks for most. */
static const struct emu_op *nanosleep_(struct emu_warp *warp, const struct emu_op *op)
{
    if (emu_woken(warp, NULL) != EMU_WAKE_NONE) {
        return op + 1;
    }
    const uint32_t *ns = EMU_ROW(uint32_t, warp, op->a);
    uint32_t most = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        most = warp->exec >> i & 1 && ns[i] > most ? ns[i] : most;
    }
    return emu_wait_bounded(warp, op, EMU_WAIT_SLEEP,
                            emu_time_ns(warp, op) + (most > 1000000 ? 1000000 : most));
}

EMU_EMITTER(emu_nanosleep)
{
    emu_guard_branch(emit);
    const uint32_t ns = emu_source(emit, &insn->operands[0], PTX_U32);
    struct emu_op *op = emu_push_unguarded(emit, nanosleep_, nanosleep_);
    op->a = ns;
    return CLAB_OK;
}
