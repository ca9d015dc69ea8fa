/* Rules that a row's syntax and roles cannot say: lengths of fragments, operand values, combinations of
 * qualifiers. */
#ifndef CLAB_PTX_CHECKS_H
#define CLAB_PTX_CHECKS_H

#include "ptx/match.h"

/* Extra rules of one row, after qualifiers and operands fit. On refusal `why` says what is wrong. */
bool ptx_check_row(const struct ptx_match_context *context, const struct ptx_insn *insn, enum ptx_row row,
                   char *why, size_t size);
/* A vector where `mov` takes a packed scalar: mov.b64 {a, b}, … */
bool ptx_check_pack(const struct ptx_match_context *context, const struct ptx_insn *insn,
                    const struct ptx_operand *vector, char *why, size_t size);
/* The parts of an address behind the first: coordinates of a tensor, texture or surface, or nothing. NULL
   when they are right, else what is wrong (static text). */
const char *ptx_check_address(const struct ptx_match_context *context, const struct ptx_insn *insn,
                              enum ptx_row row, unsigned role, const struct ptx_operand *address);
/* How many coordinates stand behind the first part of an address with role number `role`; 0: a plain address.
 */
unsigned ptx_coordinates_of(const struct ptx_insn *insn, enum ptx_row row, unsigned role);
/* What an operand with role [*] must be: so many registers of a type; count 0: any number, type PTX_NONE: any
 * type. */
struct ptx_fragment {
    unsigned count;
    enum ptx_type type;
};
struct ptx_fragment ptx_fragment_of(const struct ptx_insn *insn, enum ptx_row row, unsigned role);

#endif
