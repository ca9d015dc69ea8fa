/* Row rules beyond syntax and roles: what ptxas 13.0 refuses although each qualifier and operand is fine by
   itself. One function per chapter, found by the row. Sources are the manual's sections of the rows. */
#include "ptx/checks.h"

#include <stdio.h>
#include <string.h>

bool ptx_check_pack(const struct ptx_match_context *context, const struct ptx_insn *insn,
                    const struct ptx_operand *vector, char *why, size_t size)
{
    enum ptx_type type = insn->n_types ? (enum ptx_type)insn->types[0] : PTX_NONE;
    unsigned bits = ptx_types[type].bits, count = vector->n_elements;
    if ((count != 2 && count != 4) || bits % count || bits / count < 8 ||
        ptx_types[type].class != PTX_CLASS_BITS) {
        snprintf(why, size, "a .%s is packed from 2 or 4 parts, not %u", ptx_types[type].text, count);
        return false;
    }
    bool any = false;
    for (unsigned i = 0; i < count; i++)
        any |= vector->elements[i].kind != PTX_OPERAND_SINK;
    if (!any) {
        snprintf(why, size, "a part of the vector must be a register");
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_operand *element = &vector->elements[i];
        if (element->kind == PTX_OPERAND_REG &&
            ptx_types[context->regs[element->reg].type].bits != bits / count) {
            snprintf(why, size, "part %u of the vector must have %u bits, register '%s' is .%s", i + 1,
                     bits / count, context->regs[element->reg].name,
                     ptx_types[context->regs[element->reg].type].text);
            return false;
        }
    }
    return true;
}

static bool say(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

static unsigned vector_of(const struct ptx_insn *insn)
{
    return ptx_has(insn, PTX_MOD_V8) ? 8 : ptx_has(insn, PTX_MOD_V4) ? 4 : ptx_has(insn, PTX_MOD_V2) ? 2 : 1;
}

/* 9.7.9 Data movement: a vector has at most 128 bits, of ld and st in global memory 256 from sm_100 on, and
   only these take an eviction priority of the L2. */
static bool check_width(const struct ptx_match_context *context, const struct ptx_insn *insn,
                        enum ptx_row row, char *why, size_t size)
{
    enum ptx_type type = insn->n_types ? (enum ptx_type)insn->types[0] : PTX_NONE;
    unsigned bits = ptx_types[type].bits * vector_of(insn);
    bool is_ld_st = strcmp(ptx_rows[row].class, "MEMORY") == 0 && row != PTX_LDU;
    bool wide = bits == 256 && is_ld_st && ptx_types[type].bits <= 64;
    bool evict = ptx_has(insn, PTX_MOD_L2__EVICT_NORMAL) || ptx_has(insn, PTX_MOD_L2__EVICT_FIRST) ||
                 ptx_has(insn, PTX_MOD_L2__EVICT_LAST);
    bool holds_vector = vector_of(insn) > 1 && strstr(ptx_rows[row].roles, "v") != NULL;
    if (holds_vector && bits > 128 && !wide)
        return say(why, size, "the vector is too large: at most 128 bits");
    if (wide && insn->n_spaces && insn->spaces[0] != PTX_SPACE_GLOBAL)
        return say(why, size, "a vector of 256 bits is loaded from and stored to .global only");
    if (wide && context->target.sm < 100)
        return say(why, size, "a vector of 256 bits requires .target sm_100 or higher");
    if (wide && context->version < 88)
        return say(why, size, "a vector of 256 bits requires PTX ISA .version 8.8 or later");
    if (is_ld_st && vector_of(insn) >= 1 && evict && !wide && insn->n_types &&
        (strncmp(ptx_rows[row].name, "LD", 2) == 0 || strncmp(ptx_rows[row].name, "ST", 2) == 0))
        return say(why, size, "an L2 eviction priority needs .v8.b32 or .v4.b64");
    return true;
}

/* Does saturation change anything from type a to type d? (9.7.9 "cvt": .sat is refused where it cannot) */
static bool can_saturate(enum ptx_type d, enum ptx_type a)
{
    bool d_signed = ptx_types[d].class == PTX_CLASS_SIGNED, a_signed = ptx_types[a].class == PTX_CLASS_SIGNED;
    if (a_signed && !d_signed)
        return true;
    if (!a_signed && d_signed)
        return ptx_types[d].bits <= ptx_types[a].bits;
    return ptx_types[d].bits < ptx_types[a].bits;
}

/* A result of type .f16 or .f16x2 may go to a wider register, one of .bf16 or .bf16x2 may not. */
static bool check_half_result(const struct ptx_match_context *context, const struct ptx_insn *insn, char *why,
                              size_t size)
{
    enum ptx_type type = (enum ptx_type)insn->types[0];
    if ((type != PTX_BF16 && type != PTX_BF16X2) || insn->operands[0].kind != PTX_OPERAND_REG)
        return true;
    if (ptx_types[context->regs[insn->operands[0].reg].type].bits == ptx_types[type].bits)
        return true;
    snprintf(why, size, "the register for a .%s must have %u bits", ptx_types[type].text,
             ptx_types[type].bits);
    return false;
}

/* The largest sparsity selector of mma.sp (9.7.14.6): which threads of a quad hold the metadata. */
static unsigned selector_limit(const struct ptx_insn *insn, enum ptx_row row)
{
    switch (row) {
    case PTX_MMA_SP_F16:
    case PTX_MMA_SP_BF16:
        return 3;
    case PTX_MMA_SP_TF32:
        return ptx_has(insn, PTX_MOD_M16N8K8) ? 3 : 1;
    case PTX_MMA_SP_INT8:
        return ptx_has(insn, PTX_MOD_M16N8K32) ? 1 : 0;
    case PTX_MMA_SP_INT4:
        return ptx_has(insn, PTX_MOD_M16N8K64) ? 1 : 0;
    default:
        return 0;
    }
}

/* Where a qualifier was written, counted among those that are neither type nor space. */
static unsigned position(const struct ptx_insn *insn, enum ptx_mod mod)
{
    unsigned i = 0;
    while (i < insn->n_mods && insn->mods[i] != mod)
        i++;
    return i;
}

/* .row and .col name the layout of a and of b by their order where the syntax has both; .popc follows its
 * operator. */
static bool check_order(const struct ptx_insn *insn, enum ptx_row row, char *why, size_t size)
{
    if (strstr(ptx_rows[row].syntax, ".row.col") && position(insn, PTX_MOD_COL) < position(insn, PTX_MOD_ROW))
        return say(why, size, "this form needs .row for a and .col for b, in this order");
    if (ptx_has(insn, PTX_MOD_POPC) && (position(insn, PTX_MOD_AND) < insn->n_mods
                                            ? position(insn, PTX_MOD_AND)
                                            : position(insn, PTX_MOD_XOR)) > position(insn, PTX_MOD_POPC))
        return say(why, size, ".popc follows .and or .xor");
    return true;
}

/* {byte-id, thread-id} of block scales (9.7.14.5, "mma with block scaling"): one of four scales, two of them
   side by side, or all four; one of the two threads that hold those of A, of the four that hold those of B.
 */
static bool check_scale_ids(const struct ptx_insn *insn, unsigned first, char *why, size_t size)
{
    const bool fours = ptx_has(insn, PTX_MOD_SCALE_VEC__4X);
    const bool twos = !fours && !ptx_has(insn, PTX_MOD_KIND__MXF8F6F4);
    for (unsigned k = 0; k < 2 && first + 2 * k + 1 < insn->n_operands; k++) {
        const struct ptx_operand *ids = &insn->operands[first + 2 * k + 1];
        if (ids->kind != PTX_OPERAND_VECTOR || ids->n_elements != 2)
            continue;
        const struct ptx_operand *byte = &ids->elements[0], *thread = &ids->elements[1];
        if (byte->kind == PTX_OPERAND_INT && (byte->imm > (fours ? 0 : 3) || (twos && byte->imm % 2)))
            return say(why, size,
                       fours  ? "the byte of four scales must be 0"
                       : twos ? "the byte of two scales must be 0 or 2"
                              : "the byte of a scale must be from 0 to 3");
        if (thread->kind == PTX_OPERAND_INT && thread->imm > (k ? 3 : 1))
            return say(why, size,
                       k ? "the thread of B's scale must be from 0 to 3"
                         : "the thread of A's scale must be 0 or 1");
    }
    return true;
}

static bool check_mma(const struct ptx_insn *insn, enum ptx_row row, char *why, size_t size)
{
    switch (row) {
    case PTX_MMA_M8N8K4_F16:
        if (insn->types[0] == PTX_F16 && insn->types[3] == PTX_F32)
            return say(why, size, ".dtype must be .f32 when .ctype is .f32");
        break;
    case PTX_MMA_F16:
    case PTX_MMA_F8:
    case PTX_MMA_F8F6F4:
    case PTX_MMA_F8_KIND:
    case PTX_MMA_SP_F16:
    case PTX_MMA_SP_F8F6F4:
        if (insn->types[0] != insn->types[3])
            return say(why, size, ".dtype and .ctype must be the same");
        break;
    default:
        break;
    }
    if (ptx_has(insn, PTX_MOD_BLOCK_SCALE) &&
        !check_scale_ids(insn, strcmp(ptx_rows[row].section, "mma.sp") == 0 ? 6 : 4, why, size))
        return false;
    if (strcmp(ptx_rows[row].section, "mma.sp") == 0 && insn->n_operands > 5 &&
        insn->operands[5].imm > selector_limit(insn, row)) {
        snprintf(why, size, "the sparsity selector must be from 0 to %u", selector_limit(insn, row));
        return false;
    }
    return true;
}

/* Offsets and depth compare of tex and tld4 (9.7.10): cubes take no offset; the comparison needs
   floating-point coordinates of at most two dimensions, or a cube. */
static bool check_texture(const struct ptx_insn *insn, enum ptx_row row, char *why, size_t size)
{
    unsigned required = ptx_has(insn, PTX_MOD_LEVEL) ? 3 : ptx_has(insn, PTX_MOD_GRAD) ? 4 : 2;
    bool cube = ptx_has(insn, PTX_MOD_CUBE) || ptx_has(insn, PTX_MOD_ACUBE);
    (void)row;
    for (unsigned i = required; i < insn->n_operands; i++) {
        bool offset = insn->operands[i].kind == PTX_OPERAND_VECTOR;
        if (offset && cube)
            return say(why, size, "cubes take no offset");
        if (!offset && (insn->types[insn->n_types - 1] == PTX_S32 || ptx_has(insn, PTX_MOD_3D)))
            return say(why, size, "no depth comparison with these coordinates");
    }
    return true;
}

static bool check_tcgen05(const struct ptx_insn *insn, enum ptx_row row, char *why, size_t size)
{
    if (ptx_has(insn, PTX_MOD_ASHIFT) &&
        (ptx_has(insn, PTX_MOD_COLLECTOR__A__FILL) || ptx_has(insn, PTX_MOD_COLLECTOR__A__USE)))
        return say(why, size, ".ashift cannot be combined with filling or using the collector");
    for (unsigned i = 0; i < insn->n_operands && strcmp(ptx_rows[row].section, "tcgen05.mma") != 0; i++)
        if (insn->operands[i].kind == PTX_OPERAND_VECTOR && insn->operands[i].n_elements > 128)
            return say(why, size, "at most 128 registers are loaded or stored");
    return true;
}

static bool check_wgmma(const struct ptx_match_context *context, const struct ptx_insn *insn,
                        enum ptx_row row, char *why, size_t size)
{
    bool integer = row == PTX_WGMMA_INT8 || row == PTX_WGMMA_INT8_REG || row == PTX_WGMMA_SP_INT8 ||
                   row == PTX_WGMMA_SP_INT8_REG;
    if (integer && insn->types[1] != insn->types[2] && context->version < 84)
        return say(why, size, "wgmma with mixed integer types requires PTX ISA .version 8.4 or later");
    return true;
}

/* The largest value of an enumerated field of a tensor map (9.7.9.28 "tensormap.replace", tables of the
 * fields). */
static bool check_tensormap(const struct ptx_match_context *context, const struct ptx_insn *insn, char *why,
                            size_t size)
{
    bool is_103a = context->target.sm == 103 && context->target.suffix == 'a';
    unsigned limit = ptx_has(insn, PTX_MOD_ELEMTYPE)
                         ? (context->target.sm >= 100 && context->version >= 87 ? 15 : 12)
                     : ptx_has(insn, PTX_MOD_INTERLEAVE_LAYOUT) ? 2
                     : ptx_has(insn, PTX_MOD_SWIZZLE_MODE)      ? (is_103a ? 4 : 3)
                                                                : 1;
    if (insn->operands[1].imm > limit) {
        snprintf(why, size, "the field's value must be from 0 to %u on this target", limit);
        return false;
    }
    return true;
}

bool ptx_check_row(const struct ptx_match_context *context, const struct ptx_insn *insn, enum ptx_row row,
                   char *why, size_t size)
{
    if (!check_width(context, insn, row, why, size))
        return false;
    if (insn->n_types && insn->types[0] == PTX_B128 && ptx_has(insn, PTX_MOD_SYS) && context->version < 84)
        return say(why, size, ".b128 with .sys requires PTX ISA .version 8.4 or later");
    if (ptx_has(insn, PTX_MOD_L2__CACHE_HINT) && insn->n_spaces == 1 && insn->spaces[0] != PTX_SPACE_GLOBAL)
        return say(why, size, ".L2::cache_hint is for .global and generic addresses only");
    if ((row == PTX_CP_ASYNC_CA || row == PTX_CP_ASYNC_CG) && insn->n_operands > 3 &&
        insn->operands[3].kind == PTX_OPERAND_INT && insn->operands[3].imm > insn->operands[2].imm)
        return say(why, size, "the source size must not exceed the size copied");
    if (row == PTX_TENSORMAP_REPLACE_MODE)
        return check_tensormap(context, insn, why, size);
    if (row == PTX_STACKRESTORE && insn->operands[0].kind != PTX_OPERAND_REG)
        return say(why, size, "a register is needed here");
    if (row == PTX_ALLOCA && insn->n_operands > 2 &&
        (insn->operands[2].imm == 0 || (insn->operands[2].imm & (insn->operands[2].imm - 1)) != 0))
        return say(why, size, "an alignment must be a power of two");
    if (strcmp(ptx_rows[row].section, "createpolicy") == 0 && insn->n_mods > 2 &&
        insn->mods[2] != PTX_MOD_L2__EVICT_FIRST && insn->mods[2] != PTX_MOD_L2__EVICT_UNCHANGED)
        return say(why, size, "the secondary priority is .L2::evict_first or .L2::evict_unchanged");
    if ((row == PTX_CVT_HALF_F32 || row == PTX_CVT_F16X2_F32) && !check_half_result(context, insn, why, size))
        return false;
    if (row == PTX_CVT_INT && ptx_has(insn, PTX_MOD_SAT) &&
        !can_saturate((enum ptx_type)insn->types[0], (enum ptx_type)insn->types[1]))
        return say(why, size, ".sat has no effect between these types");
    if (row == PTX_VMAD && insn->operands[3].negated &&
        insn->operands[1].negated != insn->operands[2].negated)
        return say(why, size, "either the product or the addend may be negated, not both");
    if (strcmp(ptx_rows[row].class, "MATRIX") == 0 && !check_order(insn, row, why, size))
        return false;
    if (strncmp(ptx_rows[row].section, "mma", 3) == 0)
        return check_mma(insn, row, why, size);
    if (strncmp(ptx_rows[row].section, "wgmma", 5) == 0)
        return check_wgmma(context, insn, row, why, size);
    if (strcmp(ptx_rows[row].class, "TEXTURE") == 0)
        return check_texture(insn, row, why, size);
    if (strcmp(ptx_rows[row].class, "TCGEN05") == 0)
        return check_tcgen05(insn, row, why, size);
    return true;
}
