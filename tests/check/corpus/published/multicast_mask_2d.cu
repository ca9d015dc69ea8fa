// multicast_mask_2d: a 2x2 cluster loads A along rows and B along columns, and both go out with the row's mask.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2,2 --block 32 --cluster 2,2 --arg u32[256]:iota --arg u32[256]:iota --arg u32[128]
// EXPECT:   multicast-unarmed|mbarrier-tx|deadlock|async-overwrite
// ALLOW:    multicast-unarmed mbarrier-tx deadlock async-overwrite async-exit uninitialized
#include "../protocols/protocol.cuh"

__device__ __forceinline__ void to_mask(u32 to, const u32 *from, u32 bytes, u32 bar, unsigned short mask)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bar), "h"(mask) : "memory");
}

extern "C" __global__ void multicast_mask_2d(const u32 *a, const u32 *b, u32 *out)
{
    __shared__ alignas(128) u32 tile_a[64], tile_b[64];
    __shared__ u64 bar;
    const u32 x = blockIdx.x % 2, y = blockIdx.y % 2, t = threadIdx.x; /* rank: x + 2 y */
    if (t == 0) {
        bar_init(at(&bar), 1);
        bar_expect(at(&bar), 512);
        init_fence();
    }
    cluster_sync();
    if (t == 0) {
        const unsigned short row = (unsigned short)(3 << 2 * y), column = (unsigned short)(5 << x);
        to_mask(at(&tile_a[32 * x]), a + 64 * y + 32 * x, 128, at(&bar), row);
        to_mask(at(&tile_b[32 * y]), b + 64 * x + 32 * y, 128, at(&bar), row);
    }
    __syncwarp();
    bar_wait_cluster(at(&bar), 0);
    out[(2 * y + x) * 32 + t] = tile_a[t] * tile_b[63 - t] + tile_a[32 + t];
    cluster_sync();
}
