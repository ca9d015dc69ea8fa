// cluster_flag_poll: a peer polls a word of rank 0 in distributed shared memory, which rank 0 initialises without a cluster barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   remote-before-start|race-remote
// ALLOW:    remote-before-start race-remote uninitialized deadlock race-scope
#include "../protocols/protocol.cuh"

extern "C" __global__ void cluster_flag_poll(u32 *out)
{
    __shared__ u32 flag, words[32];
    const u32 t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (rank() == 0) {
        words[t] = t * 9;
        __syncthreads();
        if (t == 0)
            asm volatile("st.release.cluster.shared::cta.u32 [%0], 1;" ::"r"(at(&flag)) : "memory");
    } else {
        u32 far_flag, far_word, seen, got;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(far_flag) : "r"(at(&flag)));
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(far_word) : "r"(at(&words[t])));
        do
            asm volatile("ld.acquire.cluster.shared::cluster.u32 %0, [%1];" : "=r"(seen) : "r"(far_flag) : "memory");
        while (!seen);
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(far_word) : "memory");
        out[t] = got;
    }
    cluster_sync();
}
