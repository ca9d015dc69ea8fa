// stale_token_ok: for its own.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include <cuda/barrier>

using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void stale_token_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned a[64], b[64];
    __shared__ barrier bar;
    const unsigned t = threadIdx.x;
    if (t == 0)
        init(&bar, 64);
    __syncthreads();
    a[t] = in[t];
    {
        auto token = bar.arrive();
        bar.wait(cuda::std::move(token));
    }
    b[t] = a[63 - t] + 1;
    auto token = bar.arrive();
    bar.wait(cuda::std::move(token));
    out[t] = b[63 - t];
}
