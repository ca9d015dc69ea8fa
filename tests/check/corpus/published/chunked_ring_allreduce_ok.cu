// chunked_ring_allreduce_ok: the writer waits for the acknowledgement of the turn before.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[128] --arg u32[8]:0 --arg u32[128]
// EXPECT:   clean
#include <cuda/atomic>

using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void chunked_ring_allreduce_ok(unsigned *slots, unsigned *control, unsigned *out)
{
    const unsigned t = threadIdx.x, me = blockIdx.x, next = (me + 1) % 4;
    word full(control[me]), sent(control[next]), taken(control[4 + me]), acknowledged(control[4 + next]);
    unsigned value = me * 32 + t, sum = value;
    for (unsigned k = 1; k <= 3; k++) {
        if (t == 0)
            while (acknowledged.load(cuda::memory_order_acquire) < k - 1)
                continue;
        __syncwarp();
        slots[next * 32 + t] = value;
        __syncwarp();
        if (t == 0) {
            sent.store(k, cuda::memory_order_release);
            while (full.load(cuda::memory_order_acquire) < k)
                continue;
        }
        __syncwarp();
        value = slots[me * 32 + t];
        sum += value;
        __syncwarp();
        if (t == 0)
            taken.store(k, cuda::memory_order_release);
    }
    out[me * 32 + t] = sum;
}
