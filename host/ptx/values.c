/* Constant expressions (PTX ISA 9.0, 4.5 "Constants") and initialisers of variables (5.4.4 "Initializers"):
   nested braces, addresses of variables and functions with offsets, generic(), and mask(sym) bytes of an
   address. Left out: .texref and .samplerref fields are read and dropped (textures are not executed). */
#include <stdlib.h>
#include <string.h>

#include "ptx/parser.h"

static bool expression(struct ptx_parser *parser, struct ptx_value *out, int least);

double ptx_value_double(const struct ptx_value *value)
{
    double result;
    if (!value->is_float)
        return value->is_unsigned ? (double)value->bits : (double)(int64_t)value->bits;
    if (value->is_f32_bits) {
        float narrow;
        uint32_t bits = (uint32_t)value->bits;
        memcpy(&narrow, &bits, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&result, &value->bits, sizeof result);
    return result;
}

static struct ptx_value from_double(double value)
{
    struct ptx_value result = {.is_float = true};
    memcpy(&result.bits, &value, sizeof value);
    return result;
}

static struct ptx_value from_bits(uint64_t bits, bool is_unsigned)
{
    return (struct ptx_value){.bits = bits, .is_unsigned = is_unsigned};
}

static bool primary(struct ptx_parser *parser, struct ptx_value *out)
{
    const struct ptx_token *token = &parser->token;
    if (token->kind == PTX_TOKEN_INT) {
        *out = from_bits(token->value, token->is_unsigned);
        ptx_next(parser);
        return true;
    }
    if (token->kind == PTX_TOKEN_FLOAT) {
        *out = (struct ptx_value){.is_float = true,
                                  .is_f32_bits = token->is_f32,
                                  .is_exact = token->bytes > 1 && token->text[0] == '0' &&
                                              ((token->text[1] | 32) == 'f' || (token->text[1] | 32) == 'd'),
                                  .bits = token->value};
        ptx_next(parser);
        return true;
    }
    if (ptx_is_name(parser, "WARP_SZ")) {
        *out = from_bits(32, false);
        ptx_next(parser);
        return true;
    }
    if (ptx_accept(parser, '(')) {
        if (parser->token.kind == PTX_TOKEN_DOT) { /* a cast: (.s64) or (.u64) */
            bool is_unsigned = ptx_is_dot(parser, ".u64");
            if (!is_unsigned && !ptx_is_dot(parser, ".s64"))
                return ptx_fail(parser, "a cast in a constant is (.s64) or (.u64)");
            ptx_next(parser);
            if (!ptx_expect(parser, ')', "after the cast") || !expression(parser, out, 100))
                return false;
            if (out->is_float)
                return ptx_fail(parser, "a cast needs an integer");
            out->is_unsigned = is_unsigned;
            return true;
        }
        return expression(parser, out, 0) && ptx_expect(parser, ')', "after the constant expression");
    }
    return ptx_fail(parser, "expected a constant");
}

static const char stands_alone[] = "a 0f constant stands alone, without signs and operators";

static bool unary(struct ptx_parser *parser, struct ptx_value *out)
{
    if (parser->nesting >= PTX_MAX_NESTING)
        return ptx_fail(parser, "the constant expression is nested too deeply");
    parser->nesting++;
    int sign = parser->token.kind == PTX_TOKEN_PUNCT ? parser->token.punct : 0;
    bool good;
    if (sign == '-' || sign == '+' || sign == '!' || sign == '~') {
        ptx_next(parser);
        good = unary(parser, out);
        if (!good) {
            parser->nesting--;
            return false;
        }
        if (out->is_float && (sign == '~' || sign == '!'))
            good = ptx_fail(parser, "'%c' needs an integer", sign);
        else if (out->is_f32_bits)
            good = ptx_fail(parser, "%s", stands_alone);
        else if (sign == '!')
            *out = from_bits(out->bits == 0, false);
        else if (sign == '~')
            out->bits = ~out->bits;
        else if (sign == '-' && out->is_float)
            out->bits ^= UINT64_C(1) << 63;
        else if (sign == '-')
            out->bits = 0 - out->bits;
    } else {
        good = primary(parser, out);
    }
    parser->nesting--;
    return good;
}

static int precedence(int punct)
{
    switch (punct) {
    case '*':
    case '/':
    case '%':
        return 11;
    case '+':
    case '-':
        return 10;
    case PTX_PUNCT_SHL:
    case PTX_PUNCT_SHR:
        return 9;
    case '<':
    case '>':
    case PTX_PUNCT_LE:
    case PTX_PUNCT_GE:
        return 8;
    case PTX_PUNCT_EQ:
    case PTX_PUNCT_NE:
        return 7;
    case '&':
        return 6;
    case '^':
        return 5;
    case '|':
        return 4;
    case PTX_PUNCT_AND:
        return 3;
    case PTX_PUNCT_OR:
        return 2;
    case '?':
        return 1;
    default:
        return 0;
    }
}

static bool apply_float(struct ptx_parser *parser, int sign, const struct ptx_value *left,
                        const struct ptx_value *right, struct ptx_value *out)
{
    double a = ptx_value_double(left), b = ptx_value_double(right);
    if (left->is_f32_bits || right->is_f32_bits)
        return ptx_fail(parser, "%s", stands_alone);
    if (!left->is_float || !right->is_float)
        return ptx_fail(parser, "an integer and a floating-point constant cannot be combined");
    switch (sign) {
    case '+':
        *out = from_double(a + b);
        return true;
    case '-':
        *out = from_double(a - b);
        return true;
    case '*':
        *out = from_double(a * b);
        return true;
    case '/':
        if (b == 0)
            return ptx_fail(parser, "division by zero in a constant");
        *out = from_double(a / b);
        return true;
    case '<':
        *out = from_bits(a < b, false);
        return true;
    case '>':
        *out = from_bits(a > b, false);
        return true;
    case PTX_PUNCT_LE:
        *out = from_bits(a <= b, false);
        return true;
    case PTX_PUNCT_GE:
        *out = from_bits(a >= b, false);
        return true;
    case PTX_PUNCT_EQ:
        *out = from_bits(a == b, false);
        return true;
    case PTX_PUNCT_NE:
        *out = from_bits(a != b, false);
        return true;
    default:
        return ptx_fail(parser, "this sign needs integers");
    }
}

static bool apply(struct ptx_parser *parser, int sign, const struct ptx_value *left,
                  const struct ptx_value *right, struct ptx_value *out)
{
    if (left->is_float || right->is_float)
        return apply_float(parser, sign, left, right, out);
    uint64_t a = left->bits, b = right->bits;
    bool is_unsigned = left->is_unsigned || right->is_unsigned;
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    switch (sign) {
    case '+':
        *out = from_bits(a + b, is_unsigned);
        return true;
    case '-':
        *out = from_bits(a - b, is_unsigned);
        return true;
    case '*':
        *out = from_bits(a * b, is_unsigned);
        return true;
    case '/':
    case '%':
        if (b == 0)
            return ptx_fail(parser, "division by zero in a constant");
        if (is_unsigned)
            *out = from_bits(sign == '/' ? a / b : a % b, true);
        else if (sb == -1)
            *out = from_bits(sign == '/' ? 0 - a : 0, false);
        else
            *out = from_bits((uint64_t)(sign == '/' ? sa / sb : sa % sb), false);
        return true;
    case PTX_PUNCT_SHL:
        *out = from_bits(a << (b & 63), left->is_unsigned); /* ptxas folds shifts as x86 does */
        return true;
    case PTX_PUNCT_SHR:
        if (left->is_unsigned)
            *out = from_bits(a >> (b & 63), true);
        else
            *out = from_bits((uint64_t)(sa < 0 ? ~(~sa >> (b & 63)) : sa >> (b & 63)), false);
        return true;
    case '<':
        *out = from_bits(is_unsigned ? a < b : sa < sb, false);
        return true;
    case '>':
        *out = from_bits(is_unsigned ? a > b : sa > sb, false);
        return true;
    case PTX_PUNCT_LE:
        *out = from_bits(is_unsigned ? a <= b : sa <= sb, false);
        return true;
    case PTX_PUNCT_GE:
        *out = from_bits(is_unsigned ? a >= b : sa >= sb, false);
        return true;
    case PTX_PUNCT_EQ:
        *out = from_bits(a == b, false);
        return true;
    case PTX_PUNCT_NE:
        *out = from_bits(a != b, false);
        return true;
    case '&':
        *out = from_bits(a & b, is_unsigned);
        return true;
    case '^':
        *out = from_bits(a ^ b, is_unsigned);
        return true;
    case '|':
        *out = from_bits(a | b, is_unsigned);
        return true;
    case PTX_PUNCT_AND:
        *out = from_bits(a && b, false);
        return true;
    default:
        *out = from_bits(a || b, false);
        return true;
    }
}

/* Operators of precedence `least` and above, to the left first; ?: to the right. */
static bool expression(struct ptx_parser *parser, struct ptx_value *out, int least)
{
    if (!unary(parser, out))
        return false;
    for (;;) {
        int sign = parser->token.kind == PTX_TOKEN_PUNCT ? parser->token.punct : 0;
        int level = precedence(sign);
        if (level == 0 || level < least)
            return true;
        if (parser->nesting >= PTX_MAX_NESTING)
            return ptx_fail(parser, "the constant expression is nested too deeply");
        ptx_next(parser);
        parser->nesting++;
        struct ptx_value right, other;
        bool good;
        if (sign == '?') {
            good = expression(parser, &right, 1) && ptx_expect(parser, ':', "of the conditional") &&
                   expression(parser, &other, 1);
            if (good && (out->is_float || right.is_float || other.is_float))
                good = ptx_fail(parser, "'?:' needs integers");
            if (good)
                *out = out->bits == 0 ? other : right;
        } else {
            struct ptx_value left = *out;
            good = expression(parser, &right, level + 1) && apply(parser, sign, &left, &right, out);
        }
        parser->nesting--;
        if (!good)
            return false;
    }
}

bool ptx_constant(struct ptx_parser *parser, struct ptx_value *out)
{
    return expression(parser, out, 0);
}

bool ptx_constant_u32(struct ptx_parser *parser, uint32_t limit, uint32_t *out)
{
    struct ptx_value value;
    if (!ptx_constant(parser, &value))
        return false;
    if (value.is_float || value.bits > limit)
        return ptx_fail(parser, "expected an integer from 0 to %u", (unsigned)limit);
    *out = (uint32_t)value.bits;
    return true;
}

bool ptx_number_u32(struct ptx_parser *parser, uint32_t limit, uint32_t *out)
{
    if (parser->token.kind != PTX_TOKEN_INT || parser->token.value > limit)
        return ptx_fail(parser, "expected an integer from 0 to %u", (unsigned)limit);
    *out = (uint32_t)parser->token.value;
    ptx_next(parser);
    return true;
}

/* --- initialisers */

struct filling {
    struct ptx_var *var;
    const uint64_t *dims; /* dims[0] may be 0: as many as there are */
    unsigned n_dims;
    uint64_t element_bytes;
};

/* Room in var->data up to `end`, while its size is still growing. */
static bool data_reach(struct ptx_parser *parser, struct ptx_var *var, uint64_t end)
{
    enum { LIMIT = 1 << 30 };
    if (end > LIMIT)
        return ptx_fail(parser, "'%s' is too large to be initialised: more than %d bytes", var->name, LIMIT);
    struct ptx_list *bytes = &parser->bytes;
    if (end > bytes->capacity) {
        size_t capacity = bytes->capacity ? bytes->capacity : 4096;
        while (capacity < end)
            capacity *= 2;
        unsigned char *grown = clab_arena_alloc(&parser->scratch, capacity);
        if (!grown)
            return ptx_no_memory(parser);
        if (bytes->count)
            memcpy(grown, bytes->items, bytes->count);
        bytes->items = grown;
        bytes->capacity = capacity;
    }
    if (end > bytes->count) {
        memset((unsigned char *)bytes->items + bytes->count, 0, end - bytes->count);
        bytes->count = (size_t)end;
    }
    return true;
}

/* The variable or function whose address is stored in `var`. */
static bool address_of(struct ptx_parser *parser, const struct ptx_var *var, struct ptx_reloc *reloc)
{
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected the name of a variable or function");
    struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
    struct ptx_binding *binding = name ? ptx_lookup(parser, name) : NULL;
    if (!name)
        return false;
    if (!binding || (binding->kind != PTX_BIND_VAR && binding->kind != PTX_BIND_FUNCTION)) {
        const char *near = ptx_nearest_declared(parser, name);
        return near ? ptx_fail(parser, "'%s' is not declared; did you mean '%s'?", name->text, near)
                    : ptx_fail(parser, "'%s' is not declared", name->text);
    }
    reloc->var = binding->var;
    reloc->func = binding->function;
    if (reloc->func && !ptx_needs(parser, PTX_FEATURE_FUNCTION_ADDRESS))
        return false;
    if (reloc->var && reloc->var->space != PTX_SPACE_GLOBAL && reloc->var->space != PTX_SPACE_CONST)
        return ptx_fail(parser,
                        "'%s' is a .%s variable; an initialiser takes addresses of .global and .const",
                        name->text, ptx_space_text[reloc->var->space]);
    if (reloc->var == var)
        return ptx_fail(parser, "'%s' cannot be initialised with its own address", name->text);
    if (reloc->func && reloc->generic)
        return ptx_fail(parser, "'%s' is a function: generic() takes a variable", name->text);
    ptx_next(parser);
    if (reloc->func && ptx_is(parser, '+'))
        return ptx_fail(parser, "the address of a function takes no offset");
    return true;
}

/* + offset, as often as it is written. (ptxas 13.0 knows no - here: a negative offset is `+ -4`.) */
static bool addend_read(struct ptx_parser *parser, struct ptx_reloc *reloc)
{
    while (ptx_accept(parser, '+')) {
        struct ptx_value offset;
        if (!expression(parser, &offset, 11))
            return false;
        if (offset.is_float)
            return ptx_fail(parser, "an offset must be an integer");
        reloc->addend = (int64_t)((uint64_t)reloc->addend + offset.bits);
    }
    return true;
}

static bool symbol_value(struct ptx_parser *parser, const struct ptx_var *var, struct ptx_reloc *reloc)
{
    if (ptx_is_name(parser, "generic")) {
        if (!ptx_needs(parser, PTX_FEATURE_GENERIC))
            return false;
        ptx_next(parser);
        reloc->generic = true;
        if (!ptx_expect(parser, '(', "after generic") || !address_of(parser, var, reloc) ||
            !ptx_expect(parser, ')', "after the symbol"))
            return false;
        return addend_read(parser, reloc);
    }
    return address_of(parser, var, reloc) && addend_read(parser, reloc);
}

static void store(unsigned char *at, uint64_t bits, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(i < 8 ? bits >> (8 * i) : 0); /* little-endian, like the device */
}

static bool scalar_value(struct ptx_parser *parser, const struct filling *filling, uint64_t offset)
{
    struct ptx_var *var = filling->var;
    const struct ptx_type_info *type = &ptx_types[var->type];
    uint64_t bytes = filling->element_bytes;
    struct ptx_reloc reloc = {.offset = offset, .bytes = (uint8_t)bytes};
    bool symbolic = false;
    struct ptx_value value = {0};
    if (!data_reach(parser, var, offset + bytes))
        return false;
    if (parser->token.kind == PTX_TOKEN_NAME && !ptx_is_name(parser, "WARP_SZ")) {
        symbolic = true;
        if ((bytes != 4 && bytes != 8) ||
            (type->class != PTX_CLASS_BITS && type->class != PTX_CLASS_UNSIGNED))
            return ptx_fail(parser, "an address needs unsigned or .b elements of 4 or 8 bytes, '%s' is .%s",
                            var->name, type->text);
        if (!symbol_value(parser, var, &reloc))
            return false;
    } else {
        if (!ptx_constant(parser, &value))
            return false;
        if (ptx_is(parser, '(') && !value.is_float) { /* 0xFF00(sym): one byte of the address */
            uint64_t mask = value.bits;
            unsigned shift = 0;
            if (type->class != PTX_CLASS_UNSIGNED || bytes == 2)
                return ptx_fail(parser, "a byte of an address needs elements of type .u8, '%s' is .%s",
                                var->name, type->text);
            while (shift < 64 && mask != UINT64_C(0xff) << shift)
                shift += 8;
            if (shift >= 64)
                return ptx_fail(parser, "a mask selects one byte of an address: 0xFF, 0xFF00, …");
            ptx_next(parser);
            symbolic = true;
            reloc.bytes = 1;
            reloc.shift = (uint8_t)shift;
            if (!symbol_value(parser, var, &reloc) || !ptx_expect(parser, ')', "after the symbol"))
                return false;
        }
    }
    if (symbolic) {
        struct ptx_reloc *kept = ptx_list_add(parser, &parser->relocs, sizeof *kept);
        if (!kept)
            return false;
        *kept = reloc;
        return true;
    }
    uint64_t bits = value.bits;
    if (type->class == PTX_CLASS_PACKED || (type->class == PTX_CLASS_FLOAT && bytes < 4))
        return ptx_fail(parser, "a .%s variable cannot be initialised", type->text);
    if (type->class == PTX_CLASS_FLOAT && !value.is_float)
        return ptx_fail(parser, "'%s' is .%s and needs a floating-point constant", var->name, type->text);
    if (value.is_float && type->class != PTX_CLASS_FLOAT && type->class != PTX_CLASS_BITS)
        return ptx_fail(parser, "'%s' is .%s and needs an integer constant", var->name, type->text);
    if (value.is_float && !value.is_f32_bits && bytes == 4) {
        float narrow = (float)ptx_value_double(&value);
        uint32_t word;
        memcpy(&word, &narrow, sizeof word);
        bits = word;
    } /* anything else keeps its bits, a 0f constant in a .f64 too (ptxas 13.0) */
    unsigned char *data = parser->bytes.items;
    store(data + offset, bits, bytes);
    if (bytes == 16 && !value.is_unsigned && (int64_t)bits < 0)
        memset(data + offset + 8, 0xff, 8);
    return true;
}

/* Elements of one dimension (level) inside their braces; the last level holds scalars. */
static bool brace_values(struct ptx_parser *parser, const struct filling *filling, unsigned level,
                         uint64_t offset, uint64_t *out_count)
{
    uint64_t step = filling->element_bytes;
    for (unsigned i = level + 1; i < filling->n_dims; i++)
        step *= filling->dims[i];
    uint64_t count = 0;
    if (!ptx_expect(parser, '{', "of the initialiser"))
        return false;
    bool more = !ptx_is(parser, '}');
    while (more) {
        uint64_t at = offset + count * step, inner;
        if (filling->dims[level] && count >= filling->dims[level])
            return ptx_fail(parser, "too many values for '%s'", filling->var->name);
        if (level + 1 < filling->n_dims ? !brace_values(parser, filling, level + 1, at, &inner)
                                        : !scalar_value(parser, filling, at))
            return false;
        count++;
        more = ptx_accept(parser, ',');
    }
    *out_count = count;
    return ptx_expect(parser, '}', "after the initialiser's values");
}

/* { addr_mode_0 = wrap, filter_mode = linear }: fields of .texref, .samplerref and .surfref, read and
 * dropped. */
static bool opaque_fields(struct ptx_parser *parser)
{
    if (!ptx_expect(parser, '{', "of the initialiser"))
        return false;
    while (!ptx_is(parser, '}')) {
        if (parser->token.kind != PTX_TOKEN_NAME)
            return ptx_fail(parser, "expected the name of a field");
        ptx_next(parser);
        if (!ptx_expect(parser, '=', "after the field"))
            return false;
        if (parser->token.kind == PTX_TOKEN_NAME) {
            ptx_next(parser);
        } else {
            struct ptx_value value;
            if (!ptx_constant(parser, &value))
                return false;
        }
        if (!ptx_accept(parser, ','))
            break;
    }
    return ptx_expect(parser, '}', "after the fields");
}

bool ptx_initialiser(struct ptx_parser *parser, struct ptx_var *var, const uint64_t *dims, unsigned n_dims)
{
    if (ptx_types[var->type].class == PTX_CLASS_OPAQUE)
        return opaque_fields(parser);
    if (var->space != PTX_SPACE_GLOBAL && var->space != PTX_SPACE_CONST)
        return ptx_fail(parser, "only .global and .const variables can be initialised");
    struct filling filling = {
        .var = var, .dims = dims, .n_dims = n_dims, .element_bytes = ptx_types[var->type].bits / 8u};
    uint64_t levels[PTX_MAX_DIMENSIONS + 1];
    unsigned n_levels = 0;
    for (unsigned i = 0; i < n_dims; i++)
        levels[n_levels++] = dims[i];
    if (var->vector > 1)
        levels[n_levels++] = var->vector;
    filling.dims = levels;
    filling.n_dims = n_levels;
    parser->bytes.count = 0;
    parser->relocs.count = 0;
    uint64_t count = 1;
    if (n_levels == 0) {
        if (!scalar_value(parser, &filling, 0))
            return false;
    } else if (!brace_values(parser, &filling, 0, 0, &count)) {
        return false;
    }
    if (var->is_unsized) {
        uint64_t row = filling.element_bytes;
        for (unsigned i = 1; i < n_levels; i++)
            row *= levels[i];
        var->bytes = count * row;
        var->is_unsized = false;
    }
    bool any = parser->relocs.count > 0;
    const unsigned char *bytes = parser->bytes.items;
    for (size_t i = 0; i < parser->bytes.count && !any; i++)
        any = bytes[i] != 0;
    if (!any)
        return true; /* all zero, which every variable is anyway */
    enum { LIMIT = 1 << 30 };
    parser->initialised_bytes += var->bytes;
    if (var->bytes > LIMIT || parser->initialised_bytes > LIMIT)
        return ptx_fail(parser, "more than %d bytes of initialised variables", LIMIT);
    var->data = clab_arena_alloc(parser->arena, (size_t)var->bytes);
    if (!var->data)
        return ptx_no_memory(parser);
    size_t used = parser->bytes.count < var->bytes ? parser->bytes.count : (size_t)var->bytes;
    memcpy(var->data, bytes, used);
    var->n_relocs = (uint32_t)parser->relocs.count;
    var->relocs = ptx_list_copy(parser, &parser->relocs, sizeof *var->relocs);
    return !parser->failed;
}
