/* The state of decoding one function: shared by emit.c (operands, rows, pushing) and decode.c (control flow).
 */
#ifndef CLAB_EMU_EMITTING_H
#define CLAB_EMU_EMITTING_H

#include "emu/code.h"

/* Rows of one size that an instruction may use as scratch. */
struct emu_scratch_pool {
    uint32_t *rows;
    size_t count, capacity, used;
};

/* A conversion to add after the current instruction: scratch row to register row. */
struct emu_after {
    uint32_t to, from;
    uint8_t to_log2, from_log2, is_signed;
};

/* A branch whose operations are not placed yet: instruction indices, UINT32_MAX none. */
struct emu_fix {
    size_t op;
    uint32_t target, join;
    const struct emu_op **slot; /* where the target's address goes; NULL: op->target */
};

struct emu_emit {
    struct emu_image *image;
    const struct ptx_module *ptx;
    const struct ptx_function *function;
    const struct emu_layout *layout;
    const struct emu_framework *framework;
    struct emu_code *code;
    struct clab_arena scratch; /* freed when the function is decoded */
    struct emu_op *ops;
    size_t n_ops, ops_capacity;
    struct emu_op dummy; /* what emu_push gives after an error */
    uint32_t file_bytes;
    uint32_t next_word, end_word; /* of the line that words are taken from */
    bool has_carry;
    uint32_t carry; /* word of the condition code register, once it is used */
    struct ptx_live live;
    uint32_t *reg_rows;
    uint32_t *var_offsets; /* of function->vars in local memory */
    uint32_t local_bytes;
    const struct emu_carried *returned; /* at every return; NULL none */
    struct emu_const *consts;
    size_t n_consts, consts_capacity;
    uint32_t *const_buckets; /* hash: index + 1 */
    uint32_t n_buckets;
    struct emu_scratch_pool pools[6]; /* by log2 of the lane bytes; 5: predicate words */
    struct emu_after after[64];
    uint32_t n_after;
    /* Control flow of the block being decoded, for emu_bra and emu_brx. */
    uint32_t join_insn; /* first instruction of the immediate post-dominator of the block, UINT32_MAX none */
    bool inplace;       /* the region up to the join may be run in place, masked */
    bool spin;          /* the block is part of a polling loop */
    uint32_t weight;    /* fuel that the block's backward branch takes */
    struct emu_fix *fixes;
    size_t n_fixes, fixes_capacity;
    const struct ptx_insn *insn;
    uint32_t insn_index;
    bool guard_as_branch; /* emu_guard_branch was called */
    size_t guard_op;      /* the branch around, when so */
    clab_status status;
    struct clab_error *error;
};

/* Place of the next of a function's return values or parameters; returns the first free offset after it.
   Alignment beyond 16 bytes is not kept. */
uint64_t emu_slot_take(uint64_t offset, const struct ptx_var *var, struct emu_slot *out_slot);

/* emit.c. Rows for the registers, places for the local variables. False when memory is out. */
bool emu_emit_init(struct emu_emit *emit);
void emu_emit_fini(struct emu_emit *emit);
/* Starts an instruction: scratch rows are free again. */
void emu_emit_begin(struct emu_emit *emit, uint32_t insn_index);
/* Adds what the instruction wants after it. */
void emu_emit_end(struct emu_emit *emit);
/* Notes that ops[op] (or *slot) branches to instruction `target`, whose lanes meet again at `join`. */
void emu_emit_fix(struct emu_emit *emit, size_t op, uint32_t target, uint32_t join,
                  const struct emu_op **slot);
/* Records an error at the current instruction. */
clab_status emu_emit_error(struct emu_emit *emit, clab_status status, const char *format, ...)
    CLAB_PRINTF(3, 4);

/* Whether an operand is a special register that tells time. */
static inline bool emu_reads_clock(const struct ptx_operand *operand)
{
    return operand->kind == PTX_OPERAND_SREG &&
           (operand->sreg == PTX_SREG_CLOCK || operand->sreg == PTX_SREG_CLOCK_HI ||
            operand->sreg == PTX_SREG_CLOCK64 || operand->sreg == PTX_SREG_GLOBALTIMER ||
            operand->sreg == PTX_SREG_GLOBALTIMER_LO || operand->sreg == PTX_SREG_GLOBALTIMER_HI);
}

#endif
