// warps_dekker: two warps of a block with flags in shared memory and __threadfence_block replaced by nothing.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[1]
// SEEDS:    16
// EXPECT:   race-shared
#include <cuda/atomic>

extern "C" __global__ void warps_dekker(unsigned *out)
{
    __shared__ unsigned flags[2], count;
    if (threadIdx.x < 2)
        flags[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    const unsigned me = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_block> mine(flags[me]), theirs(flags[1 - me]);
        mine.store(1, cuda::memory_order_relaxed);
        if (theirs.load(cuda::memory_order_acquire) == 0)
            count += 1;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        *out = count;
}
