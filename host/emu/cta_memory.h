/* What a CTA keeps beside its shared memory: which 8-byte words are live mbarriers, and the copies its
   threads have under way (async.c). Made when first needed, kept until the cluster ends. */
#ifndef CLAB_EMU_CTA_MEMORY_H
#define CLAB_EMU_CTA_MEMORY_H

#include <stdint.h>

#include "emu/warp.h"

struct emu_copies; /* async.h: copies of the threads of one warp */

/* Bytes that a live mbarrier's phase was told to expect, and bytes that arrived: the object itself has the
   difference only. For reports. */
struct emu_mbarrier_bytes {
    uint32_t expected, arrived;
};

struct emu_cta_memory {
    uint64_t *live; /* bit per 8 bytes of shared memory: a live mbarrier; NULL while there is none */
    struct emu_mbarrier_bytes *bytes; /* per 8 bytes of shared memory; NULL like `live` */
    struct emu_copies *copies;        /* by warp; NULL while there is none */
};

/* NULL when memory is out. */
struct emu_cta_memory *emu_cta_memory_get(struct emu_cta *cta);

#endif
