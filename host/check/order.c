/* Clocks as sorted lists (order.h). An entry is left out when another says as much: the same agent with at
   least those lanes and that time, or, for warps, its whole CTA or cluster. */
#include "check/order.h"

#include <stdlib.h>
#include <string.h>

#include "check/state.h"

struct clock *clock_ref(struct clock *clock)
{
    if (clock) {
        clock->refs++;
    }
    return clock;
}

/* One launch is checked at a time. */
static struct {
    struct clock *first;
    bool abandoned;
} clocks;

void clock_drop(struct clock *clock)
{
    if (clock && !clocks.abandoned && --clock->refs == 0) {
        *(clock->before ? &clock->before->after : &clocks.first) = clock->after;
        if (clock->after) {
            clock->after->before = clock->before;
        }
        free(clock);
    }
}

void clocks_abandon(void)
{
    clocks.abandoned = true;
}

void clocks_end(void)
{
    while (clocks.first) {
        struct clock *clock = clocks.first;
        clocks.first = clock->after;
        free(clock);
    }
    clocks.abandoned = false;
}

static struct clock *clock_new(uint32_t capacity)
{
    struct clock *clock = check_alloc(sizeof *clock + capacity * sizeof clock->e[0]);
    clock->after = clocks.first;
    if (clock->after) {
        clock->after->before = clock;
    }
    clocks.first = clock;
    clock->refs = 1;
    clock->n = 0;
    clock->capacity = capacity;
    return clock;
}

/* First entry whose key is at least `key`. */
static uint32_t find(const struct clock *clock, uint64_t key)
{
    uint32_t low = 0, high = clock->n;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (clock->e[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool says(const struct clock *clock, uint64_t key, uint32_t lanes, uint32_t time)
{
    for (uint32_t i = find(clock, key); lanes && i < clock->n && clock->e[i].key == key; i++) {
        lanes &= clock->e[i].time >= time ? ~clock->e[i].lanes : UINT32_MAX;
    }
    return lanes == 0;
}

/* Whether the clock knows all of `lanes` of a key up to `time`. */
static bool covers(const struct clock *clock, uint64_t key, uint32_t lanes, uint32_t time)
{
    const uint64_t cluster = key & ~UINT64_C(0xffff);
    const uint32_t part = (uint32_t)(key & 0xffff);
    if (says(clock, key, lanes, time)) {
        return true;
    }
    if (time & CHECK_ASYNC_TIME) {
        return false;
    }
    if (part >= CHECK_KEY_AGENT &&
        says(clock, cluster | (CHECK_KEY_CTA + ((part - CHECK_KEY_AGENT) >> 5)), UINT32_MAX, time)) {
        return true;
    }
    return part != CHECK_KEY_CLUSTER && says(clock, cluster | CHECK_KEY_CLUSTER, UINT32_MAX, time);
}

bool clock_knows(const struct clock *clock, uint64_t cluster, uint32_t agent, uint32_t lanes, uint32_t time)
{
    return clock && covers(clock, cluster << 16 | (CHECK_KEY_AGENT + agent), lanes, time);
}

/* Makes *inout a clock that may be changed and has room for `more` further entries. */
static struct clock *own(struct clock **inout, uint32_t more)
{
    struct clock *clock = *inout;
    if (clock && clock->refs == 1 && clock->n + more <= clock->capacity) {
        return clock;
    }
    const uint32_t n = clock ? clock->n : 0;
    struct clock *copy = clock_new(n + more < 4 ? 4 : (n + more) + (n + more) / 2);
    if (clock) {
        memcpy(copy->e, clock->e, n * sizeof copy->e[0]);
        copy->n = n;
        clock_drop(clock);
    }
    *inout = copy;
    return copy;
}

static void insert(struct clock **inout, uint64_t key, uint32_t lanes, uint32_t time)
{
    struct clock *clock = own(inout, 1);
    uint32_t at = find(clock, key), kept = at, last = at;
    for (; last < clock->n && clock->e[last].key == key; last++) {
        lanes |= clock->e[last].time == time ? clock->e[last].lanes : 0;
    }
    /* Drops what the new entry says too. */
    for (uint32_t i = at; i < last; i++) {
        const struct clock_entry *old = &clock->e[i];
        if (old->time > time || (old->time < time && (old->lanes & ~lanes) != 0)) {
            clock->e[kept++] = *old;
        }
    }
    memmove(&clock->e[kept + 1], &clock->e[last], (clock->n - last) * sizeof clock->e[0]);
    clock->n = clock->n - (last - kept) + 1;
    clock->e[kept] = (struct clock_entry){key, lanes, time};
}

void clock_add(struct clock **inout, uint64_t cluster, uint32_t part, uint32_t lanes, uint32_t time)
{
    const uint64_t key = cluster << 16 | part;
    if (time && !(*inout && covers(*inout, key, lanes, time))) {
        insert(inout, key, lanes, time);
    }
}

void clock_join_proxy(struct clock **inout, const struct clock *more, uint64_t proxy)
{
    for (uint32_t i = 0; more && i < more->n; i++) {
        const struct clock_entry *e = &more->e[i];
        const uint64_t key = e->key | proxy << 16;
        if (!*inout || !covers(*inout, key, e->lanes, e->time)) {
            insert(inout, key, e->lanes, e->time);
        }
    }
}

static bool includes(const struct clock *a, const struct clock *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (!covers(a, b->e[i].key, b->e[i].lanes, b->e[i].time)) {
            return false;
        }
    }
    return true;
}

/* Merges two long lists in one pass; what a whole CTA or cluster covers is dropped on the way. */
static struct clock *merged(const struct clock *a, const struct clock *b)
{
    struct clock *out = clock_new(a->n + b->n + 4);
    uint32_t i = 0, j = 0;
    uint64_t cluster = UINT64_MAX;
    uint32_t cluster_time = 0, cta_time[CHECK_KEY_AGENT] = {0};
    while (i < a->n || j < b->n) {
        const struct clock_entry *e;
        if (j >= b->n || (i < a->n && a->e[i].key <= b->e[j].key)) {
            e = &a->e[i++];
        } else {
            e = &b->e[j++];
        }
        const uint32_t part = (uint32_t)(e->key & 0xffff);
        if (e->key >> 16 != cluster) {
            cluster = e->key >> 16;
            cluster_time = 0;
            memset(cta_time, 0, sizeof cta_time);
        }
        if (part == CHECK_KEY_CLUSTER) {
            cluster_time = e->time > cluster_time ? e->time : cluster_time;
        } else if (part < CHECK_KEY_AGENT) {
            cta_time[part] = e->time > cta_time[part] ? e->time : cta_time[part];
        }
        if (!(e->time & CHECK_ASYNC_TIME) && part != CHECK_KEY_CLUSTER &&
            (e->time <= cluster_time ||
             (part >= CHECK_KEY_AGENT &&
              e->time <= cta_time[CHECK_KEY_CTA + ((part - CHECK_KEY_AGENT) >> 5)]))) {
            continue;
        }
        bool said = false;
        uint32_t kept = out->n;
        for (uint32_t k = out->n; k > 0 && out->e[k - 1].key == e->key; k--) {
            const struct clock_entry *old = &out->e[k - 1];
            said |= old->time >= e->time && (e->lanes & ~old->lanes) == 0;
            kept = k - 1;
        }
        if (said) {
            continue;
        }
        for (uint32_t k = kept; k < out->n; k++) {
            if (out->e[k].time > e->time || (out->e[k].lanes & ~e->lanes) != 0) {
                out->e[kept++] = out->e[k];
            }
        }
        out->n = kept;
        out->e[out->n++] = *e;
    }
    return out;
}

void clock_join(struct clock **inout, const struct clock *more)
{
    if (!more || *inout == more || more->n == 0) {
        return;
    }
    if (*inout && includes(*inout, more)) {
        return;
    }
    if (!*inout || more->n <= 8 || more->n * 16 < (*inout)->n) {
        for (uint32_t i = 0; i < more->n; i++) {
            const struct clock_entry *e = &more->e[i];
            if (!*inout || !covers(*inout, e->key, e->lanes, e->time)) {
                insert(inout, e->key, e->lanes, e->time);
            }
        }
        return;
    }
    struct clock *out = merged(*inout, more);
    clock_drop(*inout);
    *inout = out;
}

void clock_join_ref(struct clock **inout, struct clock *more)
{
    if (!*inout || (more && *inout != more && includes(more, *inout))) {
        clock_ref(more);
        clock_drop(*inout);
        *inout = more;
        return;
    }
    clock_join(inout, more);
}

/* --- known */

void known_clear(struct known *known)
{
    clock_drop(known->more);
    *known = (struct known){0};
}

void known_copy(struct known *to, const struct known *from)
{
    struct clock *more = clock_ref(from->more);
    clock_drop(to->more);
    *to = *from;
    to->more = more;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void known_join(struct known *known, const struct identity *self, struct clock *clock)
{
    if (!clock || known->more == clock) {
        return;
    }
    const uint64_t base = self->cluster << 16;
    bool rest = false;
    for (uint32_t i = 0; i < clock->n; i++) {
        const struct clock_entry *e = &clock->e[i];
        if (e->key == (base | CHECK_KEY_CLUSTER)) {
            known->cluster_time = later(known->cluster_time, e->time);
        } else if (e->key == (base | (CHECK_KEY_CTA + (self->agent >> 5)))) {
            known->cta_time = later(known->cta_time, e->time);
        } else if (e->key == (base | (CHECK_KEY_AGENT + self->agent)) && e->lanes == UINT32_MAX) {
            known->warp_time = later(known->warp_time, e->time);
        } else {
            const bool own_cluster = e->key >> 16 == self->cluster && !(e->time & CHECK_ASYNC_TIME);
            rest |= !(own_cluster && e->time <= known->cluster_time);
        }
    }
    if (rest) {
        clock_join_ref(&known->more, clock);
    }
}

struct clock *known_tell(const struct known *known, const struct identity *self, uint32_t lanes,
                         uint32_t time)
{
    struct clock *clock = clock_ref(known->more);
    clock_add(&clock, self->cluster, CHECK_KEY_CLUSTER, UINT32_MAX, known->cluster_time);
    clock_add(&clock, self->cluster, CHECK_KEY_CTA + (self->agent >> 5), UINT32_MAX, known->cta_time);
    clock_add(&clock, self->cluster, CHECK_KEY_AGENT + self->agent, UINT32_MAX, known->warp_time);
    if (lanes) {
        clock_add(&clock, self->cluster, CHECK_KEY_AGENT + self->agent, lanes, time);
    }
    return clock;
}
