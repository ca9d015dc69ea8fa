// counter_halves: 32-bit atomics on the low half of a word that others read as 64 bits: the accesses do not overlap completely.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u64[1]:0 --arg u32[1]
// EXPECT:   race-global|race-scope
#include <cuda/atomic>

extern "C" __global__ void counter_halves(unsigned long long *word, unsigned *out)
{
    if (blockIdx.x == 0) {
        atomicAdd(reinterpret_cast<unsigned *>(word), 1);
    } else if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> whole(*word);
        unsigned long long seen;
        do
            seen = whole.load(cuda::memory_order_relaxed);
        while (seen < 32);
        *out = (unsigned)seen;
    }
}
