// remote_read_unfenced: a peer reads by a bulk copy what the block's threads stored: the cluster barrier is no proxy fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --cluster 2 --arg u32[128]
// EXPECT:   proxy-fence
#include "../protocols/protocol.cuh"

// The block's threads fill a row, and after the cluster has met one of them copies it into the peer's.
extern "C" __global__ void remote_read_unfenced(u32 *out)
{
    __shared__ alignas(128) u32 mine[64], theirs[64];
    __shared__ u64 bar;
    const u32 t = threadIdx.x;
    mine[t] = t * 3 + rank();
    if (t == 0) {
        bar_init(at(&bar), 1);
        bar_expect(at(&bar), 256);
        init_fence();
    }
    cluster_sync();
    if (t == 0)
        asm volatile("{ .reg .b32 to, there;\nmapa.shared::cluster.u32 to, %0, %3;\nmapa.shared::cluster.u32 there, %2, %3;\n"
                     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to], [%1], 256, [there]; }"
                     ::"r"(at(theirs)), "r"(at(mine)), "r"(at(&bar)), "r"(rank() ^ 1) : "memory");
    bar_wait_cluster(at(&bar), 0);
    out[rank() * 64 + t] = theirs[t];
    cluster_sync();
}
