/* Decoding: a row's emitter turns one parsed instruction into operations. insn.def's handler column names it;
   it is defined in ops_<chapter>.c with EMU_EMITTER(emu_add) { … } beside the handlers that it chooses from.

   An emitter asks for its operands' rows, pushes operations, fills their fields:

       EMU_EMITTER(emu_add)
       {
           enum ptx_type type = insn->types[0];
           uint32_t a = emu_source(emit, &insn->operands[1], type);
           uint32_t b = emu_source(emit, &insn->operands[2], type);
           uint32_t d = emu_dest(emit, &insn->operands[0], type);
           struct emu_op *op = emu_push(emit, full_of[type], masked_of[type]);
           op->d = d; op->a = a; op->b = b;
           return CLAB_OK;
       }

   Sources are asked for before the destination. The framework adds the guard to every pushed operation,
   conversion operations for registers wider or narrower than `type`, and fetch operations for special
   registers. */
#ifndef CLAB_EMU_EMIT_H
#define CLAB_EMU_EMIT_H

#include "emu/op.h"
#include "emu/set.h"
#include "ptx/ptx.h"

struct emu_emit; /* one kernel being decoded (decode.c) */

typedef clab_status emu_emitter(struct emu_emit *emit, const struct ptx_insn *insn);
#define EMU_EMITTER(name)          \
    emu_emitter EMU_SETNAME(name); \
    clab_status EMU_SETNAME(name)(struct emu_emit * emit, const struct ptx_insn *insn)

/* Bytes of one lane of a row of `type`: 1, 2, 4, 8 or 16 (packed types by their total size; pred: see below).
 */
unsigned emu_lane_bytes(enum ptx_type type);

/* .b8 to .b128 of so many bytes. */
enum ptx_type emu_bits_type(unsigned bytes);
/* Byte offset of a row that holds `operand` as lanes of `type`: a register in place when its size fits; its
   low part when wider; zero- or sign-extended by `type` when narrower; an immediate, symbol address or float
   literal as a constant row (converted to `type`: a decimal literal rounds to f32 for f32, …); a special
   register through a fetch. On an operand that cannot be read so, records an error in the emit (emu_push then
   becomes harmless) and returns 0. */
uint32_t emu_source(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type);
/* Row to write `operand` to as lanes of `type`. `_` gives a scratch row. A wider register is widened (by the
   sign of `type`) by an operation added after the instruction. */
uint32_t emu_dest(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type);
/* Predicate words. A source may be negated (`!p`) or a constant: an extra operation makes a temporary then.
 */
uint32_t emu_pred_source(struct emu_emit *emit, const struct ptx_operand *operand);
uint32_t emu_pred_dest(struct emu_emit *emit, const struct ptx_operand *operand);
/* Scratch rows and words, valid within this instruction only. */
uint32_t emu_scratch(struct emu_emit *emit, enum ptx_type type);
uint32_t emu_scratch_pred(struct emu_emit *emit);
/* Predicate word of the carry flag CC.CF: one per kernel, kept from one instruction to the next (undefined at
   entry and across calls). */
uint32_t emu_carry(struct emu_emit *emit);
/* A constant row with every lane = the low bytes of `bits`. */
uint32_t emu_constant(struct emu_emit *emit, enum ptx_type type, uint64_t bits);

/* Appends an operation, guard included. Never NULL (a dummy after an error). The pointer is valid until the
   next push. masked NULL: the operation needs no masked form because it does not depend on the lanes. */
struct emu_op *emu_push(struct emu_emit *emit, emu_handler *full, emu_handler *masked);
/* The same without the guard: for branches and others that read it themselves (emit_guard gives its word). */
struct emu_op *emu_push_unguarded(struct emu_emit *emit, emu_handler *full, emu_handler *masked);
/* The guard of the current instruction: EMU_NO_GUARD, or the offset of its predicate word; *out_negated as
 * written. */
uint32_t emu_guard(struct emu_emit *emit, bool *out_negated);
/* For instructions that may wait (barriers, collectives, mbarrier.try_wait, nanosleep, …): called first;
   turns the guard, if there is one, into a branch around the instruction, so that the lanes that are off do
   not wait. */
void emu_guard_branch(struct emu_emit *emit);

/* Where a variable lives, for memory instructions on [symbol + imm]. */
enum emu_place {
    EMU_PLACE_ABSOLUTE, /* .global, .const: device address */
    EMU_PLACE_SHARED,   /* offset from byte 0x400 of the CTA's own shared memory */
    EMU_PLACE_LOCAL,    /* .local, and .param inside a function or of a call: offset from frame->local_base */
    EMU_PLACE_PARAM     /* .param of the entry: offset in the parameter block */
};
/* False, with the error recorded, when the variable has no storage (extern without definition, …). */
bool emu_place_of(struct emu_emit *emit, const struct ptx_var *var, enum emu_place *out_place,
                  uint64_t *out_offset);
/* Row of an ADDRESS operand's base as 64-bit lanes, and the bytes to add. A base register of 32 bits is
   zero-extended (shared window addresses); a symbol gives a row with its address in `space` (window-relative
   for shared and shared::cluster, thread-relative for local and param; generic when space is PTX_SPACE_NONE…
   as the operand is written). */
uint32_t emu_address(struct emu_emit *emit, const struct ptx_operand *operand, int64_t *out_offset_bytes);
/* Memory that lives as long as the kernel's code; NULL when out (an error is recorded). */
void *emu_emit_alloc(struct emu_emit *emit, size_t bytes);
/* Records "not supported by the emulator: <what>" with file, line, instruction; returns CLAB_UNSUPPORTED. */
clab_status emu_unsupported(struct emu_emit *emit, const char *format, ...) CLAB_PRINTF(2, 3);

#endif
