/* The parser's own state, shared by report.c, names.c, values.c, declare.c, operands.c, parse_body.c,
   function.c and parse.c only. */
#ifndef CLAB_PTX_PARSER_H
#define CLAB_PTX_PARSER_H

#include "ptx/lex.h"
#include "ptx/match.h"
#include "ptx/ptx.h"

enum { PTX_MAX_SCOPES = 64, PTX_MAX_NESTING = 32, PTX_MAX_DIMENSIONS = 128 };

/* What a name means in a scope. */
enum ptx_binding_kind { PTX_BIND_REG, PTX_BIND_RANGE, PTX_BIND_VECTOR, PTX_BIND_VAR, PTX_BIND_FUNCTION };
struct ptx_name;
struct ptx_binding {
    struct ptx_binding *outer; /* the same name in an enclosing scope */
    struct ptx_binding *next;  /* next of this scope */
    struct ptx_name *name;
    enum ptx_binding_kind kind;
    unsigned depth;
    enum ptx_type type; /* RANGE */
    uint8_t lanes;      /* RANGE, VECTOR: 1, 2 or 4 */
    uint32_t count;     /* RANGE */
    uint32_t reg;       /* REG; VECTOR: the first of `lanes` */
    struct ptx_var *var;
    struct ptx_function *function;
};
struct ptx_label_binding {
    struct ptx_label_binding *outer, *next;
    struct ptx_name *name;
    unsigned depth;
    uint32_t insn;
    struct ptx_table *table; /* .branchtargets, .calltargets, .callprototype; NULL: a plain label */
};
struct ptx_name {
    const char *text;
    uint32_t bytes, hash;
    struct ptx_binding *binding;
    struct ptx_binding *range; /* %r<100>: its prefix; a register of that very name is another thing */
    struct ptx_label_binding *label;
    struct ptx_opcode *opcode; /* the name as an opcode text, once read */
    bool in_section;           /* a label of a .section */
    bool is_awaited;           /* a function_name: must be one at the end */
    int sreg;                  /* -1 not looked for yet, else enum ptx_sreg, PTX_SREG_COUNT none */
};

/* A use of a label that is resolved when its scope closes. */
struct ptx_pending {
    struct ptx_pending *next;
    struct ptx_name *name;
    struct ptx_operand *operand; /* or: */
    uint32_t *target;
    uint32_t line, column;
    const char *source; /* in the text, for the message */
};
struct ptx_scope {
    struct ptx_binding *bindings;
    struct ptx_label_binding *labels;
    struct ptx_pending *pending;
};

/* A growing array in the scratch arena, reused from function to function. */
struct ptx_list {
    void *items;
    size_t count, capacity;
};

struct ptx_parser {
    struct ptx_module *module;
    struct clab_arena *arena;  /* the module's */
    struct clab_arena scratch; /* dies with the parser */
    struct ptx_lexer lexer;
    struct ptx_token token;
    struct clab_error *error; /* the module's failure */
    const struct ptx_parse_options *options;
    bool failed; /* the module cannot be used (as opposed to one function) */

    struct ptx_name **names;
    size_t n_names, names_capacity;
    struct ptx_scope scopes[PTX_MAX_SCOPES];
    unsigned depth;
    unsigned range_steps;   /* taken to compare ranges with single registers: bounded */
    unsigned nested_ranges; /* .reg ranges in force that were declared deeper than the function's own scope */

    struct ptx_function *function; /* whose body or header is being read */
    bool in_body;
    bool reads_entry;                                  /* the parameters being read are a kernel's */
    unsigned braces;                                   /* operand braces open, for recovery */
    unsigned nesting;                                  /* of expressions and initialisers */
    struct ptx_list insns, regs, vars, labels, tables; /* the function's */
    struct ptx_list module_vars, module_functions, module_locs, aliases; /* the module's */
    struct ptx_list operands, relocs, bytes;                             /* short-lived */
    uint32_t n_files;
    uint32_t loc;
    struct clab_map places;         /* of .loc: file, line, column */
    struct ptx_list function_names; /* labels of sections that are still to come */
    uint64_t initialised_bytes;
    unsigned suggestions;   /* made so far: they are a courtesy, and their number is bounded */
    bool linked;            /* PTX_LINKED_MARK */
    uint16_t least_version; /* that the .target needs */
    bool has_version, has_target, has_section;
    bool may_size; /* .address_size may come next: right after .target only */
};

/* What a directive or declaration needs. features.def: PTX_FEATURE(id, text, isa, sm). */
enum ptx_feature {
#define PTX_FEATURE(id, text, isa, sm) PTX_FEATURE_##id,
#include "ptx/features.def"
#undef PTX_FEATURE
    PTX_FEATURE_COUNT
};

/* --- report.c */
/* Does the module's .version and .target have it? Else fails. */
bool ptx_needs(struct ptx_parser *parser, enum ptx_feature feature);
/* Records a failure at the current token (in a body: of its function, the first one only). Always false. */
bool ptx_fail(struct ptx_parser *parser, const char *format, ...) CLAB_PRINTF(2, 3);
bool ptx_fail_at(struct ptx_parser *parser, uint32_t line, uint32_t column, const char *source,
                 const char *format, ...) CLAB_PRINTF(5, 6);
bool ptx_no_memory(struct ptx_parser *parser);
void ptx_next(struct ptx_parser *parser);
bool ptx_is(const struct ptx_parser *parser, int punct);
bool ptx_accept(struct ptx_parser *parser, int punct);
bool ptx_expect(struct ptx_parser *parser, int punct, const char *where);
bool ptx_is_dot(const struct ptx_parser *parser, const char *word); /* ".reg" */
bool ptx_is_name(const struct ptx_parser *parser, const char *name);
bool ptx_accept_dot(struct ptx_parser *parser, const char *word);
bool ptx_expect_name(struct ptx_parser *parser, const char *what, struct ptx_name **out);
/* Room for one more item of `size` bytes at the end of the list, zeroed; NULL when memory is out (failure
 * recorded). */
void *ptx_list_add(struct ptx_parser *parser, struct ptx_list *list, size_t size);
/* The list's items copied to the module's arena; NULL when empty or out of memory (then parser->failed). */
void *ptx_list_copy(struct ptx_parser *parser, const struct ptx_list *list, size_t size);

/* --- names.c */
struct ptx_name *ptx_intern(struct ptx_parser *parser, const char *text, size_t bytes);
struct ptx_binding *ptx_bind(struct ptx_parser *parser, struct ptx_name *name, enum ptx_binding_kind kind);
/* The binding of a name, registers of a range made on demand; NULL when there is none (or memory is out:
 * failed). */
struct ptx_binding *ptx_lookup(struct ptx_parser *parser, struct ptx_name *name);
bool ptx_scope_open(struct ptx_parser *parser);
bool ptx_scope_close(struct ptx_parser *parser);
bool ptx_label_define(struct ptx_parser *parser, struct ptx_name *name, struct ptx_table *table);
bool ptx_label_use(struct ptx_parser *parser, struct ptx_name *name, struct ptx_operand *operand,
                   uint32_t *target);
uint32_t ptx_reg_add(struct ptx_parser *parser, const char *name, enum ptx_type type);
/* Declares a register, a vector of them or, with count > 0, a range %name0 … */
bool ptx_reg_declare(struct ptx_parser *parser, struct ptx_name *name, enum ptx_type type, unsigned lanes,
                     bool range, uint32_t count);
/* A declared name near to `name`, or NULL. */
const char *ptx_nearest_declared(struct ptx_parser *parser, const struct ptx_name *name);
enum ptx_sreg ptx_sreg_get(struct ptx_parser *parser, struct ptx_name *name);

/* --- values.c */
struct ptx_value {
    bool is_float, is_f32_bits, is_exact, is_unsigned;
    uint64_t bits; /* integer, or bits of a double, or of a float when is_f32_bits */
};
bool ptx_constant(struct ptx_parser *parser, struct ptx_value *out);
/* An integer constant within [0, limit]. */
bool ptx_constant_u32(struct ptx_parser *parser, uint32_t limit, uint32_t *out);
/* The same as one plain number, where no expression may stand. */
bool ptx_number_u32(struct ptx_parser *parser, uint32_t limit, uint32_t *out);
double ptx_value_double(const struct ptx_value *value);
/* After `=`: fills var->data and relocs; sets the size of an unsized array. dims: elements per dimension. */
bool ptx_initialiser(struct ptx_parser *parser, struct ptx_var *var, const uint64_t *dims, unsigned n_dims);

/* --- declare.c and parse.c */
/* `(.managed)`, `(.unified(a, b))`, after .attribute. */
bool ptx_parse_attribute(struct ptx_parser *parser, bool *out_managed);
/* Parses variables after their state space is known: `.align 8 .b8 name[16] = …, …;`. */
bool ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, enum ptx_linkage linkage);
bool ptx_parse_registers(struct ptx_parser *parser);
/* After .target. */
bool ptx_parse_target(struct ptx_parser *parser);
/* `(.param .b32 a, …)`, the parentheses included; `bind`: the names come into scope. */
bool ptx_parse_params(struct ptx_parser *parser, bool bind, struct ptx_var ***out_vars, uint32_t *out_count);
enum ptx_type ptx_type_of(const struct ptx_token *token); /* of a dotted word; PTX_NONE when it is no type */

/* --- debug.c */
/* After the directive's word, to its end. */
bool ptx_parse_loc(struct ptx_parser *parser);
bool ptx_parse_file(struct ptx_parser *parser);
enum ptx_pragma_place { PTX_PRAGMA_MODULE, PTX_PRAGMA_KERNEL, PTX_PRAGMA_BODY };
bool ptx_parse_pragma(struct ptx_parser *parser, enum ptx_pragma_place place);
bool ptx_parse_section(struct ptx_parser *parser);
/* At the module's end: do the labels of all function_name exist? */
bool ptx_sections_check(struct ptx_parser *parser);

/* --- function.c */
/* After .entry or .func: header and body, or the semicolon of a declaration. */
bool ptx_parse_function(struct ptx_parser *parser, enum ptx_linkage linkage, bool entry);
/* One directive of a .func or a prototype. */
bool ptx_function_directive(struct ptx_parser *parser, struct ptx_directives *d);
bool ptx_parse_alias(struct ptx_parser *parser); /* after .alias */
/* At the module's end: aliases share their targets' bodies; what is declared only must be .extern. */
void ptx_aliases_apply(struct ptx_parser *parser);
bool ptx_all_defined(struct ptx_parser *parser);

/* --- operands.c */
bool ptx_parse_operand(struct ptx_parser *parser, struct ptx_operand *out);
/* sym[index], after the symbol: only whole operands have an index, not parts of vectors or addresses. */
bool ptx_parse_index(struct ptx_parser *parser, struct ptx_operand *out);
bool ptx_table_declared(struct ptx_parser *parser); /* is the name that comes next one of a table? */
bool ptx_parse_label(struct ptx_parser *parser, struct ptx_operand *out); /* the target of bra */
/* A name that no member or offset follows, or a constant. */
bool ptx_parse_plain(struct ptx_parser *parser, struct ptx_operand *out);
/* `name` is not declared: fails, with a suggestion. */
bool ptx_undeclared(struct ptx_parser *parser, const struct ptx_name *name);

/* --- call.c */
/* The operands of a call: see struct ptx_operand. */
bool ptx_parse_call(struct ptx_parser *parser, struct ptx_insn *insn);
/* Does what a call passes and takes (LIST, callee, LIST) fit such a function? Fails at the current token. */
bool ptx_call_fits(struct ptx_parser *parser, struct ptx_operand operands[3], struct ptx_var *const *params,
                   uint32_t n_params, struct ptx_var *const *returns, uint32_t n_returns);

/* --- parse_body.c */
bool ptx_parse_body(struct ptx_parser *parser);

#endif
