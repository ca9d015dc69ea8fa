/* Asynchronous copies as libcu++ and cooperative groups write them, one way a CTA (one kernel, because NVRTC takes seconds for
   these headers). Contract: (in, out): 1024 words of each CTA's part of `in` go through shared memory to `out`, doubled.
   Block 128, grid a multiple of 7. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

#define WORDS 1024
#define PARTS 4 /* of the pipeline */

using block_barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ void double_out(const unsigned *tile, unsigned *out, int words)
{
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        out[i] = 2 * tile[i];
}

__device__ void groups(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[WORDS];
    auto block = cooperative_groups::this_thread_block();
    cooperative_groups::memcpy_async(block, tile, in, sizeof tile);
    cooperative_groups::wait(block);
    double_out(tile, out, WORDS);
}

__device__ void block_copy(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[WORDS];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    auto block = cooperative_groups::this_thread_block();
    cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof tile), bar);
    bar.arrive_and_wait();
    double_out(tile, out, WORDS);
}

/* Words of four bytes, a thread each: no bulk copy can do that. */
__device__ void word_copies(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[WORDS];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        cuda::memcpy_async(tile + i, in + i, sizeof *tile, bar);
    bar.wait(bar.arrive());
    double_out(tile, out, WORDS);
}

__device__ void shared_pipeline(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[2][WORDS / PARTS];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const unsigned *from = in;
    for (int part = 0, ahead = 0; part < PARTS; part++) {
        for (; ahead < PARTS && ahead < part + 2; ahead++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[ahead % 2], from + ahead * (WORDS / PARTS),
                               cuda::aligned_size_t<16>(sizeof tile[0]), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        double_out(tile[part % 2], out + part * (WORDS / PARTS), WORDS / PARTS);
        pipe.consumer_release();
    }
}

__device__ void thread_pipeline(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[WORDS];
    auto pipe = cuda::make_pipeline();
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) {
        pipe.producer_acquire();
        cuda::memcpy_async(tile + i, in + i, sizeof *tile, pipe);
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    __syncthreads();
    double_out(tile, out, WORDS);
}

__device__ void bulk_tx(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[WORDS];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    block_barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof tile), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
    } else {
        token = bar.arrive();
    }
    bar.wait(cuda::std::move(token));
    double_out(tile, out, WORDS);
}

__device__ void wrappers(const unsigned *in, unsigned *out)
{
    namespace ptx = cuda::ptx;
    __shared__ alignas(16) unsigned tile[WORDS];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof tile, &bar);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof tile);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&bar, 0))
        continue;
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        tile[i] *= 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

extern "C" __global__ void async_copies(const unsigned *in, unsigned *out)
{
    in += blockIdx.x * WORDS;
    out += blockIdx.x * WORDS;
    switch (blockIdx.x % 7) {
    case 0: groups(in, out); break;
    case 1: block_copy(in, out); break;
    case 2: word_copies(in, out); break;
    case 3: shared_pipeline(in, out); break;
    case 4: thread_pipeline(in, out); break;
    case 5: bulk_tx(in, out); break;
    default: wrappers(in, out);
    }
}
