// bulk_store_unfenced: the block stores to shared memory and one thread copies it out: no proxy fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   proxy-fence @store @copy
#include <cuda/ptx>

namespace ptx = cuda::ptx;

extern "C" __global__ void bulk_store_unfenced(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned words[64];
    words[threadIdx.x] = in[threadIdx.x] + 1; // @store
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"((unsigned)__cvta_generic_to_shared(words)) : "memory"); // @copy
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
