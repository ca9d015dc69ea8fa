// ticket_enter: the next one enters with a relaxed load.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 6 --block 32 --arg u32[2]:0 --arg u32[1]:0 --arg u32[1]:0
// EXPECT:   race-global @add @add within grid
// ALLOW:    race-same-value
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void ticket_enter(unsigned *tickets, unsigned *data, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    unsigned mine = dev(tickets[0]).fetch_add(1, cuda::memory_order_relaxed);
    while (dev(tickets[1]).load(cuda::memory_order_relaxed) != mine)
        ;
    data[0] += blockIdx.x; // @add
    dev(tickets[1]).store(mine + 1, cuda::memory_order_release);
}
