/* The text of an inspection. */
#include "inspect/show.h"

#include <stdio.h>
#include <string.h>

static const char *const escapes[] = {
    [CLAB_DIM] = "\033[2m",      [CLAB_BOLD] = "\033[1m",    [CLAB_RED] = "\033[31m",
    [CLAB_GREEN] = "\033[32m",   [CLAB_YELLOW] = "\033[33m", [CLAB_BLUE] = "\033[34m",
    [CLAB_MAGENTA] = "\033[35m", [CLAB_CYAN] = "\033[36m",
};

/* Columns that UTF-8 text takes. */
static int columns(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void clab_paint(struct clab_show *show, enum clab_colour colour, const char *text, int width, bool cut)
{
    const int wide = columns(text);
    const bool paint = show->colour && colour != CLAB_PLAIN && text[0] != '\0';
    if (paint)
        clab_str_add(show->out, escapes[colour]);
    if (cut && width > 0 && wide > width) {
        const char *end = text;
        for (int n = 0; n < width - 1 || ((unsigned char)*end & 0xc0) == 0x80; end++)
            n += ((unsigned char)end[1] & 0xc0) != 0x80;
        clab_str_add_bytes(show->out, text, (size_t)(end - text));
        clab_str_add(show->out, "…");
    } else {
        clab_str_add(show->out, text);
    }
    if (paint)
        clab_str_add(show->out, "\033[0m");
    if (wide < width)
        clab_str_addf(show->out, "%*s", width - wide, "");
}

enum clab_colour clab_group_colour(enum clab_group group)
{
    switch (group) {
    case CLAB_GROUP_FENCE:
    case CLAB_GROUP_LOCAL:
        return CLAB_RED;
    case CLAB_GROUP_CLUSTER:
    case CLAB_GROUP_BARRIER:
        return CLAB_MAGENTA;
    case CLAB_GROUP_GENERIC:
    case CLAB_GROUP_REMOTE:
    case CLAB_GROUP_ADDRESS:
    case CLAB_GROUP_ATOMIC:
        return CLAB_YELLOW;
    case CLAB_GROUP_MBARRIER:
    case CLAB_GROUP_ASYNC:
    case CLAB_GROUP_BULK:
    case CLAB_GROUP_CLC:
    case CLAB_GROUP_GRID:
        return CLAB_CYAN;
    case CLAB_GROUP_MATRIX:
    case CLAB_GROUP_TENSOR:
        return CLAB_GREEN;
    case CLAB_GROUP_CALL:
        return CLAB_BLUE;
    default:
        return CLAB_PLAIN;
    }
}

void clab_show_heading(struct clab_show *show, const char *text)
{
    clab_str_add(show->out, "\n");
    clab_paint(show, CLAB_BOLD, text, 0, false);
    clab_str_add(show->out, "\n");
}

void clab_place_text(const struct clab_place *place, char *text, size_t bytes)
{
    text[0] = '\0';
    if (place->file == NULL || place->line == 0)
        return;
    const char *slash = strrchr(place->file, '/');
    snprintf(text, bytes, "%s:%u", slash != NULL ? slash + 1 : place->file, (unsigned)place->line);
}

static void show_resources(struct clab_show *show, const struct clab_subject *subject)
{
    struct clab_resource_row rows[CLAB_RESOURCE_ROWS];
    const size_t n = clab_resource_rows(&subject->resources, rows);
    clab_show_heading(show, "resources");
    for (size_t i = 0; i < n; i++) {
        char value[128];
        if (rows[i].value == CLAB_UNKNOWN && rows[i].text[0] == '\0')
            continue;
        /* What the assembler counted makes its estimate needless. */
        if (strcmp(rows[i].key, "registers_modelled") == 0 && subject->resources.registers != CLAB_UNKNOWN)
            continue;
        if (rows[i].value != CLAB_UNKNOWN)
            snprintf(value, sizeof value, "%d%s%s", rows[i].value, rows[i].unit[0] != '\0' ? " " : "",
                     rows[i].unit);
        else
            snprintf(value, sizeof value, "%s", rows[i].text);
        clab_str_add(show->out, "  ");
        clab_paint(show, CLAB_PLAIN, rows[i].name, 26, false);
        clab_paint(show, rows[i].value > 0 && strstr(rows[i].key, "spill") != NULL ? CLAB_RED : CLAB_PLAIN,
                   value, 0, false);
        clab_str_add(show->out, "\n");
    }
    if (subject->cubin.kind == CLAB_IMAGE_CUBIN && subject->resources.spill_store_bytes == CLAB_UNKNOWN)
        clab_str_add(show->out, "  spills are not known: a cubin does not say, only its assembler does\n");
}

static void put_count(struct clab_show *show, const struct clab_mix_row *row, unsigned column)
{
    if (row->present[column] && row->count[column] > 0)
        clab_str_addf(show->out, "%6u", (unsigned)row->count[column]);
    else
        clab_str_add(show->out, row->present[column] ? "     ." : "      ");
}

static void show_mix(struct clab_show *show, const struct clab_mix *mix)
{
    clab_show_heading(show, "instructions                                                ptx  sass");
    for (size_t i = 0; i < mix->n_rows; i++) {
        const struct clab_mix_row *row = &mix->rows[i];
        const bool total = row->what[0] == '\0';
        clab_str_add(show->out, total ? "  " : "    ");
        clab_paint(show, clab_group_colour(row->group), total ? clab_group_name(row->group) : row->what,
                   total ? 54 : 52, true);
        put_count(show, row, 0);
        put_count(show, row, 1);
        clab_str_add(show->out, "\n");
    }
}

static clab_status show_fences(struct clab_show *show, const struct clab_subject *subject,
                               struct clab_error *error)
{
    struct clab_arena arena = {0};
    struct clab_became *rows;
    size_t count;
    clab_status status = clab_fences_became(subject, &arena, &rows, &count, error);
    if (status == CLAB_OK && count > 0)
        clab_show_heading(show, "what became of the fences");
    for (size_t i = 0; i < count && status == CLAB_OK; i++) {
        clab_str_addf(show->out, "  %3u x ", (unsigned)rows[i].count);
        clab_paint(show, CLAB_PLAIN, rows[i].ptx, 52, false);
        clab_str_add(show->out, "  ");
        clab_paint(show, rows[i].sass[0] != '\0' ? CLAB_RED : CLAB_GREEN,
                   rows[i].sass[0] != '\0' ? rows[i].sass : "nothing", 0, false);
        clab_str_add(show->out, "\n");
    }
    clab_arena_free(&arena);
    return status;
}

/* Numbers of the notes that an instruction is a hit of, as " 1 4". */
static void note_marks(const struct clab_notes *notes, uint32_t insn, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < notes->count; i++)
        for (uint32_t h = 0; h < notes->notes[i].n_hits; h++)
            if (notes->notes[i].hits[h] == insn && used + 8 < bytes)
                used += (size_t)snprintf(text + used, bytes - used, "%s%zu", used > 0 ? "," : "", i + 1);
}

/* Where an instruction comes from: the source line, else (SASS of PTX written by hand) the line of the PTX.
 */
static struct clab_place place_of(const struct clab_subject *subject, const struct clab_code_insn *insn)
{
    struct clab_place place = insn->place;
    if (place.file == NULL && insn->ptx == NULL && insn->ptx_line != 0 && subject->ptx != NULL)
        place = (struct clab_place){CLAB_PTX_SOURCE, insn->ptx_line};
    return place;
}

static void show_listing(struct clab_show *show, const struct clab_subject *subject, enum clab_level level)
{
    const struct clab_listing *listing = &subject->listings[level];
    struct clab_place last = {0};
    char heading[128];
    snprintf(heading, sizeof heading, "%s%s", level == CLAB_LEVEL_PTX ? "PTX" : "SASS",
             subject->notes[level].count > 0 ? "   (in front: the notes below)" : "");
    clab_show_heading(show, heading);
    for (uint32_t i = 0; i < listing->n_insns; i++) {
        const struct clab_code_insn *insn = &listing->insns[i];
        const struct clab_code_block *block = &listing->blocks[insn->block];
        char text[1024], marks[32], place_text[256];
        if (block->first == i && block->label[0] != '\0') {
            clab_paint(show, CLAB_BOLD, block->label, 0, false);
            clab_str_add(show->out, ":\n");
        }
        note_marks(&subject->notes[level], i, marks, sizeof marks);
        clab_paint(show, CLAB_RED, marks, 6, false);
        clab_str_addf(show->out, level == CLAB_LEVEL_SASS ? " %04x  " : " %4u  ", (unsigned)insn->address);
        clab_code_text(insn, text, sizeof text);
        const struct clab_place place = place_of(subject, insn);
        const bool moved = place.line != last.line || (place.file == NULL) != (last.file == NULL) ||
                           (place.file != NULL && strcmp(place.file, last.file) != 0);
        clab_place_text(&place, place_text, sizeof place_text);
        if (moved && place_text[0] != '\0') {
            clab_paint(show, clab_group_colour(insn->group), text, 58, false);
            clab_str_add(show->out, "  ");
            clab_paint(show, CLAB_DIM, place_text, 16, false);
            clab_str_add(show->out, "  ");
            clab_paint(show, CLAB_DIM, clab_source_line(show->sources, place.file, place.line),
                       show->width > 92 ? show->width - 92 : 0, show->width > 92);
        } else {
            clab_paint(show, clab_group_colour(insn->group), text, 0, false);
        }
        clab_str_add(show->out, "\n");
        last = place;
    }
}

/* Wraps at blanks; `indent` columns before each line, `first` columns are already there. */
static void put_wrapped(struct clab_show *show, enum clab_colour colour, const char *text, int indent,
                        int first)
{
    const int limit = show->width > 60 ? show->width : 120;
    int at = first;
    for (const char *word = text; *word != '\0';) {
        const size_t bytes = strcspn(word, " ");
        char one[256];
        snprintf(one, sizeof one, "%.*s", (int)bytes, word);
        if (at > indent && at + 1 + columns(one) > limit) {
            clab_str_addf(show->out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            clab_str_add(show->out, " ");
            at++;
        }
        clab_paint(show, colour, one, 0, false);
        at += columns(one);
        word += bytes + (word[bytes] == ' ');
    }
    clab_str_add(show->out, "\n");
}

void clab_show_note(struct clab_show *show, const struct clab_note *note, const struct clab_listing *listing,
                    const char *prefix)
{
    const struct clab_note_info *info = note->info;
    char where[512], head[256];
    size_t used = 0;
    where[0] = '\0';
    for (uint32_t h = 0; h < note->n_hits && h < 6; h++) {
        const struct clab_code_insn *insn = &listing->insns[note->hits[h]];
        used += (size_t)snprintf(where + used, sizeof where - used,
                                 listing->level == CLAB_LEVEL_SASS ? " %04x" : " line %u",
                                 (unsigned)insn->address);
        char place[256];
        clab_place_text(&insn->place, place, sizeof place);
        if (place[0] != '\0' && used + strlen(place) + 8 < sizeof where)
            used += (size_t)snprintf(where + used, sizeof where - used, " (%s)", place);
    }
    if (note->n_hits > 6)
        snprintf(where + used, sizeof where - used, " and %u more", (unsigned)note->n_hits - 6);
    snprintf(head, sizeof head, "%s%s", prefix, info->id);
    clab_paint(show, CLAB_BOLD, head, 0, false);
    clab_paint(show, CLAB_DIM, where, 0, false);
    clab_str_add(show->out, "\n      ");
    put_wrapped(show, CLAB_PLAIN, info->title, 6, 6);
    clab_str_add(show->out, "      ");
    put_wrapped(show, CLAB_PLAIN, info->cost, 6, 6);
    clab_str_add(show->out, "      ");
    put_wrapped(show, CLAB_DIM, info->measured[0] != '\0' ? info->measured : "not measured", 6, 6);
}

static void show_notes(struct clab_show *show, const struct clab_subject *subject, enum clab_level shown)
{
    for (unsigned pass = 0; pass < CLAB_LEVELS; pass++) {
        const enum clab_level level = pass == 0                 ? shown
                                      : shown == CLAB_LEVEL_PTX ? CLAB_LEVEL_SASS
                                                                : CLAB_LEVEL_PTX;
        const struct clab_notes *notes = &subject->notes[level];
        if (notes->count > 0)
            clab_show_heading(show, level == CLAB_LEVEL_PTX ? "notes on the PTX" : "notes on the SASS");
        for (size_t i = 0; i < notes->count; i++) {
            char prefix[16];
            snprintf(prefix, sizeof prefix, level == shown ? "%3zu  " : "     ", i + 1);
            clab_show_note(show, &notes->notes[i], &subject->listings[level], prefix);
        }
    }
}

clab_status clab_show_inspection(struct clab_show *show, const struct clab_subject *subject,
                                 enum clab_level level, const char *occupancy, struct clab_error *error)
{
    struct clab_mix mix;
    clab_status status = clab_mix_count(subject->has[0] ? &subject->listings[0] : NULL,
                                        subject->has[1] ? &subject->listings[1] : NULL, &mix, error);
    if (status != CLAB_OK)
        return status;
    clab_paint(show, CLAB_BOLD, subject->entry, 0, false);
    clab_str_addf(show->out, "  %s, %s%s%s\n", subject->file, subject->arch,
                  subject->compiler[0] != '\0' ? ", " : "", subject->compiler);
    show_resources(show, subject);
    clab_str_add(show->out, occupancy);
    show_mix(show, &mix);
    status = show_fences(show, subject, error);
    show_listing(show, subject, level);
    show_notes(show, subject, level);
    clab_mix_free(&mix);
    return status;
}
