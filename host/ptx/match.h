/* From an opcode's text and its operands to a row of insn.def. */
#ifndef CLAB_PTX_MATCH_H
#define CLAB_PTX_MATCH_H

#include "ptx/forms.h"

/* A row that takes an opcode's qualifiers. */
struct ptx_candidate {
    enum ptx_row row;
    uint16_t isa, sm;                    /* the largest of the row's and its chosen alternatives' */
    ptx_word isa_word, sm_word, on_word; /* the alternative that asks for it, 0 the row itself */
    uint8_t on[2]; /* sets of targets (enum ptx_targets), the row's and one alternative's */
};

/* One distinct opcode text of a module, read once. */
struct ptx_opcode {
    const struct ptx_root *root; /* NULL: `fault` says why it cannot be used */
    const char *fault;
    struct ptx_insn pattern; /* mods, types, spaces and mod_bits filled; the rest zero */
    uint8_t vector;          /* 1, or 2, 4, 8 from .vN */
    const struct ptx_candidate *candidates;
    uint32_t n_candidates;
};

/* Reads text[0..bytes), white space already removed. NULL only when the arena is out of memory. `fault` texts
   are the arena's. */
struct ptx_opcode *ptx_opcode_read(struct clab_arena *arena, const char *text, size_t bytes, bool suggest);

struct ptx_match_context {
    const struct ptx_reg *regs;
    uint16_t version; /* of the module, 90 = 9.0 */
    struct ptx_target target;
    uint8_t address_size;
};
/* One try of a row, by fit.c: on failure `why` and the operand at fault (UINT32_MAX none). */
struct ptx_attempt {
    const struct ptx_match_context *context;
    const struct ptx_opcode *opcode;
    const struct ptx_insn *insn;
    enum ptx_row row;
    char why[320];
    uint32_t operand; /* at fault */
};
bool ptx_operands_fit(struct ptx_attempt *attempt, enum ptx_row row);

/* Picks the row for insn (operands set; mods, types and spaces as in the opcode). On failure returns false
   with `why` (of size `size`) filled and *out_operand the operand at fault, or UINT32_MAX. */
bool ptx_match(const struct ptx_match_context *context, const struct ptx_opcode *opcode,
               struct ptx_insn *insn, char *why, size_t size, uint32_t *out_operand);

#endif
