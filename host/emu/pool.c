/* Register files and their frames, reused within one host thread. The last one given back is the first one
   taken, so that kernels without barriers keep running in the same few kilobytes of cache. A register file is
   made once per activation that is alive at the same time: memory is bounded by what is resident. */
#include <stdlib.h>
#include <string.h>

#include "emu/pool.h"

/* Warps take turns on the same places of their register files and fragments. An odd number of cache lines
   from one to the next (malloc adds one) keeps those out of each other's cache sets. */
#define LINE_BYTES      64
#define FRAGMENTS_BYTES (EMU_LANES * sizeof(struct emu_fragment) + LINE_BYTES)

struct emu_pool *emu_pool_new(uint32_t n_codes)
{
    struct emu_pool *pool = calloc(1, sizeof *pool + n_codes * sizeof *pool->frames);
    if (pool) {
        pool->n_codes = n_codes;
    }
    return pool;
}

void emu_pool_free(struct emu_pool *pool)
{
    if (!pool) {
        return;
    }
    for (uint32_t i = 0; i < pool->n_codes; i++) {
        for (uint32_t rank = 0; rank < EMU_MAX_CLUSTER; rank++) {
            while (pool->frames[i][rank]) {
                struct emu_frame *frame = pool->frames[i][rank];
                pool->frames[i][rank] = frame->caller;
                free(frame);
            }
        }
    }
    free(pool);
}

/* Frames whose constants say nothing of the CTA's rank serve all of them. */
static struct emu_frame **free_frames(struct emu_thread *thread, const struct emu_code *code, uint32_t rank)
{
    return &thread->pool->frames[code->index][code->n_rank_consts ? rank : 0];
}

struct emu_frame *emu_frame_take(struct emu_thread *thread, const struct emu_code *code, uint32_t rank)
{
    struct emu_frame **list = free_frames(thread, code, rank), *frame = *list;
    if (frame) {
        *list = frame->caller;
    } else {
        const size_t bytes =
            ((EMU_FRAME_HEAD + (size_t)code->file_bytes) / LINE_BYTES + 1) / 2 * 2 * LINE_BYTES;
        frame = aligned_alloc(LINE_BYTES, bytes);
        if (!frame) {
            return NULL;
        }
        memset(frame, 0, bytes);
        frame->code = code;
        frame->regs = emu_frame_regs(frame);
        for (uint32_t i = 0; i < code->n_consts; i++) {
            emu_const_fill(&code->consts[i], frame->regs + code->consts[i].offset, rank);
        }
    }
    frame->rank = rank;
    frame->caller = NULL;
    frame->return_to = NULL;
    frame->local_base = frame->dynamic = frame->depth = 0;
    frame->refs = 1;
    return frame;
}

void emu_frame_give(struct emu_thread *thread, struct emu_frame *frame)
{
    struct emu_frame **list = free_frames(thread, frame->code, frame->rank);
    frame->caller = *list;
    *list = frame;
}

/* --- clusters: contexts of one launch all have the same shape. */

struct emu_cluster *emu_cluster_alloc(const struct emu_run *run)
{
    const uint32_t size = run->cluster_size, warps = run->warps_per_cta;
    struct emu_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster) {
        return NULL;
    }
    cluster->ctas = calloc(size, sizeof *cluster->ctas);
    struct emu_warp *all = aligned_alloc(64, (size_t)size * warps * sizeof *all);
    struct emu_fragment *fragments = aligned_alloc(LINE_BYTES, (size_t)size * warps * FRAGMENTS_BYTES);
    const size_t shared = ((size_t)run->room_bytes + 127) & ~(size_t)127;
    /* 16 bytes more than asked for: vector accesses of the host may read past the last byte, never write. */
    unsigned char *shared_all = aligned_alloc(128, size * shared + 128);
    const size_t local = (size_t)run->local_bytes * warps * EMU_LANES;
    unsigned char *local_all = local ? malloc(size * local) : NULL;
    if (!cluster->ctas || !all || !fragments || !shared_all || (local && !local_all)) {
        free(all);
        free(fragments);
        free(shared_all);
        free(local_all);
        free(cluster->ctas);
        free(cluster);
        return NULL;
    }
    memset(all, 0, (size_t)size * warps * sizeof *all);
    memset(fragments, 0, (size_t)size * warps * FRAGMENTS_BYTES);
    cluster->n_all_warps = size * warps;
    for (uint32_t rank = 0; rank < size; rank++) {
        struct emu_cta *cta = &cluster->ctas[rank];
        cta->warps = all + (size_t)rank * warps;
        cta->shared = shared_all + rank * shared;
        cta->local = local ? local_all + rank * local : NULL;
        for (uint32_t w = 0; w < warps; w++) {
            cta->warps[w].fragments =
                (void *)((unsigned char *)fragments + ((size_t)rank * warps + w) * FRAGMENTS_BYTES);
        }
    }
    return cluster;
}

void emu_cluster_dispose(struct emu_cluster *cluster)
{
    if (cluster && cluster->ctas) {
        if (cluster->ctas[0].warps) {
            for (uint32_t i = 0; i < cluster->n_all_warps; i++) {
                free(cluster->ctas[0].warps[i].gather);
            }
            free(cluster->ctas[0].warps[0].fragments);
        }
        free(cluster->ctas[0].warps);
        free(cluster->ctas[0].shared);
        free(cluster->ctas[0].local);
        free(cluster->ctas);
    }
    free(cluster);
}
