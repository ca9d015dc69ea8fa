/* Sums of the memory operations' counters (traffic.h) in the form of the driver channel. */
#include "emu/traffic.h"

static void sizes_add(struct clab_traffic *to, const uint64_t *lanes, const struct clab_traffic *odd)
{
    to->accesses += odd->accesses;
    to->bytes += odd->bytes;
    for (unsigned size = 0; size < EMU_TRAFFIC_SIZES; size++) {
        to->accesses += lanes[size];
        to->bytes += lanes[size] << size;
    }
}

void emu_traffic_add(struct clab_counters *to, const struct emu_traffic *from)
{
    for (unsigned space = 0; space < CLAB_SPACE_COUNT; space++) {
        sizes_add(&to->loads[space], from->loads[space], &from->odd_loads[space]);
        sizes_add(&to->stores[space], from->stores[space], &from->odd_stores[space]);
    }
    to->atomics_global += from->atomics_global;
    to->atomics_shared += from->atomics_shared;
    to->atomics_remote += from->atomics_remote;
    to->mbarrier_arrives += from->mbarrier_arrives;
    to->mbarrier_phases += from->mbarrier_phases;
    to->async_stores += from->async_stores;
    to->bulk_copies += from->bulk_copies;
    to->bulk_requested_bytes += from->bulk_requested_bytes;
    to->bulk_delivered_bytes += from->bulk_delivered_bytes;
    to->bulk_across_bytes += from->bulk_across_bytes;
    to->async_store_bytes += from->async_store_bytes;
    to->clc_granted += from->clc_granted;
    to->clc_declined += from->clc_declined;
}
