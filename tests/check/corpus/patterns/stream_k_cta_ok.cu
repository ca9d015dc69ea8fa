// stream_k_cta_ok: gpu scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[64] --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void stream_k_cta_ok(unsigned *tile, unsigned *lock)
{
    if (threadIdx.x == 0) {
        unsigned now;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(lock) : "memory");
        while (now != blockIdx.x);
    }
    __syncthreads();
    tile[threadIdx.x] += blockIdx.x; // @add
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(lock) : "memory");
}
