/* Names and scopes (PTX ISA 9.0, 4.4 "Identifiers", 5.4.5 "Parameterized Variable Names"): interned names, a
   stack of bindings per name, nested scopes, labels resolved when their scope closes. A range %r<1000> is one
   binding; a register of it exists once it is used, so that memory follows the text and not the numbers in
   it. */
#include "ptx/parser.h"

#include <string.h>

#include "base/str.h"

static uint32_t hash_of(const char *text, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static bool names_grow(struct ptx_parser *parser)
{
    size_t capacity = parser->names_capacity ? 2 * parser->names_capacity : 1024;
    struct ptx_name **names = clab_arena_array(&parser->scratch, capacity, sizeof *names);
    if (!names)
        return ptx_no_memory(parser);
    for (size_t i = 0; i < parser->names_capacity; i++) {
        struct ptx_name *name = parser->names[i];
        if (!name)
            continue;
        size_t at = name->hash & (capacity - 1);
        while (names[at])
            at = (at + 1) & (capacity - 1);
        names[at] = name;
    }
    parser->names = names;
    parser->names_capacity = capacity;
    return true;
}

/* The slot of text[0..bytes), empty or not. */
static size_t name_slot(const struct ptx_parser *parser, const char *text, size_t bytes, uint32_t hash)
{
    size_t mask = parser->names_capacity - 1, at = hash & mask;
    for (; parser->names[at]; at = (at + 1) & mask) {
        const struct ptx_name *name = parser->names[at];
        if (name->hash == hash && name->bytes == bytes && memcmp(name->text, text, bytes) == 0)
            break;
    }
    return at;
}

struct ptx_name *ptx_intern(struct ptx_parser *parser, const char *text, size_t bytes)
{
    if (2 * parser->n_names >= parser->names_capacity && !names_grow(parser))
        return NULL;
    uint32_t hash = hash_of(text, bytes);
    size_t at = name_slot(parser, text, bytes, hash);
    if (parser->names[at])
        return parser->names[at];
    struct ptx_name *name = clab_arena_alloc(&parser->scratch, sizeof *name);
    char *copy = clab_arena_strndup(parser->arena, text, bytes);
    if (!name || !copy) {
        ptx_no_memory(parser);
        return NULL;
    }
    *name = (struct ptx_name){.text = copy, .bytes = (uint32_t)bytes, .hash = hash, .sreg = -1};
    parser->names[at] = name;
    parser->n_names++;
    return name;
}

/* Puts a binding of `depth` on its name's stack and into its scope. No deeper one of the name may be in
 * force. */
static struct ptx_binding *bind_at(struct ptx_parser *parser, struct ptx_name *name,
                                   enum ptx_binding_kind kind, unsigned depth)
{
    struct ptx_binding *binding = clab_arena_alloc(&parser->scratch, sizeof *binding);
    if (!binding) {
        ptx_no_memory(parser);
        return NULL;
    }
    struct ptx_binding **stack = kind == PTX_BIND_RANGE ? &name->range : &name->binding;
    binding->outer = *stack;
    binding->next = parser->scopes[depth].bindings;
    binding->name = name;
    binding->kind = kind;
    binding->depth = depth;
    *stack = binding;
    parser->scopes[depth].bindings = binding;
    return binding;
}

/* How many digits end the name, at most ten. (Registers of a range whose own name ends in digits, %r1<5>,
   cannot be named: ptxas 13.0.) */
static size_t digits_of(const struct ptx_name *name)
{
    size_t digits = 0;
    while (digits < name->bytes && digits < 10 && name->text[name->bytes - 1 - digits] >= '0' &&
           name->text[name->bytes - 1 - digits] <= '9')
        digits++;
    return digits;
}

static uint64_t number_of(const char *digits, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + (uint64_t)(digits[i] - '0');
    return value;
}

/* The range in force that declares `name` as prefix and number, and the length of that prefix; NULL: none. */
static struct ptx_binding *range_of(struct ptx_parser *parser, const struct ptx_name *name, size_t *out_bytes)
{
    size_t digits = digits_of(name), bytes = name->bytes - digits;
    if (digits == 0 || bytes == 0)
        return NULL;
    const struct ptx_name *prefix =
        parser->names[name_slot(parser, name->text, bytes, hash_of(name->text, bytes))];
    uint64_t value = number_of(name->text + bytes, digits);
    for (struct ptx_binding *b = prefix ? prefix->range : NULL; b; b = b->outer) {
        if (value < b->count) {
            *out_bytes = bytes;
            return b;
        }
    }
    return NULL;
}

/* Does the range contain something of this scope that was declared by itself? (Looked for in bounded time.)
 */
static const struct ptx_binding *inside_range(struct ptx_parser *parser, const struct ptx_name *prefix,
                                              uint32_t count)
{
    enum { MOST_STEPS = 1 << 22 };
    for (const struct ptx_binding *b = parser->scopes[parser->depth].bindings; b; b = b->next) {
        if (parser->range_steps++ >= MOST_STEPS)
            return NULL;
        size_t digits = b->name->bytes - prefix->bytes;
        if (b->kind == PTX_BIND_VAR && b->var && b->var->space == PTX_SPACE_PARAM)
            continue; /* ptxas 13.0 lets p<2> stand beside a parameter p1 */
        if (b->kind != PTX_BIND_RANGE && b->name->bytes > prefix->bytes && digits == digits_of(b->name) &&
            memcmp(b->name->text, prefix->text, prefix->bytes) == 0 &&
            (digits == 1 || b->name->text[prefix->bytes] != '0') &&
            number_of(b->name->text + prefix->bytes, digits) < count)
            return b;
    }
    return NULL;
}

struct ptx_binding *ptx_bind(struct ptx_parser *parser, struct ptx_name *name, enum ptx_binding_kind kind)
{
    size_t bytes;
    const struct ptx_binding *same = kind == PTX_BIND_RANGE ? name->range : name->binding;
    if (strcmp(name->text, "_") == 0 || strcmp(name->text, "WARP_SZ") == 0) {
        ptx_fail(parser, "'%s' cannot be declared", name->text);
        return NULL;
    }
    if (kind != PTX_BIND_RANGE && parser->depth && (!same || same->depth != parser->depth))
        same = range_of(parser, name, &bytes);
    if (same && same->depth == parser->depth) {
        ptx_fail(parser, "'%s' is already declared in this scope", name->text);
        return NULL;
    }
    if (kind != PTX_BIND_RANGE && name->label && name->label->depth == parser->depth) {
        ptx_fail(parser, "'%s' is already a label in this scope", name->text);
        return NULL;
    }
    return bind_at(parser, name, kind, parser->depth);
}

uint32_t ptx_reg_add(struct ptx_parser *parser, const char *name, enum ptx_type type)
{
    struct ptx_reg *reg = ptx_list_add(parser, &parser->regs, sizeof *reg);
    if (!reg)
        return 0;
    *reg = (struct ptx_reg){name, type};
    return (uint32_t)(parser->regs.count - 1);
}

/* Gives a binding its register, or its `lanes` registers name.x …. */
static bool reg_attach(struct ptx_parser *parser, struct ptx_binding *binding, enum ptx_type type,
                       unsigned lanes)
{
    static const char members[] = "xyzw";
    binding->lanes = (uint8_t)lanes;
    binding->reg = (uint32_t)parser->regs.count;
    if (lanes == 1) {
        ptx_reg_add(parser, binding->name->text, type);
        return !parser->failed;
    }
    for (unsigned i = 0; i < lanes; i++) {
        char *member = clab_arena_printf(parser->arena, "%s.%c", binding->name->text, members[i]);
        if (!member)
            return ptx_no_memory(parser);
        ptx_reg_add(parser, member, type);
    }
    return !parser->failed;
}

bool ptx_reg_declare(struct ptx_parser *parser, struct ptx_name *name, enum ptx_type type, unsigned lanes,
                     bool range, uint32_t count)
{
    struct ptx_binding *binding = ptx_bind(parser, name,
                                           range       ? PTX_BIND_RANGE
                                           : lanes > 1 ? PTX_BIND_VECTOR
                                                       : PTX_BIND_REG);
    if (!binding)
        return false;
    if (!range)
        return reg_attach(parser, binding, type, lanes);
    const struct ptx_binding *single = inside_range(parser, name, count);
    if (single)
        return ptx_fail(parser, "'%s' is already declared in this scope", single->name->text);
    binding->type = type;
    binding->lanes = (uint8_t)lanes;
    binding->count = count;
    if (parser->depth > 1)
        parser->nested_ranges++;
    return true;
}

struct ptx_binding *ptx_lookup(struct ptx_parser *parser, struct ptx_name *name)
{
    struct ptx_binding *binding = name->binding;
    if (parser->depth == 0 || (binding && (!parser->nested_ranges || binding->depth == parser->depth)))
        return binding;
    size_t bytes = 0;
    struct ptx_binding *range = range_of(parser, name, &bytes);
    if (!range || (binding && binding->depth >= range->depth))
        return binding;
    size_t zeros = bytes;
    while (zeros + 1 < name->bytes && name->text[zeros] == '0')
        zeros++;
    if (zeros > bytes) { /* %r01 is %r1 (ptxas 13.0) */
        char *text =
            clab_arena_printf(&parser->scratch, "%.*s%s", (int)bytes, name->text, name->text + zeros);
        struct ptx_name *plain = text ? ptx_intern(parser, text, strlen(text)) : NULL;
        if (!plain)
            return ptx_no_memory(parser), NULL;
        return ptx_lookup(parser, plain);
    }
    struct ptx_binding *made =
        bind_at(parser, name, range->lanes > 1 ? PTX_BIND_VECTOR : PTX_BIND_REG, range->depth);
    if (!made || !reg_attach(parser, made, range->type, range->lanes))
        return NULL;
    return made;
}

enum ptx_sreg ptx_sreg_get(struct ptx_parser *parser, struct ptx_name *name)
{
    (void)parser;
    if (name->sreg < 0) {
        int i = 0;
        while (i < PTX_SREG_COUNT && strcmp(ptx_sregs[i].text, name->text) != 0)
            i++;
        name->sreg = i;
    }
    return (enum ptx_sreg)name->sreg;
}

/* --- scopes */

bool ptx_scope_open(struct ptx_parser *parser)
{
    if (parser->depth + 1 >= PTX_MAX_SCOPES) {
        parser->failed = true; /* the rest cannot be told apart */
        parser->in_body = false;
        return ptx_fail(parser, "scopes are nested deeper than %d", PTX_MAX_SCOPES - 1);
    }
    parser->scopes[++parser->depth] = (struct ptx_scope){0};
    return true;
}

/* A label found in a closing scope goes to its use. */
static void resolve(struct ptx_pending *use, const struct ptx_label_binding *label)
{
    if (use->target) {
        *use->target = label->insn;
        return;
    }
    use->operand->target = label->insn;
    use->operand->table = label->table;
}

bool ptx_scope_close(struct ptx_parser *parser)
{
    struct ptx_scope *scope = &parser->scopes[parser->depth];
    bool good = true;
    for (struct ptx_pending *use = scope->pending, *next; use; use = next) {
        next = use->next;
        struct ptx_label_binding *label = use->name->label;
        if (label && label->depth == parser->depth) {
            resolve(use, label);
        } else if (parser->depth > 1) {
            use->next = parser->scopes[parser->depth - 1].pending;
            parser->scopes[parser->depth - 1].pending = use;
        } else {
            const char *near = ptx_nearest_declared(parser, use->name);
            good = near ? ptx_fail_at(parser, use->line, use->column, use->source,
                                      "label '%s' is not defined in this function; did you mean '%s'?",
                                      use->name->text, near)
                        : ptx_fail_at(parser, use->line, use->column, use->source,
                                      "label '%s' is not defined in this function", use->name->text);
        }
    }
    for (struct ptx_binding *b = scope->bindings; b; b = b->next) {
        if (b->kind == PTX_BIND_RANGE)
            b->name->range = b->outer;
        else
            b->name->binding = b->outer;
        if (b->kind == PTX_BIND_RANGE && parser->depth > 1)
            parser->nested_ranges--;
    }
    for (struct ptx_label_binding *l = scope->labels; l; l = l->next)
        l->name->label = l->outer;
    parser->depth--;
    return good;
}

bool ptx_label_define(struct ptx_parser *parser, struct ptx_name *name, struct ptx_table *table)
{
    if (strcmp(name->text, "_") == 0 || strcmp(name->text, "WARP_SZ") == 0)
        return ptx_fail(parser, "'%s' cannot be a label", name->text);
    if (name->label && name->label->depth == parser->depth)
        return ptx_fail(parser, "label '%s' is already defined in this scope", name->text);
    if (name->binding && name->binding->depth == parser->depth)
        return ptx_fail(parser, "'%s' is already declared in this scope", name->text);
    struct ptx_label_binding *label = clab_arena_alloc(&parser->scratch, sizeof *label);
    if (!label)
        return ptx_no_memory(parser);
    *label = (struct ptx_label_binding){.outer = name->label,
                                        .next = parser->scopes[parser->depth].labels,
                                        .name = name,
                                        .depth = parser->depth,
                                        .insn = (uint32_t)parser->insns.count,
                                        .table = table};
    name->label = label;
    parser->scopes[parser->depth].labels = label;
    if (table)
        return true;
    struct ptx_label *kept = ptx_list_add(parser, &parser->labels, sizeof *kept);
    if (!kept)
        return false;
    *kept = (struct ptx_label){name->text, (uint32_t)parser->insns.count};
    return true;
}

bool ptx_label_use(struct ptx_parser *parser, struct ptx_name *name, struct ptx_operand *operand,
                   uint32_t *target)
{
    struct ptx_pending *use = clab_arena_alloc(&parser->scratch, sizeof *use);
    if (!use)
        return ptx_no_memory(parser);
    *use = (struct ptx_pending){.next = parser->scopes[parser->depth].pending,
                                .name = name,
                                .operand = operand,
                                .target = target,
                                .line = parser->token.line,
                                .column = parser->token.column,
                                .source = parser->token.text};
    parser->scopes[parser->depth].pending = use;
    return true;
}

const char *ptx_nearest_declared(struct ptx_parser *parser, const struct ptx_name *name)
{
    enum { MOST = 512 }; /* suggestions are a courtesy: bounded work, whatever the file */
    const char *candidates[MOST];
    unsigned count = 0;
    if (parser->in_body && parser->function->error)
        return NULL; /* only a function's first fault is told */
    for (unsigned depth = parser->depth + 1; depth-- > 0;) {
        for (struct ptx_binding *b = parser->scopes[depth].bindings; b && count < MOST; b = b->next)
            candidates[count++] = b->name->text;
        for (struct ptx_label_binding *l = parser->scopes[depth].labels; l && count < MOST; l = l->next)
            candidates[count++] = l->name->text;
    }
    return clab_nearest_name(name->text, candidates, count);
}
