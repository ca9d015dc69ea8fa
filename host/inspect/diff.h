/* Two listings beside each other. */
#ifndef CLAB_INSPECT_DIFF_H
#define CLAB_INSPECT_DIFF_H

#include <jansson.h>

#include "inspect/listing.h"
#include "inspect/mix.h"

#define CLAB_NOWHERE UINT32_MAX

/* One row: an instruction of A, of B, or of both. */
enum clab_row_op {
    CLAB_ROW_SAME,    /* equal once registers, labels and parameters are renamed (texts[] are equal) */
    CLAB_ROW_SWAPPED, /* equal but for the order of operands that may change places */
    CLAB_ROW_CHANGED, /* belong together and differ */
    CLAB_ROW_ONLY_A,
    CLAB_ROW_ONLY_B,
};
struct clab_diff_row {
    enum clab_row_op op;
    uint32_t insn[2];     /* of A and of B; CLAB_NOWHERE on the side that has none */
    const char *texts[2]; /* canonical; NULL on the side that has none */
    uint32_t move;        /* 0, or the number (from 1) of the moved block that it belongs to */
};
struct clab_diff {
    struct clab_arena arena;
    const struct clab_listing *sides[2]; /* borrowed */
    struct clab_diff_row *rows;          /* in A's order; what only B has stands where B has it */
    size_t n_rows;
    uint32_t n_moves;
    const char **labels[2]; /* canonical name of each block, "" for one that nothing names */
};

/* Aligns two listings of one level: instructions by opcode and shape, then blocks that are elsewhere
   ("moved"), then registers by what defines them, so that names do not matter. requires: the listings stay.
   NO_MEMORY. */
clab_status clab_diff_make(const struct clab_listing *a, const struct clab_listing *b, struct clab_diff *out,
                           struct clab_error *error);
void clab_diff_free(struct clab_diff *diff);

/* --- within the room */

/* Pairs of an alignment: for each instruction of a side its partner, or CLAB_NOWHERE. */
struct clab_alignment {
    uint32_t *partner[2];
    uint32_t *move; /* by A's instruction: number of the moved block, 0 none */
    uint32_t n_moves;
};
/* align.c. Memory from `arena`; false when it is out. */
bool clab_align(const struct clab_listing *const sides[2], struct clab_arena *arena,
                struct clab_alignment *out);
/* canon.c: the opcode without a sign that does not matter; the instruction's own or text[0..bytes). */
const char *clab_canonical_opcode(const struct clab_code_insn *insn, char *text, size_t bytes);
/* canon.c: fills texts and ops of the rows, and the labels. False when memory is out. */
bool clab_canonical(struct clab_diff *diff, const struct clab_alignment *alignment);

#endif
