/* Counting instructions by group and kind. */
#include "inspect/mix.h"

#include <stdlib.h>
#include <string.h>

static struct clab_mix_row *row_get(struct clab_mix *mix, size_t *capacity, enum clab_group group,
                                    const char *what)
{
    for (size_t i = 0; i < mix->n_rows; i++)
        if (mix->rows[i].group == group && strcmp(mix->rows[i].what, what) == 0)
            return &mix->rows[i];
    struct clab_mix_row *grown =
        clab_arena_grow(&mix->arena, mix->rows, mix->n_rows, capacity, sizeof *mix->rows);
    if (grown == NULL)
        return NULL;
    mix->rows = grown;
    mix->rows[mix->n_rows] = (struct clab_mix_row){.group = group, .what = what};
    return &mix->rows[mix->n_rows++];
}

static int by_group(const void *a, const void *b)
{
    const struct clab_mix_row *x = a, *y = b;
    return x->group != y->group ? (x->group < y->group ? -1 : 1) : strcmp(x->what, y->what);
}

clab_status clab_mix_count(const struct clab_listing *first, const struct clab_listing *second,
                           struct clab_mix *out, struct clab_error *error)
{
    const struct clab_listing *const sides[2] = {first, second};
    size_t capacity = 0;
    memset(out, 0, sizeof *out);
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; sides[side] != NULL && i < sides[side]->n_insns; i++) {
            const struct clab_code_insn *insn = &sides[side]->insns[i];
            for (unsigned total = 0; total < 2; total++) {
                const char *what = total ? "" : insn->what;
                struct clab_mix_row *row =
                    !total && what[0] == '\0' ? NULL : row_get(out, &capacity, insn->group, what);
                if (row != NULL) {
                    row->count[side]++;
                } else if (total || what[0] != '\0') {
                    clab_mix_free(out);
                    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the instruction mix");
                }
            }
        }
    for (size_t i = 0; i < out->n_rows; i++)
        for (unsigned side = 0; side < 2; side++)
            out->rows[i].present[side] = sides[side] != NULL;
    if (out->n_rows > 0)
        qsort(out->rows, out->n_rows, sizeof *out->rows, by_group);
    return CLAB_OK;
}

void clab_mix_free(struct clab_mix *mix)
{
    clab_arena_free(&mix->arena);
    memset(mix, 0, sizeof *mix);
}

json_t *clab_mix_json(const struct clab_mix *mix, unsigned column)
{
    json_t *object = json_object(), *group = NULL;
    for (size_t i = 0; i < mix->n_rows; i++) {
        const struct clab_mix_row *row = &mix->rows[i];
        if (row->what[0] == '\0') {
            group = json_pack("{s:i,s:{}}", "total", (int)row->count[column], "kinds");
            json_object_set_new(object, clab_group_name(row->group), group);
        } else if (row->count[column] > 0) {
            json_object_set_new(json_object_get(group, "kinds"), row->what, json_integer(row->count[column]));
        }
    }
    return object;
}
