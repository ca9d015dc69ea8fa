// barrier_half_warp_ok: a whole warp, for 32.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void barrier_half_warp_ok(unsigned *out)
{
    __shared__ unsigned words[64];
    words[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) {
        asm volatile("barrier.sync 1, %0;" ::"r"(blockDim.x / 2) : "memory");
        out[threadIdx.x] = words[31 - threadIdx.x];
    }
}
