/* From the plain structs of check/hazard.h to JSON, and what is done with that: entries of one pair of
   instructions merged over launches, and put in order. */
#include "lab/hazards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "check/hazard.h"
#include "lab/wire.h"

static const struct clab_hazards *checker_of(const struct clab_channel *channel)
{
    return channel != NULL && channel->has_hazards ? channel->hazards : NULL;
}

clab_status clab_hazards_start(const struct clab_channel *channel, uint64_t seed, struct clab_error *error)
{
    const struct clab_hazards *checker = checker_of(channel);
    char text[24];
    if (checker == NULL) {
        clab_error_set(error, CLAB_UNSUPPORTED, "this device cannot check: %s",
                       channel == NULL ? "the checker is part of the stand-in driver"
                                       : "its stand-in driver has no checker");
        return clab_error_remedy(error, "check on emu:sm_90 or another emulated device");
    }
    if (checker->size_bytes != sizeof(struct clab_hazards) ||
        checker->hazard_bytes != sizeof(struct clab_hazard))
        return clab_error_set(
            error, CLAB_UNSUPPORTED,
            "the stand-in driver's checker is of another version: a hazard has %u bytes there, %zu here",
            checker->hazard_bytes, sizeof(struct clab_hazard));
    snprintf(text, sizeof text, "%" PRIu64, seed);
    clab_status status = channel->set_option("seed", text, error);
    if (status == CLAB_OK)
        checker->enable(1);
    return status;
}

static json_t *place(const char *file, uint32_t line, uint32_t column)
{
    if (line == 0)
        return json_null();
    return json_pack("{s:s,s:I,s:I}", "file", file, "line", (json_int_t)line, "column", (json_int_t)column);
}

static json_t *party_to_json(const struct clab_hazard_party *party)
{
    if (!party->present)
        return json_null();
    return json_pack(
        "{s:[I,I,I],s:[I,I,I],s:I,s:o,s:o,s:s,s:s,s:o,s:o,s:o}", "cta", (json_int_t)party->cta[0],
        (json_int_t)party->cta[1], (json_int_t)party->cta[2], "cluster", (json_int_t)party->cluster[0],
        (json_int_t)party->cluster[1], (json_int_t)party->cluster[2], "rank", (json_int_t)party->rank, "warp",
        party->has_warp ? json_integer(party->warp) : json_null(), "lanes",
        party->has_warp ? json_integer(party->lanes) : json_null(), "action", party->action, "instruction",
        party->instruction, "ptx", place(party->ptx_file, party->ptx_line, party->ptx_column), "source",
        place(party->source_file, party->source_line, party->source_column), "caller",
        place(party->caller_file, party->caller_line, 0));
}

static json_t *barrier_to_json(const struct clab_hazard_barrier *barrier)
{
    if (!barrier->present)
        return json_null();
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "id", (json_int_t)barrier->id, "phase",
                     (json_int_t)barrier->phase, "pending", (json_int_t)barrier->pending, "expected",
                     (json_int_t)barrier->expected, "expected_bytes", (json_int_t)barrier->expected_bytes,
                     "delivered_bytes", (json_int_t)barrier->delivered_bytes);
}

static const char *space_name(uint32_t space)
{
    static const char *const names[CLAB_SPACE_COUNT] = {"global", "shared", "shared::cluster",
                                                        "local",  "const",  "param"};
    return space < CLAB_SPACE_COUNT ? names[space] : NULL;
}

static json_t *hazard_to_json(const struct clab_hazard *hazard)
{
    static const char *const withins[] = {"thread", "warp", "cta", "cluster", "grid"};
    const bool is_shared = hazard->space == CLAB_SPACE_SHARED || hazard->space == CLAB_SPACE_REMOTE;
    const char *within = hazard->within < sizeof withins / sizeof *withins ? withins[hazard->within] : "grid";
    json_t *address = json_null();
    if (hazard->has_address)
        address = json_pack("{s:I,s:o,s:s?,s:I}", "value", (json_int_t)hazard->address, "rank",
                            is_shared ? json_integer(hazard->owner_rank) : json_null(), "symbol",
                            hazard->symbol[0] != '\0' ? hazard->symbol : NULL, "offset",
                            (json_int_t)hazard->symbol_offset);
    return json_pack(
        "{s:s,s:s,s:s,s:s?,s:o,s:I,s:s,s:[o,o],s:o,s:s,s:s,s:I,s:I}", "kind", clab_hazard_name(hazard->kind),
        "severity", hazard->severity == CLAB_SEVERITY_MILD ? "mild" : "hazard", "within", within, "space",
        space_name(hazard->space), "address", address, "bytes", (json_int_t)hazard->bytes, "kernel",
        hazard->kernel, "parties", party_to_json(&hazard->parties[0]), party_to_json(&hazard->parties[1]),
        "barrier", barrier_to_json(&hazard->barrier), "missing", hazard->missing, "detail", hazard->detail,
        "count", (json_int_t)hazard->count, "seed", (json_int_t)hazard->seed);
}

json_t *clab_hazards_to_json(const struct clab_hazard *hazards, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list,
                              clab_hazard_name(hazards[i].kind) != NULL ? hazard_to_json(&hazards[i]) : NULL);
    return list;
}

clab_status clab_hazards_stop(const struct clab_channel *channel, json_t **out_hazards,
                              struct clab_error *error)
{
    const struct clab_hazards *checker = checker_of(channel);
    struct clab_hazard *found = NULL;
    size_t count = 0;
    *out_hazards = NULL;
    if (checker == NULL)
        return clab_error_set(error, CLAB_INTERNAL, "hazards of a device that cannot check");
    checker->enable(0);
    if (checker->launches() == 0)
        return clab_error_set(error, CLAB_INTERNAL, "the launch was not checked");
    if (checker->take(&found, &count) != 0)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the hazards found");
    *out_hazards = clab_hazards_to_json(found, count);
    free(found);
    return json_array_size(*out_hazards) == count
               ? CLAB_OK
               : clab_error_set(error, CLAB_INTERNAL, "a hazard of %zu could not be put into words", count);
}

static void add_place(struct clab_str *key, const json_t *party, bool by_source)
{
    const json_t *place = by_source ? json_object_get(party, "source") : NULL;
    const bool is_source = json_is_object(place);
    place = is_source ? place : json_object_get(party, "ptx");
    clab_str_addf(key, "%s:%lld:%lld ", clab_json_text(place, "file", ""),
                  (long long)clab_json_int(place, "line", 0),
                  is_source ? 0LL : (long long)clab_json_int(place, "column", 0));
}

/* What makes two entries one: the kind, and the pair of instructions in either order. */
static char *key_of(const json_t *hazard, bool by_source)
{
    const json_t *parties = json_object_get(hazard, "parties");
    struct clab_str first = {0}, second = {0}, key = {0};
    add_place(&first, json_array_get(parties, 0), by_source);
    add_place(&second, json_array_get(parties, 1), by_source);
    const bool in_order = first.text == NULL || second.text == NULL || strcmp(first.text, second.text) <= 0;
    clab_str_addf(&key, "%s %s ", clab_json_text(hazard, "kind", ""), clab_json_text(hazard, "kernel", ""));
    clab_str_add(&key, in_order ? first.text : second.text);
    clab_str_add(&key, in_order ? second.text : first.text);
    clab_str_free(&first);
    clab_str_free(&second);
    return clab_str_take(&key);
}

static json_t *entry_of(json_t *hazards, const char *key, bool by_source)
{
    for (size_t i = 0; i < json_array_size(hazards); i++) {
        char *other = key_of(json_array_get(hazards, i), by_source);
        const bool same = other != NULL && strcmp(other, key) == 0;
        free(other);
        if (same)
            return json_array_get(hazards, i);
    }
    return NULL;
}

/* Adds the items of one list of `hazard` that the entry's lacks; `first` where the hazard has no such list
 * yet. */
static void unite(json_t *entry, const json_t *hazard, const char *key, json_t *first)
{
    json_t *own = json_object_get(entry, key), *more = json_object_get(hazard, key);
    if (!json_is_array(own) && !json_is_array(more) && first == NULL)
        return;
    if (!json_is_array(own)) {
        own = json_array();
        json_object_set_new(entry, key, own);
    }
    for (size_t i = 0; i < json_array_size(more) + (first != NULL); i++) {
        json_t *item = i < json_array_size(more) ? json_array_get(more, i) : first;
        bool known = false;
        for (size_t j = 0; j < json_array_size(own); j++)
            known = known || json_equal(json_array_get(own, j), item);
        if (!known)
            json_array_append(own, item);
    }
}

void clab_hazards_merge(json_t *into, const json_t *hazards, bool by_source)
{
    for (size_t i = 0; i < json_array_size(hazards); i++) {
        const json_t *hazard = json_array_get(hazards, i);
        char *key = key_of(hazard, by_source);
        json_t *entry = key != NULL ? entry_of(into, key, by_source) : NULL;
        free(key);
        if (entry == NULL) {
            entry = json_deep_copy(hazard);
            json_array_append_new(into, entry);
        } else {
            json_object_set_new(
                entry, "count",
                json_integer(clab_json_int(entry, "count", 0) + clab_json_int(hazard, "count", 0)));
        }
        unite(entry, hazard, "seeds", json_object_get(hazard, "seed"));
        unite(entry, hazard, "rows", NULL);
    }
}

int clab_hazard_kind(const char *name)
{
    for (uint32_t kind = 0; kind < CLAB_HAZARD_KINDS; kind++)
        if (strcmp(clab_hazard_name(kind), name) == 0)
            return (int)kind;
    return -1;
}

static int worst_first(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const int kinds[2] = {clab_hazard_kind(clab_json_text(x, "kind", "")),
                          clab_hazard_kind(clab_json_text(y, "kind", ""))};
    const bool mild[2] = {strcmp(clab_json_text(x, "severity", ""), "mild") == 0,
                          strcmp(clab_json_text(y, "severity", ""), "mild") == 0};
    if (mild[0] != mild[1])
        return mild[0] ? 1 : -1;
    if (kinds[0] != kinds[1])
        return kinds[0] < kinds[1] ? -1 : 1;
    const int64_t counts[2] = {clab_json_int(x, "count", 0), clab_json_int(y, "count", 0)};
    return counts[0] > counts[1] ? -1 : counts[0] < counts[1];
}

json_t *clab_hazards_sorted(const json_t *hazards)
{
    const size_t count = json_array_size(hazards);
    json_t **items = calloc(count + 1, sizeof *items), *sorted = json_array();
    for (size_t i = 0; items != NULL && i < count; i++)
        items[i] = json_array_get(hazards, i);
    if (items != NULL)
        qsort(items, count, sizeof *items, worst_first);
    for (size_t i = 0; items != NULL && i < count; i++)
        json_array_append(sorted, items[i]);
    free(items);
    return sorted;
}
