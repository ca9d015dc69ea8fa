/* One function's code as a list of instructions in basic blocks: what PTX (ptx_listing.c) and SASS
   (sass_listing.c) both become, and what mix, notes, differences and the printers read. */
#ifndef CLAB_INSPECT_LISTING_H
#define CLAB_INSPECT_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "ptx/ptx.h"

enum clab_level { CLAB_LEVEL_PTX, CLAB_LEVEL_SASS };
#define CLAB_LEVELS 2
/* "ptx", "sass". */
const char *clab_level_name(enum clab_level level);

/* What an instruction is for. groups.def: GROUP(id, text, is_critical). */
enum clab_group {
#define GROUP(id, text, is_critical) CLAB_GROUP_##id,
#include "inspect/groups.def"
#undef GROUP
    CLAB_GROUP_COUNT
};
const char *clab_group_name(enum clab_group group);
/* Whether one more of these deserves a word by itself: fences, barriers, atomics, generic accesses, … */
bool clab_group_is_critical(enum clab_group group);

/* A line of source; file NULL when it is not known. */
struct clab_place {
    const char *file;
    uint32_t line;
};

struct clab_code_insn {
    const char *guard;       /* "@!P0", "" without */
    const char *opcode;      /* "LDG.E", "ld.global.f32" */
    const char *operands;    /* "R0, desc[UR4][R2.64]", "" without; white space folded */
    uint32_t address;        /* SASS: bytes from the function's start; PTX: line in the text */
    uint32_t block;          /* index of its block */
    uint8_t n_written;       /* leading operands that it writes */
    struct clab_place place; /* innermost line of the user's own files, else innermost line */
    uint32_t ptx_line;       /* SASS: line of the PTX that it was made from, 0 unknown; PTX: as address */
    enum clab_group group;
    const char *what; /* what to count it as within its group: "load global, 4 bytes", "fence.proxy.async" */
    bool is_generic;  /* memory access through a generic address */
    bool is_mapped;   /* … which is known to point into shared memory of the cluster */
    const struct ptx_insn *ptx; /* PTX only */
};

struct clab_code_block {
    uint32_t first, count; /* instructions */
    const char *label;     /* as in the text; "" when nothing names it */
    uint32_t *succ, n_succ;
};

/* What a name in the operands is. Registers of PTX and its parameters and labels are looked up; SASS names
   tell by themselves. */
enum clab_name_kind { CLAB_NAME_OTHER, CLAB_NAME_REGISTER, CLAB_NAME_LABEL, CLAB_NAME_PARAMETER };
struct clab_name {
    enum clab_name_kind kind;
    const char *prefix; /* of canonical names: "r", "rd", "p", "f", … */
    uint32_t ordinal;   /* LABEL: block; PARAMETER: its index */
};

struct clab_listing {
    struct clab_arena arena;
    enum clab_level level;
    const char *entry;
    struct ptx_target target;
    struct clab_code_insn *insns;
    uint32_t n_insns;
    struct clab_code_block *blocks;
    uint32_t n_blocks;
    struct clab_map names;               /* PTX names and all labels: struct clab_name */
    const struct ptx_module *module;     /* PTX: borrowed, must outlive the listing */
    const struct ptx_function *function; /* PTX */
    const char *
        syscalls; /* SASS: the driver calls (`__cuda_syscall_*`) that its image leaves undefined, by blanks */
};

/* The listing of a PTX entry. requires: `function` is defined and without an error, in `module`. NO_MEMORY.
 */
clab_status clab_ptx_listing(const struct ptx_module *module, const struct ptx_function *function,
                             struct clab_listing *out, struct clab_error *error);

/* The listing of `entry` in what nvdisasm (-c, with or without -g, -gi, -gp) or cuobjdump -sass printed.
   Folders in `not_own` (NULL-terminated, may be NULL) hold no files of the user: of an inlined call's lines
   the innermost one outside them is taken. NOT_FOUND (no such function; those that there are), LOAD (no
   disassembly), NO_MEMORY. */
clab_status clab_sass_listing(const char *text, const char *entry, const char *const *not_own,
                              struct clab_listing *out, struct clab_error *error);

void clab_listing_free(struct clab_listing *listing);

/* Passes over one token of operands: a name (letters, digits, _ $ % . inside names of PTX), a number, or a
   punctuation mark. Returns its length; *out_is_name tells. */
size_t clab_token(const char *at, bool *out_is_name);
/* What a name is. `bytes` of text. */
struct clab_name clab_name_get(const struct clab_listing *listing, const char *text, size_t bytes);
/* The index-th operand (top-level commas) as [*out_start, +*out_bytes); false past the last. */
bool clab_operand(const char *operands, uint32_t index, const char **out_start, size_t *out_bytes);
/* Glob with * and ? over a whole text. */
bool clab_glob(const char *pattern, const char *text);
/* The instruction as one text, into out[0..bytes). */
void clab_code_text(const struct clab_code_insn *insn, char *out, size_t bytes);

/* Used by the two readers: sets group and what of every instruction (classes.c), then is_mapped (mapped.c).
 */
clab_status clab_listing_classify(struct clab_listing *listing, struct clab_error *error);
clab_status clab_listing_find_mapped(struct clab_listing *listing, struct clab_error *error);

#endif
