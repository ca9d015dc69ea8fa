// multicast_ring: a consumer frees a stage at its own CTA only, though the peer's multicast refills it too.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --cluster 2 --arg u32[1024]:iota --arg u32[128]
// EXPECT:   async-overwrite|race-remote|race-shared
// ALLOW:    async-overwrite race-remote race-shared async-read-early mbarrier-ahead
#include "../protocols/protocol.cuh"

// Two CTAs, each loads half of every tile and multicasts it to both (CUTLASS: PipelineTmaAsync with a 2x1 cluster).
__device__ __forceinline__ void half_to_both(u32 to, const u32 *from, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bar), "h"((unsigned short)3) : "memory");
}

extern "C" __global__ void multicast_ring(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[2][128];
    __shared__ u64 full[2], empty[2];
    const u32 me = rank();
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) {
            bar_init(at(&full[s]), 1);
            bar_init(at(&empty[s]), 1);
        }
        init_fence();
    }
    cluster_sync();
    if (threadIdx.x == 32) {
        for (u32 k = 0; k < 8; k++) {
            const u32 s = k % 2;
            bar_wait_cluster(at(&empty[s]), k / 2 % 2 ^ 1);
            bar_expect(at(&full[s]), 512);
            half_to_both(at(&tile[s][64 * me]), in + k * 128 + 64 * me, 256, at(&full[s]));
        }
    } else if (threadIdx.x < 32) {
        u32 sum = 0;
        for (u32 k = 0; k < 8; k++) {
            const u32 s = k % 2;
            bar_wait_cluster(at(&full[s]), k / 2 % 2);
            for (u32 i = 0; i < 4; i++)
                sum += tile[s][threadIdx.x + 32 * i];
            __syncwarp();
            if (threadIdx.x == 0)
                bar_arrive_peer(at(&empty[s]), me);
        }
        out[me * 32 + threadIdx.x] = sum;
    }
    cluster_sync();
}
