/* The private channel between the host and the stand-in driver (design: host/driver).

   The stand-in answers cuGetExportTable for CLAB_CHANNEL_UUID with a pointer to one constant struct
   clab_channel; every other libcuda answers with an error. The host asks each libcuda it loads, and only this
   answer makes a device count as emulated. Host and stand-in are built from one tree, but may meet in
   different versions: the host accepts a channel only when `version`, `error_bytes` and `counters_bytes` are
   its own.

   Every function may be called from any thread at any time after cuInit, and never blocks on a running
   kernel. */
#ifndef CLAB_DRIVER_CHANNEL_H
#define CLAB_DRIVER_CHANNEL_H

#include <stdint.h>

#include "base/error.h"

/* b1e9566d-0486-454f-affb-04923a83c30d, as the 16 bytes of a CUuuid: compare with memcmp(..., 16). */
#define CLAB_CHANNEL_UUID "\xb1\xe9\x56\x6d\x04\x86\x45\x4f\xaf\xfb\x04\x92\x3a\x83\xc3\x0d"
/* Raised by every change to this file or to struct clab_error. */
#define CLAB_CHANNEL_VERSION 3u

/* State spaces that are counted. `shared` is the CTA's own window, however it was named (ld.shared, a generic
   address, mapa of the CTA's own rank); `remote` is another CTA's window (DSMEM). */
enum clab_space_id {
    CLAB_SPACE_GLOBAL,
    CLAB_SPACE_SHARED,
    CLAB_SPACE_REMOTE,
    CLAB_SPACE_LOCAL,
    CLAB_SPACE_CONST,
    CLAB_SPACE_PARAM,
    CLAB_SPACE_COUNT
};

/* One direction of one space. An access is one lane's execution of one instruction (a .v4 is one access);
   predicated-off lanes do not count. Bulk and tensor copies and atomics are counted apart, not here. */
struct clab_traffic {
    uint64_t accesses;
    uint64_t bytes;
};

/* What one launch did. Exact, and the same for every schedule except `spin_*`, which are not included in the
   other fields. Fields are u64 only, so that the layout is the same everywhere. */
struct clab_counters {
    uint64_t warp_instructions;   /* instructions issued, one per warp fragment */
    uint64_t thread_instructions; /* the same times active lanes */
    struct clab_traffic loads[CLAB_SPACE_COUNT];
    struct clab_traffic stores[CLAB_SPACE_COUNT];
    uint64_t atomics_global;   /* lanes that executed atom or red on global memory */
    uint64_t atomics_shared;   /* on the CTA's own shared memory */
    uint64_t atomics_remote;   /* on another CTA's shared memory */
    uint64_t barriers;         /* completed phases of bar.sync, bar.red and barrier.cta, summed over CTAs */
    uint64_t cluster_barriers; /* completed phases of barrier.cluster, summed over clusters */
    uint64_t mbarrier_arrives; /* executed by threads, local and remote */
    uint64_t mbarrier_phases;  /* completed phases */
    uint64_t async_stores;     /* lanes that executed st.async or red.async */
    uint64_t bulk_copies;      /* cp.async.bulk and cp.reduce.async.bulk, tensor forms too */
    uint64_t bulk_requested_bytes;   /* bytes asked of the source, once per copy */
    uint64_t bulk_delivered_bytes;   /* bytes that landed, summed over the destinations of a multicast */
    uint64_t clc_granted;            /* try_cancel requests that took a cluster */
    uint64_t clc_declined;           /* and those that did not */
    uint64_t ctas, clusters;         /* that ran */
    uint64_t spin_warp_instructions; /* issued by polling loops: depends on the schedule */
    uint64_t spin_thread_instructions;
    uint64_t bulk_across_bytes; /* of bulk_requested_bytes, those from shared memory to shared memory */
    uint64_t async_store_bytes; /* stored by async_stores */
    uint64_t reserved[14];      /* zero */
};

struct clab_hazards;

struct clab_channel {
    uint32_t size_bytes;     /* sizeof(struct clab_channel) of the library's build */
    uint32_t version;        /* CLAB_CHANNEL_VERSION of the library's build */
    uint32_t error_bytes;    /* sizeof(struct clab_error) of the library's build */
    uint32_t counters_bytes; /* sizeof(struct clab_counters) of the library's build */
    /* Capability bits, 0 or 1. */
    uint32_t emulated;      /* never 0 in a channel; timings must not be shown as measured */
    uint32_t accepts_cubin; /* whether modules may be cubins */
    uint32_t timed;         /* whether events give times that mean something */
    uint32_t has_hazards;   /* whether `hazards` below may be used */
    const char *name;       /* e.g. "clusterlab stand-in driver 0.1.0"; static */

    /* Counters of the launch that finished last in this process. 1, or 0 when no launch has finished yet, in
       which case *out is zeroed. */
    int (*last_counters)(struct clab_counters *out);

    /* Detail of the error that a driver call returned last to the calling thread, or, failing that, of the
       fault that made the current context unusable. *out must be zeroed or a former result: it is cleared and
       filled, its log (heap, malloc) then belongs to the caller. out->native_code is the CUresult that was
       returned, so that a caller can tell whether the detail belongs to the failure in hand. 1, or 0 when
       there is none. */
    int (*last_error)(struct clab_error *out);

    /* Sets an option for launches and module loads from now on. Values are text, NULL restores the default:
         "schedule"          fast | fair
         "seed"              decimal u64
         "isa"               base | v3 | v4 | auto
         "initial_clusters"  decimal, 0: the model's residency
         "decline"           CLC requests of a launch after which every further one is declined
         "driver"            "" any PTX version | 13.0: refuse what that driver refuses
         "trace"             "CTA,WARP" or "": linear CTA index in the grid, warp in the CTA
         "trace_file"        path that the trace is appended to (default: stderr of the process)
         "source"            what messages and traces call images loaded from now on
         "threads"           host threads, 0: one per core
         "budget"            warp instructions after which a launch times out, 0: none
       CLAB_OK, or CLAB_USAGE with `error` filled for an unknown name or a bad value. */
    clab_status (*set_option)(const char *name, const char *value, struct clab_error *error);

    /* The hazard checkers (check/hazard.h); NULL while has_hazards is 0. */
    const struct clab_hazards *hazards;
    const void *reserved[8]; /* NULL */
};

_Static_assert(sizeof(struct clab_traffic) == 16, "the layout is shared between builds");
_Static_assert(sizeof(struct clab_counters) ==
                   8 * (2 + 4 * CLAB_SPACE_COUNT + 3 + 2 + 2 + 1 + 3 + 2 + 2 + 2 + 2 + 14),
               "the layout is shared between builds");

#endif
