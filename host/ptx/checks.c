/* Row rules beyond syntax and roles: what ptxas 13.0 refuses although each qualifier and operand is fine by itself.
   One function per chapter, found by the row. Sources are the manual's sections of the rows. */
#include "ptx/checks.h"

#include <stdio.h>

bool ptx_check_pack(const struct ptx_match_context *context, const struct ptx_insn *insn,
                    const struct ptx_operand *vector, char *why, size_t size)
{
    enum ptx_type type = insn->n_types ? (enum ptx_type)insn->types[0] : PTX_NONE;
    unsigned bits = ptx_types[type].bits, count = vector->n_elements;
    if ((count != 2 && count != 4) || bits % count || bits / count < 8 || ptx_types[type].class != PTX_CLASS_BITS) {
        snprintf(why, size, "a .%s is packed from 2 or 4 parts, not %u", ptx_types[type].text, count);
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_operand *element = &vector->elements[i];
        if (element->kind == PTX_OPERAND_REG && ptx_types[context->regs[element->reg].type].bits != bits / count) {
            snprintf(why, size, "part %u of the vector must have %u bits, register '%s' is .%s", i + 1, bits / count,
                     context->regs[element->reg].name, ptx_types[context->regs[element->reg].type].text);
            return false;
        }
    }
    return true;
}

bool ptx_check_row(const struct ptx_match_context *context, const struct ptx_insn *insn, enum ptx_row row, char *why,
                   size_t size)
{
    (void)context;
    (void)insn;
    (void)row;
    (void)why;
    (void)size;
    return true;
}
