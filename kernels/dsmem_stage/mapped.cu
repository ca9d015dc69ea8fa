/* One copy: cp.async.bulk from global memory whose destination and mbarrier are the receiver's, through mapa. */
#include "ways.cuh"

struct mapped : to_receiver {
    using to_receiver::to_receiver;
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in(peer_address(stage, receiver), source + (u64)at.next() * tile_bytes, tile_bytes,
                peer_address(full, receiver));
    }
};

extern "C" __global__ void __launch_bounds__(DSMEM_STAGE_THREADS) dsmem_stage_mapped(DSMEM_STAGE_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, mapped(source, tile_bytes, tiles));
}
