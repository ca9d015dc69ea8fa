// counter_halves_ok: 64-bit atomics.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u64[1]:0 --arg u32[1]
// EXPECT:   clean
#include <cuda/atomic>

extern "C" __global__ void counter_halves_ok(unsigned long long *word, unsigned *out)
{
    if (blockIdx.x == 0) {
        atomicAdd(word, 1ull);
    } else if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> whole(*word);
        unsigned long long seen;
        do
            seen = whole.load(cuda::memory_order_relaxed);
        while (seen < 32);
        *out = (unsigned)seen;
    }
}
