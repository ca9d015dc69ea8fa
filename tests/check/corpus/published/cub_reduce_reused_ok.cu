// cub_reduce_reused_ok: with __syncthreads before it is used again, as CUB's documentation asks.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[1024]:iota --arg u32[8]
// EXPECT:   clean
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void cub_reduce_reused_ok(const unsigned *in, unsigned *out)
{
    using Reduce = cub::BlockReduce<unsigned, 128>;
    __shared__ typename Reduce::TempStorage storage;
    for (unsigned k = 0; k < 4; k++) {
        const unsigned sum = Reduce(storage).Sum(in[(blockIdx.x * 4 + k) * 128 + threadIdx.x]);
        if (threadIdx.x == 0)
            out[blockIdx.x * 4 + k] = sum;
        __syncthreads();
    }
}
