/* Differences as JSON, and the times that records hold of both sides. */
#include <string.h>

#include "inspect/json.h"
#include "inspect/show_diff.h"

static const char *op_name(enum clab_row_op op)
{
    static const char *const names[] = {[CLAB_ROW_SAME] = "same",
                                        [CLAB_ROW_SWAPPED] = "swapped",
                                        [CLAB_ROW_CHANGED] = "changed",
                                        [CLAB_ROW_ONLY_A] = "only_a",
                                        [CLAB_ROW_ONLY_B] = "only_b"};
    return names[op];
}

static json_t *rows_json(const struct clab_diff *diff)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < diff->n_rows; i++) {
        const struct clab_diff_row *row = &diff->rows[i];
        json_t *object = json_pack("{s:s}", "op", op_name(row->op));
        for (unsigned s = 0; s < 2; s++) {
            json_t *side = json_null();
            if (row->insn[s] != CLAB_NOWHERE) {
                const struct clab_code_insn *insn = &diff->sides[s]->insns[row->insn[s]];
                char text[1024];
                clab_code_text(insn, text, sizeof text);
                side = json_pack("{s:o,s:o,s:s,s:i}", "text", clab_json_string(text), "canonical",
                                 clab_json_string(row->texts[s]), "group", clab_group_name(insn->group),
                                 diff->sides[s]->level == CLAB_LEVEL_SASS ? "address" : "line",
                                 (int)insn->address);
            }
            json_object_set_new(object, s == 0 ? "a" : "b", side);
        }
        if (row->move > 0)
            json_object_set_new(object, "moved_block", json_integer(row->move));
        json_array_append_new(rows, object);
    }
    return rows;
}

static json_t *level_json(const struct clab_difference *d, enum clab_level level)
{
    struct clab_diff diff;
    struct clab_mix mix;
    if (clab_diff_make(&d->sides[0]->listings[level], &d->sides[1]->listings[level], &diff, NULL) != CLAB_OK)
        return NULL;
    json_t *object = json_pack("{s:o}", "rows", rows_json(&diff)), *counts = json_array();
    clab_diff_free(&diff);
    if (clab_mix_count(&d->sides[0]->listings[level], &d->sides[1]->listings[level], &mix, NULL) == CLAB_OK) {
        for (size_t i = 0; i < mix.n_rows; i++)
            json_array_append_new(
                counts,
                json_pack("{s:s,s:o,s:b,s:i,s:i}", "group", clab_group_name(mix.rows[i].group), "kind",
                          mix.rows[i].what[0] != '\0' ? clab_json_string(mix.rows[i].what) : json_null(),
                          "critical", (int)clab_group_is_critical(mix.rows[i].group), "a",
                          (int)mix.rows[i].count[0], "b", (int)mix.rows[i].count[1]));
        clab_mix_free(&mix);
    }
    json_object_set_new(object, "counts", counts);
    return object;
}

json_t *clab_difference_json(const struct clab_difference *d)
{
    json_t *sides = json_array(), *levels = json_object();
    for (unsigned s = 0; s < 2; s++) {
        json_t *side = clab_subject_json(d->sides[s], d->sides[s]->has[CLAB_LEVEL_SASS] ? CLAB_LEVEL_SASS
                                                                                        : CLAB_LEVEL_PTX);
        json_object_del(side, "blocks");
        json_object_del(side, "level");
        json_array_append_new(sides, side);
    }
    for (unsigned level = 0; level < CLAB_LEVELS; level++)
        if (d->levels[level])
            json_object_set_new(levels, clab_level_name(level), level_json(d, level));
    return json_pack("{s:o,s:o,s:O?}", "sides", sides, "levels", levels, "times",
                     (json_t *)(uintptr_t)d->times);
}

/* --- times */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_of(const json_t *row, const struct clab_subject *side, const char *variant)
{
    const json_t *image = json_object_get(row, "image");
    const char *entry = text_of(image, "entry");
    if (variant != NULL)
        return strcmp(text_of(row, "type"), "row") == 0 && strcmp(text_of(row, "variant"), variant) == 0;
    return strcmp(text_of(row, "type"), "row") == 0 &&
           (strcmp(entry, side->entry) == 0 || strcmp(entry, side->lowered) == 0) &&
           strcmp(base_name(text_of(image, "source")), base_name(side->file)) == 0 &&
           strcmp(text_of(image, "arch"), side->arch) == 0;
}

/* Median cold time of a measured row, 0 otherwise. */
static double median_of(const json_t *row)
{
    const json_t *time = json_object_get(row, "time");
    return strcmp(text_of(time, "kind"), "measured") == 0
               ? json_number_value(json_object_get(json_object_get(time, "cold_ns"), "median"))
               : 0;
}

json_t *clab_times_of(const json_t *records, const struct clab_subject *const sides[2],
                      const char *const variants[2])
{
    json_t *times = json_array();
    for (size_t i = 0; i < json_array_size(records) && variants[0] == NULL; i++)
        if (is_of(json_array_get(records, i), sides[0], NULL) &&
            is_of(json_array_get(records, i), sides[1], NULL))
            return times;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *a = json_array_get(records, i);
        if (!is_of(a, sides[0], variants[0]) || median_of(a) <= 0)
            continue;
        for (size_t k = 0; k < json_array_size(records); k++) {
            const json_t *b = json_array_get(records, k);
            if (!is_of(b, sides[1], variants[1]) || median_of(b) <= 0 ||
                !json_equal(json_object_get(a, "params"), json_object_get(b, "params")) ||
                strcmp(text_of(a, "run"), text_of(b, "run")) != 0 ||
                strcmp(text_of(json_object_get(a, "device"), "id"),
                       text_of(json_object_get(b, "device"), "id")) != 0)
                continue;
            json_array_append_new(times, json_pack("{s:s,s:s,s:O,s:f,s:f,s:f}", "experiment",
                                                   text_of(a, "experiment"), "device",
                                                   text_of(json_object_get(a, "device"), "name"), "params",
                                                   json_object_get(a, "params"), "a_ns", median_of(a), "b_ns",
                                                   median_of(b), "ratio", median_of(b) / median_of(a)));
        }
    }
    return times;
}
