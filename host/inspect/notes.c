/* Holding notes.def against a listing. */
#include "inspect/notes.h"

#include <stdio.h>
#include <string.h>

#include "inspect/facts.h"
#include "inspect/json.h"

enum how { HOW_INSN, HOW_HAS, HOW_SEQ, HOW_KIND, HOW_FACT };

static const struct row {
    struct clab_note_info info;
    enum how how;
    const char *pattern;
} rows[] = {
#define NOTE(id, level, how, pattern, title, cost, measured) \
    {{id, CLAB_LEVEL_##level, title, cost, measured}, HOW_##how, pattern},
#include "inspect/notes.def"
#undef NOTE
};
#define N_ROWS (sizeof rows / sizeof *rows)

const struct clab_note_info *clab_note_at(size_t index)
{
    return index < N_ROWS ? &rows[index].info : NULL;
}

static bool fits(const struct clab_code_insn *insn, const char *pattern)
{
    char text[1024];
    if (pattern[0] == '@')
        clab_code_text(insn, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s%s%s", insn->opcode, insn->operands[0] != '\0' ? " " : "",
                 insn->operands);
    return clab_glob(pattern, text);
}

/* "mbarrier.arrive release cluster": a beginning, and qualifiers in any order. */
static bool has_words(const char *opcode, const char *words)
{
    size_t bytes = strcspn(words, " ");
    if (strncmp(opcode, words, bytes) != 0)
        return false;
    for (const char *word = words + bytes; *word == ' '; word += bytes) {
        bytes = strcspn(++word, " ");
        bool found = false;
        for (const char *at = strchr(opcode, '.'); at != NULL && !found; at = strchr(at, '.')) {
            const size_t length = strcspn(++at, ".");
            found = length == bytes && memcmp(at, word, bytes) == 0;
        }
        if (!found)
            return false;
    }
    return true;
}

#define SEQ_REACH 6
/* Behind the instruction where the sequence that begins at `first` ends, or UINT32_MAX. */
static uint32_t end_of_sequence(const struct clab_listing *listing, uint32_t first, const char *pattern)
{
    uint32_t at = first;
    for (const char *glob = pattern; *glob != '\0';) {
        char one[128];
        const char *end = strstr(glob, " ; ");
        const size_t bytes = end != NULL ? (size_t)(end - glob) : strlen(glob);
        snprintf(one, sizeof one, "%.*s", (int)bytes, glob);
        const uint32_t reach = glob == pattern ? at + 1 : at + SEQ_REACH;
        while (at < reach && at < listing->n_insns && !fits(&listing->insns[at], one))
            at++;
        if (at >= reach || at >= listing->n_insns)
            return UINT32_MAX;
        at++;
        glob += bytes + (end != NULL ? 3 : 0);
    }
    return at;
}

/* Sequences that end at one instruction are one hit: the shortest. */
static void find_sequences(const struct row *row, const struct clab_listing *listing, struct clab_hits *hits)
{
    uint32_t last_end = UINT32_MAX;
    for (uint32_t i = 0; i < listing->n_insns; i++) {
        const uint32_t end = end_of_sequence(listing, i, row->pattern);
        if (end == UINT32_MAX)
            continue;
        if (end == last_end)
            hits->insns[hits->count - 1] = i;
        else
            clab_hit(hits, i);
        last_end = hits->failed ? UINT32_MAX : end;
    }
}

static bool find(const struct row *row, const struct clab_listing *listing,
                 const struct clab_resources *resources, struct clab_hits *hits)
{
    if (row->how == HOW_FACT) {
        clab_fact *fact = clab_fact_get(row->pattern);
        return fact != NULL && fact(listing, resources, hits);
    }
    if (row->how == HOW_SEQ)
        find_sequences(row, listing, hits);
    for (uint32_t i = 0; i < listing->n_insns && row->how != HOW_SEQ; i++) {
        const struct clab_code_insn *insn = &listing->insns[i];
        if (row->how == HOW_INSN  ? fits(insn, row->pattern)
            : row->how == HOW_HAS ? has_words(insn->opcode, row->pattern)
                                  : clab_glob(row->pattern, insn->what))
            clab_hit(hits, i);
    }
    return hits->count > 0;
}

clab_status clab_notes_find(const struct clab_listing *listing, const struct clab_resources *resources,
                            struct clab_notes *out, struct clab_error *error)
{
    memset(out, 0, sizeof *out);
    out->notes = clab_arena_array(&out->arena, N_ROWS, sizeof *out->notes);
    bool failed = out->notes == NULL;
    for (size_t i = 0; i < N_ROWS && !failed; i++) {
        if (rows[i].info.level != listing->level)
            continue;
        struct clab_hits hits = {.arena = &out->arena};
        if (find(&rows[i], listing, resources, &hits))
            out->notes[out->count++] = (struct clab_note){&rows[i].info, hits.insns, (uint32_t)hits.count};
        failed = hits.failed;
    }
    if (!failed)
        return CLAB_OK;
    clab_notes_free(out);
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the notes on '%s'", listing->entry);
}

void clab_notes_free(struct clab_notes *notes)
{
    clab_arena_free(&notes->arena);
    memset(notes, 0, sizeof *notes);
}

json_t *clab_notes_json(const struct clab_notes *notes, const struct clab_listing *listing)
{
    json_t *array = json_array();
    for (size_t i = 0; i < notes->count; i++) {
        const struct clab_note *note = &notes->notes[i];
        json_t *at = json_array();
        for (uint32_t h = 0; h < note->n_hits; h++) {
            const struct clab_code_insn *insn = &listing->insns[note->hits[h]];
            json_t *hit = json_pack("{s:i}", listing->level == CLAB_LEVEL_SASS ? "address" : "line",
                                    (int)insn->address);
            char place[4200];
            if (insn->place.file != NULL)
                snprintf(place, sizeof place, "%s:%u", insn->place.file, (unsigned)insn->place.line);
            json_object_set_new(hit, "source",
                                insn->place.file != NULL ? clab_json_string(place) : json_null());
            json_array_append_new(at, hit);
        }
        json_array_append_new(
            array,
            json_pack("{s:s,s:s,s:s,s:s,s:o,s:i,s:o}", "id", note->info->id, "level",
                      clab_level_name(note->info->level), "title", note->info->title, "cost",
                      note->info->cost, "measured",
                      note->info->measured[0] != '\0' ? json_string(note->info->measured) : json_null(),
                      "count", (int)note->n_hits, "at", at));
    }
    return array;
}
