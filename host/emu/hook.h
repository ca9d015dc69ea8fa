/* What observers of a running kernel are told: hazard checkers, traces, timelines. The core knows none of
   them. Handlers compiled with EMU_HOOKS 1 call EMU_HOOK; those with 0 contain nothing of it. Calls for one
   cluster come from one host thread at a time, for different clusters possibly at once. Addresses: as in
   struct emu_access. */
#ifndef CLAB_EMU_HOOK_H
#define CLAB_EMU_HOOK_H

#include "emu/warp.h"

enum emu_access_kind { EMU_ACCESS_LOAD, EMU_ACCESS_STORE, EMU_ACCESS_ATOMIC };

/* One lane's part of a memory access that was executed. */
struct emu_access {
    enum emu_access_kind kind;
    enum clab_space_id space;
    uint8_t lane, bytes;
    bool strong;      /* volatile, relaxed, acquire, release, atomics: not a data race by itself */
    bool async;       /* by a completion, in the async proxy */
    uint32_t rank;    /* shared and remote: whose shared memory */
    uint64_t address; /* shared and remote: offset from the window's start, 0x400 the first; local: of the
                         thread's piece; else the device address */
};

enum emu_event_kind {
    EMU_EVENT_CTA_START,
    EMU_EVENT_CTA_EXIT,
    EMU_EVENT_BARRIER_ARRIVE, /* value: barrier */
    EMU_EVENT_BARRIER_PASS,
    EMU_EVENT_CLUSTER_ARRIVE,
    EMU_EVENT_CLUSTER_WAIT,
    EMU_EVENT_MBARRIER_INIT, /* address: of the mbarrier, rank: whose */
    EMU_EVENT_MBARRIER_INVAL,
    EMU_EVENT_MBARRIER_ARRIVE, /* value: count */
    EMU_EVENT_MBARRIER_EXPECT, /* value: bytes */
    EMU_EVENT_MBARRIER_PASS,   /* a wait that returned true */
    EMU_EVENT_ASYNC_ISSUE,     /* value: bytes */
    EMU_EVENT_ASYNC_DONE,
    EMU_EVENT_FENCE,     /* value: row of the instruction */
    EMU_EVENT_COLLECTIVE /* value: member mask */
};
struct emu_event {
    enum emu_event_kind kind;
    uint32_t lanes;
    uint32_t rank;
    uint64_t address, value;
};

struct emu_hooks {
    void *user;
    /* Before an operation of the traced or observed warp runs. NULL: not wanted, as for all members. */
    void (*op)(void *user, struct emu_warp *warp, const struct emu_op *op);
    void (*access)(void *user, const struct emu_warp *warp, const struct emu_op *op,
                   const struct emu_access *access);
    /* warp and op NULL for completions and CTA starts. */
    void (*event)(void *user, const struct emu_cta *cta, const struct emu_warp *warp, const struct emu_op *op,
                  const struct emu_event *event);
};

/* For files that are compiled once: looks at run time. */
static inline void emu_hook_event(const struct emu_cta *cta, const struct emu_warp *warp,
                                  const struct emu_op *op, struct emu_event event)
{
    const struct emu_hooks *hooks = cta->run->hooks;
    if (hooks && hooks->event) {
        hooks->event(hooks->user, cta, warp, op, &event);
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
#else
#define EMU_HOOK(run, member, ...) \
    do {                           \
    } while (0)
#endif

#endif
