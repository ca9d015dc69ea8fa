/* The PTX front end's data: what parse.c produces and cfg, dom, live, print, the emulator's decoder, inspect
   and matrix read. A module owns everything through its arena. PTX ISA 9.0.

   Flow: text -> ptx_lex -> ptx_parse (modules, functions, instructions matched against insn.def) -> ptx_cfg
   -> … */
#ifndef CLAB_PTX_PTX_H
#define CLAB_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"

/* The newest .version whose instructions the tables hold, as module->version: PTX ISA 9.0. */
#define PTX_VERSION_KNOWN 90

/* Fundamental and packed types ("Types" chapter). types.def: PTX_TYPE(id, text, bits, class). */
enum ptx_type {
#define PTX_TYPE(id, text, bits, class) PTX_##id,
#include "ptx/types.def"
#undef PTX_TYPE
    PTX_TYPE_COUNT
};
enum ptx_type_class {
    PTX_CLASS_NONE,
    PTX_CLASS_PRED,
    PTX_CLASS_BITS,
    PTX_CLASS_UNSIGNED,
    PTX_CLASS_SIGNED,
    PTX_CLASS_FLOAT,
    PTX_CLASS_PACKED,
    PTX_CLASS_OPAQUE
};
struct ptx_type_info {
    const char *text; /* "u32", without the dot */
    uint16_t bits;    /* size of a register or memory cell; 1 for pred */
    enum ptx_type_class class;
};
extern const struct ptx_type_info ptx_types[PTX_TYPE_COUNT];

/* State spaces, with the sub-qualifiers that name windows. spaces.def: PTX_SPACE(id, text). */
enum ptx_space {
#define PTX_SPACE(id, text) PTX_SPACE_##id,
#include "ptx/spaces.def"
#undef PTX_SPACE
    PTX_SPACE_COUNT
};
extern const char *const ptx_space_text[PTX_SPACE_COUNT];

/* Every dotted qualifier that is neither a type nor a space. mods.def: PTX_MOD(id, text). */
enum ptx_mod {
#define PTX_MOD(id, text) PTX_MOD_##id,
#include "ptx/mods.def"
#undef PTX_MOD
    PTX_MOD_COUNT
};
extern const char *const ptx_mod_text[PTX_MOD_COUNT];

/* Special registers. sregs.def: PTX_SREG(id, text, type, components, isa, sm): components 1 or 4 (.x .y .z
 * .w). */
enum ptx_sreg {
#define PTX_SREG(id, text, type, components, isa, sm) PTX_SREG_##id,
#include "ptx/sregs.def"
#undef PTX_SREG
    PTX_SREG_COUNT
};
struct ptx_sreg_info {
    const char *text; /* "%tid" */
    enum ptx_type type;
    uint8_t components;
    uint16_t isa, sm; /* least .version (78 = 7.8) and least SM */
};
extern const struct ptx_sreg_info ptx_sregs[PTX_SREG_COUNT];

/* Rows of insn.def, one per syntax line of the manual. */
enum ptx_row {
#define INSN(id, ...) PTX_##id,
#include "ptx/insn.def"
#undef INSN
    PTX_ROW_COUNT
};

/* Target sets (insn.def column): which architectures have a form. ptx_target_has decides. */
enum ptx_targets {
#define PTX_ON(id, text) PTX_ON_##id,
#include "ptx/targets.def"
#undef PTX_ON
    PTX_ON_COUNT
};

struct ptx_row_info {
    const char *name;   /* "ADD_INT" */
    const char *syntax; /* the manual's syntax line, in insn.def's notation */
    const char
        *roles; /* operand roles: w written, r read, a address, l label, … (insn.def's header lists them) */
    const char *class; /* ALU, FLOAT, MEMORY, BARRIER, ASYNC, CONTROL, … */
    uint16_t isa, sm;  /* least .version (78 = 7.8) and SM number */
    enum ptx_targets on;
    const char *section; /* section of PTX ISA 9.0 */
};
extern const struct ptx_row_info ptx_rows[PTX_ROW_COUNT];

enum ptx_operand_kind {
    PTX_OPERAND_REG,     /* reg: index into function->regs; negated for !p, and for -a of a video instruction,
                            whose     component then is PTX_SELECT_* */
    PTX_OPERAND_SREG,    /* sreg, component (0..3 for .x to .w, 255 none) */
    PTX_OPERAND_INT,     /* imm: two's complement 64 bit */
    PTX_OPERAND_FLOAT,   /* imm: bits of a double (decimal or 0d literal), or of a float when is_f32_bits (0f)
                          */
    PTX_OPERAND_SYMBOL,  /* var (or func) plus imm bytes: an address used as a value */
    PTX_OPERAND_INDEXED, /* var[elements[0] + imm]: the address of an element. The index is a register, a
                            special register or a SYMBOL; its low 32 bits (of a narrower one its bits, without
                            sign) plus imm are multiplied by the bytes of the array's scalar type, all in 32
                            bits (SASS of ptxas 13.0.88) */
    PTX_OPERAND_LABEL,   /* target: instruction index in the function; table for .branchtargets */
    PTX_OPERAND_ADDRESS, /* [elements[0] + imm]: elements[0] is REG, SYMBOL, INDEXED or INT; further elements
                            of a tensor address [map, {coords}] or [map, {..}, {..}] follow as elements[1..]
                          */
    PTX_OPERAND_VECTOR,  /* {a, b, …}: elements */
    PTX_OPERAND_LIST,    /* (a, b, …) of a call: elements */
    PTX_OPERAND_PAIR,    /* d|p: elements[0], elements[1] (either may be SINK) */
    PTX_OPERAND_SINK,    /* _ */
    PTX_OPERAND_FUNCTION /* func: call target */
};

/* ptx_operand.component of a register with a part selector (video instructions): .b0 to .b3, .h0, .h1. */
enum {
    PTX_COMPONENT_NONE = 255,
    PTX_SELECT_B0 = 16,
    PTX_SELECT_B1,
    PTX_SELECT_B2,
    PTX_SELECT_B3,
    PTX_SELECT_H0,
    PTX_SELECT_H1,
    PTX_SELECT_HALVES, /* .h10: imm holds the digits as nibbles, and their number from bit 16 up */
    PTX_SELECT_BYTES   /* .b3210: likewise */
};

struct ptx_var;
struct ptx_function;
struct ptx_table;

/* A call has the operands LIST of returns (may be empty), FUNCTION or REG, LIST of arguments (may be empty)
   and, when indirect, LABEL with the table of .callprototype or .calltargets. */
struct ptx_operand {
    enum ptx_operand_kind kind;
    bool negated;      /* !p */
    bool is_f32_bits;  /* FLOAT written as 0fXXXXXXXX */
    bool is_indexed;   /* SYMBOL written as sym[n] */
    bool is_sum;       /* SYMBOL written as sym + n */
    bool is_exact;     /* FLOAT written as 0f… or 0d… */
    bool is_unsigned;  /* INT with U suffix or above INT64_MAX */
    uint8_t component; /* PTX_COMPONENT_NONE when there is none */
    enum ptx_sreg sreg;
    uint32_t reg;
    uint32_t target;
    uint64_t imm;
    struct ptx_var *var;
    struct ptx_function *func;
    struct ptx_table *table; /* .branchtargets / .calltargets / .callprototype named by the operand */
    struct ptx_operand *elements;
    uint32_t n_elements;
};

#define PTX_MAX_MODS   24
#define PTX_MAX_TYPES  6
#define PTX_MAX_SPACES 3

struct ptx_insn {
    enum ptx_row row;
    bool has_guard, guard_negated;
    uint32_t guard; /* predicate register index */
    uint8_t n_mods, n_types, n_spaces;
    uint16_t mods[PTX_MAX_MODS];                  /* enum ptx_mod in the order written */
    uint8_t types[PTX_MAX_TYPES];                 /* enum ptx_type in the order written */
    uint8_t spaces[PTX_MAX_SPACES];               /* enum ptx_space in the order written */
    uint64_t mod_bits[(PTX_MOD_COUNT + 63) / 64]; /* the same as a set */
    uint32_t n_operands;
    struct ptx_operand *operands;
    uint32_t line, column;            /* in the PTX text */
    uint32_t text_offset, text_bytes; /* the statement in module->text, guard to before ';' */
    uint32_t loc;                     /* index+1 into module->locs of the .loc in force, 0 none */
};

static inline bool ptx_has(const struct ptx_insn *insn, enum ptx_mod mod)
{
    return (insn->mod_bits[(unsigned)mod / 64] >> ((unsigned)mod % 64)) & 1;
}

/* A register of a function; %r<10> is ten of these, a .v4 register four. */
struct ptx_reg {
    const char *name; /* "%r3" */
    enum ptx_type type;
};

enum ptx_linkage { PTX_LINK_NONE, PTX_LINK_EXTERN, PTX_LINK_VISIBLE, PTX_LINK_WEAK, PTX_LINK_COMMON };

/* Initialiser piece that needs a load-time address: *(uint<bytes*8>)(data + offset) = address of var/func +
 * addend. */
struct ptx_reloc {
    uint64_t offset;
    uint8_t bytes; /* 4 or 8; 1 with shift for 0xFF(sym)-style masks */
    uint8_t shift; /* right shift of the address, for mask initialisers */
    bool generic;  /* generic(sym) */
    struct ptx_var *var;
    struct ptx_function *func;
    int64_t addend;
};

struct ptx_var {
    const char *name;
    enum ptx_space space; /* GLOBAL, CONST, SHARED, LOCAL, PARAM; REG for a .reg parameter of a .func */
    uint32_t reg;         /* index into function->regs when space is REG */
    enum ptx_linkage linkage;
    enum ptx_type type;
    uint8_t vector; /* 1, 2 or 4 elements */
    uint32_t align_bytes;
    uint64_t bytes; /* 0 for an unsized .extern .shared array */
    bool is_array, is_unsized;
    uint32_t shape;  /* tells other dimensions, the first one aside */
    bool is_managed; /* .attribute(.managed) */
    bool ptr;        /* .param with .ptr */
    enum ptx_space ptr_space;
    uint32_t ptr_align;
    uint8_t *data; /* initial bytes, or NULL (zero) */
    struct ptx_reloc *relocs;
    uint32_t n_relocs;
    uint32_t index;                /* position in module->vars, or in function->vars / params / returns */
    struct ptx_function *function; /* owner, NULL at module scope */
    uint32_t line;
};

enum ptx_table_kind { PTX_TABLE_BRANCH, PTX_TABLE_CALL, PTX_TABLE_PROTOTYPE };
struct ptx_table {
    enum ptx_table_kind kind;
    const char *name;
    uint32_t *targets;               /* BRANCH: instruction indices */
    struct ptx_function **functions; /* CALL */
    uint32_t count;
    struct ptx_var **params, **returns; /* PROTOTYPE */
    uint32_t n_params, n_returns;
};

struct ptx_label {
    const char *name;
    uint32_t insn; /* index of the next instruction; may equal n_insns */
};

/* Performance and cluster directives; `has_` tells 0 from absent. */
struct ptx_directives {
    bool has_any, has_reqntid, has_maxntid, has_reqnctapercluster, explicitcluster, blocksareclusters,
        noreturn;
    uint32_t reqntid[3], maxntid[3], reqnctapercluster[3];
    uint32_t minnctapersm, maxnctapersm, maxnreg, maxclusterrank; /* 0 absent */
    uint32_t preserve,
        preserve_control; /* .abi_preserve, .abi_preserve_control: 1 more than given, 0 absent */
};

struct ptx_function {
    const char *name;
    bool entry, defined;
    struct ptx_function
        *alias; /* the function that .alias makes this a second name of (its body is shared), or NULL */
    enum ptx_linkage linkage;
    struct ptx_directives directives;
    struct ptx_var **params, **returns;
    uint32_t n_params, n_returns;
    struct ptx_reg *regs;
    uint32_t n_regs;
    struct ptx_var **vars; /* declared in the body: .shared, .local, .param, .global */
    uint32_t n_vars;
    struct ptx_insn *insns;
    uint32_t n_insns;
    struct ptx_label *labels;
    uint32_t n_labels;
    struct ptx_table **tables;
    uint32_t n_tables;
    struct clab_error *error; /* NULL, or why this one function cannot be used (unknown instruction, form not
                                 on the target, …); the module is still good */
    uint32_t line;
    uint32_t index; /* in module->functions */
};

struct ptx_loc {
    uint32_t file, line, column; /* file: index into module->files by .file number */
    uint32_t caller; /* inlined_at: 1 + index of the call's .loc, an earlier one; 0: not inlined */
};

struct ptx_target {
    uint16_t sm; /* 90, 100, … */
    char suffix; /* 0, 'a' or 'f' */
    bool debug, texmode_independent;
};

struct ptx_module {
    struct clab_arena arena;
    const char *name; /* file name for messages */
    const char *text; /* NUL-terminated copy */
    size_t text_bytes;
    uint16_t version; /* 90 = 9.0 */
    struct ptx_target target;
    uint8_t address_size; /* 32 or 64 */
    struct ptx_var **vars;
    uint32_t n_vars;
    struct ptx_function **functions;
    uint32_t n_functions;
    const char **files; /* by .file number, entries may be NULL */
    uint32_t n_files;
    struct ptx_loc *locs;
    uint32_t n_locs;
};

struct ptx_parse_options {
    uint16_t max_version; /* refuse a larger .version (PTX_VERSION status LOAD…); 0: any */
    size_t limit_bytes;   /* memory limit of the arena, 0 none */
    bool any_target;      /* a .target newer than the .version is taken in a module without functions, as the
                             driver's JIT does and ptxas does not (H200, driver 580.159.04, 2026-11-30) */
    /* Called for every statement that cannot be used (a function keeps only its first one); NULL none. */
    void (*fault)(void *context, const struct clab_error *error);
    void *fault_context;
};

/* Parses `bytes` of PTX text (a trailing NUL is allowed). On success *out_module is owned by the caller
   (ptx_module_free). Errors: CLAB_PTX_SYNTAX with file:line:column, source line and what was expected;
   NO_MEMORY. A fault inside one function's body that leaves the module readable is stored in that function's
   `error` instead. The text is copied. `name` is for messages. */
clab_status ptx_parse(const char *text, size_t bytes, const char *name,
                      const struct ptx_parse_options *options, struct ptx_module **out_module,
                      struct clab_error *error);
void ptx_module_free(struct ptx_module *module);
/* Function (entry or not) by name, or NULL. */
struct ptx_function *ptx_function_get(const struct ptx_module *module, const char *name);
/* Where an instruction stands in the source, by .loc: its own line (level 0), that of the call which was
   inlined there (1), that of the call which was inlined around it (2) and so on. False when there is none.
   *out_file is borrowed. */
bool ptx_insn_place(const struct ptx_module *module, const struct ptx_insn *insn, unsigned level,
                    const char **out_file, uint32_t *out_line, uint32_t *out_column);
/* Copies the statement's text, white space folded, NUL-terminated, truncated to `size`. */
void ptx_insn_text(const struct ptx_module *module, const struct ptx_insn *insn, char *out_text, size_t size);

/* Appends the module as PTX text that parses to the same module (functions with an error are left out). Check
   out->failed at the end. */
void ptx_module_print(const struct ptx_module *module, struct clab_str *out);

/* Does an image with .target `image` load on a device (or assemble for a target) `device`? ptx-facts: plain
   sm_N on every M >= N; sm_Nf same family and minor >= N; sm_Na exactly. On refusal *out_reason is ptxas's
   message. */
bool ptx_target_accepts(struct ptx_target image, struct ptx_target device, const char **out_reason);
/* Does target `target` have row `row`? (The row itself: a qualifier of it may need more, see ptx_match in
 * match.h.) */
bool ptx_target_has(enum ptx_row row, struct ptx_target target);
bool ptx_target_in(enum ptx_targets on, struct ptx_target target);
/* "sm_90a" -> {90, 'a'}; sm_101* is the former name of sm_110*. False when it is no target name. */
bool ptx_target_parse(const char *text, size_t bytes, struct ptx_target *out_target);
/* Least .version that a target needs (78 = 7.8); 0: no such target. */
uint16_t ptx_target_isa(struct ptx_target target);

/* Control-flow graph of one function. Blocks in program order; block 0 is the entry. */
struct ptx_block {
    uint32_t first, count; /* instructions */
    uint32_t *succ, *pred;
    uint32_t n_succ, n_pred;
    uint32_t idom, ipdom; /* block index; UINT32_MAX none (virtual root) */
};
struct ptx_cfg {
    struct ptx_block *blocks;
    uint32_t n_blocks;
    uint32_t *block_of; /* by instruction index */
};
/* requires: function defined, no error. breaks: nothing. Memory from `arena`. */
clab_status ptx_cfg_build(const struct ptx_function *function, struct clab_arena *arena,
                          struct ptx_cfg *out_cfg, struct clab_error *error);
/* Role letter of an operand (insn.def's header: 'w' written, 'r' read, 'a' address, …); 0 past the last
   operand. A call's operands[0] holds what it writes. */
char ptx_operand_role(const struct ptx_insn *insn, uint32_t index);
/* Calls visit(context, reg, written) for each register of an instruction: the reads (guard, addresses and
   sources) first, then the writes. A guarded write may leave the old value. */
void ptx_insn_registers(const struct ptx_insn *insn, void (*visit)(void *context, uint32_t reg, bool written),
                        void *context);
/* From where to where a register is live, in points: 2i is where instruction i reads, 2i + 1 where it writes.
   What it reads counts as live until it has written. first > last: no instruction names the register. */
struct ptx_span {
    uint32_t first, last;
};
struct ptx_live {
    uint32_t registers;     /* as ptx_live_estimate's */
    uint32_t demand;        /* modelled: what ptxas gives such a function, before any limit */
    struct ptx_span *spans; /* by register; holes inside are left out */
};
/* requires: function defined, no error; its graph. breaks: nothing. Memory of the spans from `arena`. */
clab_status ptx_live_build(const struct ptx_function *function, const struct ptx_cfg *cfg,
                           struct clab_arena *arena, struct ptx_live *out_live, struct clab_error *error);
/* Most 32-bit registers live at once (modelled: an estimate of the register demand, before any spill or
 * schedule). */
clab_status ptx_live_estimate(const struct ptx_function *function, const struct ptx_cfg *cfg,
                              struct clab_arena *arena, uint32_t *out_registers, struct clab_error *error);

#endif
