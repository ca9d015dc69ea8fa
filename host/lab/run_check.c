/* The check of one row: a launch for each seed under the checkers, what they found merged into one list, and
   the verdict. Kinds that the variant accepts (its field `accepts`, milder kinds only) stay in the list with
   their reason. */
#include "lab/run_parts.h"

#include <string.h>

#include "base/str.h"
#include "lab/hazards.h"
#include "lab/wire.h"

/* Marks what the variant accepts; returns how many count against it, named in `names`. */
static size_t judge_hazards(json_t *hazards, const json_t *accepts, struct clab_str *names)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(hazards); i++) {
        json_t *hazard = json_array_get(hazards, i);
        const char *kind = clab_json_text(hazard, "kind", "");
        const bool mild = strcmp(clab_json_text(hazard, "severity", ""), "mild") == 0;
        const char *reason = mild ? clab_json_text(accepts, kind, NULL) : NULL;
        json_object_set_new(hazard, "accepted", reason != NULL ? json_string(reason) : json_null());
        if (mild)
            continue;
        if (names->text == NULL || strstr(names->text, kind) == NULL)
            clab_str_addf(names, "%s%s", count != 0 ? ", " : "", kind);
        count++;
    }
    return count;
}

/* Whether a launch that ended so is told by its hazards. */
static bool is_told(clab_status status, const json_t *hazards)
{
    return (status == CLAB_FAULT || status == CLAB_DEADLOCK) && json_array_size(hazards) != 0;
}

static clab_status check_seed(struct clab_run_state *run, struct clab_run_row *row, uint64_t seed,
                              json_t *into, struct clab_error *error)
{
    json_t *answer, *more = json_pack("{s:I}", "seed", (json_int_t)seed);
    clab_status status = clab_row_ask(run, row, "check", more, &answer, error);
    clab_hazards_merge(into, json_object_get(answer, "hazards"), false);
    json_decref(answer);
    return status;
}

clab_status clab_row_check(struct clab_run_state *run, struct clab_run_row *row, struct clab_error *error)
{
    json_t *hazards = json_array();
    struct clab_error first = {0}; /* a launch that ended badly, if any */
    unsigned seeds = 0;
    for (; seeds < run->options->seeds; seeds++) {
        clab_status status = check_seed(run, row, run->options->first_seed + seeds, hazards, error);
        if (status == CLAB_OK)
            continue;
        if (first.status == CLAB_OK)
            clab_error_copy(&first, error);
        if (status != CLAB_WRONG && !is_told(status, hazards))
            break;
        clab_error_clear(error);
    }
    json_t *sorted = clab_hazards_sorted(hazards);
    struct clab_str names = {0};
    const size_t count =
        judge_hazards(sorted, json_object_get(run->variants[row->variant].plan, "accepts"), &names);
    json_object_set_new(row->record, "hazards", sorted);
    json_object_set_new(row->record, "seeds", json_integer(seeds));
    json_decref(hazards);
    clab_status status = first.status;
    if (status == CLAB_WRONG)
        json_object_set_new(row->record, "verify",
                            json_pack("{s:s,s:s}", "status", "fail", "detail", first.message));
    if (status == CLAB_OK || status == CLAB_WRONG ||
        is_told(status, json_object_get(row->record, "hazards"))) {
        if (count != 0)
            status = clab_error_set(error, CLAB_HAZARD, "%zu hazard%s: %s%s%s", count, count != 1 ? "s" : "",
                                    names.text, status == CLAB_WRONG ? "; " : "",
                                    status == CLAB_WRONG ? first.message : "");
        else if (status != CLAB_OK)
            clab_error_copy(error, &first);
    } else {
        clab_error_copy(error, &first);
    }
    clab_error_clear(&first);
    clab_str_free(&names);
    return status;
}
