/* The rows of a difference: alignment, order, canonical texts. */
#include "inspect/diff.h"

#include <string.h>

static void add_row(struct clab_diff *out, uint32_t a, uint32_t b, uint32_t move)
{
    out->rows[out->n_rows++] = (struct clab_diff_row){.insn = {a, b}, .move = move};
}

/* A's order; what only B has comes before the instruction of B that follows it and has a partner. Moved pairs
   stand where A has them. */
static void order_rows(struct clab_diff *out, const struct clab_alignment *alignment)
{
    const uint32_t n = out->sides[0]->n_insns, m = out->sides[1]->n_insns;
    uint32_t j = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t partner = alignment->partner[0][i];
        if (partner != CLAB_NOWHERE && alignment->move[i] == 0) {
            for (; j < partner; j++)
                if (alignment->partner[1][j] == CLAB_NOWHERE)
                    add_row(out, CLAB_NOWHERE, j, 0);
            j = partner + 1;
        }
        add_row(out, i, partner, alignment->move[i]);
    }
    for (; j < m; j++)
        if (alignment->partner[1][j] == CLAB_NOWHERE)
            add_row(out, CLAB_NOWHERE, j, 0);
}

clab_status clab_diff_make(const struct clab_listing *a, const struct clab_listing *b, struct clab_diff *out,
                           struct clab_error *error)
{
    struct clab_alignment alignment;
    memset(out, 0, sizeof *out);
    out->sides[0] = a;
    out->sides[1] = b;
    out->rows = clab_arena_array(&out->arena, (size_t)a->n_insns + b->n_insns + 1, sizeof *out->rows);
    bool good = out->rows != NULL && clab_align(out->sides, &out->arena, &alignment);
    if (good) {
        out->n_moves = alignment.n_moves;
        order_rows(out, &alignment);
        good = clab_canonical(out, &alignment);
    }
    if (good)
        return CLAB_OK;
    clab_diff_free(out);
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the difference of '%s' and '%s'", a->entry,
                          b->entry);
}

void clab_diff_free(struct clab_diff *diff)
{
    clab_arena_free(&diff->arena);
    memset(diff, 0, sizeof *diff);
}
