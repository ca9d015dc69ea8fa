// bulk_copy_barrier_ok: all of the block wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[256]:iota --arg u32[64]
// EXPECT:   clean
#include <cuda/barrier>

using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void bulk_copy_barrier_ok(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned words[256];
    __shared__ barrier bar;
    if (threadIdx.x == 0)
        init(&bar, 64);
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(words, in, cuda::aligned_size_t<16>(sizeof words), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof words);
    } else {
        token = bar.arrive();
    }
    bar.wait(cuda::std::move(token));
    out[threadIdx.x] = words[255 - threadIdx.x]; // @read
}
