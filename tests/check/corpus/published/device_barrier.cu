// device_barrier: a cuda::barrier of device scope in global memory: words are read between arriving and waiting.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u64[8]:0 --arg u32[128] --arg u32[128]
// EXPECT:   race-global
#include <cuda/atomic>
#include <cuda/barrier>

using barrier = cuda::barrier<cuda::thread_scope_device>;

// Block 0 makes the barrier and raises a flag; then all blocks exchange words, twice.
extern "C" __global__ void device_barrier(unsigned long long *memory, unsigned *words, unsigned *out)
{
    barrier *bar = reinterpret_cast<barrier *>(memory);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> made(memory[7]);
    const unsigned i = blockIdx.x * 32 + threadIdx.x;
    if (i == 0) {
        init(bar, 128);
        made.store(1, cuda::memory_order_release);
    }
    while (made.load(cuda::memory_order_acquire) == 0)
        continue;
    words[i] = i * 3;
    auto token = bar->arrive();
    const unsigned got = words[127 - i];
    bar->wait(cuda::std::move(token));
    out[i] = got;
}
