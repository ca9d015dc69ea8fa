/* Differences as text. */
#include "inspect/show_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT 3

static const char *const side_names[2] = {"A", "B"};

/* --- what is worth showing */

static bool is_quiet(const struct clab_diff_row *row)
{
    return (row->op == CLAB_ROW_SAME || row->op == CLAB_ROW_SWAPPED) && row->move == 0;
}

/* Whether a row that differs lies within CONTEXT rows. */
static bool is_near(const struct clab_diff *diff, size_t at)
{
    const size_t first = at > CONTEXT ? at - CONTEXT : 0;
    for (size_t i = first; i <= at + CONTEXT && i < diff->n_rows; i++)
        if (!is_quiet(&diff->rows[i]) || diff->rows[i].op == CLAB_ROW_SWAPPED)
            return true;
    return false;
}

static const struct clab_code_insn *insn_of(const struct clab_diff *diff, const struct clab_diff_row *row,
                                            unsigned side)
{
    return row->insn[side] != CLAB_NOWHERE ? &diff->sides[side]->insns[row->insn[side]] : NULL;
}

/* The canonical label in front of a row on a side, or NULL. */
static const char *label_of(const struct clab_diff *diff, const struct clab_diff_row *row, unsigned side)
{
    const struct clab_code_insn *insn = insn_of(diff, row, side);
    if (insn == NULL || diff->sides[side]->blocks[insn->block].first != row->insn[side] ||
        diff->sides[side]->blocks[insn->block].label[0] == '\0')
        return NULL;
    return diff->labels[side][insn->block];
}

/* --- side by side */

static int column_width(const struct clab_show *show, const struct clab_diff *diff)
{
    if (show->width >= 80)
        return (show->width - 19) / 2;
    int wide = 20;
    for (size_t i = 0; i < diff->n_rows; i++)
        for (unsigned s = 0; s < 2; s++)
            if (diff->rows[i].texts[s] != NULL && (int)strlen(diff->rows[i].texts[s]) > wide)
                wide = (int)strlen(diff->rows[i].texts[s]);
    return wide < 72 ? wide : 72;
}

static void put_cell(struct clab_show *show, const struct clab_diff *diff, const struct clab_diff_row *row,
                     unsigned side, enum clab_colour colour, int width)
{
    const struct clab_code_insn *insn = insn_of(diff, row, side);
    if (insn == NULL) {
        if (side == 0)
            clab_str_addf(show->out, "%*s", width + 6, "");
        return;
    }
    clab_str_addf(show->out, diff->sides[side]->level == CLAB_LEVEL_SASS ? "%04x  " : "%4u  ",
                  (unsigned)insn->address);
    clab_paint(show, colour, row->texts[side], side == 0 ? width : 0, false);
}

static void show_row(struct clab_show *show, const struct clab_diff *diff, const struct clab_diff_row *row,
                     int width)
{
    static const char marks[] = {[CLAB_ROW_SAME] = ' ',
                                 [CLAB_ROW_SWAPPED] = 's',
                                 [CLAB_ROW_CHANGED] = '~',
                                 [CLAB_ROW_ONLY_A] = '<',
                                 [CLAB_ROW_ONLY_B] = '>'};
    const char *labels[2] = {label_of(diff, row, 0), label_of(diff, row, 1)};
    char cell[64];
    if (labels[0] != NULL || labels[1] != NULL) {
        for (unsigned s = 0; s < 2; s++) {
            snprintf(cell, sizeof cell, "%s%s", labels[s] != NULL ? labels[s] : "",
                     labels[s] != NULL ? ":" : "");
            clab_paint(show, CLAB_BOLD, cell, s == 0 ? width + 6 + 5 : 0, false);
        }
        clab_str_add(show->out, "\n");
    }
    const enum clab_colour colour = row->op == CLAB_ROW_SAME      ? CLAB_DIM
                                    : row->op == CLAB_ROW_SWAPPED ? CLAB_BLUE
                                    : row->op == CLAB_ROW_CHANGED ? CLAB_YELLOW
                                    : row->op == CLAB_ROW_ONLY_A  ? CLAB_RED
                                                                  : CLAB_GREEN;
    put_cell(show, diff, row, 0, colour, width);
    clab_str_addf(show->out, row->insn[1] != CLAB_NOWHERE ? "  %c  " : "  %c",
                  row->move > 0 && row->op == CLAB_ROW_SAME ? 'm' : marks[row->op]);
    put_cell(show, diff, row, 1, colour, width);
    clab_str_add(show->out, "\n");
}

static void show_rows(struct clab_show *show, const struct clab_diff *diff, bool all)
{
    const int width = column_width(show, diff);
    size_t skipped = 0;
    uint32_t move = 0;
    for (size_t i = 0; i < diff->n_rows; i++) {
        const struct clab_diff_row *row = &diff->rows[i];
        if (!all && !is_near(diff, i)) {
            skipped++;
            continue;
        }
        if (skipped > 0)
            clab_str_addf(show->out, "      [%zu equal]\n", skipped);
        skipped = 0;
        if (row->move > 0 && row->move != move)
            clab_str_addf(show->out, "      [moved block %u]\n", (unsigned)row->move);
        move = row->move;
        show_row(show, diff, row, width);
    }
    if (skipped > 0)
        clab_str_addf(show->out, "      [%zu equal]\n", skipped);
}

/* --- notes */

static const struct clab_note *note_get(const struct clab_notes *notes, const char *id)
{
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->notes[i].info->id, id) == 0)
            return &notes->notes[i];
    return NULL;
}

static void show_notes(struct clab_show *show, const struct clab_difference *d, enum clab_level level)
{
    const struct clab_notes *notes[2] = {&d->sides[0]->notes[level], &d->sides[1]->notes[level]};
    struct clab_str both = {0};
    bool any = false;
    char heading[64];
    snprintf(heading, sizeof heading, "notes on the %s that are not alike",
             level == CLAB_LEVEL_PTX ? "PTX" : "SASS");
    for (unsigned s = 0; s < 2; s++)
        for (size_t i = 0; i < notes[s]->count; i++) {
            const struct clab_note *note = &notes[s]->notes[i], *other = note_get(notes[!s], note->info->id);
            char prefix[64];
            if (other != NULL && other->n_hits == note->n_hits) {
                if (s == 0)
                    clab_str_addf(&both, "%s%s", both.bytes > 0 ? ", " : "", note->info->id);
                continue;
            }
            if (other != NULL && s == 1)
                continue; /* told with A's */
            if (!any)
                clab_show_heading(show, heading);
            any = true;
            if (other != NULL)
                snprintf(prefix, sizeof prefix, "  A %u, B %u  ", (unsigned)note->n_hits,
                         (unsigned)other->n_hits);
            else
                snprintf(prefix, sizeof prefix, "  %s only  ", side_names[s]);
            clab_show_note(show, note, &d->sides[s]->listings[level], prefix);
        }
    if (both.bytes > 0)
        clab_str_addf(show->out, "%s  both %s: %s\n", any ? "" : "\n",
                      level == CLAB_LEVEL_PTX ? "(PTX)" : "(SASS)", both.text);
    clab_str_free(&both);
}

/* --- numbers */

static void put_number(struct clab_show *show, int value)
{
    if (value == CLAB_UNKNOWN)
        clab_str_add(show->out, "         ?");
    else
        clab_str_addf(show->out, "%10d", value);
}

static void put_pair(struct clab_show *show, const char *name, int a, int b, bool differs, const char *indent)
{
    clab_str_add(show->out, indent);
    clab_paint(show, differs ? CLAB_BOLD : CLAB_PLAIN, name, 50 - (int)strlen(indent), true);
    put_number(show, a);
    put_number(show, b);
    if (a != b && a != CLAB_UNKNOWN && b != CLAB_UNKNOWN)
        clab_str_addf(show->out, "  %+d", b - a);
    clab_str_add(show->out, "\n");
}

static void show_resources(struct clab_show *show, const struct clab_difference *d)
{
    struct clab_resource_row rows[2][CLAB_RESOURCE_ROWS];
    const size_t n = clab_resource_rows(&d->sides[0]->resources, rows[0]);
    clab_resource_rows(&d->sides[1]->resources, rows[1]);
    clab_show_heading(show, "summary                                                    A         B");
    for (size_t i = 0; i < n; i++) {
        const struct clab_resource_row *a = &rows[0][i], *b = &rows[1][i];
        if (strcmp(a->key, "registers_modelled") == 0 && rows[0][0].value != CLAB_UNKNOWN &&
            rows[1][0].value != CLAB_UNKNOWN)
            continue;
        if (a->text[0] != '\0' || b->text[0] != '\0') {
            if (strcmp(a->text, b->text) != 0)
                clab_str_addf(show->out, "  %s: A %s, B %s\n", a->name, a->text[0] != '\0' ? a->text : "none",
                              b->text[0] != '\0' ? b->text : "none");
        } else if (a->value != CLAB_UNKNOWN || b->value != CLAB_UNKNOWN) {
            char name[80];
            snprintf(name, sizeof name, "%s%s%s", a->name, a->unit[0] != '\0' ? ", " : "", a->unit);
            put_pair(show, name, a->value, b->value, a->value != b->value, "  ");
        }
    }
}

static void show_mix(struct clab_show *show, const struct clab_mix *mix, enum clab_level level)
{
    unsigned total[2] = {0, 0};
    for (size_t i = 0; i < mix->n_rows; i++)
        for (unsigned s = 0; s < 2 && mix->rows[i].what[0] == '\0'; s++)
            total[s] += mix->rows[i].count[s];
    put_pair(show, level == CLAB_LEVEL_PTX ? "PTX instructions" : "SASS instructions", (int)total[0],
             (int)total[1], total[0] != total[1], "  ");
    for (size_t i = 0; i < mix->n_rows; i++)
        if (mix->rows[i].what[0] == '\0')
            put_pair(show, clab_group_name(mix->rows[i].group), (int)mix->rows[i].count[0],
                     (int)mix->rows[i].count[1], mix->rows[i].count[0] != mix->rows[i].count[1], "    ");
}

/* Kinds of critical groups whose numbers differ. */
static void show_extras(struct clab_show *show, const struct clab_mix *mix, enum clab_level level)
{
    bool any = false;
    for (size_t i = 0; i < mix->n_rows; i++) {
        const struct clab_mix_row *row = &mix->rows[i];
        if (row->what[0] == '\0' || !clab_group_is_critical(row->group) || row->count[0] == row->count[1])
            continue;
        if (!any)
            clab_show_heading(show, level == CLAB_LEVEL_PTX
                                        ? "what matters and differs in number, PTX           A         B"
                                        : "what matters and differs in number, SASS          A         B");
        any = true;
        put_pair(show, row->what, (int)row->count[0], (int)row->count[1], true, "  ");
    }
}

/* Parameters that differ among the rows, as "cluster=2 n=1024". */
static void put_parameters(struct clab_str *out, const json_t *times, const json_t *one)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(one, "params"), key, value)
    {
        bool differs = false;
        for (size_t i = 0; i < json_array_size(times) && !differs; i++)
            differs =
                !json_equal(json_object_get(json_object_get(json_array_get(times, i), "params"), key), value);
        char *text = differs ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        if (text != NULL)
            clab_str_addf(out, " %s=%s", key, text);
        free(text);
    }
}

static void show_times(struct clab_show *show, const json_t *times)
{
    if (json_array_size(times) == 0)
        return;
    clab_show_heading(show,
                      "measured times, us                                         A         B      B/A");
    for (size_t i = 0; i < json_array_size(times); i++) {
        const json_t *one = json_array_get(times, i);
        struct clab_str name = {0};
        clab_str_add(&name, json_string_value(json_object_get(one, "device")));
        put_parameters(&name, times, one);
        clab_str_add(show->out, "  ");
        clab_paint(show, CLAB_PLAIN, name.text != NULL ? name.text : "", 48, true);
        clab_str_free(&name);
        clab_str_addf(show->out, "%10.2f%10.2f%9.3f\n",
                      json_number_value(json_object_get(one, "a_ns")) / 1000,
                      json_number_value(json_object_get(one, "b_ns")) / 1000,
                      json_number_value(json_object_get(one, "ratio")));
    }
}

static void show_names(struct clab_show *show, const struct clab_difference *d)
{
    for (unsigned s = 0; s < 2; s++) {
        clab_str_addf(show->out, "%s  ", side_names[s]);
        clab_paint(show, CLAB_BOLD, d->sides[s]->entry, 0, false);
        clab_str_addf(show->out, "  %s\n", d->names[s]);
    }
}

clab_status clab_show_difference(struct clab_show *show, const struct clab_difference *d, bool all,
                                 struct clab_error *error)
{
    struct clab_mix mixes[CLAB_LEVELS] = {0};
    clab_status status = CLAB_OK;
    show_names(show, d);
    for (unsigned level = 0; level < CLAB_LEVELS && status == CLAB_OK; level++) {
        struct clab_diff diff;
        if (!d->levels[level])
            continue;
        status = clab_diff_make(&d->sides[0]->listings[level], &d->sides[1]->listings[level], &diff, error);
        if (status != CLAB_OK)
            break;
        clab_show_heading(
            show,
            level == CLAB_LEVEL_PTX
                ? "PTX   (< only A, > only B, ~ differ, s operands swapped, m moved; registers renamed)"
                : "SASS   (< only A, > only B, ~ differ, s operands swapped, m moved; registers renamed)");
        show_rows(show, &diff, all);
        clab_diff_free(&diff);
        status = clab_mix_count(&d->sides[0]->listings[level], &d->sides[1]->listings[level], &mixes[level],
                                error);
    }
    for (unsigned level = 0; level < CLAB_LEVELS && status == CLAB_OK; level++)
        if (d->levels[level])
            show_notes(show, d, level);
    for (unsigned level = 0; level < CLAB_LEVELS && status == CLAB_OK; level++)
        if (d->levels[level])
            show_extras(show, &mixes[level], level);
    if (status == CLAB_OK)
        show_resources(show, d);
    for (unsigned level = 0; level < CLAB_LEVELS && status == CLAB_OK; level++)
        if (d->levels[level])
            show_mix(show, &mixes[level], level);
    if (status == CLAB_OK)
        show_times(show, d->times);
    for (unsigned level = 0; level < CLAB_LEVELS; level++)
        clab_mix_free(&mixes[level]);
    return status;
}

/* --- unified */

static void put_line(struct clab_show *show, char mark, const char *text)
{
    char line[1100];
    snprintf(line, sizeof line, "%c%s", mark, text);
    clab_paint(show, mark == '-' ? CLAB_RED : mark == '+' ? CLAB_GREEN : CLAB_PLAIN, line, 0, false);
    clab_str_add(show->out, "\n");
}

static void put_labels(struct clab_show *show, const struct clab_diff *diff, const struct clab_diff_row *row)
{
    const char *labels[2] = {label_of(diff, row, 0), label_of(diff, row, 1)};
    char text[64];
    for (unsigned s = 0; s < 2; s++) {
        if (labels[s] == NULL)
            continue;
        snprintf(text, sizeof text, "%s:", labels[s]);
        if (labels[0] != NULL && labels[1] != NULL && strcmp(labels[0], labels[1]) == 0) {
            put_line(show, ' ', text);
            return;
        }
        put_line(show, s == 0 ? '-' : '+', text);
    }
}

static void unified_rows(struct clab_show *show, const struct clab_diff *diff)
{
    bool inside = false;
    for (size_t i = 0; i < diff->n_rows;) {
        if (!is_near(diff, i)) {
            inside = false;
            i++;
            continue;
        }
        if (!inside) {
            char text[64];
            const struct clab_code_insn *a = insn_of(diff, &diff->rows[i], 0),
                                        *b = insn_of(diff, &diff->rows[i], 1);
            const bool sass = diff->sides[0]->level == CLAB_LEVEL_SASS;
            snprintf(text, sizeof text, sass ? "@@ -%04x +%04x @@" : "@@ -%u +%u @@",
                     a != NULL ? (unsigned)a->address : 0u, b != NULL ? (unsigned)b->address : 0u);
            clab_paint(show, CLAB_CYAN, text, 0, false);
            clab_str_add(show->out, "\n");
        }
        inside = true;
        if (diff->rows[i].op == CLAB_ROW_SAME) {
            put_labels(show, diff, &diff->rows[i]);
            put_line(show, ' ', diff->rows[i].texts[0]);
            i++;
            continue;
        }
        /* A run of rows that differ: first what goes, then what comes. */
        size_t end = i;
        while (end < diff->n_rows && diff->rows[end].op != CLAB_ROW_SAME)
            end++;
        for (unsigned s = 0; s < 2; s++)
            for (size_t k = i; k < end; k++) {
                if (s == 0)
                    put_labels(show, diff, &diff->rows[k]);
                if (diff->rows[k].texts[s] != NULL)
                    put_line(show, s == 0 ? '-' : '+', diff->rows[k].texts[s]);
            }
        i = end;
    }
}

clab_status clab_show_unified(struct clab_show *show, const struct clab_difference *d,
                              struct clab_error *error)
{
    for (unsigned level = 0; level < CLAB_LEVELS; level++) {
        struct clab_diff diff;
        if (!d->levels[level])
            continue;
        clab_status status =
            clab_diff_make(&d->sides[0]->listings[level], &d->sides[1]->listings[level], &diff, error);
        if (status != CLAB_OK)
            return status;
        for (unsigned s = 0; s < 2; s++)
            clab_str_addf(show->out, "%s %s:%s (%s, %s)\n", s == 0 ? "---" : "+++", d->sides[s]->file,
                          d->sides[s]->entry, clab_level_name(level), d->sides[s]->arch);
        unified_rows(show, &diff);
        clab_diff_free(&diff);
    }
    return CLAB_OK;
}
