/* Vector clocks (host/check/order.h) against a table that remembers the time of every lane of every agent:
   the same additions and joins in random order must leave both with the same knowledge. */
#include "check/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CLUSTERS 3u
#define CTAS     3u
#define WARPS    4u /* of a CTA that are used */
#define ASYNC    6u /* asynchronous agents that are used */
#define AGENTS   (CTAS * WARPS + ASYNC)
#define LANES    32u
#define CLOCKS   6u

static const uint32_t async_agents[ASYNC] = {CHECK_CP_AGENT,       CHECK_CP_AGENT + 33,
                                             CHECK_READ_AGENT + 1, CHECK_WRITE_AGENT + 2,
                                             CHECK_MBAR_AGENT,     CHECK_MBAR_AGENT + 7};

/* [global view of the async proxy][cluster][agent][lane]: known up to here, 0 nothing. */
struct table {
    uint32_t time[2][CLUSTERS][AGENTS][LANES];
};

static uint32_t agent_of(uint32_t a)
{
    return a < CTAS * WARPS ? a / WARPS * 32 + a % WARPS : async_agents[a - CTAS * WARPS];
}

static bool is_async(uint32_t a)
{
    return a >= CTAS * WARPS;
}

static uint64_t state = 1;

static uint32_t choose(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static uint32_t choose_lanes(void)
{
    switch (choose(4)) {
    case 0:
        return UINT32_MAX;
    case 1:
        return UINT32_C(1) << choose(LANES);
    default:
        return (choose(UINT32_C(1) << 31) << 1 | choose(2)) | 1;
    }
}

static void table_add(struct table *t, unsigned view, uint32_t cluster, uint32_t a, uint32_t lanes,
                      uint32_t time)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t *at = &t->time[view][cluster][a][lane];
        if ((lanes >> lane & 1) && *at < time) {
            *at = time;
        }
    }
}

static void table_join(struct table *t, const struct table *more)
{
    for (unsigned view = 0; view < 2; view++) {
        for (uint32_t c = 0; c < CLUSTERS; c++) {
            for (uint32_t a = 0; a < AGENTS; a++) {
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    table_add(t, view, c, a, UINT32_C(1) << lane, more->time[view][c][a][lane]);
                }
            }
        }
    }
}

/* What the table knows up to `time` of all of `lanes`. A whole CTA or cluster is known of all its warps, so
   that the table says no less than the clock. */
static bool table_knows(const struct table *t, unsigned view, uint32_t c, uint32_t a, uint32_t lanes,
                        uint32_t time)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        if ((lanes >> lane & 1) && t->time[view][c][a][lane] < time) {
            return false;
        }
    }
    return true;
}

static void assert_same(const struct clock *clock, const struct table *t)
{
    for (unsigned view = 0; view < 2; view++) {
        for (uint32_t c = 0; c < CLUSTERS; c++) {
            const uint64_t cluster = c | (view ? CHECK_PROXY_GLOBAL : 0);
            for (uint32_t a = 0; a < AGENTS; a++) {
                const uint32_t agent = agent_of(a);
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    const uint32_t time = t->time[view][c][a][lane];
                    const uint32_t next = time ? time + 1 : is_async(a) ? CHECK_ASYNC_TIME + 1 : 1;
                    if (time) {
                        assert_true(clock_knows(clock, cluster, agent, UINT32_C(1) << lane, time));
                    }
                    assert_false(clock_knows(clock, cluster, agent, UINT32_C(1) << lane, next));
                }
            }
        }
    }
}

/* One addition to both. */
static void add(struct clock **clock, struct table *t)
{
    const uint32_t c = choose(CLUSTERS), kind = choose(8), time = 1 + choose(50), lanes = choose_lanes();
    if (kind == 0) {
        clock_add(clock, c, CHECK_KEY_CLUSTER, UINT32_MAX, time);
        for (uint32_t a = 0; a < CTAS * WARPS; a++) {
            table_add(t, 0, c, a, UINT32_MAX, time);
        }
    } else if (kind == 1) {
        const uint32_t cta = choose(CTAS);
        clock_add(clock, c, CHECK_KEY_CTA + cta, UINT32_MAX, time);
        for (uint32_t w = 0; w < WARPS; w++) {
            table_add(t, 0, c, cta * WARPS + w, UINT32_MAX, time);
        }
    } else {
        const uint32_t a = choose(AGENTS), stamp = is_async(a) ? CHECK_ASYNC_TIME | time : time;
        clock_add(clock, c, CHECK_KEY_AGENT + agent_of(a), lanes, stamp);
        table_add(t, 0, c, a, lanes, stamp);
    }
}

static void random_against_table(void **unused)
{
    (void)unused;
    static struct table tables[CLOCKS];
    struct clock *clocks[CLOCKS] = {NULL};
    for (uint32_t round = 0; round < 4000; round++) {
        const uint32_t i = choose(CLOCKS), k = choose(CLOCKS);
        switch (choose(12)) {
        case 0:
            clock_join(&clocks[i], clocks[k]);
            table_join(&tables[i], &tables[k]);
            break;
        case 1:
            clock_join_ref(&clocks[i], clocks[k]);
            table_join(&tables[i], &tables[k]);
            break;
        case 2: { /* what the async proxy may see of global memory: not of what is so already */
            static struct table global;
            memset(&global, 0, sizeof global);
            memcpy(global.time[1], tables[k].time[0], sizeof global.time[1]);
            struct clock *plain = NULL;
            for (uint32_t e = 0; clocks[k] && e < clocks[k]->n; e++) {
                const struct clock_entry *entry = &clocks[k]->e[e];
                if (!(entry->key >> 16 & CHECK_PROXY_GLOBAL)) {
                    clock_add(&plain, entry->key >> 16, (uint32_t)(entry->key & 0xffff), entry->lanes,
                              entry->time);
                }
            }
            clock_join_proxy(&clocks[i], plain, CHECK_PROXY_GLOBAL);
            table_join(&tables[i], &global);
            clock_drop(plain);
            break;
        }
        case 3: /* forgets, so that clocks stay small at times */
            clock_drop(clocks[i]);
            clocks[i] = NULL;
            memset(&tables[i], 0, sizeof tables[i]);
            break;
        default:
            add(&clocks[i], &tables[i]);
            break;
        }
        if (round % 16 == 0) {
            assert_same(clocks[i], &tables[i]);
        }
        const uint32_t c = choose(CLUSTERS), a = choose(AGENTS), lanes = choose_lanes(),
                       time = 1 + choose(50);
        const uint32_t stamp = is_async(a) ? CHECK_ASYNC_TIME | time : time;
        assert_int_equal(clock_knows(clocks[i], c, agent_of(a), lanes, stamp),
                         table_knows(&tables[i], 0, c, a, lanes, stamp));
    }
    for (uint32_t i = 0; i < CLOCKS; i++) {
        assert_same(clocks[i], &tables[i]);
        clock_drop(clocks[i]);
    }
}

static void nothing_is_known_at_first(void **unused)
{
    (void)unused;
    struct clock *clock = NULL;
    assert_false(clock_knows(NULL, 0, 0, 1, 1));
    clock_join(&clock, NULL);
    clock_join_ref(&clock, NULL);
    clock_add(&clock, 0, CHECK_KEY_CLUSTER, UINT32_MAX, 0); /* up to the time before all: nothing */
    assert_null(clock);
    clock_drop(clock);
    assert_null(clock_ref(NULL));
}

static void lists_stay_short(void **unused)
{
    (void)unused;
    struct clock *clock = NULL;
    for (uint32_t time = 1; time <= 100; time++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            clock_add(&clock, 7, CHECK_KEY_AGENT + 3, UINT32_C(1) << lane, time);
        }
    }
    assert_int_equal(clock->n, 1); /* all lanes at one time are one entry, and the latest is enough */
    assert_int_equal(clock->e[0].lanes, UINT32_MAX);
    clock_add(&clock, 7, CHECK_KEY_AGENT + 3, 0xff, 50); /* known already */
    assert_int_equal(clock->n, 1);
    clock_add(&clock, 7, CHECK_KEY_CLUSTER, UINT32_MAX, 200);
    clock_add(&clock, 7, CHECK_KEY_AGENT + 4, UINT32_MAX, 150); /* the cluster says as much */
    assert_true(clock->n <= 2);
    assert_true(clock_knows(clock, 7, 4, UINT32_MAX, 200));
    assert_false(clock_knows(clock, 7, 4, UINT32_MAX, 201));
    assert_false(clock_knows(clock, 8, 4, UINT32_MAX, 1));
    clock_drop(clock);
}

static void asynchronous_work_is_its_own(void **unused)
{
    (void)unused;
    struct clock *clock = NULL;
    /* A barrier of the whole cluster says nothing of a copy that has not been waited for. */
    clock_add(&clock, 1, CHECK_KEY_CLUSTER, UINT32_MAX, 1000);
    assert_false(clock_knows(clock, 1, CHECK_MBAR_AGENT + 2, 1, CHECK_ASYNC_TIME | 1));
    clock_add(&clock, 1, CHECK_KEY_AGENT + CHECK_MBAR_AGENT + 2, 1, CHECK_ASYNC_TIME | 3);
    assert_true(clock_knows(clock, 1, CHECK_MBAR_AGENT + 2, 1, CHECK_ASYNC_TIME | 3));
    assert_false(clock_knows(clock, 1, CHECK_MBAR_AGENT + 2, 1, CHECK_ASYNC_TIME | 4));
    assert_false(clock_knows(clock, 1, CHECK_MBAR_AGENT + 3, 1, CHECK_ASYNC_TIME | 1));
    clock_drop(clock);
}

static void shared_clocks_do_not_change(void **unused)
{
    (void)unused;
    struct clock *first = NULL, *second = NULL;
    clock_add(&first, 0, CHECK_KEY_AGENT + 1, 1, 5);
    clock_join_ref(&second, first);
    assert_ptr_equal(first, second);
    assert_int_equal(first->refs, 2);
    clock_add(&second, 0, CHECK_KEY_AGENT + 1, 1, 9);
    assert_ptr_not_equal(first, second);
    assert_false(clock_knows(first, 0, 1, 1, 9));
    assert_true(clock_knows(second, 0, 1, 1, 9));
    struct clock *held = clock_ref(first);
    clock_join(&first, second);
    assert_false(clock_knows(held, 0, 1, 1, 9));
    clock_join_ref(&held, first); /* which says all that it does: it is taken over */
    assert_ptr_equal(held, first);
    clock_drop(held);
    clock_drop(first);
    clock_drop(second);
}

/* A warp that knows the common cases as numbers tells them to one of another CTA as a clock, and back. */
static void knowledge_is_told_and_heard(void **unused)
{
    (void)unused;
    const struct identity one = {4, 0 * 32 + 2}, other = {4, 1 * 32 + 0}, sister = {4, 0 * 32 + 5},
                          stranger = {5, 0 * 32 + 2};
    struct known knows = {.cluster_time = 10, .cta_time = 20, .warp_time = 30};
    clock_add(&knows.more, 9, CHECK_KEY_AGENT + 1, 0xf, 40);
    struct clock *told = known_tell(&knows, &one, 0x3, 35);
    const struct identity *listeners[] = {&other, &sister, &stranger};
    for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++) {
        const struct identity *self = listeners[i];
        struct known heard = {0};
        known_join(&heard, self, told);
        known_join(&heard, self, told); /* a second time changes nothing */
        if (self->cluster == one.cluster) {
            assert_true(known_covers(&heard, self, 3 * 32, UINT32_MAX, 10));
            assert_false(known_covers(&heard, self, 3 * 32, UINT32_MAX, 11));
            assert_true(known_covers(&heard, self, 7, UINT32_MAX, 20)); /* another warp of the teller's CTA */
            assert_false(known_covers(&heard, self, 7, UINT32_MAX, 21));
            assert_true(known_covers(&heard, self, one.agent, UINT32_MAX, 30));
            assert_true(known_covers(&heard, self, one.agent, 0x3, 35));
            assert_false(known_covers(&heard, self, one.agent, 0x7, 35)); /* lane 2 told only up to 30 */
            assert_int_equal(heard.cluster_time, 10);
            assert_int_equal(heard.cta_time, self == &sister ? 20 : 0);
        } else {
            assert_int_equal(heard.cluster_time, 0);
            assert_true(clock_knows(heard.more, 4, one.agent, 0x3, 35));
        }
        assert_true(clock_knows(heard.more, 9, 1, 0xf, 40));
        assert_false(clock_knows(heard.more, 9, 1, 0x1f, 40));
        known_clear(&heard);
        assert_null(heard.more);
    }
    clock_drop(told);

    struct known copy = {.warp_time = 99};
    clock_add(&copy.more, 1, CHECK_KEY_CLUSTER, UINT32_MAX, 1);
    known_copy(&copy, &knows);
    assert_int_equal(copy.warp_time, 30);
    assert_ptr_equal(copy.more, knows.more);
    known_clear(&copy);
    assert_true(clock_knows(knows.more, 9, 1, 0xf, 40));
    known_clear(&knows);
}

static void a_teller_that_knows_nothing(void **unused)
{
    (void)unused;
    const struct identity self = {0, 0};
    const struct known nothing = {0};
    struct known heard = {.cta_time = 3};
    assert_null(known_tell(&nothing, &self, 0, 0));
    known_join(&heard, &self, NULL);
    assert_int_equal(heard.cta_time, 3);
    struct clock *told = known_tell(&nothing, &self, UINT32_MAX, 8);
    known_join(&heard, &self, told);
    assert_int_equal(heard.warp_time, 8);
    assert_null(heard.more); /* it went into the numbers */
    clock_drop(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),    cmocka_unit_test(lists_stay_short),
        cmocka_unit_test(asynchronous_work_is_its_own), cmocka_unit_test(shared_clocks_do_not_change),
        cmocka_unit_test(knowledge_is_told_and_heard),  cmocka_unit_test(a_teller_that_knows_nothing),
        cmocka_unit_test(random_against_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
