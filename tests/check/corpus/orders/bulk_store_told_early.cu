// bulk_store_told_early: it tells when the copy has read its source, not when it has written.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[128] --arg u32[1]:0 --arg u32[128]
// EXPECT:   async-read-early @copy @read within grid
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// A block stores its tile by a bulk copy and tells another block.
extern "C" __global__ void bulk_store_told_early(unsigned *tile, unsigned *flag, unsigned *out)
{
    __shared__ alignas(16) unsigned words[128];
    if (blockIdx.x == 0) {
        words[threadIdx.x] = threadIdx.x;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;\n\t"
                         "cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::"l"(tile),
                         "r"((unsigned)__cvta_generic_to_shared(words)) // @copy
                         : "memory");
            dev(flag[0]).store(1, cuda::memory_order_release);
        }
    } else {
        if (threadIdx.x == 0)
            while (dev(flag[0]).load(cuda::memory_order_acquire) == 0)
                ;
        __syncthreads();
        out[threadIdx.x] = tile[threadIdx.x]; // @read
    }
}
