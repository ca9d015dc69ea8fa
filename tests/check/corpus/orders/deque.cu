// deque: the owner publishes its end with a relaxed store.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 5 --block 32 --arg u32[16]:0 --arg u32[2]:0 --arg u32[1]:0
// EXPECT:   race-global @store @read within grid
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// The owner of a deque puts items in, thieves take them from the top.
extern "C" __global__ void deque(unsigned *items, unsigned *ends, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 16; i++) {
            items[i] = i * i; // @store
            dev(ends[1]).store(i + 1, cuda::memory_order_relaxed);
        }
        return;
    }
    for (unsigned taken = 0; taken < 4;) {
        unsigned top = dev(ends[0]).load(cuda::memory_order_acquire);
        if (top >= dev(ends[1]).load(cuda::memory_order_acquire))
            continue;
        unsigned item = items[top]; // @read
        if (dev(ends[0]).compare_exchange_strong(top, top + 1, cuda::memory_order_acq_rel)) {
            dev(out[0]).fetch_add(item, cuda::memory_order_relaxed);
            taken++;
        }
    }
}
