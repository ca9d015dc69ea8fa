/* insn.def compiled: words, slots and operand roles in a shape that match.c (and tests, and the list of
   expanded forms) can walk. Built once per process, never changed afterwards. */
#ifndef CLAB_PTX_FORMS_H
#define CLAB_PTX_FORMS_H

#include "ptx/ptx.h"

/* A qualifier: what it is and its index in types.def, spaces.def or mods.def. 0 is no word. */
typedef uint16_t ptx_word;
enum { PTX_WORD_MOD = 1 << 12, PTX_WORD_TYPE = 2 << 12, PTX_WORD_SPACE = 3 << 12, PTX_WORD_KIND = 15 << 12 };
static inline unsigned ptx_word_index(ptx_word word)
{
    return word & 0xfffu;
}
const char *ptx_word_text(ptx_word word); /* without the dot */

struct ptx_choice {
    ptx_word word;
    uint16_t isa, sm; /* what this alternative needs beyond its row; 0 nothing */
    uint8_t on;       /* enum ptx_targets */
};
struct ptx_slot {
    const struct ptx_choice *choices;
    uint16_t n_choices;
    bool optional;
    bool fixed; /* before the `!`: filled by the first qualifiers, in this order */
};
/* A row with each of its groups either present or absent: a flat list of slots. */
struct ptx_variant {
    enum ptx_row row;
    const struct ptx_slot *slots;
    uint16_t n_slots;
};

enum ptx_role_type { PTX_ROLE_INDEX, PTX_ROLE_FIXED, PTX_ROLE_DOUBLE, PTX_ROLE_ANY };
enum {
    PTX_ROLE_SCALAR = 0,
    PTX_ROLE_BY_MOD = 254,
    PTX_ROLE_CLASS = 255
}; /* ptx_role.vector; else a length; 1 and BY_MOD without .vN take {r} for r */
struct ptx_role {
    char letter; /* w x r e a i l f u p */
    uint8_t vector;
    enum ptx_role_type by;
    uint8_t type; /* index among the instruction's types, or an enum ptx_type when by is PTX_ROLE_FIXED */
    bool optional;
    bool widens;     /* + : a register wider than the type is allowed (ld, st, cvt) */
    bool sinks;      /* _ : the result may be discarded */
    bool negates;    /* - : -a is allowed */
    uint8_t selects; /* part selectors (video): 1 . one part; 2 h of halves, 4 b of bytes */
    ptx_word when;   /* present exactly when the instruction has this qualifier; 0 no such rule */
    uint8_t pair;    /* 0 single, 1 may be `d|p`, 2 must be */
    enum ptx_type pair_type;
    uint8_t n_values; /* allowed integers, when any are listed */
    int32_t values[6];
    bool has_range; /* allowed integers: values[0] to values[1] in steps of values[2] */
};
struct ptx_form {
    const struct ptx_role *roles;
    uint8_t n_roles, n_required; /* n_required: neither optional nor conditional */
};

struct ptx_root {
    const char *name; /* "add" */
    const enum ptx_row *rows;
    const struct ptx_variant *variants; /* of all the rows, in row order */
    uint16_t n_rows, n_variants;
};

struct ptx_forms {
    const struct ptx_root *roots;
    const char *const *root_names, *const *word_names; /* for nearest-name suggestions */
    const struct ptx_form *forms;                      /* by row */
    uint16_t n_roots, n_words;
    const char *fault; /* NULL, or the row whose syntax or roles cannot be read (a bug in insn.def) */
};

/* The tables; NULL when memory is out. */
const struct ptx_forms *ptx_forms_get(void);
const struct ptx_root *ptx_root_get(const struct ptx_forms *forms, const char *text, size_t bytes);
/* The qualifier named text[0..bytes), or 0. */
ptx_word ptx_word_get(const char *text, size_t bytes);

#endif
