/* The pipeline that multicast and arrive_scope share: a ring of stages in shared memory, filled by one thread with bulk
   copies, freed by a warp once its tile was seen. What differs is a `way`:

     way.fills(round)                 whether this CTA copies anything in a round
     way.fill(stage, full)            start this CTA's copies of a round into the ring (one thread; together the CTAs of the
                                      cluster bring each of them exactly a tile)
     way.hears()                      how many CTAs tell this one that their stage is free
     way.release(empty, round)        tell them that it is free for that round (warp 1, all lanes)
     way.parity(stage, parity)        of the phase of a stage's empty mbarrier that frees it for this CTA's copies; `parity`
                                      where each of its rounds is told to this CTA
     way.wait(barrier, parity)        a wait for a phase
     way.prepare(extra)               make ready what the way keeps behind the mbarriers (one thread)
     way.help(r, tiles, full, empty)  what threads beyond RING_THREADS do

   Shared memory: guard, ring, guard, the full and the empty mbarrier of each stage, then what the way has of its own.

   Verified launches read every tile (`read_all`), timed ones only free it: reading would take as much of the shared
   memory's bandwidth as the copies do. Both read what the ring holds at the end. */
#pragma once

#include "digest.cuh"

#define CONSUMER_WARPS   4
#define CONSUMER_THREADS (CONSUMER_WARPS * 32)
#define RING_THREADS     (32 + CONSUMER_THREADS)

/* What most ways have nothing to do for. */
struct plain_way {
    __device__ __forceinline__ bool fills(u32) const { return true; }
    __device__ __forceinline__ void prepare(u32) const {}
    template <class Ring> __device__ __forceinline__ void help(const Ring &, u32, u32, u32) const {}
    __device__ __forceinline__ void wait(u32 barrier, u32 parity) const { wait_phase(barrier, parity); }
    __device__ __forceinline__ u32 parity(u32, u32 parity) const { return parity; }
};

struct ring {
    u32 *digests; /* [CTA][round], by cluster, then by rank */
    u32 *last;    /* [CTA][stage]: of the last `stages` rounds, in their order */
    u32 *touched; /* [CTA]: words of the guards that changed */
    u32 rounds, stages, tile_bytes, swizzle, read_all;
};

/* The next tile of a walk that starts at `unit` and goes `units` on each time. */
struct walk {
    u32 tile, units, tiles;
    __device__ __forceinline__ walk(u32 unit, u32 all_units, u32 all_tiles)
        : tile(unit % all_tiles), units(all_units % all_tiles), tiles(all_tiles)
    {
    }
    __device__ __forceinline__ u32 next()
    {
        const u32 now = tile;
        tile += units;
        if (tile >= tiles)
            tile -= tiles;
        return now;
    }
};

/* The stage of a round, and the parity of its phase. */
struct place {
    u32 stage, parity;
    __device__ __forceinline__ void next(u32 stages)
    {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <class Way>
__device__ __forceinline__ void produce(const ring &r, u32 tiles, u32 full, u32 empty, const Way &way)
{
    place at = {0, 1}; /* the first round over the ring finds it free: parity 1 of a fresh mbarrier has completed */
    for (u32 round = 0; round < r.rounds; round++) {
        /* Who has nothing to fill must not wait: the others would not wait for it, and it could fall two phases behind, where
           parities mislead. Nor may it be told (release), or phases would pass that nobody waits for. */
        if (way.fills(round)) {
            way.wait(empty + at.stage * 8, way.parity(at.stage, at.parity));
            way.fill(tiles + at.stage * r.tile_bytes, full + at.stage * 8);
        }
        at.next(r.stages);
    }
}

template <class Way>
__device__ __forceinline__ void consume(const ring &r, u32 cta, u32 tiles, u32 full, u32 empty, const Way &way)
{
    const u32 thread = threadIdx.x - 32;
    place at = {0, 0};
    for (u32 round = 0; round < r.rounds; round++) {
        way.wait(full + at.stage * 8, at.parity);
        if (r.read_all) {
            digest_add(r.digests + cta * r.rounds + round,
                       digest_part(tiles + at.stage * r.tile_bytes, r.tile_bytes, thread, CONSUMER_THREADS, r.swizzle));
            asm volatile("bar.sync 1, %0;" ::"n"(CONSUMER_THREADS) : "memory");
        }
        if (thread < 32) {
            if (thread == 0 && round + r.stages < r.rounds)
                arrive_expect(full + at.stage * 8, r.tile_bytes); /* the bytes of the stage's next round */
            __syncwarp();
            way.release(empty + at.stage * 8, round + r.stages);
        }
        at.next(r.stages);
    }
}

/* The tiles of the last `stages` rounds, by every consumer thread. requires: one of them has waited for these rounds, and a
   CTA barrier since. */
__device__ __forceinline__ void look_back(const ring &r, u32 cta, u32 tiles)
{
    for (u32 i = 0; i < r.stages; i++) {
        const u32 stage = (r.rounds - r.stages + i) % r.stages;
        digest_add(r.last + cta * r.stages + i, digest_part(tiles + stage * r.tile_bytes, r.tile_bytes, threadIdx.x - 32,
                                                            CONSUMER_THREADS, r.swizzle));
    }
}

/* requires: RING_THREADS threads, or whole warps more; rounds >= stages; dynamic shared memory as above. */
template <class Way> __device__ __forceinline__ void ring_run(const ring &r, const Way &way)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const u32 ring_bytes = r.stages * r.tile_bytes, cta = cluster_id() * cluster_size() + cluster_rank();
    const u32 tiles = shared_address(memory) + GUARD_BYTES, full = tiles + ring_bytes + GUARD_BYTES;
    const u32 empty = full + r.stages * 8;
    u32 *const before = (u32 *)memory, *const after = (u32 *)(memory + GUARD_BYTES + ring_bytes);
    guard_write(before);
    guard_write(after);
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < r.stages; i++) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, way.hears());
        }
        way.prepare(empty + r.stages * 8);
        barrier_init_visible();
        for (u32 i = 0; i < r.stages; i++)
            arrive_expect(full + i * 8, r.tile_bytes);
    }
    cluster_barrier(); /* every CTA of the cluster is there, its barriers are made */
    if (threadIdx.x == 0)
        produce(r, tiles, full, empty, way);
    else if (threadIdx.x >= RING_THREADS)
        way.help(r, tiles, full, empty);
    else if (threadIdx.x >= 32 && (r.read_all || threadIdx.x < 64))
        consume(r, cta, tiles, full, empty, way);
    if (threadIdx.x >= 32 && threadIdx.x < RING_THREADS) {
        asm volatile("bar.sync 1, %0;" ::"n"(CONSUMER_THREADS) : "memory");
        look_back(r, cta, tiles);
    }
    cluster_barrier(); /* nobody leaves while a peer may still signal it */
    guard_check(before, r.touched + cta);
    guard_check(after, r.touched + cta);
}
