// peers_reduce: three peers add their rows into rank 0's by bulk reductions, and it waits for the bytes of one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cluster 4 --arg u32[32]
// EXPECT:   mbarrier-tx|async-read-early|mbarrier-count|mbarrier-ahead
// ALLOW:    mbarrier-tx async-read-early async-overwrite mbarrier-count async-exit race-remote mbarrier-ahead
#include "../protocols/protocol.cuh"

extern "C" __global__ void peers_reduce(u32 *out)
{
    __shared__ alignas(128) u32 mine[32], total[32];
    __shared__ u64 bar;
    const u32 t = threadIdx.x;
    mine[t] = t * (rank() + 1);
    total[t] = 0;
    proxy_fence();
    if (t == 0) {
        bar_init(at(&bar), 1);
        init_fence();
        bar_expect(at(&bar), 128);
    }
    cluster_sync();
    if (rank() != 0 && t == 0) {
        asm volatile("{ .reg .b32 to, there;\nmapa.shared::cluster.u32 to, %0, 0;\nmapa.shared::cluster.u32 there, %2, 0;\n"
                     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [to], [%1], 128, [there]; }"
                     ::"r"(at(total)), "r"(at(mine)), "r"(at(&bar)) : "memory");
    }
    if (rank() == 0) {
        bar_wait_cluster(at(&bar), 0);
        out[t] = total[t] + mine[t];
    }
    cluster_sync();
}
