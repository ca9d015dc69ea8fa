/* Calls of functions that the device runtime supplies (builtin.h): fetches the parameters of each lane, from
   registers or from .param variables of the caller, and stores what the function returns. */
#include "emu/builtin.h"

#include <string.h>

#include "emu/warp.h"

/* One parameter or return value. */
struct value {
    uint32_t bytes;  /* 4 or 8 */
    uint32_t row;    /* EMU_NO_ROW: a variable of the caller */
    uint32_t offset; /* of the variable, from the function's local_base */
};

struct builtin_call {
    const struct emu_builtin *builtin;
    bool has_result;
    struct value result, arguments[EMU_BUILTIN_MAX_ARGUMENTS];
};

static unsigned char *value_at(struct emu_warp *warp, const struct value *value, unsigned lane)
{
    return value->row != EMU_NO_ROW
               ? warp->regs + value->row + lane * value->bytes
               : emu_local(warp, lane) + warp->fragment->frame->local_base + value->offset;
}

static const struct emu_op *builtin_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct builtin_call *call = op->extra;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS] = {0}, result = 0;
        for (unsigned k = 0; k < call->builtin->n_arguments; k++) {
            memcpy(&arguments[k], value_at(warp, &call->arguments[k], lane), call->arguments[k].bytes);
        }
        if (!call->builtin->run(warp, op, lane, arguments, &result)) {
            return NULL;
        }
        if (call->has_result) {
            memcpy(value_at(warp, &call->result, lane), &result, call->result.bytes);
        }
    }
    emu_progress(warp);
    return op + 1;
}

static bool value_of(struct emu_emit *emit, const struct ptx_operand *operand, const struct ptx_var *formal,
                     bool written, struct value *out)
{
    out->bytes = (uint32_t)formal->bytes;
    if (out->bytes != 4 && out->bytes != 8) {
        return false;
    }
    if (operand->kind == PTX_OPERAND_SYMBOL && operand->var) {
        enum emu_place place;
        uint64_t offset;
        out->row = EMU_NO_ROW;
        if (!emu_place_of(emit, operand->var, &place, &offset) || place != EMU_PLACE_LOCAL) {
            return false;
        }
        out->offset = (uint32_t)(offset + operand->imm);
        return true;
    }
    out->row = written ? emu_dest(emit, operand, formal->type) : emu_source(emit, operand, formal->type);
    return true;
}

clab_status EMU_SETNAME(emu_builtin_emit)(struct emu_emit *emit, const struct emu_builtin *builtin,
                                          const struct ptx_function *function,
                                          const struct ptx_operand *arguments,
                                          const struct ptx_operand *returns)
{
    const unsigned n_arguments = arguments ? arguments->n_elements : 0,
                   n_returns = returns ? returns->n_elements : 0;
    struct builtin_call *call = emu_emit_alloc(emit, sizeof *call);
    bool good = call && n_arguments == builtin->n_arguments && function->n_params == n_arguments &&
                n_returns <= builtin->n_returns && function->n_returns == n_returns;
    for (unsigned k = 0; good && k < n_arguments; k++) {
        good = value_of(emit, &arguments->elements[k], function->params[k], false, &call->arguments[k]);
    }
    if (good && n_returns) {
        call->has_result = true;
        good = value_of(emit, &returns->elements[0], function->returns[0], true, &call->result);
    }
    if (!good) {
        return emu_unsupported(emit, "a call of %s with these parameters", builtin->name);
    }
    call->builtin = builtin;
    emu_push(emit, builtin_any, builtin_any)->extra = call;
    return CLAB_OK;
}
