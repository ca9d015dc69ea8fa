/* Two copies: a load into this CTA's own memory, then cp.async.bulk.shared::cluster.shared::cta to the receiver. Behind the
   ring's mbarriers lie an mbarrier for each landing place, and those places, as many as the ring has stages. A place is free
   again when the receiver says that its stage is. */
#include "ways.cuh"

__device__ __forceinline__ void copy_across(u32 to, u32 from, u32 bytes, u32 peer_barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(peer_barrier)
                 : "memory");
}

struct forward : to_receiver {
    u32 tiles_at, full_at, landed, places;
    __device__ forward(const unsigned char *from, u32 bytes, u32 tiles, u32 stages) : to_receiver(from, bytes, tiles)
    {
        extern __shared__ __align__(1024) unsigned char memory[];
        tiles_at = shared_address(memory) + GUARD_BYTES;
        full_at = tiles_at + stages * bytes + GUARD_BYTES;
        landed = full_at + stages * 16;
        places = (landed + stages * 8 + 127) & ~127u;
    }
    __device__ __forceinline__ void prepare(u32) const
    {
        for (u32 barrier = landed; barrier < landed + (landed - full_at) / 2; barrier += 8)
            barrier_init(barrier, 1);
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        const u32 barrier = landed + (full - full_at);
        arrive_expect(barrier, tile_bytes);
        copy_in(places + (stage - tiles_at), source + (u64)at.next() * tile_bytes, tile_bytes, barrier);
    }
    template <class Ring> __device__ __forceinline__ void help(const Ring &r, u32 ring_tiles, u32 full, u32) const
    {
        place here = {0, 0};
        for (u32 round = 0; round < r.rounds && threadIdx.x == RING_THREADS; round++) {
            const u32 offset = here.stage * tile_bytes;
            wait(landed + here.stage * 8, here.parity);
            copy_across(peer_address(ring_tiles + offset, receiver), places + offset, tile_bytes,
                        peer_address(full + here.stage * 8, receiver));
            here.next(r.stages);
        }
    }
};

extern "C" __global__ void __launch_bounds__(DSMEM_STAGE_THREADS) dsmem_stage_forward(DSMEM_STAGE_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all},
             forward(source, tile_bytes, tiles, stages));
}
