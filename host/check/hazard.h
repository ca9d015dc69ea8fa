/* What the checkers report, and how a host program that drives the stand-in gets it.

   host/check runs inside the stand-in driver. The host reaches it through the private channel
   (driver/channel.h): `channel->hazards` is a struct clab_hazards while `channel->has_hazards` is 1. Order of
   calls:

     channel->hazards->enable(1);                       checks for all launches from now on, every kind
     channel->set_option("seed", "7", &error);          which schedule; one host thread runs the launch
     cuLaunchKernel ...; cuCtxSynchronize ...           may fail (out of bounds, deadlock): those are hazards
   too channel->hazards->take(&hazards, &n);              what was found since the last take; free(hazards)

   A launch that a fault stopped leaves its hazards to be taken like any other: the fault itself is one of
   them. Everything is plain data without pointers, so that it can be sent through a pipe. Text is
   NUL-terminated and cut, never overrun; "" when unknown. */
#ifndef CLAB_CHECK_HAZARD_H
#define CLAB_CHECK_HAZARD_H

#include <stddef.h>
#include <stdint.h>

/* enum clab_hazard_kind: CLAB_HAZARD_REMOTE_BEFORE_START, ... */
enum clab_hazard_kind {
#define CLAB_HAZARD_KIND(id, name, severity, text) CLAB_HAZARD_##id,
#include "check/hazards.def"
#undef CLAB_HAZARD_KIND
    CLAB_HAZARD_KINDS
};
enum clab_hazard_severity { CLAB_SEVERITY_HAZARD, CLAB_SEVERITY_MILD };

/* How far apart the two parties are. */
enum clab_hazard_within {
    CLAB_WITHIN_THREAD,
    CLAB_WITHIN_WARP,
    CLAB_WITHIN_CTA,
    CLAB_WITHIN_CLUSTER,
    CLAB_WITHIN_GRID
};

/* One party: who, doing what, where in the program. */
struct clab_hazard_party {
    uint32_t present;      /* 0: this party is not known (or there is none), and nothing below counts */
    uint32_t cta[3];       /* %ctaid */
    uint32_t cluster[3];   /* %clusterid */
    uint64_t cta_linear;   /* in the grid */
    uint32_t rank;         /* %cluster_ctarank */
    uint32_t has_warp;     /* whether warp and lanes count */
    uint32_t warp;         /* in the CTA */
    uint32_t lanes;        /* bit per lane that took part */
    char action[64];       /* "load", "store", "atomic", "copy writes", "exit", ...: what it did */
    char instruction[192]; /* PTX text; "" when no instruction is to blame */
    char ptx_file[256];
    uint32_t ptx_line, ptx_column; /* 1-based; 0 unknown */
    char source_file[256];         /* from .loc (-lineinfo) */
    uint32_t source_line, source_column;
    char caller_file[256]; /* where the kernel calls what was inlined there; "" when nothing was */
    uint32_t caller_line;
};

/* A barrier's state, where it matters. */
struct clab_hazard_barrier {
    uint32_t present;
    uint32_t id;    /* named barriers: 0 to 15; mbarriers: shared window offset; cluster barrier: 0 */
    uint32_t phase; /* completed phases */
    uint32_t pending, expected;              /* arrivals */
    int64_t expected_bytes, delivered_bytes; /* of the phase; mbarriers only */
};

#define CLAB_SEVERAL_SPACES UINT32_MAX /* clab_hazard.space when no one space is to blame */

struct clab_hazard {
    uint32_t kind;     /* enum clab_hazard_kind */
    uint32_t severity; /* enum clab_hazard_severity: that of the kind */
    uint32_t within;   /* enum clab_hazard_within */
    uint32_t space;    /* enum clab_space_id of channel.h, or CLAB_SEVERAL_SPACES */
    uint32_t has_address;
    uint32_t owner_rank; /* shared memory: whose */
    uint64_t address;    /* global: device address; shared: offset in the window (0x400 is the first byte) */
    uint32_t bytes;      /* of the access */
    uint32_t launch;     /* which launch of the process, from 1 */
    char symbol[128];    /* variable that holds the address, or "" */
    uint64_t symbol_offset;
    char kernel[256];
    struct clab_hazard_party parties[2]; /* [0]: the access that showed it; [1]: the earlier one */
    struct clab_hazard_barrier barrier;
    char missing[384]; /* the missing ordering, in one sentence without a full stop */
    char detail[512];  /* more, for those who want it */
    uint64_t count;    /* how often this pair of instructions did it in this launch */
    uint64_t seed;     /* of the schedule that showed it first */
};

/* A host program under the checker (clusterlab with-emulator --check): the stand-in driver of each of its
   processes appends to the file that CLUSTERLAB_EMU_CHECK names, one write for each: */
#define CLAB_CHECK_LOG_MAGIC UINT32_C(0x48434c43) /* "CLCH" */
struct clab_check_log {
    uint32_t magic;
    uint32_t hazard_bytes; /* sizeof(struct clab_hazard) of the writer's build */
    uint32_t is_launch;    /* 1: a launch was checked; `hazard` is empty */
    uint32_t reserved;     /* 0 */
    struct clab_hazard hazard;
};

/* channel->hazards points at one. Callable from any thread after cuInit. */
struct clab_hazards {
    uint32_t size_bytes;   /* sizeof(struct clab_hazards) of the library's build */
    uint32_t hazard_bytes; /* sizeof(struct clab_hazard) of the library's build */
    /* Turns the checks on (1) or off (0) for launches that start from now on; all kinds. */
    void (*enable)(int on);
    /* Turns one kind on or off (all are on at first). Never fails; unknown numbers are ignored. */
    void (*enable_kind)(uint32_t kind, int on);
    /* Gives what was found since the last call: *out is malloc'ed (NULL when none), the caller frees it.
       Worst first. 0, or -1 when memory was out since the last call, so that not everything was checked: what
       was found is then given by the next call. A launch that the checker had no memory for fails. */
    int (*take)(struct clab_hazard **out, size_t *out_count);
    /* Launches checked so far in this process. */
    uint64_t (*launches)(void);
};

/* Names of kinds, from the table; NULL (or -1) for what is not in it. Inline so that both sides of the
   channel have them without a library between. */
static inline const char *clab_hazard_name(uint32_t kind)
{
    static const char *const names[CLAB_HAZARD_KINDS] = {
#define CLAB_HAZARD_KIND(id, name, severity, text) name,
#include "check/hazards.def"
#undef CLAB_HAZARD_KIND
    };
    return kind < CLAB_HAZARD_KINDS ? names[kind] : NULL;
}
static inline const char *clab_hazard_text(uint32_t kind)
{
    static const char *const texts[CLAB_HAZARD_KINDS] = {
#define CLAB_HAZARD_KIND(id, name, severity, text) text,
#include "check/hazards.def"
#undef CLAB_HAZARD_KIND
    };
    return kind < CLAB_HAZARD_KINDS ? texts[kind] : NULL;
}
static inline enum clab_hazard_severity clab_hazard_severity_of(uint32_t kind)
{
    static const unsigned char severities[CLAB_HAZARD_KINDS] = {
#define CLAB_HAZARD_KIND(id, name, severity, text) CLAB_SEVERITY_##severity,
#include "check/hazards.def"
#undef CLAB_HAZARD_KIND
    };
    return kind < CLAB_HAZARD_KINDS ? (enum clab_hazard_severity)severities[kind] : CLAB_SEVERITY_HAZARD;
}

#endif
