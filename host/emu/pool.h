/* What a host thread reuses: register files by function, cluster contexts (pool.c). */
#ifndef CLAB_EMU_POOL_H
#define CLAB_EMU_POOL_H

#include "emu/fragment.h"

struct emu_pool {
    struct emu_cluster *clusters; /* free contexts, by next */
    uint32_t n_codes;
    struct emu_frame *frames[][EMU_MAX_CLUSTER]; /* free ones by function and CTA rank, linked by caller */
};

/* `n_codes`: functions of the image. NULL when memory is out. */
struct emu_pool *emu_pool_new(uint32_t n_codes);
/* Frees the frames that were given back; cluster contexts are the scheduler's to dispose of before. */
void emu_pool_free(struct emu_pool *pool);

/* A context for a cluster of the launch's shape, owned by the caller; NULL when memory is out. */
struct emu_cluster *emu_cluster_alloc(const struct emu_run *run);
void emu_cluster_dispose(struct emu_cluster *cluster);

#endif
