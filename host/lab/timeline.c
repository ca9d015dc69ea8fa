/* Timelines (timeline.h). SM ids are as %smid gives them: not always below the number of SMs (PTX ISA 9.0,
   "Special Registers: %smid"), so they are looked up, not indexed by. */
#include "lab/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "driver/call.h"
#include "lab/wire.h"

#define KIND_ITEM 0

struct slot {
    uint64_t start, end;
    uint32_t sm, cta;
    uint64_t kind;
};

static struct slot slot_at(const uint64_t *log, uint64_t index)
{
    const uint64_t *words = log + index * CLAB_TIMELINE_SLOT_WORDS;
    return (struct slot){.start = words[0],
                         .end = words[1] < words[0] ? words[0] : words[1],
                         .sm = (uint32_t)words[2],
                         .cta = (uint32_t)(words[2] >> 32),
                         .kind = words[3]};
}

static int by_sm(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return x->sm != y->sm ? (x->sm < y->sm ? -1 : 1) : (x->end > y->end) - (x->end < y->end);
}

static int by_cta(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return x->cta != y->cta ? (x->cta < y->cta ? -1 : 1) : 0;
}

/* Idle time from each SM's last item to `end`; an SM without items is idle from `start` on. */
static double idle_at_end(struct slot *items, size_t n, unsigned sms, uint64_t start, uint64_t end)
{
    double idle = 0;
    unsigned used = 0;
    qsort(items, n, sizeof *items, by_sm);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || items[i + 1].sm != items[i].sm) {
            idle += (double)(end - items[i].end);
            used++;
        }
    return idle + (sms > used ? (double)(sms - used) * (double)(end - start) : 0);
}

static json_t *count_ctas(struct slot *items, size_t n, json_int_t *out_ctas)
{
    size_t first = 0, least = n, most = 0;
    *out_ctas = 0;
    qsort(items, n, sizeof *items, by_cta);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || items[i + 1].cta != items[i].cta) {
            const size_t count = i + 1 - first;
            least = count < least ? count : least;
            most = count > most ? count : most;
            first = i + 1;
            ++*out_ctas;
        }
    return json_pack("{s:I,s:I}", "min", (json_int_t)least, "max", (json_int_t)most);
}

static json_t *slot_list(const uint64_t *log, uint64_t n_slots, uint64_t origin)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < n_slots; i++) {
        const struct slot slot = slot_at(log, i);
        if (slot.start == 0)
            continue;
        json_array_append_new(list, json_integer((json_int_t)i));
        /* What began before the first item has a negative start. */
        json_array_append_new(list, json_integer((json_int_t)(slot.start - origin)));
        json_array_append_new(list, json_integer((json_int_t)(slot.end - origin)));
        json_array_append_new(list, json_integer(slot.sm));
        json_array_append_new(list, json_integer(slot.cta));
        json_array_append_new(list, json_integer((json_int_t)slot.kind));
    }
    return list;
}

json_t *clab_timeline_summary(const uint64_t *log, uint64_t n_slots, const double *costs, uint64_t n_costs,
                              unsigned sms, bool slots)
{
    struct slot *items = calloc(n_slots + 1, sizeof *items);
    size_t n = 0, held = 0, missing = 0;
    uint64_t start = UINT64_MAX, end = 0, shortest = UINT64_MAX, longest = 0;
    double busy = 0, held_ns = 0, cost = 0;
    if (items == NULL)
        return NULL;
    for (uint64_t i = 0; i < n_slots; i++) {
        const struct slot slot = slot_at(log, i);
        const uint64_t took = slot.end - slot.start;
        if (slot.start == 0) {
            missing++;
        } else if (slot.kind != KIND_ITEM) {
            held++;
            held_ns += (double)took;
        } else {
            items[n++] = slot;
            start = slot.start < start ? slot.start : start;
            end = slot.end > end ? slot.end : end;
            shortest = took < shortest ? took : shortest;
            longest = took > longest ? took : longest;
            busy += (double)took;
            cost += i < n_costs ? costs[i] : 0;
        }
    }
    json_t *summary = json_pack("{s:I,s:I,s:I}", "items", (json_int_t)n, "missing", (json_int_t)missing,
                                "held", (json_int_t)held);
    if (n != 0) {
        json_int_t ctas;
        json_object_set_new(summary, "idle_end_ns", json_real(idle_at_end(items, n, sms, start, end)));
        json_object_set_new(summary, "items_per_cta", count_ctas(items, n, &ctas));
        json_object_set_new(summary, "ctas", json_integer(ctas));
        json_object_set_new(summary, "makespan_ns", json_integer((json_int_t)(end - start)));
        json_object_set_new(summary, "shortest_ns", json_integer((json_int_t)shortest));
        json_object_set_new(summary, "longest_ns", json_integer((json_int_t)longest));
        json_object_set_new(summary, "busy_ns", json_real(busy));
        json_object_set_new(summary, "held_ns", json_real(held_ns));
        json_object_set_new(summary, "cost", costs != NULL ? json_real(cost) : json_null());
    }
    if (slots)
        json_object_set_new(summary, "slots", slot_list(log, n_slots, n != 0 ? start : 0));
    free(items);
    return summary;
}

/* A buffer's contents, in host memory of the caller's. */
static clab_status fetch(const struct clab_device *device, const struct clab_buffer_set *set,
                         const char *name, struct clab_buffer **out_buffer, void **out_data,
                         struct clab_error *error)
{
    *out_buffer = clab_buffers_find(set, name);
    if (*out_buffer == NULL)
        return clab_error_set(error, CLAB_INTERNAL, "the timeline's buffer '%s' is not there", name);
    const uint64_t bytes = clab_buffer_bytes(*out_buffer);
    *out_data = malloc(bytes);
    if (*out_data == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory to read back '%s'", name);
    return CLAB_CALL(device->driver, error, cuMemcpyDtoH_v2, (*out_data, (*out_buffer)->address, bytes),
                     "'%s'", name);
}

clab_status clab_timeline_read(const struct clab_device *device, const struct clab_buffer_set *set,
                               const json_t *timeline, json_t **out_summary, struct clab_error *error)
{
    const char *costs_name = clab_json_text(timeline, "costs", NULL);
    struct clab_buffer *log = NULL, *costs = NULL;
    void *words = NULL, *elements = NULL;
    double *numbers = NULL;
    *out_summary = NULL;
    clab_status status = fetch(device, set, clab_json_text(timeline, "log", ""), &log, &words, error);
    if (status == CLAB_OK && costs_name != NULL)
        status = fetch(device, set, costs_name, &costs, &elements, error);
    if (status == CLAB_OK && costs != NULL) {
        numbers = calloc(costs->count, sizeof *numbers);
        for (uint64_t i = 0; numbers != NULL && i < costs->count; i++)
            numbers[i] = (double)clab_element_load(costs->element, elements, i);
    }
    if (status == CLAB_OK && (costs == NULL || numbers != NULL))
        *out_summary = clab_timeline_summary(words, log->count / CLAB_TIMELINE_SLOT_WORDS, numbers,
                                             costs != NULL ? costs->count : 0, (unsigned)device->sms,
                                             clab_json_bool(timeline, "slots", false));
    if (status == CLAB_OK && *out_summary == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for a timeline");
    free(words);
    free(elements);
    free(numbers);
    return status;
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void clab_timeline_judge(json_t *summary, unsigned sms)
{
    const double cost = number_of(summary, "cost"), makespan = number_of(summary, "makespan_ns");
    if (makespan <= 0 || sms == 0)
        return;
    json_object_set_new(summary, "idle_end", json_real(number_of(summary, "idle_end_ns") / (makespan * sms)));
    if (cost <= 0)
        return;
    const double unit_ns = number_of(summary, "busy_ns") / cost;
    const double shared = (cost * unit_ns + number_of(summary, "held_ns")) / sms;
    const double longest = number_of(summary, "longest_ns");
    const double bound = longest > shared ? longest : shared;
    json_object_set_new(summary, "unit_ns", json_real(unit_ns));
    json_object_set_new(summary, "bound_ns", json_real(bound));
    json_object_set_new(summary, "over_bound", json_real(makespan / bound));
}
