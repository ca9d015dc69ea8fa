// stack_aba_ok: links are atomics (the ABA problem stays, but it is no data race).
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 6 --block 32 --arg u32[1]:3 --arg u32[4]:0 --arg u32[1]:0
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Every block pops a node and pushes it back, several times.
struct node { unsigned next; };
extern "C" __global__ void stack_aba_ok(unsigned *head, unsigned *nodes, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    for (int turn = 0; turn < 8; turn++) {
        unsigned top = dev(head[0]).load(cuda::memory_order_acquire), next;
        do {
            if (top == 0)
                return;
            next = dev(nodes[top]).load(cuda::memory_order_relaxed); // @read
        } while (!dev(head[0]).compare_exchange_weak(top, next, cuda::memory_order_acquire));
        unsigned old = dev(head[0]).load(cuda::memory_order_relaxed);
        do {
            dev(nodes[top]).store(old, cuda::memory_order_relaxed); // @store
        } while (!dev(head[0]).compare_exchange_weak(old, top, cuda::memory_order_release));
    }
    dev(out[0]).fetch_add(1, cuda::memory_order_relaxed);
}
