/* What observers of a running kernel are told: hazard checkers, traces, timelines. The core knows none of
   them. Handlers compiled with EMU_HOOKS 1 call EMU_HOOK; those with 0 contain nothing of it. Calls for one
   cluster come from one host thread at a time, for different clusters possibly at once. An access is told
   before it is executed, once for all lanes of an operation that have one shape. */
#ifndef CLAB_EMU_HOOK_H
#define CLAB_EMU_HOOK_H

#include "emu/warp.h"

enum emu_access_kind { EMU_ACCESS_LOAD, EMU_ACCESS_STORE, EMU_ACCESS_ATOMIC };
enum emu_access_shape {
    EMU_SHAPE_ROW, /* lane i is at `at + i * bytes` */
    EMU_SHAPE_ONE, /* all lanes are at `at` */
    EMU_SHAPE_EACH /* lane i is at each[i] */
};

/* One operation's access to memory: of `lanes`, all in one space and, if shared, in one CTA's memory. */
struct emu_access {
    enum emu_access_kind kind;
    enum emu_access_shape shape;
    enum clab_space_id space;
    uint32_t lanes;
    uint32_t bytes;              /* of each lane */
    const struct emu_cta *owner; /* shared and remote: whose memory; else NULL */
    const unsigned char *at;     /* host addresses */
    unsigned char *const *each;
};

static inline const unsigned char *emu_access_host(const struct emu_access *access, unsigned lane)
{
    return access->shape == EMU_SHAPE_ROW
               ? (const unsigned char *)((uintptr_t)access->at + (uintptr_t)lane * access->bytes)
           : access->shape == EMU_SHAPE_ONE ? access->at
                                            : access->each[lane];
}

enum emu_event_kind {
    EMU_EVENT_CTA_START, /* warp and op NULL */
    EMU_EVENT_CTA_EXIT,
    EMU_EVENT_EXIT,             /* lanes end; the last of a CTA are followed by EMU_EVENT_CTA_EXIT */
    EMU_EVENT_CLUSTER_START,    /* warp and op NULL; cta: that of rank 0 */
    EMU_EVENT_CLUSTER_END,      /* the same */
    EMU_EVENT_BARRIER_ARRIVE,   /* value: barrier; wait: whether the lanes will wait */
    EMU_EVENT_BARRIER_COMPLETE, /* value: barrier; cta->barriers[value].lanes: who waited */
    EMU_EVENT_CLUSTER_ARRIVE,
    EMU_EVENT_CLUSTER_COMPLETE,
    EMU_EVENT_CLUSTER_WAIT,  /* the wait is over */
    EMU_EVENT_MBARRIER_INIT, /* rank, address: which mbarrier; value: count */
    EMU_EVENT_MBARRIER_INVAL,
    EMU_EVENT_MBARRIER_ARRIVE,      /* value: count; before it happens */
    EMU_EVENT_MBARRIER_EXPECT,      /* value: bytes */
    EMU_EVENT_MBARRIER_COMPLETE_TX, /* value: bytes; warp NULL: by the copy `id` */
    EMU_EVENT_MBARRIER_PHASE,       /* warp and op NULL: its phase completed; value: the new parity */
    EMU_EVENT_MBARRIER_TEST,        /* value: parity asked for; wait: whether that phase is complete */
    EMU_EVENT_MBARRIER_CP_ARRIVE,   /* cp.async.mbarrier.arrive executed; value 1: .noinc */
    EMU_EVENT_MBARRIER_CP_DONE,     /* its arrival; warp given, op NULL */
    EMU_EVENT_COMMIT,               /* of cp.async or bulk copies, by the instruction */
    EMU_EVENT_WAIT_GROUP,           /* value: newest groups that may be under way; wait: all copies */
    EMU_EVENT_COPY_GLOBAL,          /* warp NULL; a completing tensor copy `id` touches [address, + value) of
                                       global memory; wait: it writes */
    EMU_EVENT_COPY_DONE,            /* warp NULL; copy `id` */
    EMU_EVENT_CLC_ANSWER,           /* warp NULL; copy `id`; wait: granted */
    EMU_EVENT_CLC_QUERY,            /* lanes ask a response; value: lanes whose response says granted */
    EMU_EVENT_FENCE,      /* by the instruction; address: the tensor map that it names, if it does; wait:
                             sequentially           consistent */
    EMU_EVENT_TENSOR_MAP, /* a tensor map is read, or with `wait` written, at host address `address`; value:
                             its space; not counted as an access */
    EMU_EVENT_GRID_DEPENDENCY, /* griddepcontrol, by the instruction */
    EMU_EVENT_COLLECTIVE       /* value: member mask; wait: `lanes` came and others are missing; else all of
                                  `lanes` have met */
};
struct emu_event {
    enum emu_event_kind kind;
    uint32_t lanes;
    uint32_t rank;
    bool wait;
    uint64_t address, value, id;
};

/* An asynchronous operation as it is issued by one lane. Offsets are of the shared window. */
enum emu_transfer_kind { EMU_TRANSFER_BULK, EMU_TRANSFER_TENSOR, EMU_TRANSFER_STORE, EMU_TRANSFER_CLC };
struct emu_transfer {
    enum emu_transfer_kind kind;
    uint64_t id; /* unique in the cluster */
    unsigned lane;
    uint32_t ranks;                 /* CTAs whose shared memory is written, a bit each */
    uint32_t to, to_bytes;          /* what is written there */
    bool has_mbarrier, pair;        /* pair: .cta_group::2 */
    uint32_t mbarrier;              /* window address */
    const struct emu_cta *from_cta; /* whose shared memory is read; NULL none */
    uint32_t from, from_bytes;
    uint64_t global, global_bytes; /* global memory read or written; 0 bytes: none, or told at completion */
    bool global_write;
    bool reduces;
    uint64_t bytes; /* as counted on each mbarrier */
};

struct emu_hooks {
    void *user;
    bool one_thread;  /* the launch must run on one host thread */
    bool whole_lives; /* CTAs count as running while their cluster lives: who asks judges by order, not by
                         chance */
    /* A launch begins and ends. `error` may be NULL. NULL: not wanted, as for all members. */
    void (*begin)(void *user, struct emu_run *run);
    void (*end)(void *user, struct emu_run *run, clab_status status, const struct clab_error *error);
    /* Before an operation of the traced or observed warp runs. */
    void (*op)(void *user, struct emu_warp *warp, const struct emu_op *op);
    void (*access)(void *user, const struct emu_warp *warp, const struct emu_op *op,
                   const struct emu_access *access);
    void (*event)(void *user, const struct emu_cta *cta, const struct emu_warp *warp, const struct emu_op *op,
                  const struct emu_event *event);
    void (*transfer)(void *user, const struct emu_warp *warp, const struct emu_op *op,
                     const struct emu_transfer *transfer);
};

/* held.c: stores that others see late. */
void emu_held_access(const struct emu_warp *warp, const struct emu_access *access);
void emu_held_event(struct emu_cluster *cluster, const struct emu_warp *warp, const struct emu_event *event);
/* After a strong operation: whose turn it should be, while one of the warp's stores is held. */
enum emu_held_turn { EMU_HELD_NONE, EMU_HELD_GO_ON /* to its next load */, EMU_HELD_YIELD /* others' */ };
enum emu_held_turn emu_held_begin(const struct emu_warp *warp);

/* For files that are compiled once: looks at run time. What other clusters may see is noted for the schedule
   of observed launches (sched_seeded.c). */
static inline void emu_hook_access(const struct emu_warp *warp, const struct emu_op *op,
                                   const struct emu_access *access)
{
    const struct emu_hooks *hooks = warp->cta->run->hooks;
    if (hooks && hooks->access) {
        warp->cta->cluster->outside |= access->space == CLAB_SPACE_GLOBAL;
        emu_held_access(warp, access);
        hooks->access(hooks->user, warp, op, access);
    }
}
static inline void emu_hook_event(const struct emu_cta *cta, const struct emu_warp *warp,
                                  const struct emu_op *op, const struct emu_event *event)
{
    const struct emu_hooks *hooks = cta->run->hooks;
    if (hooks && hooks->event) {
        emu_held_event(cta->cluster, warp, event);
        cta->cluster->outside |=
            event->kind != EMU_EVENT_BARRIER_ARRIVE && event->kind != EMU_EVENT_BARRIER_COMPLETE;
        hooks->event(hooks->user, cta, warp, op, event);
    }
}
static inline void emu_hook_transfer(const struct emu_warp *warp, const struct emu_op *op,
                                     const struct emu_transfer *transfer)
{
    const struct emu_hooks *hooks = warp->cta->run->hooks;
    if (hooks && hooks->transfer) {
        warp->cta->cluster->outside = true;
        hooks->transfer(hooks->user, warp, op, transfer);
    }
}

#if defined(EMU_HOOKS) && EMU_HOOKS
#define EMU_HOOK(run, member, ...)                     \
    do {                                               \
        const struct emu_hooks *hooks_ = (run)->hooks; \
        if (hooks_ && hooks_->member) {                \
            hooks_->member(hooks_->user, __VA_ARGS__); \
        }                                              \
    } while (0)
#define EMU_HOOK_ACCESS(warp, op, ...) emu_hook_access(warp, op, __VA_ARGS__)
/* An event of what orders memory. */
#define EMU_HOOK_ORDER(warp, op, ...)                                          \
    do {                                                                       \
        const struct emu_event event_ = __VA_ARGS__;                           \
        if ((warp)->cta->run->hooks) {                                         \
            emu_held_event((warp)->cta->cluster, (warp), &event_);             \
        }                                                                      \
        EMU_HOOK((warp)->cta->run, event, (warp)->cta, (warp), (op), &event_); \
    } while (0)
#else
#define EMU_HOOK(run, member, ...) \
    do {                           \
    } while (0)
#define EMU_HOOK_ACCESS(warp, op, ...) \
    do {                               \
    } while (0)
#define EMU_HOOK_ORDER(warp, op, ...) \
    do {                              \
    } while (0)
#endif

#endif
