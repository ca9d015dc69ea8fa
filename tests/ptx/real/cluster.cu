// Cooperative groups, barriers, atomics, printf, virtual calls, a switch, assert: what the CUDA headers make of them.
#include <cassert>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>

namespace cg = cooperative_groups;

__global__ void cluster_sum(float *data, int n)
{
    extern __shared__ float tile[];
    auto cluster = cg::this_cluster();
    tile[threadIdx.x] = data[threadIdx.x];
    cluster.sync();
    float *peer = cluster.map_shared_rank(tile, (cluster.block_rank() + 1) % cluster.num_blocks());
    atomicAdd(peer, 1.0f);
    cluster.sync();
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float sum = cg::reduce(warp, tile[threadIdx.x], cg::plus<float>());
    if (warp.thread_rank() == 0)
        printf("%f %d\n", sum, n);
    data[0] = sum;
}

__global__ void copies(int *data)
{
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ alignas(16) int tile[256];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(tile, data, cuda::aligned_size_t<16>(1024), barrier);
    barrier.arrive_and_wait();
    cuda::atomic_ref<int, cuda::thread_scope_device> total(data[0]);
    total.fetch_add(tile[threadIdx.x]);
}

__device__ __noinline__ double apart(double x, int y)
{
    return x * sin(x) / y;
}

struct plain {
    virtual __device__ float value(float x) { return x; }
};
struct twice : plain {
    __device__ float value(float x) override { return 2 * x; }
};

__constant__ float table[5] = {1, 2, 3, 4, 5};
__device__ const char *names[3] = {"one", "two", "three"};

__global__ void control(double *out, int n)
{
    plain a;
    twice b;
    plain *chosen = n > 3 ? &b : &a;
    out[0] = apart(out[1], n) + chosen->value(2.0f) + powf(n, 3) + fmod(out[2], 3.0) + table[n] + names[n % 3][0];
    switch (n) {
    case 0: out[3] = 1; break;
    case 1: out[4] = 2; break;
    case 2: out[5] = 5; break;
    case 3: out[6] = 5; break;
    case 5: out[8] = 7; break;
    case 6: out[7] = sqrt(out[9]);
    }
    assert(n < 3);
}
