/* call (PTX ISA 9.0, 9.7.12.5 "call", and 7.1 for parameters): its lists, and whether what is passed fits
   what the function, the prototype or each function of a list declares. The rules of types are ptxas 13.0's,
   asked for every pair of declarations (tests/ptx/modules.tsv). */
#include <string.h>

#include "ptx/parser.h"

enum { MAX_PASSED = 300 };

/* (a, b, …), or nothing: names without members or offsets, and constants. */
static bool list_or_nothing(struct ptx_parser *parser, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.kind = PTX_OPERAND_LIST, .component = PTX_COMPONENT_NONE};
    if (!ptx_accept(parser, '('))
        return true;
    struct ptx_list list = {0};
    bool more = !ptx_is(parser, ')');
    while (more) {
        struct ptx_operand *item = ptx_list_add(parser, &list, sizeof *item);
        if (!item || !ptx_parse_plain(parser, item))
            return false;
        if (list.count > MAX_PASSED)
            return ptx_fail(parser, "too many operands");
        more = ptx_accept(parser, ',');
    }
    out->n_elements = (uint32_t)list.count;
    out->elements = clab_arena_array(parser->arena, list.count ? list.count : 1, sizeof *out->elements);
    if (!out->elements)
        return ptx_no_memory(parser);
    if (list.count)
        memcpy(out->elements, list.items, list.count * sizeof *out->elements);
    return ptx_expect(parser, ')', "after the list");
}

/* Something passed or declared, as far as its type matters. */
struct passed {
    enum ptx_type type;
    uint64_t bytes;
    bool is_array, is_vector;
};

static enum ptx_type_class class_of(const struct passed *passed)
{
    const enum ptx_type_class class = ptx_types[passed->type].class;
    return passed->is_vector || class == PTX_CLASS_PACKED ? PTX_CLASS_BITS : class;
}

static bool is_integer(enum ptx_type_class class)
{
    return class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED;
}

static struct passed passed_of(const struct ptx_var *var)
{
    return (struct passed){var->type, var->bytes, var->is_array,
                           var->space == PTX_SPACE_REG && var->vector > 1};
}

/* Two declarations of one size: .b of any class, integers of either sign, or the same float type; an array
   only with an array. */
static bool types_fit(const struct passed *formal, const struct passed *actual)
{
    const enum ptx_type_class wanted = class_of(formal), given = class_of(actual);
    if (formal->is_array != actual->is_array || formal->bytes != actual->bytes)
        return false;
    if (formal->is_array && ptx_types[formal->type].bits != ptx_types[actual->type].bits)
        return false;
    return wanted == PTX_CLASS_BITS || given == PTX_CLASS_BITS || (is_integer(wanted) && is_integer(given)) ||
           formal->type == actual->type;
}

/* A literal for a parameter: .b takes its low bits, whatever it is. */
static bool literal_fits(const struct passed *formal, const struct ptx_operand *literal)
{
    if (formal->is_array || (formal->is_vector && formal->bytes > 8))
        return false;
    if (formal->is_vector)
        return !literal->is_f32_bits;
    if (formal->type == PTX_F16X2)
        return literal->is_f32_bits;
    switch (ptx_types[formal->type].class) {
    case PTX_CLASS_BITS:
        return true;
    case PTX_CLASS_FLOAT:
        return literal->kind == PTX_OPERAND_FLOAT;
    default:
        return literal->kind == PTX_OPERAND_INT;
    }
}

/* What is passed: a register, a vector of them, a constant, or a .param variable of this body. */
static bool element_fits(struct ptx_parser *parser, struct ptx_operand *element, const struct ptx_var *formal,
                         bool returned, const char *what, uint32_t index)
{
    const struct ptx_reg *regs = parser->regs.items;
    const struct ptx_function *function = parser->function;
    const struct ptx_var *var = element->kind == PTX_OPERAND_SYMBOL ? element->var : NULL;
    const struct passed wanted = passed_of(formal);
    struct passed given = {0};
    if (returned && element->kind == PTX_OPERAND_SINK)
        return true;
    if (element->kind == PTX_OPERAND_INT || element->kind == PTX_OPERAND_FLOAT) {
        if (returned && element->kind == PTX_OPERAND_INT)
            return ptx_fail(parser, "a returned value needs a place to go to");
        if (!literal_fits(&wanted, element))
            return ptx_fail(parser, "%s %u: a literal of another type than '%s', which is .%s", what,
                            (unsigned)index + 1, formal->name, ptx_types[formal->type].text);
        if (returned) /* ptxas 13.0 takes a floating-point literal, and drops the value */
            element->kind = PTX_OPERAND_SINK;
        return true;
    }
    if (element->kind == PTX_OPERAND_REG) {
        given.type = regs[element->reg].type;
        given.bytes = ptx_types[given.type].bits / 8u;
    } else if (element->kind == PTX_OPERAND_VECTOR && formal->space == PTX_SPACE_PARAM && wanted.is_array) {
        return ptx_fail(parser, "%s %u: '%s' is an array, and takes a .param variable", what,
                        (unsigned)index + 1, formal->name);
    } else if (element->kind == PTX_OPERAND_VECTOR) {
        given.type = regs[element->elements[0].reg].type;
        given.bytes = (uint64_t)element->n_elements * ptx_types[given.type].bits / 8u;
        given.is_vector = true;
    } else {
        bool own = var && (var->function != function || var->index >= function->n_params ||
                           function->params[var->index] != var);
        if (!own || var->space != PTX_SPACE_PARAM)
            return ptx_fail(parser,
                            "an argument is a register, a constant or a .param variable of this body");
        given = passed_of(var);
    }
    if (types_fit(&wanted, &given))
        return true;
    if (given.bytes != wanted.bytes)
        return ptx_fail(parser, "%s %u: %llu bytes are passed, '%s' has %llu", what, (unsigned)index + 1,
                        (unsigned long long)given.bytes, formal->name, (unsigned long long)wanted.bytes);
    return ptx_fail(parser, "%s %u: '%s' is .%s%s, what is passed is .%s%s", what, (unsigned)index + 1,
                    formal->name, ptx_types[wanted.type].text, wanted.is_array ? "[]" : "",
                    ptx_types[given.type].text, given.is_array ? "[]" : "");
}

/* Does a list of a call fit the declared parameters (or returns)? A last parameter that is left open stands
   for any number. */
static bool list_fits(struct ptx_parser *parser, struct ptx_operand *list, struct ptx_var *const *formals,
                      uint32_t count, bool returned)
{
    const char *what = returned ? "returned values" : "arguments";
    const bool variadic = !returned && count > 0 && formals[count - 1]->is_unsized;
    if (variadic ? list->n_elements + 1 < count : list->n_elements != count)
        return ptx_fail(parser, "the call has %u %s, the function %u", (unsigned)list->n_elements, what,
                        (unsigned)count);
    for (uint32_t i = 0; i < list->n_elements && (!variadic || i + 1 < count); i++)
        if (!element_fits(parser, &list->elements[i], formals[i], returned, what, i))
            return false;
    return true;
}

/* The ABI of ptxas passes no predicates, and integers of 8 and 16 bits as .b only. A function that asks for
   them may stand there, and cannot be called. */
static bool abi_passes(const struct ptx_var *var)
{
    return var->type != PTX_PRED &&
           (var->is_array || (var->space == PTX_SPACE_REG && var->vector > 1) ||
            !is_integer(ptx_types[var->type].class) || ptx_types[var->type].bits > 16);
}

bool ptx_call_fits(struct ptx_parser *parser, struct ptx_operand operands[3], struct ptx_var *const *params,
                   uint32_t n_params, struct ptx_var *const *returns, uint32_t n_returns)
{
    for (uint32_t i = 0; i < n_params + n_returns; i++) {
        const struct ptx_var *var = i < n_params ? params[i] : returns[i - n_params];
        if (!abi_passes(var))
            return ptx_fail(parser, "a parameter of type .%s cannot be passed to a function",
                            ptx_types[var->type].text);
    }
    return list_fits(parser, &operands[0], returns, n_returns, true) &&
           list_fits(parser, &operands[2], params, n_params, false);
}

/* call without a table: a function, whose header is known. */
static bool direct_call_fits(struct ptx_parser *parser, struct ptx_operand operands[3])
{
    const struct ptx_function *callee = operands[1].func;
    if (operands[1].kind != PTX_OPERAND_FUNCTION)
        return ptx_fail(parser, "an indirect call needs a .callprototype or .calltargets list");
    if (callee->entry)
        return ptx_fail(parser, "'%s' is a kernel: only a function can be called", callee->name);
    return ptx_call_fits(parser, operands, callee->params, callee->n_params, callee->returns,
                         callee->n_returns);
}

/* call{.uni} {(ret), }func{, (args)}{, table}: always LIST, FUNCTION or REG, LIST, and LABEL when there is a
 * table. */
bool ptx_parse_call(struct ptx_parser *parser, struct ptx_insn *insn)
{
    struct ptx_operand *operands = clab_arena_array(parser->arena, 4, sizeof *operands);
    if (!operands)
        return ptx_no_memory(parser);
    insn->operands = operands;
    insn->n_operands = 3;
    if (!list_or_nothing(parser, &operands[0]))
        return false;
    if (operands[0].elements && !ptx_expect(parser, ',', "after the returned values"))
        return false;
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected the function to call");
    operands[1] = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
    if (!name)
        return false;
    if (!ptx_lookup(parser, name))
        return !parser->failed && ptx_undeclared(parser, name);
    if (!ptx_parse_plain(parser, &operands[1]))
        return false;
    if (operands[1].kind == PTX_OPERAND_SYMBOL && operands[1].func)
        operands[1].kind = PTX_OPERAND_FUNCTION;
    if (operands[1].kind != PTX_OPERAND_FUNCTION && operands[1].kind != PTX_OPERAND_REG)
        return ptx_fail(parser, "'%s' is neither a function nor a register", name->text);
    operands[2] = (struct ptx_operand){.kind = PTX_OPERAND_LIST, .component = PTX_COMPONENT_NONE};
    if (!ptx_accept(parser, ','))
        return direct_call_fits(parser, operands);
    if (ptx_is(parser, '(')) {
        if (!list_or_nothing(parser, &operands[2]))
            return false;
        if (!ptx_accept(parser, ','))
            return direct_call_fits(parser, operands);
    }
    if (!ptx_table_declared(parser) || !ptx_parse_operand(parser, &operands[3]))
        return false;
    if (operands[1].kind == PTX_OPERAND_FUNCTION)
        return ptx_fail(parser, "a function called by name takes no list of targets or prototype");
    if (operands[3].kind != PTX_OPERAND_LABEL)
        return ptx_fail(parser, "expected the name of a .callprototype or .calltargets list");
    insn->n_operands = 4;
    return true;
}
