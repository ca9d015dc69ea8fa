/* The checker's state for one launch: clusters, CTAs, warps, what their lanes know, shadows of memory. Shared
   by the files of this folder. One launch is checked at a time, on one host thread. */
#ifndef CLAB_CHECK_STATE_H
#define CLAB_CHECK_STATE_H

#include <setjmp.h>

#include "check/hazard.h"
#include "check/order.h"
#include "check/site.h"
#include "emu/hook.h"

enum check_scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPES };

/* Lanes of a warp that know the same. */
struct group {
    uint32_t lanes;
    struct known mem;             /* whose effects are visible */
    struct known exec;            /* what has been executed: also by relaxed operations; own cluster only */
    struct clock *proxy;          /* effects that fence.proxy.async made visible to the async proxy; those of
                                     global memory under CHECK_PROXY_GLOBAL */
    struct clock *fenced[SCOPES]; /* effects before a release fence of at least that scope */
    struct clock
        *pending[SCOPES]; /* seen by relaxed reads; an acquire fence of at least that scope joins them */
    uint32_t started;     /* bit per CTA of the cluster that is known to have started */
    uint32_t narrow_site; /* remote arrive of default scope whose ordering is only executed; 0 none */
    uint32_t miss_site;   /* release whose scope did not reach here; 0 none */
    uint64_t miss_cluster;
    uint32_t miss_rank;
};

struct check_commits {             /* asynchronous groups of one warp */
    uint32_t count[EMU_LANES];     /* pseudo-time: groups closed so far */
    uint32_t commits[EMU_LANES];   /* by commit_group */
    uint32_t times[EMU_LANES][64]; /* pseudo-time at the end of a commit, by its number mod 64 */
    uint32_t read_time[EMU_LANES], read_site[EMU_LANES]; /* bulk: last copy out of the CTA's shared memory */
};

#define CHECK_RECENT           4u
#define CHECK_TENSOR_MAP_BYTES 128u

struct check_warp {
    struct check_cta *cta;
    uint32_t index; /* in the CTA */
    uint32_t present, exited;
    struct identity self;
    struct group *groups;
    uint32_t n_groups, capacity;
    uint32_t last_time;              /* of its last access or other act that others may need to know */
    struct check_commits *cp, *bulk; /* NULL while there are none */
    uint32_t used_cp;
    struct mbarrier *polled; /* its last test of an mbarrier found the phase incomplete, there */
    uint32_t polled_site;
    uint16_t waits_at[32]; /* where lanes last came to a collective for which others were missing: sites */
    uint32_t clc_declined; /* it saw a declined response: site of the query */
    /* Barriers that want the whole warp at one place. */
    uint32_t aligned_site, aligned_lanes;
    uint32_t recent[CHECK_RECENT], recent_generation; /* records of its last accesses (global.c) */
};

struct check_arrival { /* at the cluster barrier, of one warp in one phase */
    uint32_t lanes, time;
    bool release;
};

struct check_remote { /* the last access of an agent to a CTA's shared memory */
    uint32_t agent, time, lanes, site, address, bytes;
    uint32_t issuer; /* a copy reads it: agent of the warp; else UINT32_MAX */
};

struct check_named {                                   /* a named barrier's phase */
    struct clock *mem, *exec, *proxy, *fenced[SCOPES]; /* of those that only arrive */
    uint32_t counts[2], sites[2]; /* two different thread counts, 1 + count, and who gave them */
};

struct check_cta {
    struct check_cluster *cluster;
    const struct emu_cta *cta;
    uint32_t rank;
    bool exited;
    bool early_exit; /* some threads have exited */
    struct check_warp *warps;
    struct check_named named[EMU_NAMED_BARRIERS];
    uint64_t *cell_w, *cell_r; /* of 4 bytes of shared memory: the last write, what read since (shared.c) */
    uint32_t n_cells, cells_capacity, cells_used;
    struct check_remote *remote;
    uint32_t n_remote, remote_capacity;
    struct clock *exit_known; /* exec knowledge of threads at their exit, once there was something to know */
    uint32_t exit_site;
};

/* An asynchronous operation under way. */
struct check_copy {
    uint64_t id;
    struct check_copy *next;
    struct check_warp *warp;
    unsigned lane;
    uint32_t site, agent, time; /* of the effects */
    uint32_t write_agent, write_time;
    struct emu_transfer what;
    struct clock *mem, *proxy; /* what the issuer knew */
    bool done;
};

struct mbarrier {
    struct mbarrier *next;
    struct check_cta *cta;
    uint32_t offset; /* in the window */
    uint32_t agent;
    bool live, orphan; /* orphan: copies were sent to it after its CTA had exited */
    uint32_t init_site, init_warp, init_lane, init_time;
    bool init_fenced;                  /* fence.mbarrier_init or fence.proxy.async by the thread after init */
    uint32_t expected, pending, phase; /* phase: completed ones */
    int64_t expect_bytes, done_bytes;  /* of the current phase */
    uint32_t expect_site;              /* last that armed it */
    uint32_t copies_open;              /* issued in this phase, not complete */
    uint32_t issuer, copy_site, copy_lane,
        copy_time;       /* of the copy that was issued last: agent of the warp, ... */
    bool multicast, clc; /* what it was */
    uint32_t *seen;      /* by thread of the CTA: phases that it saw complete; NULL while none did */
    struct clock *mem, *exec, *proxy; /* arrivals of the current phase */
    struct clock *fenced[SCOPES];
    struct clock *done_mem, *done_exec, *done_proxy, *done_fenced[SCOPES]; /* of completed phases */
    uint32_t narrow_site;
    uint32_t arrive_site;
    uint32_t seen_phase; /* latest phase that some thread saw complete */
};

/* A place that strong operations use to synchronise. */
struct flag {
    uint64_t address;
    struct flag *next;
    struct clock *mem[SCOPES]; /* released, by scope of the release */
    struct clock *proxy;
    struct clock *exec; /* of one cluster */
    uint64_t cluster;
    uint32_t rank;
    bool mixed;
    uint32_t site;
};
#define FLAG_BUCKETS 256u

struct check_cluster {
    struct check *check;
    const struct emu_cluster *cluster;
    struct check_cluster *next; /* free list */
    uint64_t index;
    uint32_t size, n_warps; /* CTAs; warps of a CTA */
    uint32_t now;
    bool released; /* something was released at `now` */
    struct check_cta *ctas;
    struct check_warp *warps;
    struct check_arrival *arrivals[2]; /* by warp of the cluster, by phase parity */
    struct clock *arrived_mem[2], *arrived_exec[2], *arrived_proxy[2], *arrived_fenced[2][SCOPES];
    uint32_t arrived_phase[2];
    bool all_release[2];
    uint32_t phase;
    struct flag *flags[FLAG_BUCKETS];
    uint32_t n_flags;
    struct mbarrier *mbarriers[64];
    struct mbarrier *last_mbarrier;
    uint32_t n_mbarriers;
    struct check_copy *copies;
    bool any_copies;
    struct readers *readers;
    uint32_t n_readers, readers_capacity, free_readers;
    struct split *splits;
    uint32_t n_splits, splits_capacity, free_splits;
};

struct global_shadow; /* global.c */
struct found;         /* report.c */
struct footprint;     /* grids.c */

struct check_shape {              /* of a grid */
    uint32_t grid[3], cluster[3]; /* in CTAs */
    uint32_t threads_per_cta;
};

/* What is done to the cells of a row of words (shared.c), by this processor's instructions. */
typedef bool check_row_access(uint64_t *restrict w, uint64_t *restrict r, uint32_t floor, uint64_t epoch,
                              bool write);
check_row_access *check_shared_row(void);

struct check {
    struct emu_run *run;
    check_row_access *shared_row;
    struct check_shape shape;
    struct sites sites;
    struct check_cluster *free_clusters;
    struct flag *flags[FLAG_BUCKETS];
    uint32_t n_flags;
    struct global_shadow *global;
    struct found *found;
    uint32_t n_found, found_capacity;
    uint32_t *found_buckets;
    uint32_t launch;
    uint64_t seed;
    uint32_t deadlock, deadlock_site; /* number of the hazard that tells of a deadlock, and where it waits */
    uint32_t clc_used;                /* site of a request; 0 none */
    const struct check_task *task;    /* what the driver knows of its order; NULL: nothing */
    struct footprint *prior;          /* the grid that this one may overlap; NULL none */
    bool dependents;                  /* griddepcontrol.launch_dependents was executed */
    struct check_cluster *live;
    bool lost; /* memory was out: nothing more is checked */
};

/* --- memory.c. Inside an attempt:

       struct check_attempt attempt;
       if (CHECK_ATTEMPT(attempt)) {
           … may call check_alloc …
       } else {
           … memory was out …
       }
       check_attempt_end(&attempt);

   Attempts nest. What changes locals belongs into a function of its own (setjmp). */
struct check_attempt {
    jmp_buf place;
    struct check_attempt *outer;
};
/* A function that runs in an attempt must not become part of the one that makes it. */
#define CHECK_APART            __attribute__((noinline))
#define CHECK_ATTEMPT(attempt) (check_attempt_begin(&(attempt)), setjmp((attempt).place) == 0)
void check_attempt_begin(struct check_attempt *attempt);
void check_attempt_end(const struct check_attempt *attempt);
/* Leaves the innermost attempt, as one that found no memory. Ends it first (check_attempt_end) who gives up
   from the branch that found none. */
_Noreturn void check_give_up(void);
/* Never NULL; without memory they give up. Zeroed; check_grow is as realloc. */
void *check_alloc(size_t bytes);
void *check_grow(void *memory, size_t bytes);
/* Something was not checked, because memory was out: the next taker of hazards is told (check.c). */
void check_lost(void);

/* --- agents.c */
/* NULL: not followed. */
static inline struct check_cluster *check_cluster_of(const struct emu_cluster *cluster)
{
    return cluster->observed;
}
static inline struct check_cta *check_cta_of(struct check_cluster *cl, const struct emu_cta *cta)
{
    return &cl->ctas[cta->rank];
}
static inline struct check_warp *check_warp_of(const struct emu_warp *warp)
{
    return warp->observed;
}
void check_cluster_start(struct check *check, struct emu_cluster *cluster);
void check_cluster_end(struct check *check, struct emu_cluster *cluster);
/* Splits groups so that each lies in `lanes` or outside. */
void check_split(struct check_warp *warp, uint32_t lanes);
/* Lanes of a warp as others are told: all that there are count as all. */
static inline uint32_t check_lanes(const struct check_warp *warp, uint32_t lanes)
{
    return ((warp->present & ~warp->exited) & ~lanes) == 0 ? UINT32_MAX : lanes;
}
/* The time of a release: what comes after it gets a later one. */
static inline uint32_t check_tick(struct check_cluster *cl)
{
    cl->released = true;
    return cl->now;
}
/* The time of an access. */
static inline uint32_t check_now(struct check_cluster *cl)
{
    cl->now += cl->released;
    cl->released = false;
    return cl->now;
}
#define EACH_GROUP(g, warp, wanted)                                                    \
    for (struct group *g = (warp)->groups; g < (warp)->groups + (warp)->n_groups; g++) \
        if (g->lanes & (wanted))

/* Lanes of one warp meet: each knows afterwards what all knew, and what all did up to `time`. */
void check_warp_meet(struct check_warp *warp, uint32_t lanes, uint32_t time);
/* The same without what is visible: each knows what the others have executed. */
void check_warp_executed(struct check_warp *warp, uint32_t lanes, uint32_t time);
void check_lanes_exit(struct check_warp *warp, uint32_t lanes);
/* After the last cluster ended. */
void check_clusters_free(struct check *check);

/* What one side of a meeting tells the other. */
struct tidings {
    struct clock *mem, *exec, *proxy, *fenced[SCOPES];
    uint32_t narrow_site;
};
/* Adds what the lanes know (mem only with `release`), up to `time`. */
void check_tell(struct check_warp *warp, uint32_t lanes, uint32_t time, bool release, struct tidings *inout);
/* Joins; mem only with `acquire`. */
void check_hear(struct check_warp *warp, uint32_t lanes, bool acquire, const struct tidings *tidings);
/* What relaxed reads and waits saw within the CTA: a barrier of the CTA acquires it. */
void check_acquire_pending(struct check_warp *warp, uint32_t lanes);
void check_tidings_drop(struct tidings *tidings);

/* --- one file per family */
void check_access(struct check *check, const struct emu_warp *warp, const struct emu_op *op,
                  const struct emu_access *access);

/* An earlier access that a shadow remembers. */
struct earlier {
    uint64_t cluster;
    uint32_t agent, time, lane, site;
    bool several; /* other lanes of that warp too */
    bool write;
    bool fresh; /* a read of what was never written */
};

/* Who acts on memory, for the shadows. */
struct actor {
    struct check *check;
    struct check_cluster *cl;
    struct check_warp *warp;         /* that executes or issued it */
    const struct emu_warp *emu_warp; /* NULL: not executing now */
    const struct known *known;
    const struct clock *mem, *proxy; /* of a copy: instead of `known`; proxy also for what executes now */
    const struct group *group;
    uint32_t agent, time, site;
    uint32_t same_lane; /* UINT32_MAX: the accessing lane; else the issuer's */
    bool write, strong, reduces;
    bool async_proxy;
    bool copy, clc;
    bool map;       /* the copy's look at its tensor map */
    bool in_global; /* the access is to global memory */
    enum check_scope scope;
};
void check_shared(const struct actor *actor, struct check_cta *owner, const struct emu_access *access);
/* A row of words of the own CTA's shared memory by a whole warp that knows one thing, without atomics: true
   when all of it is ordered, which is then done. */
bool check_shared_quick(const struct check *check, struct check_warp *warp, const struct emu_access *access,
                        uint32_t time, uint32_t site);
void check_shared_range(const struct actor *actor, struct check_cta *owner, unsigned lane, uint32_t offset,
                        uint32_t bytes);
/* Makes the 8 bytes at `offset` written at that time, whatever was there. */
void check_shared_mark(struct check_cta *owner, uint32_t offset, uint32_t agent, uint32_t time, unsigned lane,
                       uint32_t site);
void check_shared_init(struct check_cta *cta);
void check_global(const struct actor *actor, const struct emu_access *access);
void check_global_range(const struct actor *actor, unsigned lane, uint64_t address, uint64_t bytes);
/* Who wrote the word last, in this launch. */
bool check_global_writer(struct check *check, uint64_t address, struct earlier *out);
void check_global_new(struct check *check);
void check_global_free(struct check *check);

/* The lanes of an earlier access: one, or all that its warp has. */
uint32_t check_earlier_lanes(const struct check *check, const struct earlier *earlier);
bool check_ordered(const struct actor *actor, unsigned lane, const struct earlier *earlier);
/* Whether all that the earlier agent's lanes did by then is ordered before the actor, whatever its lane. */
bool check_ordered_all(const struct actor *actor, const struct earlier *earlier);
/* Both are strong, and their scopes include each other. */
bool check_morally_strong(const struct actor *actor, const struct earlier *earlier);
void check_race(const struct actor *actor, unsigned lane, const struct earlier *earlier,
                enum clab_space_id space, const struct check_cta *owner, uint64_t address, uint32_t bytes,
                const unsigned char *host);
/* A load by a read-only path of what the grid has written before. */
void check_read_only(const struct actor *actor, unsigned lane, const struct earlier *earlier,
                     uint64_t address, uint32_t bytes);

void check_remote_access(struct check *check, struct check_warp *warp, struct check_cta *owner,
                         const struct emu_access *access, uint32_t site);
void check_remote_note(struct check_cta *owner, const struct check_remote *access);
void check_remote_start(struct check *check, struct check_warp *warp, struct check_cta *owner, uint32_t lanes,
                        uint32_t offset, uint32_t bytes, uint32_t site);
void check_thread_exit(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site);
void check_cta_exit(struct check *check, struct check_cta *cta);

void check_synchronise(struct check *check, struct check_warp *warp, const struct emu_access *access,
                       const struct site *site, uint32_t site_id, bool before);
/* `address`: the tensor map that it names, if it does. */
void check_fence(struct check *check, struct check_warp *warp, uint32_t lanes, const struct site *site,
                 uint64_t address);

void check_barrier_arrive(struct check *check, struct check_warp *warp, const struct emu_event *event,
                          uint32_t site);
void check_barrier_complete(struct check *check, struct check_cta *cta, uint32_t id);
/* The same for a whole CTA with nothing but times to pass on; takes no memory. False: nothing is done. */
bool check_barrier_quick(struct check_cta *cta, uint32_t id);
void check_cluster_arrive(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site);
void check_cluster_complete(struct check *check, struct check_cluster *cl);
void check_cluster_wait(struct check *check, struct check_warp *warp, uint32_t lanes);
/* An aligned barrier that only a part of a warp has executed, when nothing more can come. */
void check_aligned_exit(struct check *check, struct check_warp *warp, uint32_t lanes);
void check_aligned_left(struct check *check, struct check_cta *cta);
void check_collective(struct check *check, const struct emu_warp *emu_warp, struct check_warp *warp,
                      const struct emu_op *op, const struct emu_event *event, uint32_t site);

void check_mbarrier(struct check *check, const struct emu_cta *cta, const struct emu_warp *emu_warp,
                    const struct emu_event *event, uint32_t site);
struct mbarrier *check_mbarrier_get(struct check_cta *cta, uint32_t offset, bool make);
/* At the end of a cluster: what its mbarriers still expect. */
void check_mbarriers_end(struct check *check, struct check_cluster *cl, bool stopped);
/* Lets go of what those that arrived at the cluster barrier in phases of this parity knew. */
void check_arrived_clocks_drop(struct check_cluster *cl, unsigned phase);
void check_mbarriers_free(struct check_cluster *cl);
/* Reports when the init of an mbarrier need not be visible to who uses it; `async`: a copy. */
/* Time of the cells of a live mbarrier: ordinary accesses never know it. */
#define CHECK_LIVE_OBJECT UINT32_C(0x7ffffffe)
void check_object(const struct actor *actor, unsigned lane, const struct earlier *earlier,
                  const struct check_cta *owner, uint32_t offset);
void check_init_visible(struct check *check, struct check_warp *warp, unsigned lane, struct mbarrier *m,
                        uint32_t site, bool async);

void check_transfer(struct check *check, const struct emu_warp *emu_warp, uint32_t site,
                    const struct emu_transfer *transfer);
void check_copy_event(struct check *check, const struct emu_cta *cta, const struct emu_event *event);
void check_group_event(struct check *check, struct check_warp *warp, const struct emu_event *event,
                       uint32_t site);
void check_cp_async(struct check *check, struct check_warp *warp, const struct emu_access *access,
                    uint32_t site);
uint32_t check_cp_time(struct check_warp *warp, unsigned lane, bool close);
void check_copies_exit(struct check *check, struct check_cta *cta);
void check_copies_free(struct check_cluster *cl);

void check_clc_query(struct check *check, struct check_warp *warp, const struct emu_event *event,
                     uint32_t site);
void check_clc_request(struct check *check, struct check_warp *warp, uint32_t site,
                       const struct emu_transfer *transfer);

void check_clc_end(struct check *check);
void check_deadlock(struct check *check, struct check_cluster *cl);
void check_faults(struct check *check, const struct emu_run *run, clab_status status,
                  const struct clab_error *error);

/* --- grids.c */
/* At the start of a launch: finds the grid that it may overlap. */
void check_grids_begin(struct check *check);
/* At its end: compares with the launches that have no order to it, and keeps its shadow for later ones. */
void check_grids_end(struct check *check);
void check_grid_dependency(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site);
/* An access while the grid before may still run. */
void check_grids_early(const struct actor *actor, unsigned lane, uint64_t address, uint64_t bytes);

/* --- report.c */
/* The hazard of (kind, sites), new or counted; NULL when it was there already or the kind is off. The caller
   fills what is not filled: space, address, missing, detail. */
struct clab_hazard *check_report(struct check *check, enum clab_hazard_kind kind, uint32_t site,
                                 uint32_t other_site, uint32_t discriminator);
/* The hazard that was the `number`th found, from 1. */
bool check_found_has(const struct check *check, enum clab_hazard_kind kind, uint32_t site);
struct clab_hazard *check_found(struct check *check, uint32_t number);
void check_party(struct check *check, struct clab_hazard_party *party, uint64_t cluster, uint32_t agent,
                 uint32_t lanes, uint32_t site, const char *action);
/* The same for a launch that has ended. */
void check_party_past(const struct check_shape *shape, const struct sites *sites,
                      struct clab_hazard_party *party, uint64_t cluster, uint32_t agent, uint32_t lanes,
                      uint32_t site);
void check_party_cta(struct check *check, struct clab_hazard_party *party, uint64_t cluster, uint32_t rank,
                     const char *action);
void check_within(struct clab_hazard *hazard);
void check_place_shared(struct check *check, struct clab_hazard *hazard, const struct check_cta *actor,
                        const struct check_cta *owner, uint32_t offset, uint32_t bytes);
/* The name as it is, or, when there is no room for it, in its readable form, shortened (base/demangle.h). */
void check_symbol(char *out, size_t bytes, const char *name);
void check_place_global(struct check *check, struct clab_hazard *hazard, uint64_t address, uint32_t bytes);
void check_barrier_state(struct clab_hazard *hazard, const struct mbarrier *mbarrier);
void check_say(char *to, size_t size, const char *format, ...) CLAB_PRINTF(3, 4);
void check_found_free(struct check *check);

#endif
