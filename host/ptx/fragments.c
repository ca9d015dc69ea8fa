/* How many registers an operand with role [*] has: matrix fragments (PTX ISA 9.0, 9.7.14 "Warp Level Matrix
   Multiply-Accumulate Instructions", 9.7.15 wgmma, 9.7.16.8 tcgen05.ld and .st), im2col offsets, output-lane
   masks. Everything follows from the shape and the types. */
#include <string.h>

#include "ptx/checks.h"

struct shape {
    unsigned m, n, k;
};

static bool read_number(const char **at, char letter, unsigned *out)
{
    if (**at != letter || (*at)[1] < '0' || (*at)[1] > '9')
        return false;
    unsigned value = 0;
    for ((*at)++; **at >= '0' && **at <= '9'; (*at)++)
        value = value * 10 + (unsigned)(**at - '0');
    *out = value;
    return true;
}

/* The mMnNkK (or mMnN) qualifier of an instruction. */
static bool shape_of(const struct ptx_insn *insn, struct shape *out)
{
    for (unsigned i = 0; i < insn->n_mods; i++) {
        const char *at = ptx_mod_text[insn->mods[i]];
        *out = (struct shape){0};
        if (read_number(&at, 'm', &out->m) && read_number(&at, 'n', &out->n) &&
            (*at == 0 || (read_number(&at, 'k', &out->k) && *at == 0)))
            return true;
    }
    return false;
}

static struct ptx_fragment fragment(unsigned count, enum ptx_type type)
{
    return (struct ptx_fragment){count, type};
}

/* `elements` of a type over `lanes` threads, packed into 32-bit registers unless a register of their own
 * holds each. */
static struct ptx_fragment spread(unsigned elements, enum ptx_type type, unsigned bits, unsigned lanes)
{
    if (type == PTX_F64)
        return fragment(elements / lanes, PTX_F64);
    if (type == PTX_F32 || type == PTX_S32)
        return fragment(elements / lanes, type);
    unsigned count = elements * bits / (lanes * 32);
    return fragment(count ? count : 1, PTX_B32);
}

static enum ptx_type type_at(const struct ptx_insn *insn, unsigned index)
{
    return index < insn->n_types ? (enum ptx_type)insn->types[index] : PTX_NONE;
}

/* Operands d a b c of mma: types are d a b c in that order, for the integer and bit forms too. */
static struct ptx_fragment mma(const struct ptx_insn *insn, enum ptx_row row, unsigned role)
{
    struct shape s;
    if (role > 3 || !shape_of(insn, &s))
        return fragment(0, PTX_NONE);
    enum ptx_type type = type_at(insn, role == 0 ? 0 : role == 3 ? 3 : role);
    bool sparse = ptx_has(insn, PTX_MOD_SP) || ptx_has(insn, PTX_MOD_SP__ORDERED_METADATA);
    if (row == PTX_MMA_M8N8K4_F16) /* four quad pairs: each thread holds 4 halves of a and b, 8 elements of c
                                      and d */
        return role == 1 || role == 2 ? fragment(2, PTX_B32)
               : type == PTX_F32      ? fragment(8, PTX_F32)
                                      : fragment(4, PTX_B32);
    unsigned bits = ptx_types[type].bits;
    bool wide = ptx_has(insn, PTX_MOD_KIND__F8F6F4) || ptx_has(insn, PTX_MOD_KIND__MXF8F6F4);
    if (wide && bits < 8) /* 4- and 6-bit elements each in a byte */
        bits = 8;
    switch (role) {
    case 1:
        return spread(s.m * s.k / (sparse ? 2 : 1), type, bits, 32);
    case 2:
        return spread(s.n * s.k, type, bits, 32);
    default:
        return spread(s.m * s.n, type, bits, 32);
    }
}

/* Fragments of the older wmma: each element of a is held twice, hence eight registers of f16 pairs. */
static struct ptx_fragment wmma_part(const struct shape *s, char part, enum ptx_type type)
{
    unsigned elements = part == 'a' ? s->m * s->k : part == 'b' ? s->n * s->k : s->m * s->n;
    switch (type) {
    case PTX_F16:
        return part == 'c' ? fragment(4, PTX_F16X2) : fragment(8, PTX_F16X2);
    case PTX_BF16:
    case PTX_TF32:
    case PTX_S8:
    case PTX_U8:
    case PTX_S4:
    case PTX_U4:
    case PTX_B1:
        return spread(elements, type, ptx_types[type].bits, 32);
    default:
        return spread(elements, type, ptx_types[type].bits, 32);
    }
}

static struct ptx_fragment wmma(const struct ptx_insn *insn, enum ptx_row row, unsigned role)
{
    struct shape s;
    if (!shape_of(insn, &s))
        return fragment(0, PTX_NONE);
    switch (row) {
    case PTX_WMMA_LOAD_A:
    case PTX_WMMA_LOAD_A_TF32:
    case PTX_WMMA_LOAD_A_F64:
    case PTX_WMMA_LOAD_A_SUBBYTE:
    case PTX_WMMA_LOAD_A_BIT:
        return wmma_part(&s, 'a', type_at(insn, 0));
    case PTX_WMMA_LOAD_B:
    case PTX_WMMA_LOAD_B_TF32:
    case PTX_WMMA_LOAD_B_F64:
    case PTX_WMMA_LOAD_B_SUBBYTE:
    case PTX_WMMA_LOAD_B_BIT:
        return wmma_part(&s, 'b', type_at(insn, 0));
    case PTX_WMMA_MMA_F16:
    case PTX_WMMA_MMA_F16_SAT: /* types are d and c only */
        return role == 1   ? wmma_part(&s, 'a', PTX_F16)
               : role == 2 ? wmma_part(&s, 'b', PTX_F16)
                           : wmma_part(&s, 'c', type_at(insn, role == 0 ? 0 : 1));
    case PTX_WMMA_MMA_INT_S8:
    case PTX_WMMA_MMA_INT_U8:
    case PTX_WMMA_MMA_BF16:
    case PTX_WMMA_MMA_TF32:
    case PTX_WMMA_MMA_F64:
    case PTX_WMMA_MMA_SUBBYTE_S4:
    case PTX_WMMA_MMA_SUBBYTE_U4:
    case PTX_WMMA_MMA_BIT:
        return wmma_part(&s, role == 1 ? 'a' : role == 2 ? 'b' : 'c', type_at(insn, role));
    default:
        return wmma_part(&s, 'c', type_at(insn, 0));
    }
}

/* d of wgmma over the 128 threads of a warpgroup; a from registers is always four. */
static struct ptx_fragment wgmma(const struct ptx_insn *insn, unsigned role)
{
    struct shape s;
    if (!shape_of(insn, &s))
        return fragment(0, PTX_NONE);
    if (role == 1)
        return fragment(4, PTX_B32);
    return spread(s.m * s.n, type_at(insn, 0), ptx_types[type_at(insn, 0)].bits, 128);
}

/* .x1 … .x128 */
static unsigned repeat(const struct ptx_insn *insn)
{
    static const struct {
        enum ptx_mod mod;
        unsigned count;
    } repeats[] = {{PTX_MOD_X1, 1},   {PTX_MOD_X2, 2},   {PTX_MOD_X4, 4},   {PTX_MOD_X8, 8},
                   {PTX_MOD_X16, 16}, {PTX_MOD_X32, 32}, {PTX_MOD_X64, 64}, {PTX_MOD_X128, 128}};
    for (size_t i = 0; i < sizeof repeats / sizeof repeats[0]; i++)
        if (ptx_has(insn, repeats[i].mod))
            return repeats[i].count;
    return 1;
}

static unsigned dimensions(const struct ptx_insn *insn)
{
    return ptx_has(insn, PTX_MOD_1D)   ? 1
           : ptx_has(insn, PTX_MOD_2D) ? 2
           : ptx_has(insn, PTX_MOD_3D) ? 3
           : ptx_has(insn, PTX_MOD_4D) ? 4
                                       : 5;
}

/* Gradients and offsets of textures: as many as the geometry has dimensions, three of them as a vector of
 * four. */
static struct ptx_fragment texture(const struct ptx_insn *insn, enum ptx_row row, unsigned role)
{
    unsigned count = ptx_has(insn, PTX_MOD_1D) || ptx_has(insn, PTX_MOD_A1D) ? 1
                     : ptx_has(insn, PTX_MOD_2D) || ptx_has(insn, PTX_MOD_A2D) ||
                             ptx_has(insn, PTX_MOD_2DMS) || ptx_has(insn, PTX_MOD_A2DMS)
                         ? 2
                         : 4;
    bool gradient = (row == PTX_TEX_GRAD || row == PTX_TEX_GRAD_CUBE || row == PTX_TEX_GRAD_F16X2 ||
                     row == PTX_TEX_GRAD_CUBE_F16X2) &&
                    role < 4;
    return fragment(count, gradient ? PTX_F32 : PTX_S32);
}

struct ptx_fragment ptx_fragment_of(const struct ptx_insn *insn, enum ptx_row row, unsigned role)
{
    const char *section = ptx_rows[row].section;
    if (strncmp(section, "mma", 3) == 0)
        return mma(insn, row, role);
    if (strncmp(section, "wmma", 4) == 0)
        return wmma(insn, row, role);
    if (strncmp(section, "wgmma", 5) == 0)
        return wgmma(insn, role);
    switch (row) {
    case PTX_LDMATRIX_M16N16:
    case PTX_LDMATRIX_M16N16_PACKED:
        return fragment(2 * repeat(insn), PTX_B32);
    case PTX_LDMATRIX_M8N8:
    case PTX_LDMATRIX_M8N16:
    case PTX_STMATRIX_M8N8:
    case PTX_STMATRIX_M16N8:
        return fragment(repeat(insn), PTX_B32);
    case PTX_TCGEN05_LD:
    case PTX_TCGEN05_LD_SPLIT:
    case PTX_TCGEN05_LD_RED:
    case PTX_TCGEN05_LD_RED_F32:
    case PTX_TCGEN05_LD_RED_SPLIT:
    case PTX_TCGEN05_LD_RED_F32_SPLIT:
    case PTX_TCGEN05_ST:
    case PTX_TCGEN05_ST_SPLIT:
        return fragment(repeat(insn) * (ptx_has(insn, PTX_MOD_16X256B)   ? 4
                                        : ptx_has(insn, PTX_MOD_16X128B) ? 2
                                                                         : 1),
                        PTX_B32);
    default:
        break;
    }
    if (strcmp(section, "tex") == 0 || strcmp(section, "tld4") == 0)
        return texture(insn, row, role);
    if (strstr(section, "tensor") && ptx_has(insn, PTX_MOD_IM2COL))
        return fragment(dimensions(insn) - 2, PTX_B16);
    if (strstr(section, "tensor"))
        return fragment(2, PTX_B16);
    if (strncmp(section, "tcgen05.mma", 11) == 0)
        return fragment(ptx_has(insn, PTX_MOD_CTA_GROUP__2) ? 8 : 4, PTX_B32);
    return fragment(0, PTX_NONE);
}

unsigned ptx_coordinates_of(const struct ptx_insn *insn, enum ptx_row row, unsigned role)
{
    const char *section = ptx_rows[row].section;
    if (strstr(section, "bulk.tensor") || strstr(section, "prefetch.tensor")) {
        unsigned map = strstr(ptx_rows[row].syntax, "[dst], [tensorMap") ? 1 : 0;
        if (role != map)
            return 0;
        bool rows = ptx_has(insn, PTX_MOD_TILE__GATHER4) || ptx_has(insn, PTX_MOD_TILE__SCATTER4);
        return rows ? 5 : dimensions(insn);
    }
    if (strcmp(section, "tex") == 0 || strcmp(section, "tld4") == 0 || strcmp(section, "suld") == 0 ||
        strcmp(section, "sust") == 0 || strcmp(section, "sured") == 0)
        return ptx_has(insn, PTX_MOD_1D)                                 ? 1
               : ptx_has(insn, PTX_MOD_2D) || ptx_has(insn, PTX_MOD_A1D) ? 2
                                                                         : 4;
    return 0;
}

/* Is this a register (or constant) that a coordinate can be? Floating point only where the texture says so.
 */
static bool is_coordinate(const struct ptx_match_context *context, const struct ptx_operand *operand,
                          bool floating)
{
    if (operand->kind == PTX_OPERAND_INT)
        return !floating;
    if (operand->kind == PTX_OPERAND_FLOAT)
        return floating;
    if (operand->kind != PTX_OPERAND_REG)
        return false;
    const struct ptx_type_info *type = &ptx_types[context->regs[operand->reg].type];
    return type->bits == 32 &&
           (type->class == PTX_CLASS_BITS || (type->class == PTX_CLASS_FLOAT) == floating);
}

const char *ptx_check_address(const struct ptx_match_context *context, const struct ptx_insn *insn,
                              enum ptx_row row, unsigned role, const struct ptx_operand *address)
{
    unsigned count = ptx_coordinates_of(insn, row, role);
    bool texture = strcmp(ptx_rows[row].class, "TEXTURE") == 0;
    const bool sampled = texture || strcmp(ptx_rows[row].class, "SURFACE") == 0;
    const struct ptx_operand *base = &address->elements[0];
    if (strcmp(ptx_rows[row].class, "MULTIMEM") == 0 && base->kind == PTX_OPERAND_REG &&
        ptx_types[context->regs[base->reg].type].bits != 64)
        return "a multimem address has 64 bits";
    if (sampled && base->kind == PTX_OPERAND_REG && ptx_types[context->regs[base->reg].type].bits != 64)
        return "a texture or surface is a reference or a 64-bit register";
    if (texture && base->kind == PTX_OPERAND_SYMBOL && base->var && base->var->type == PTX_SURFREF)
        return "a surface is no texture";
    if (sampled && !texture && base->kind == PTX_OPERAND_SYMBOL && base->var &&
        (base->var->type == PTX_TEXREF || base->var->type == PTX_SAMPLERREF))
        return "a texture is no surface";
    if (count == 0)
        return address->n_elements == 1 ? NULL : "this address has no coordinates";
    if (address->n_elements != 2 && !(texture && address->n_elements == 3))
        return "this address needs its coordinates: [a, {…}]";
    if (address->n_elements == 3) {
        const struct ptx_operand *sampler = &address->elements[1];
        bool is_reference =
            sampler->kind == PTX_OPERAND_SYMBOL ||
            (sampler->kind == PTX_OPERAND_REG && ptx_types[context->regs[sampler->reg].type].bits == 64 &&
             ptx_types[context->regs[sampler->reg].type].class != PTX_CLASS_FLOAT);
        if (!is_reference)
            return "a sampler is a .samplerref or a 64-bit register";
    }
    const struct ptx_operand *coordinates = &address->elements[address->n_elements - 1];
    bool floating = texture && insn->n_types && insn->types[insn->n_types - 1] == PTX_F32;
    bool layered = ptx_has(insn, PTX_MOD_A1D) || ptx_has(insn, PTX_MOD_A2D) || ptx_has(insn, PTX_MOD_ACUBE) ||
                   ptx_has(insn, PTX_MOD_A2DMS);
    if (coordinates->kind != PTX_OPERAND_VECTOR)
        return count == 1 && is_coordinate(context, coordinates, floating)
                   ? NULL
                   : "the coordinates must be a vector {…}";
    /* ptxas 13.0 drops those of a vector of 2 or 4 that the geometry does not have. */
    const uint32_t n = coordinates->n_elements;
    if (n != count && !(sampled && n > count && (n == 2 || n == 4)))
        return "the number of coordinates is not the geometry's";
    for (unsigned i = 0; i < count; i++)
        if (!is_coordinate(context, &coordinates->elements[i], floating && !(layered && i == 0)))
            return "a coordinate must be a 32-bit register or constant of the coordinates' type";
    return NULL;
}
