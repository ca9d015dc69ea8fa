/* What the memory operations count, in the form that costs a handler one addition: lanes by size of access.
   One struct per host thread (or per cluster), zeroed at its start; emu_traffic_add turns it into the
   contract's counters. */
#ifndef CLAB_EMU_TRAFFIC_H
#define CLAB_EMU_TRAFFIC_H

#include <stdint.h>

#include "driver/channel.h"

#define EMU_TRAFFIC_SIZES 6 /* accesses of 1, 2, 4, 8, 16, 32 bytes */

struct emu_traffic {
    uint64_t loads[CLAB_SPACE_COUNT][EMU_TRAFFIC_SIZES];
    uint64_t stores[CLAB_SPACE_COUNT][EMU_TRAFFIC_SIZES];
    struct clab_traffic odd_loads[CLAB_SPACE_COUNT],
        odd_stores[CLAB_SPACE_COUNT]; /* accesses of other sizes */
    uint64_t atomics_global, atomics_shared, atomics_remote;
    uint64_t mbarrier_arrives, mbarrier_phases;
    uint64_t async_stores, async_store_bytes;
    uint64_t bulk_copies, bulk_requested_bytes, bulk_delivered_bytes, bulk_across_bytes;
    uint64_t clc_granted, clc_declined;
};

/* Adds what `from` counted to the launch's counters. */
void emu_traffic_add(struct clab_counters *to, const struct emu_traffic *from);

#endif
