/* The running machine's state: host thread, launch, cluster, CTA, warp fragment, call frame; and how an
   operation waits and is woken.

   All CTAs of a cluster run on one host thread, so that everything below struct emu_cluster is used by one
   host thread at a time and needs no host atomics. Global memory and struct emu_run are shared between host
   threads. */
#ifndef CLAB_EMU_WARP_H
#define CLAB_EMU_WARP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/str.h"
#include "driver/channel.h"
#include "emu/machine.h"
#include "emu/op.h"
#include "emu/traffic.h"

#define EMU_MAX_WARPS      32 /* of a CTA */
#define EMU_MAX_CLUSTER    32 /* CTAs; the hardware's limit is 16 */
#define EMU_NAMED_BARRIERS 16

struct emu_code;
struct emu_hooks;
struct emu_kernel;

/* One activation of a function: a register file and a piece of the threads' local memory. Shared by the
   fragments that diverged inside it. */
struct emu_frame {
    struct emu_frame *caller; /* NULL for the entry */
    const struct emu_code *code;
    unsigned char *regs;
    const struct emu_op *return_to; /* operation of the caller after the call */
    uint32_t local_base;            /* offset of this function's variables in each thread's local memory */
    uint32_t dynamic;               /* bytes that alloca took above the function's variables */
    uint32_t arguments;             /* where the caller put them, and finds what is returned: as local_base */
    uint32_t depth;                 /* 0 for the entry */
    uint32_t refs;                  /* fragments in it, and frames called from it */
    uint32_t rank;                  /* CTA rank that the rank-dependent constants were filled for */
};

/* Registers follow their frame in memory. */
#define EMU_FRAME_HEAD 128
_Static_assert(sizeof(struct emu_frame) <= EMU_FRAME_HEAD, "the frame precedes its registers");
static inline unsigned char *emu_frame_regs(struct emu_frame *frame)
{
    return (unsigned char *)frame + EMU_FRAME_HEAD;
}

/* What a fragment waits for; `key` tells which. */
enum emu_wait_kind {
    EMU_WAIT_NONE,
    EMU_WAIT_BARRIER,         /* key: named barrier 0..15 */
    EMU_WAIT_CLUSTER_BARRIER, /* key: 0 */
    EMU_WAIT_COLLECTIVE,      /* key: member mask */
    EMU_WAIT_MBARRIER,        /* key: 32-bit shared window address of the mbarrier */
    EMU_WAIT_COPY,            /* key: free for async.c (cp.async.wait_group, bulk wait_group) */
    EMU_WAIT_SLEEP,           /* key: virtual time in ns at which to go on */
    EMU_WAIT_GRID,            /* griddepcontrol and the like; key: 0 */
    EMU_WAIT_COUNT
};
/* How a waiting fragment came to run again. */
enum emu_wake { EMU_WAKE_NONE, EMU_WAKE_DONE, EMU_WAKE_TIMEOUT };

enum emu_fragment_state {
    EMU_FRAGMENT_FREE,
    EMU_FRAGMENT_READY,
    EMU_FRAGMENT_SPUN,   /* ready, but has gone round a loop and gave way */
    EMU_FRAGMENT_PARKED, /* at a join, hoping for the other lanes */
    EMU_FRAGMENT_WAITING
};

/* Lanes of a warp that run together. */
struct emu_fragment {
    enum emu_fragment_state state;
    uint32_t mask;
    const struct emu_op *pc; /* next operation */
    struct emu_frame *frame;
    enum emu_wait_kind wait;
    enum emu_wake wake;
    bool bounded; /* the wait may time out (try_wait, nanosleep) */
    uint64_t wait_key;
    uint64_t wait_value; /* delivered by the waker (bar.red) */
    uint32_t returned;   /* `arguments` of the function that returned last */
    uint32_t parked_round, age;
};

/* A named barrier of a CTA (bar, barrier.cta); arrived 0: not in use. */
struct emu_barrier {
    uint32_t expected;      /* threads; 0: all live threads of the CTA, and when not in use */
    uint32_t arrived;       /* threads; a warp that arrives whole counts 32, however many of its lanes live */
    uint32_t waiting;       /* live threads that wait */
    uint32_t waiting_warps; /* bit per warp with a fragment that waits here … */
    uint32_t whole_warps;   /* … unless the warp is one fragment, and the barrier was bar.sync: then here */
    uint32_t reduce_count;  /* bar.red: threads with a true predicate; whether all, whether any */
    bool reduce_and, reduce_or;
    uint64_t latest;               /* schedule `fair`: when the last one so far arrived */
    uint32_t lanes[EMU_MAX_WARPS]; /* lanes that wait, by warp; of whole_warps all do */
};

enum emu_cta_state { EMU_CTA_NOT_STARTED, EMU_CTA_RUNNING, EMU_CTA_EXITED };

#define EMU_WORKSPACE_BYTES 16u /* of emu_run.workspace */

struct emu_cta {
    struct emu_cluster *cluster;
    struct emu_run *run;
    enum emu_cta_state state;
    uint32_t rank;     /* %cluster_ctarank */
    uint32_t sm;       /* %smid */
    uint32_t ctaid[3]; /* %ctaid */
    uint64_t linear;   /* ctaid.x + nctaid.x * (ctaid.y + nctaid.y * ctaid.z) */
    uint32_t n_warps, n_threads, live_threads;
    uint32_t started;        /* bit per warp that has run */
    uint32_t ready, polling; /* bit per warp: has something to run; runs, but only polled the last time */
    struct emu_warp *warps;
    /* Shared memory: `shared` is byte EMU_SHARED_FIRST of the window; shared_bytes static and dynamic
       together, without the reserved 1 KiB. Zeroed when the CTA starts. room_bytes: with the reserved 1 KiB,
       which lies behind them, for kernels that ask where it is or name no variable; without it for others. */
    unsigned char *shared;
    uint32_t shared_bytes, room_bytes;
    uint32_t shared_window; /* the window address of `shared` */
    uint64_t shared_end;    /* shared_bytes, as wide as sums with it are */
    bool counted;           /* instructions are counted whenever a warp stops: see EMU_STOP_BARRIER */
    /* Local memory: thread t (linear in the CTA, t = 32 * warp + lane) owns local_bytes bytes at
       local + t * local_bytes. Addresses in the local window are relative to the thread's own piece. */
    unsigned char *local;
    uint32_t local_bytes;
    struct emu_barrier barriers[EMU_NAMED_BARRIERS];
    bool clc_declined;          /* an answer that took no cluster has come here */
    uint32_t clc_seen_declined; /* bit per warp that looked at such an answer since */
    uint32_t barriers_active;   /* bit per barrier at which something arrived */
    /* barrier.cluster, by warp: lanes between their arrive and their wait, and the phase parity they arrived
     * in. */
    uint32_t cluster_arrived[EMU_MAX_WARPS], cluster_parity[EMU_MAX_WARPS];
    uint32_t cluster_waiting; /* bit per warp with a fragment that waits */
    /* Owned by the memory files (mbarrier.c, async.c): NULL when the CTA starts; emu_cta_memory_reset is
       called when it has exited and its cluster ends. */
    void *memory;
};

/* A completion that happens later: a bulk copy's payload, a remote store, a CLC response. The poster owns the
   memory; `complete` is called once, on the cluster's host thread and outside any operation, and frees it.
   cluster NULL: the launch was abandoned, free only. */
struct emu_async {
    struct emu_async *next, *child; /* of the cluster's heap (resident.c) */
    uint64_t due;                   /* by emu_now */
    uint64_t serial;                /* of those due at once the first posted is first */
    void (*complete)(struct emu_async *item, struct emu_cluster *cluster);
    /* The instruction that issued it, for reports: NULL unknown. lane 32: more than one. */
    const struct emu_code *code;
    const struct emu_cta *issuer;
    uint32_t insn, warp, lane;
};

#define EMU_MOST_HELD 3u

struct emu_cluster {
    struct emu_thread *thread;
    struct emu_run *run;
    uint64_t index;        /* linear %clusterid */
    uint32_t clusterid[3]; /* %clusterid */
    uint32_t size;         /* CTAs */
    uint32_t n_all_warps;  /* of the context */
    uint32_t live_threads, live_ctas;
    uint32_t ready;           /* bit per CTA with a ready warp */
    struct emu_cta *ctas;     /* by rank */
    uint32_t barrier_arrived; /* live threads that arrived in this phase of barrier.cluster */
    uint32_t barrier_phase;   /* completed phases */
    uint64_t barrier_latest;  /* schedule `fair`: when the last one so far arrived, and of the phase before */
    uint64_t barrier_before;
    uint64_t steps;                     /* warp slices run so far */
    uint64_t random;                    /* state of emu_random */
    struct emu_async *pending;          /* the first due, on top of a pairing heap */
    const struct emu_async *completing; /* whose completion runs now; NULL none */
    uint64_t posted;                    /* completions posted so far */
    uint32_t n_pending;
    uint64_t copies;          /* asynchronous operations issued so far: their ids */
    struct emu_warp *running; /* whose slice runs now, or ran last */
    uint64_t event;           /* schedule `fair`: when what happens now happens, outside slices */
    uint64_t next_event;      /* and when something is to happen next (sched_fair.c) */
    uint32_t place;           /* in its heap */
    bool sleeps;              /* some thread may be in nanosleep */
    bool bounded;             /* some thread may be in a wait that can time out */
    uint64_t progress;        /* as thread->progress, raised also by completions */
    void *observed;           /* an observer's own state */
    struct emu_held {         /* stores that others see late (held.c) */
        struct emu_warp *warp;
        uint32_t lane, loads; /* whose, as a bit; loads that went ahead */
        uint32_t n;
        bool armed; /* one more is being executed */
        struct emu_held_store {
            unsigned char *at; /* shows the old value; `data` is the new one */
            uint32_t bytes;
            unsigned char data[16];
        } stores[EMU_MOST_HELD + 1];
    } held;
    bool outside; /* while observed: something that other clusters may see was done (hook.h) */
    struct emu_cluster *next;
};

/* One host thread of one launch. Threads lie side by side, and write their counters all the time. */
struct emu_thread {
    _Alignas(128) struct emu_run *run;
    struct emu_traffic traffic;
    uint64_t
        skipped_cycles; /* virtual clock: warp instructions issued here, plus what waiting for time skipped */
    uint64_t progress;  /* stores, arrivals, completions, exits so far */
    uint64_t barriers, cluster_barriers, ctas, clusters; /* for clab_counters */
    uint64_t warp_insns[2], thread_insns[2];             /* executed here; [1]: inside polling loops */
    enum emu_fault_kind fault_kind;                      /* of the next fault, see emu_fault_kind_set */
    bool clock_read; /* some warp read a clock since this was last cleared */
    struct emu_cluster *residents;
    struct emu_pool *pool; /* register files, shared memory and cluster contexts to reuse */
    uint64_t issued_told;  /* instructions already in run->issued */
    uint64_t ctas_told;    /* CTAs already in run->ended */
    /* No-progress detection; the atomic ones are read by the launch's other host threads. */
    _Atomic bool stuck, done;
    _Atomic uint64_t stuck_epoch;
    uint64_t stuck_since_ns, idle_ns; /* real time; virtual time passed since */
    unsigned idle_rounds;
    pthread_t handle;
};

/* One launch while it runs; shared by its host threads. */
struct emu_run {
    struct emu_machine *machine;
    const struct emu_model *model; /* what the launch may use of it */
    const struct emu_launch *launch;
    const struct emu_code *code;            /* the entry, decoded for the instruction set in use */
    uint32_t grid[3], block[3], cluster[3]; /* in CTAs, threads, CTAs */
    uint32_t clusters[3];                   /* grid / cluster */
    uint64_t n_clusters;
    uint64_t end_cluster; /* clusters from here on were taken out of turn (emu_cluster_take_last) */
    uint64_t clc_random;  /* chooses what becomes of requests to cancel, where a seed explores it */
    uint32_t cluster_size, threads_per_cta, warps_per_cta;
    uint64_t workspace; /* of a cooperative launch: four words, where %envreg1 and 2 point */
    uint64_t params;    /* address of the parameter block, readable by generic and param accesses */
    uint32_t param_bytes;
    uint32_t shared_bytes, dynamic_shared_bytes, local_bytes;
    uint32_t room_bytes;     /* emu_cta.room_bytes */
    uint64_t grid_id;        /* %gridid */
    uint64_t start_ns;       /* host clock when the launch began: origin of %globaltimer */
    uint32_t resident_limit; /* CTAs */
    bool clocked;            /* schedule `fair`: warps have clocks, and completions come by them */
    bool counted;            /* as the CTAs': somebody looks at clocks or counts while it runs */
    int32_t slice_fuel;      /* backward branches, weighted, before a fragment gives way */
    struct emu_thread *threads;
    uint32_t n_threads;
    _Atomic int stop;     /* not 0: host threads leave as soon as they can */
    pthread_mutex_t lock; /* for what follows */
    clab_status status;
    enum emu_fault_kind fault_kind; /* emu_fault_kind_set; EMU_FAULT_NONE while nothing failed */
    struct clab_error *error;       /* the caller's; may be NULL */
    struct clab_error own_error;    /* used when it is */
    struct clab_str report;         /* who waits where: becomes the error's log */
    unsigned report_lines;          /* that may still be added */
    bool told_bytes;                /* the message says what an mbarrier expects and got */
    const struct emu_hooks *hooks;  /* hook.h; NULL without */
    /* What host threads write while they run, away from what they only read. */
    _Alignas(128) _Atomic uint64_t
        next_cluster;              /* index of the next cluster to start, for emu_cluster_take */
    _Atomic uint32_t clc_requests; /* answered so far, for options.decline */
    _Atomic uint32_t resident;     /* CTAs */
    _Atomic uint64_t time_ns;      /* virtual time since the launch began, the latest of all host threads */
    _Atomic uint64_t issued;       /* warp instructions, for the budget; updated between slices */
    _Atomic uint64_t ended;        /* CTAs, likewise */
};

/* A store, an atomic that changed memory, an arrival: something another thread may be waiting for. */
static inline void emu_progress(struct emu_warp *warp)
{
    warp->progress++;
}

/* --- waiting. A handler that cannot go on does `return emu_wait(warp, op, KIND, key);`: the fragment stops,
   and `op` is executed again after emu_wake_all. The handler's first act is therefore to look at emu_woken:
   NONE for a first execution; DONE when it was woken: it checks its condition again, and may wait again;
   TIMEOUT for a bounded wait that ended because nothing else in the cluster could run (or virtual time has
   come): it must not wait again. Emitters of such operations call emu_guard_branch (emit.h), so that only the
   guarded lanes wait. */
const struct emu_op *emu_wait(struct emu_warp *warp, const struct emu_op *op, enum emu_wait_kind kind,
                              uint64_t key);
const struct emu_op *emu_wait_bounded(struct emu_warp *warp, const struct emu_op *op, enum emu_wait_kind kind,
                                      uint64_t key);
/* Reads and clears how the running fragment was woken; *out_value (may be NULL) is what the waker delivered.
 */
enum emu_wake emu_woken(struct emu_warp *warp, uint64_t *out_value);
/* Makes every fragment of `cta` (NULL: of the whole cluster) that waits for (kind, key) ready. */
void emu_wake_all(struct emu_cluster *cluster, struct emu_cta *cta, enum emu_wait_kind kind, uint64_t key);

/* The cluster's present: cycles of virtual time on the schedule `fair`, else warp slices run. */
static inline uint64_t emu_now(const struct emu_cluster *cluster)
{
    if (!cluster->run->clocked) {
        return cluster->steps;
    }
    return cluster->running ? cluster->running->clock + cluster->running->cycles : cluster->event;
}

/* --- asynchronous completions. Calls item->complete after `delay` (emu_now's unit), or as
   soon as nothing else in the cluster can run. Items posted with the same due step complete in the order
   posted. */
void emu_async_post(struct emu_cluster *cluster, struct emu_async *item, uint64_t delay);
/* Says which instruction an item comes from, before it is posted. */
void emu_async_issued(struct emu_async *item, const struct emu_warp *warp, const struct emu_op *op,
                      unsigned lane);
/* The next number of the cluster's own sequence: depends on the seed and the cluster's index only. */
uint64_t emu_random(struct emu_cluster *cluster);
/* Takes the next cluster that has not started (CLC, and the scheduler itself). False when none is left. */
bool emu_cluster_take(struct emu_run *run, uint64_t *out_index);
/* The same for the last one that has not started; only while the launch runs on one host thread. */
bool emu_cluster_take_last(struct emu_run *run, uint64_t *out_index);
/* Coordinates of a linear cluster index: %clusterid. */
void emu_cluster_coordinates(const struct emu_run *run, uint64_t index, uint32_t out_clusterid[3]);

/* A fault found by a completion, outside any operation. Its place is that of the instruction that issued what
   completes, where that is known, else `cta`, which may be NULL. */
void emu_fault_async(struct emu_cluster *cluster, const struct emu_cta *cta, enum emu_fault_kind kind,
                     const char *space, uint64_t address, const char *format, ...) CLAB_PRINTF(6, 7);

/* Implemented in the memory files: frees cta->memory when its cluster ends. */
void emu_cta_memory_reset(struct emu_cta *cta);

/* Byte of local memory of a lane of the warp at which the running function's variables start. NULL when the
   kernel has no local memory. */
static inline unsigned char *emu_local(const struct emu_warp *warp, unsigned lane)
{
    return (unsigned char *)((uintptr_t)warp->cta->local +
                             (size_t)(warp->index * EMU_LANES + lane) * warp->cta->local_bytes);
}

/* Sets exec, and lane_mask to match. */
static inline void emu_exec_set(struct emu_warp *warp, uint32_t exec)
{
    uint32_t *lane_mask = warp->lane_mask;
    warp->exec = exec;
    EMU_EACH_LANE(i)
    {
        lane_mask[i] = (exec >> i & 1) ? EMU_ALL : 0;
    }
}

#endif
