// seq_cst_lock_ok: with sequentially consistent ones.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[3] --arg u32[1]
// EXPECT:   clean
#include <cuda/atomic>

#define WANTED(i) cuda::atomic_ref<unsigned, cuda::thread_scope_device>(lock[i])

extern "C" __global__ void seq_cst_lock_ok(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x != 0)
        return;
    const unsigned me = blockIdx.x, other = 1 - me;
    constexpr cuda::std::memory_order order = cuda::memory_order_seq_cst;
    for (unsigned round = 0; round < 3; round++) {
        WANTED(me).store(1, order);
        WANTED(2).store(other, order);
        while (WANTED(other).load(order) == 1 && WANTED(2).load(order) == other)
            ;
        *sum = *sum + 1; // @add
        WANTED(me).store(0, order);
    }
}
