/* What an agent knows of the past: vector clocks, made small.

   Time. Every cluster has one clock, which ticks at every synchronising event in it (all of a cluster runs on
   one host thread). An access is stamped with the clock, so that "everything that CTA c did up to time t" is
   one number.

   Agents. 12 bits: the warps of the cluster (CTA rank * 32 + warp), and agents that stand for asynchronous
   work, whose times are not the cluster's clock but their own count with CHECK_ASYNC_TIME set: the copies
   that complete on one mbarrier (time: its phase), the cp.async and bulk groups of a warp's lanes (time: the
   group).

   A clock is a sorted list of (cluster, agent or whole CTA or whole cluster, lanes, time): those lanes of
   that agent are known up to that time. Lists are shared and not changed, except by an owner that holds the
   only reference. */
#ifndef CLAB_CHECK_ORDER_H
#define CLAB_CHECK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_WARP_AGENTS 512u  /* 16 CTAs of 32 warps */
#define CHECK_CP_AGENT    512u  /* + warp: groups of cp.async */
#define CHECK_READ_AGENT  1024u /* + warp: bulk groups, what they read */
#define CHECK_WRITE_AGENT 1536u /* + warp: bulk groups, what they write */
#define CHECK_MBAR_AGENT  2048u /* + number: copies that complete on an mbarrier */
#define CHECK_AGENTS      4096u
#define CHECK_ASYNC_TIME  UINT32_C(0x80000000)

/* The last part of a key: whole cluster, whole CTA, one agent. */
#define CHECK_KEY_CLUSTER 0u
#define CHECK_KEY_CTA     1u
#define CHECK_KEY_AGENT   64u

/* Set in the cluster of a key: what the async proxy may see of global memory (plain keys: of shared memory).
 */
#define CHECK_PROXY_GLOBAL (UINT64_C(1) << 46)
/* Likewise: what fences made visible to the tensormap proxy, and what a releasing fence has offered to it. */
#define CHECK_PROXY_MAP      (UINT64_C(1) << 44)
#define CHECK_PROXY_RELEASED (UINT64_C(1) << 43)

/* The cluster of a key that stands for the grids before, once griddepcontrol.wait has waited for them: known
   up to 1. */
#define CHECK_PRIOR_GRIDS (UINT64_C(1) << 45)

struct clock_entry {
    uint64_t key; /* cluster index << 16 | CHECK_KEY_... */
    uint32_t lanes, time;
};
struct clock {
    struct clock *before, *after; /* all that there are, for clocks_end */
    uint32_t refs, n, capacity;
    struct clock_entry e[];
};

/* Without memory they give up (check_attempt in state.h). All take and give NULL for "knows nothing". Clocks
   belong to the launch that is checked. */
struct clock *clock_ref(struct clock *clock);
void clock_drop(struct clock *clock);
/* Somebody gave up with references in his hands, so that their numbers say nothing any more: from here on
   clock_drop does nothing. */
void clocks_abandon(void);
/* The launch is over: frees every clock that is left. */
void clocks_end(void);
/* *inout = *inout joined with `more`, which is only read. */
void clock_join(struct clock **inout, const struct clock *more);
/* The same; takes over the pointer itself when *inout is NULL or already knows nothing else. */
void clock_join_ref(struct clock **inout, struct clock *more);
/* The same with one of the above set in every key of `more`. */
void clock_join_proxy(struct clock **inout, const struct clock *more, uint64_t proxy);
void clock_add(struct clock **inout, uint64_t cluster, uint32_t part, uint32_t lanes, uint32_t time);
bool clock_knows(const struct clock *clock, uint64_t cluster, uint32_t agent, uint32_t lanes, uint32_t time);

/* What the lanes of a group know: the common cases as numbers, the rest as a clock. */
struct known {
    uint32_t cluster_time; /* everything of the cluster up to here */
    uint32_t cta_time;     /* of the own CTA */
    uint32_t warp_time;    /* of the own warp */
    struct clock *more;
};
struct identity { /* whose `known` it is */
    uint64_t cluster;
    uint32_t agent; /* of the warp */
};

void known_clear(struct known *known);
void known_copy(struct known *to, const struct known *from);
/* Joins what a clock says. */
void known_join(struct known *known, const struct identity *self, struct clock *clock);
/* The same as a clock of its own, for others; with `lanes` of the own warp known up to `time` (lanes 0:
 * without). */
struct clock *known_tell(const struct known *known, const struct identity *self, uint32_t lanes,
                         uint32_t time);

static inline bool known_covers(const struct known *known, const struct identity *self, uint32_t agent,
                                uint32_t lanes, uint32_t time)
{
    if (agent < CHECK_WARP_AGENTS &&
        (time <= known->cluster_time || (agent >> 5 == self->agent >> 5 && time <= known->cta_time) ||
         (agent == self->agent && time <= known->warp_time))) {
        return true;
    }
    return known->more && clock_knows(known->more, self->cluster, agent, lanes, time);
}

#endif
