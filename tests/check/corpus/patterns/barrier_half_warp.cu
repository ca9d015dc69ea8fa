// barrier_half_warp: half a warp meets at a barrier for 16 threads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   barrier-count|barrier-divergent|deadlock|fault
// ALLOW:    barrier-count barrier-divergent deadlock fault race-shared uninitialized

extern "C" __global__ void barrier_half_warp(unsigned *out)
{
    __shared__ unsigned words[64];
    words[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 16) {
        asm volatile("barrier.sync 1, %0;" ::"r"(blockDim.x / 4) : "memory");
        out[threadIdx.x] = words[15 - threadIdx.x];
    }
}
