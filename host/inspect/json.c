/* Inspections as JSON. */
#include "inspect/json.h"

#include <stdlib.h>
#include <string.h>

#include "inspect/mix.h"

json_t *clab_json_string(const char *text)
{
    json_t *string = json_string(text);
    char *copy = string == NULL ? strdup(text) : NULL;
    if (copy == NULL)
        return string != NULL ? string : json_null();
    for (char *at = copy; *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    string = json_string(copy);
    free(copy);
    return string;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? clab_json_string(text) : json_null();
}

static json_t *insn_json(const struct clab_listing *listing, const struct clab_code_insn *insn)
{
    char text[1024];
    clab_code_text(insn, text, sizeof text);
    json_t *object = json_pack("{s:i,s:o,s:o,s:s}", listing->level == CLAB_LEVEL_SASS ? "address" : "line",
                               (int)insn->address, "text", clab_json_string(text), "opcode",
                               clab_json_string(insn->opcode), "group", clab_group_name(insn->group));
    json_object_set_new(object, "kind", text_or_null(insn->what));
    json_object_set_new(object, "file", text_or_null(insn->place.file));
    json_object_set_new(object, "file_line",
                        insn->place.file != NULL ? json_integer(insn->place.line) : json_null());
    if (listing->level == CLAB_LEVEL_SASS)
        json_object_set_new(object, "ptx_line",
                            insn->ptx_line != 0 ? json_integer(insn->ptx_line) : json_null());
    if (insn->is_generic)
        json_object_set_new(object, "mapped", json_boolean(insn->is_mapped));
    return object;
}

static json_t *listing_json(const struct clab_listing *listing)
{
    json_t *blocks = json_array();
    for (uint32_t b = 0; b < listing->n_blocks; b++) {
        const struct clab_code_block *block = &listing->blocks[b];
        json_t *insns = json_array(), *next = json_array();
        for (uint32_t i = block->first; i < block->first + block->count; i++)
            json_array_append_new(insns, insn_json(listing, &listing->insns[i]));
        for (uint32_t s = 0; s < block->n_succ; s++)
            json_array_append_new(next, json_integer(block->succ[s]));
        json_array_append_new(blocks, json_pack("{s:o,s:o,s:o}", "label", text_or_null(block->label), "next",
                                                next, "instructions", insns));
    }
    return blocks;
}

json_t *clab_subject_json(const struct clab_subject *subject, enum clab_level level)
{
    struct clab_mix mix;
    struct clab_arena arena = {0};
    struct clab_became *became;
    size_t n_became;
    if (clab_mix_count(subject->has[0] ? &subject->listings[0] : NULL,
                       subject->has[1] ? &subject->listings[1] : NULL, &mix, NULL) != CLAB_OK)
        return NULL;
    json_t *object = json_pack("{s:o,s:o,s:o,s:s,s:o,s:o}", "file", clab_json_string(subject->file), "entry",
                               clab_json_string(subject->entry), "symbol", clab_json_string(subject->lowered),
                               "arch", subject->arch, "compiler", text_or_null(subject->compiler),
                               "resources", clab_resources_json(&subject->resources));
    json_t *counts = json_object(), *notes = json_array(), *fences = json_array();
    for (unsigned l = 0; l < CLAB_LEVELS; l++) {
        json_object_set_new(counts, clab_level_name(l),
                            subject->has[l] ? clab_mix_json(&mix, l) : json_null());
        json_t *found = subject->has[l] ? clab_notes_json(&subject->notes[l], &subject->listings[l]) : NULL;
        json_array_extend(notes, found);
        json_decref(found);
    }
    if (clab_fences_became(subject, &arena, &became, &n_became, NULL) == CLAB_OK)
        for (size_t i = 0; i < n_became; i++)
            json_array_append_new(fences,
                                  json_pack("{s:o,s:s,s:i,s:i}", "ptx", clab_json_string(became[i].ptx),
                                            "sass", became[i].sass, "count", (int)became[i].count,
                                            "first_line", (int)became[i].first_line));
    json_object_set_new(object, "mix", counts);
    json_object_set_new(object, "fences", fences);
    json_object_set_new(object, "notes", notes);
    json_object_set_new(object, "level", json_string(clab_level_name(level)));
    json_object_set_new(object, "blocks", listing_json(&subject->listings[level]));
    clab_arena_free(&arena);
    clab_mix_free(&mix);
    return object;
}
