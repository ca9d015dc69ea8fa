/* Operands against a row's roles: kinds, constants, vectors, addresses, and types as ptxas 13.0 checks them
   (PTX ISA 9.0, 9.2 "Type Information for Instructions and Operands"). */
#include <stdio.h>
#include <string.h>

#include "ptx/checks.h"
#include "ptx/match.h"

static bool refuse(struct ptx_attempt *attempt, unsigned operand, const char *text)
{
    snprintf(attempt->why, sizeof attempt->why, "%s", text);
    attempt->operand = operand;
    return false;
}

static bool is_integer(enum ptx_type_class class)
{
    return class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED;
}

/* May a register of type `reg` stand where an instruction of type `type` reads or writes one? */
static bool register_fits(enum ptx_type reg, enum ptx_type type, bool widens, bool fixed)
{
    const struct ptx_type_info *r = &ptx_types[reg], *t = &ptx_types[type];
    if (t->class == PTX_CLASS_PRED || r->class == PTX_CLASS_PRED)
        return t->class == r->class;
    if (reg == type)
        return true;
    if (r->bits != t->bits && !(widens && r->bits > t->bits))
        return false;
    if (r->class == PTX_CLASS_BITS || t->class == PTX_CLASS_BITS)
        return true;
    if (r->class == PTX_CLASS_PACKED) /* a .f16x2 register, where the instruction's own type rules */
        return !fixed && (is_integer(t->class) || type == PTX_U16X2 || type == PTX_S16X2);
    return is_integer(r->class) && is_integer(t->class);
}

static enum ptx_type role_type(const struct ptx_role *role, const struct ptx_insn *insn)
{
    enum ptx_type type = PTX_NONE;
    switch (role->by) {
    case PTX_ROLE_FIXED:
        return (enum ptx_type)role->type;
    case PTX_ROLE_ANY:
        return PTX_NONE;
    case PTX_ROLE_INDEX:
        return role->type < insn->n_types ? (enum ptx_type)insn->types[role->type] : PTX_NONE;
    case PTX_ROLE_DOUBLE:
        type = insn->n_types ? (enum ptx_type)insn->types[0] : PTX_NONE;
        break;
    }
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    case PTX_S32:
        return PTX_S64;
    default:
        return PTX_NONE;
    }
}

static bool mismatch(struct ptx_attempt *attempt, unsigned index, enum ptx_type type,
                     const struct ptx_operand *operand)
{
    char text[300];
    if (operand->kind == PTX_OPERAND_REG && attempt->context->regs)
        snprintf(text, sizeof text, "operand %u: register '%s' is .%s, '%s' needs .%s here", index + 1,
                 attempt->context->regs[operand->reg].name,
                 ptx_types[attempt->context->regs[operand->reg].type].text, attempt->opcode->root->name,
                 ptx_types[type].text);
    else
        snprintf(text, sizeof text, "operand %u of '%s' does not fit type .%s", index + 1,
                 attempt->opcode->root->name, ptx_types[type].text);
    return refuse(attempt, index, text);
}

/* A literal where a value of `type` is read. */
static bool literal_fits(const struct ptx_operand *operand, enum ptx_type type)
{
    if (type == PTX_NONE)
        return operand->kind == PTX_OPERAND_INT;
    const struct ptx_type_info *t = &ptx_types[type];
    switch (t->class) {
    case PTX_CLASS_FLOAT:
        return operand->kind == PTX_OPERAND_FLOAT && (type == PTX_F32 || type == PTX_F64);
    case PTX_CLASS_PACKED:
        return false;
    case PTX_CLASS_BITS:
        if (operand->kind == PTX_OPERAND_FLOAT)
            return operand->is_f32_bits ? type == PTX_B32 : type == PTX_B64;
        return true;
    default:
        return operand->kind == PTX_OPERAND_INT;
    }
}

static bool value_allowed(const struct ptx_role *role, int64_t value)
{
    if (role->has_range)
        return value >= role->values[0] && value <= role->values[1] &&
               (value - role->values[0]) % role->values[2] == 0;
    for (unsigned i = 0; i < role->n_values; i++)
        if (value == role->values[i])
            return true;
    return false;
}

/* A part of a register, or what a SIMD video instruction takes: of a source two of four halves or four of
   eight bytes, of the result a mask, highest first. */
static bool selector_fits(const struct ptx_role *role, const struct ptx_operand *operand, bool written)
{
    const bool halves = operand->component == PTX_SELECT_HALVES;
    const bool one = !halves && operand->component != PTX_SELECT_BYTES;
    const bool half = operand->component >= PTX_SELECT_H0;
    if (role->selects < 2)
        return role->selects == 1 && one;
    if (one)
        return written && half == (role->selects == 2);
    if (halves != (role->selects == 2))
        return false;
    const unsigned count = (unsigned)(operand->imm >> 16);
    for (unsigned i = 0; i < count; i++) {
        const unsigned digit = operand->imm >> 4 * i & 15, next = operand->imm >> (4 * i + 4) & 15;
        if (digit >= (written ? 1u : 2u) * role->selects || (written && i + 1 < count && next <= digit))
            return false;
    }
    return written || count == role->selects;
}

/* The bits of a space that an address may name besides itself. */
static enum ptx_space plain_space(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_SHARED_CTA:
    case PTX_SPACE_SHARED_CLUSTER:
        return PTX_SPACE_SHARED;
    case PTX_SPACE_PARAM_ENTRY:
    case PTX_SPACE_PARAM_FUNC:
        return PTX_SPACE_PARAM;
    default:
        return space;
    }
}

/* Instructions without a state space take a generic address; the name of a .const or .param variable is none
   (cvta makes one of it). cvta, mapa and getctarank take names of their own space. */
static bool space_fits(struct ptx_attempt *attempt, unsigned index, const struct ptx_operand *symbol)
{
    const struct ptx_insn *insn = attempt->insn;
    const bool copies = strcmp(ptx_rows[attempt->row].section, "cp.async") == 0; /* its spaces: of a, of b */
    if (insn->n_spaces > 1 && !copies)
        return true;
    bool is_shared = attempt->row == PTX_MAPA || attempt->row == PTX_GETCTARANK;
    enum ptx_space named = is_shared ? PTX_SPACE_SHARED : PTX_SPACE_NONE;
    if (insn->n_spaces)
        named = plain_space((enum ptx_space)insn->spaces[insn->n_spaces > 1 && index ? 1 : 0]);
    enum ptx_space of = symbol->var ? plain_space(symbol->var->space) : PTX_SPACE_NONE;
    bool generic = of == PTX_SPACE_GLOBAL || of == PTX_SPACE_SHARED || of == PTX_SPACE_LOCAL;
    char text[200];
    if (named == PTX_SPACE_NONE ? generic : named == of)
        return true;
    if (!symbol->var)
        return refuse(attempt, index, "a function has no address in this state space");
    if (named == PTX_SPACE_NONE)
        snprintf(text, sizeof text, "'%s' is a .%s variable, the instruction takes a generic address",
                 symbol->var->name, ptx_space_text[of]);
    else
        snprintf(text, sizeof text, "'%s' is a .%s variable, the instruction accesses .%s", symbol->var->name,
                 ptx_space_text[of], ptx_space_text[named]);
    return refuse(attempt, index, text);
}

static bool scalar_fits(struct ptx_attempt *attempt, unsigned index, const struct ptx_role *role,
                        const struct ptx_operand *operand)
{
    enum ptx_type type = role->letter == 'p' ? PTX_PRED : role_type(role, attempt->insn);
    char text[200];
    bool written = role->letter == 'w' || role->letter == 'x';
    switch (operand->kind) {
    case PTX_OPERAND_REG: {
        enum ptx_type reg = attempt->context->regs[operand->reg].type;
        if (role->letter == 'i')
            return refuse(attempt, index, "an integer constant is needed here");
        if (operand->negated && type != PTX_PRED && operand->component == PTX_COMPONENT_NONE &&
            !role->negates)
            return refuse(attempt, index, "only a predicate can be negated");
        if (operand->negated && written)
            return refuse(attempt, index, "a result cannot be negated");
        if (operand->component != PTX_COMPONENT_NONE && !selector_fits(role, operand, written))
            return refuse(attempt, index,
                          role->selects ? "this part selector is not for this operand"
                                        : "a part selector is for video instructions only");
        if (type == PTX_NONE)
            return (ptx_types[reg].bits >= 32 && ptx_types[reg].bits <= 64 &&
                    (ptx_types[reg].class == PTX_CLASS_BITS || is_integer(ptx_types[reg].class))) ||
                   refuse(attempt, index, "a 32- or 64-bit integer or .b register is needed here");
        return register_fits(reg, type, role->widens, role->by == PTX_ROLE_FIXED) ||
               mismatch(attempt, index, type, operand);
    }
    case PTX_OPERAND_INT:
        if (role->letter == 'g')
            return refuse(attempt, index, "a register is needed here");
        if (written)
            return refuse(attempt, index, "the result must be a register");
        if (value_allowed(role, (int64_t)operand->imm))
            return true;
        if (role->n_values) {
            snprintf(text, sizeof text, "%lld is not allowed as operand %u of '%s'", (long long)operand->imm,
                     index + 1, attempt->opcode->root->name);
            return refuse(attempt, index, text);
        }
        if (role->letter == 'i' || type == PTX_PRED)
            return true;
        return literal_fits(operand, type) || mismatch(attempt, index, type, operand);
    case PTX_OPERAND_FLOAT:
        if (written)
            return refuse(attempt, index, "the result must be a register");
        if (role->letter == 'i' || role->letter == 'p')
            return refuse(attempt, index, "an integer constant is needed here");
        return literal_fits(operand, type) || mismatch(attempt, index, type, operand);
    case PTX_OPERAND_SREG: {
        if (role->letter != 'e' && role->letter != 's')
            return refuse(attempt, index, "a special register can be read by mov and cvt only");
        const struct ptx_sreg_info *sreg = &ptx_sregs[operand->sreg];
        if (type == PTX_B128) /* undocumented: ptxas takes all members at once */
            return (sreg->components == 4 && operand->component == PTX_COMPONENT_NONE) ||
                   mismatch(attempt, index, type, operand);
        if (sreg->components > 1 && operand->component == PTX_COMPONENT_NONE)
            return refuse(attempt, index, "a special register with members needs .x, .y, .z or .w here");
        if (type == PTX_PRED || sreg->type == PTX_PRED)
            return type == sreg->type || mismatch(attempt, index, type, operand);
        const struct ptx_type_info *t = &ptx_types[type];
        bool wide = operand->sreg == PTX_SREG_GRIDID; /* as wide as one likes: it was 16, then 32 bits */
        bool narrow = (t->bits == 16 && sreg->components > 1 && sreg->isa < 78) || (wide && t->bits < 64);
        if (t->class == PTX_CLASS_FLOAT ||
            (t->bits != ptx_types[sreg->type].bits && !narrow && !role->widens))
            return mismatch(attempt, index, type, operand);
        return true;
    }
    case PTX_OPERAND_SYMBOL:
    case PTX_OPERAND_INDEXED:
    case PTX_OPERAND_FUNCTION:
        /* ptxas takes a sum for a constant, where it refuses the bare name */
        if (role->letter != 'e' && role->letter != 'y' &&
            !((role->letter == 'r' || role->letter == 's') && operand->is_sum))
            return refuse(attempt, index,
                          "a register is needed here, not the address of a variable or function");
        if (role->letter == 'y' && !space_fits(attempt, index, operand))
            return false;
        if (operand->func && operand->imm)
            return refuse(attempt, index, "the address of a function takes no offset");
        if (type == PTX_NONE && operand->is_sum)
            return true;
        if (type == PTX_PRED ||
            (ptx_types[type].class != PTX_CLASS_BITS && !is_integer(ptx_types[type].class)) ||
            ptx_types[type].bits < (role->letter == 'y' ? 32 : 16) || ptx_types[type].bits > 64)
            return mismatch(attempt, index, type, operand);
        return true;
    case PTX_OPERAND_SINK:
        if (written && role->sinks)
            return true;
        return refuse(attempt, index,
                      written ? "the result of this instruction cannot be discarded"
                              : "'_' has no value to read");
    case PTX_OPERAND_LABEL:
        return refuse(attempt, index, "a label cannot be used here");
    default:
        return refuse(attempt, index, "an operand of another kind is needed here");
    }
}

static bool vector_fits(struct ptx_attempt *attempt, unsigned index, const struct ptx_role *role,
                        unsigned length, const struct ptx_operand *operand)
{
    char text[160];
    if (operand->kind == PTX_OPERAND_SREG && role->letter == 'e')
        return (ptx_sregs[operand->sreg].components == length && operand->component == PTX_COMPONENT_NONE) ||
               refuse(attempt, index, "a special register with as many members as the vector is needed here");
    if (operand->kind == PTX_OPERAND_SINK && role->letter == 'w' && role->sinks)
        return true;
    if (operand->kind != PTX_OPERAND_VECTOR) {
        if (length == 1) /* a vector of one, {r}, is the same as r */
            return scalar_fits(attempt, index, role, operand);
        snprintf(text, sizeof text, "operand %u must be a vector {…} of %u", index + 1, length);
        return refuse(attempt, index, text);
    }
    if (operand->n_elements != length) {
        snprintf(text, sizeof text, "operand %u must be a vector of %u, not of %u", index + 1, length,
                 (unsigned)operand->n_elements);
        return refuse(attempt, index, text);
    }
    struct ptx_role element = *role;
    element.sinks = role->letter == 'w';
    bool any = false;
    for (uint32_t i = 0; i < operand->n_elements; i++)
        any |= operand->elements[i].kind != PTX_OPERAND_SINK;
    if (!any)
        return refuse(attempt, index, "a part of the vector must be a register");
    for (uint32_t i = 0; i < operand->n_elements; i++)
        if (!scalar_fits(attempt, index, &element, &operand->elements[i]))
            return false;
    return true;
}

static bool is_among(struct ptx_var *const *vars, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(vars[i]->name, name) == 0)
            return true;
    return false;
}

/* A kernel's and a function's parameters are read only, what a function returns is written only. ptxas goes
   by the name, and so includes a .param variable of the body that hides one of them. What writes or reads any
   other .param variable of the body has no guard (ptxas 13.0, and the driver of an H200 on 2026-12-01:
   "Illegal to predicate instruction 'st.param' with operand …"); the call itself may have one. */
static bool parameter_fits(struct ptx_attempt *attempt, unsigned index, const struct ptx_operand *symbol)
{
    const struct ptx_var *var = symbol->var;
    const struct ptx_function *function = var->function;
    if (var->space != PTX_SPACE_PARAM || !function)
        return true;
    if (attempt->row == PTX_ST && is_among(function->params, function->n_params, var->name))
        return refuse(attempt, index, "a parameter cannot be written");
    if (attempt->row == PTX_LD && is_among(function->returns, function->n_returns, var->name))
        return refuse(attempt, index, "a returned value cannot be read");
    if (attempt->insn->has_guard && !is_among(function->params, function->n_params, var->name) &&
        !is_among(function->returns, function->n_returns, var->name)) {
        char why[200];
        snprintf(why, sizeof why, "'%s' with '%.100s', a parameter of calls, cannot be predicated",
                 attempt->row == PTX_ST ? "st.param" : "ld.param", var->name);
        return refuse(attempt, index, why);
    }
    return true;
}

static bool address_fits(struct ptx_attempt *attempt, unsigned index, unsigned role_index,
                         const struct ptx_operand *operand)
{
    if (operand->kind != PTX_OPERAND_ADDRESS)
        return refuse(attempt, index, "an address in brackets is needed here");
    const struct ptx_operand *base = &operand->elements[0];
    if (base->kind == PTX_OPERAND_REG) {
        const struct ptx_type_info *type = &ptx_types[attempt->context->regs[base->reg].type];
        if ((type->class != PTX_CLASS_BITS && !is_integer(type->class)) ||
            (type->bits < 8 || type->bits > 64))
            return refuse(attempt, index,
                          "an address register must be an integer or .b register of 8 to 64 bits");
    }
    const struct ptx_insn *insn = attempt->insn;
    const char *why = ptx_check_address(attempt->context, insn, attempt->row, role_index, operand);
    if (why)
        return refuse(attempt, index, why);
    if (base->kind == PTX_OPERAND_INT && !(insn->n_spaces == 1 && insn->spaces[0] == PTX_SPACE_LOCAL))
        return refuse(attempt, index, "a number as address is allowed for .local only");
    if ((base->kind != PTX_OPERAND_SYMBOL && base->kind != PTX_OPERAND_INDEXED) || !base->var)
        return true;
    return space_fits(attempt, index, base) && parameter_fits(attempt, index, base);
}

static bool operand_fits(struct ptx_attempt *attempt, unsigned index, unsigned role_index,
                         const struct ptx_role *role, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_PAIR) {
        if (!role->pair)
            return refuse(attempt, index, "a pair d|p is not allowed here");
        const bool no_first = operand->elements[0].kind == PTX_OPERAND_SINK;
        const bool no_second = operand->elements[1].kind == PTX_OPERAND_SINK;
        if ((no_first && no_second) ||
            (no_first && strcmp(ptx_rows[attempt->row].section, "shfl.sync") == 0) ||
            (no_second && attempt->row == PTX_ELECT_SYNC))
            return refuse(attempt, index, "this result cannot be discarded");
        struct ptx_role first = *role, second = *role;
        first.sinks = second.sinks = true;
        first.pair = 0;
        second.by = PTX_ROLE_FIXED;
        second.type = (uint8_t)role->pair_type;
        return operand_fits(attempt, index, role_index, &first, &operand->elements[0]) &&
               scalar_fits(attempt, index, &second, &operand->elements[1]);
    }
    if (role->pair == 2)
        return refuse(attempt, index, "a pair d|p is needed here");
    switch (role->letter) {
    case 'a':
        return address_fits(attempt, index, role_index, operand);
    case 'f':
        return operand->kind == PTX_OPERAND_FUNCTION ||
               (operand->kind == PTX_OPERAND_REG &&
                register_fits(attempt->context->regs[operand->reg].type, PTX_B64, false, true)) ||
               refuse(attempt, index, "a function, or a 64-bit register with its address, is needed here");
    case 'k':
        return operand->kind == PTX_OPERAND_SINK || refuse(attempt, index, "only '_' can be written here");
    case 'l':
        return operand->kind == PTX_OPERAND_LABEL || refuse(attempt, index, "a label is needed here");
    case 'u':
        return operand->kind == PTX_OPERAND_LIST ||
               refuse(attempt, index, "a list in parentheses is needed here");
    default:
        break;
    }
    if (role->vector == PTX_ROLE_BY_MOD)
        return vector_fits(attempt, index, role, attempt->opcode->vector, operand);
    if (role->vector == PTX_ROLE_CLASS) {
        struct ptx_fragment wanted = ptx_fragment_of(attempt->insn, attempt->row, role_index);
        struct ptx_role element = *role;
        unsigned length = operand->kind == PTX_OPERAND_VECTOR ? operand->n_elements : 1;
        if (operand->kind != PTX_OPERAND_VECTOR)
            return refuse(attempt, index, "a vector {…} is needed here, even of one element");
        if (wanted.type != PTX_NONE) {
            element.by = PTX_ROLE_FIXED;
            element.type = (uint8_t)wanted.type;
        }
        return vector_fits(attempt, index, &element, wanted.count ? wanted.count : length, operand);
    }
    if (role->vector != PTX_ROLE_SCALAR)
        return vector_fits(attempt, index, role, role->vector, operand);
    if (operand->kind == PTX_OPERAND_VECTOR && attempt->row != PTX_MOV)
        return refuse(attempt, index, "a vector is not allowed here");
    if (operand->kind == PTX_OPERAND_VECTOR && index > 0 &&
        attempt->insn->operands[0].kind == PTX_OPERAND_VECTOR)
        return refuse(attempt, index, "one side of a mov that packs or unpacks is no vector");
    for (uint32_t i = 0; index > 0 && operand->kind == PTX_OPERAND_VECTOR && i < operand->n_elements; i++)
        if (operand->elements[i].kind == PTX_OPERAND_SINK)
            return refuse(attempt, index, "'_' has no value to read");
    if (operand->kind == PTX_OPERAND_VECTOR)
        return ptx_check_pack(attempt->context, attempt->insn, operand, attempt->why, sizeof attempt->why) ||
               (attempt->operand = index, false);
    return scalar_fits(attempt, index, role, operand);
}

/* Do the operands fit the row? Optional roles without a condition take what is left over, from the left. */
bool ptx_operands_fit(struct ptx_attempt *attempt, enum ptx_row row)
{
    const struct ptx_form *form = &ptx_forms_get()->forms[row];
    const struct ptx_insn *insn = attempt->insn;
    unsigned required = 0;
    attempt->row = row;
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        if (role->when ? ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)) : !role->optional)
            required++;
    }
    if (insn->n_operands < required) {
        snprintf(attempt->why, sizeof attempt->why, "'%s' needs %u operands, not %u (form: %s)",
                 attempt->opcode->root->name, required, (unsigned)insn->n_operands, ptx_rows[row].syntax);
        attempt->operand = UINT32_MAX;
        return false;
    }
    unsigned spare = insn->n_operands - required, at = 0;
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        if (role->when && !ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)))
            continue;
        if (!role->when && role->optional) {
            bool vector = role->vector == PTX_ROLE_CLASS; /* an optional vector is known by its braces */
            if (!spare || (vector && insn->operands[at].kind != PTX_OPERAND_VECTOR))
                continue;
            spare--;
        }
        if (!operand_fits(attempt, at, i, role, &insn->operands[at]))
            return false;
        at++;
    }
    if (at < insn->n_operands) {
        snprintf(attempt->why, sizeof attempt->why, "'%s' has %u operands too many (form: %s)",
                 attempt->opcode->root->name, (unsigned)insn->n_operands - at, ptx_rows[row].syntax);
        attempt->operand = at;
        return false;
    }
    return ptx_check_row(attempt->context, insn, row, attempt->why, sizeof attempt->why) ||
           (attempt->operand = insn->n_operands, false); /* the operands fit, their values do not */
}
