// barrier_reduce: barrier.red counts, but its threads are not those that stored.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[96]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized

extern "C" __global__ void barrier_reduce(unsigned *out)
{
    __shared__ unsigned words[96];
    unsigned count;
    words[threadIdx.x] = threadIdx.x; // @store
    if (threadIdx.x < 64) {
        asm volatile("{ .reg .pred odd;\nsetp.ne.u32 odd, %1, 0;\nbarrier.red.popc.u32 %0, 2, 64, odd; }" : "=r"(count) : "r"(threadIdx.x & 1) : "memory");
        out[threadIdx.x] = words[95 - threadIdx.x] + count; // @read
    }
}
