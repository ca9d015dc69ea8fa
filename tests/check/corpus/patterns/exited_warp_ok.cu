// exited_warp_ok: it stays for the barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void exited_warp_ok(unsigned *out)
{
    __shared__ unsigned words[32];
    if (threadIdx.x >= 64) {
        words[threadIdx.x - 64] = threadIdx.x; // @store
    }
    __syncthreads();
    if (threadIdx.x < 64)
        out[threadIdx.x] = words[threadIdx.x % 32]; // @read
}
