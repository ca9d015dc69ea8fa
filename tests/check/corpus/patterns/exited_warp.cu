// exited_warp: a warp leaves after its stores, and the others' barrier does not stand for it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[64]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized barrier-count

extern "C" __global__ void exited_warp(unsigned *out)
{
    __shared__ unsigned words[32];
    if (threadIdx.x >= 64) {
        words[threadIdx.x - 64] = threadIdx.x; // @store
        return;
    }
    __syncthreads();
    if (threadIdx.x < 64)
        out[threadIdx.x] = words[threadIdx.x % 32]; // @read
}
