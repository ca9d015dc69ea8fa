/* Through registers: ld.global, then st.async to the receiver, each store of 16 bytes counted by the receiver's mbarrier. */
#include "ways.cuh"

__device__ __forceinline__ void store_async(u32 to, uint4 value, u32 peer_barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(peer_barrier)
                 : "memory");
}

struct stores : to_receiver {
    using to_receiver::to_receiver;
    __device__ __forceinline__ bool fills(u32) const { return false; } /* the helpers do it */
    __device__ __forceinline__ void fill(u32, u32) const {}
    template <class Ring> __device__ __forceinline__ void help(const Ring &r, u32 ring_tiles, u32 full, u32 empty) const
    {
        place here = {0, 1};
        for (u32 round = 0; round < r.rounds; round++) {
            const uint4 *from = (const uint4 *)(source + (u64)at.next() * tile_bytes);
            const u32 to = peer_address(ring_tiles + here.stage * tile_bytes, receiver),
                      barrier = peer_address(full + here.stage * 8, receiver);
            wait(empty + here.stage * 8, here.parity);
#pragma unroll 8
            for (u32 unit = threadIdx.x - RING_THREADS; unit < tile_bytes / 16; unit += MOVER_THREADS)
                store_async(to + unit * 16, __ldg(from + unit), barrier);
            here.next(r.stages);
        }
    }
};

extern "C" __global__ void __launch_bounds__(DSMEM_STAGE_THREADS) dsmem_stage_st_async(DSMEM_STAGE_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, stores(source, tile_bytes, tiles));
}
