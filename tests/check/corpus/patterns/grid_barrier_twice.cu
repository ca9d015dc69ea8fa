// grid_barrier_twice: one counter, two grid barriers, and the second waits for the count of the first.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[256] --arg u32[1] --arg u32[128]
// EXPECT:   race-global within grid
// ALLOW:    race-global race-same-value

__device__ void meet(unsigned *count, unsigned wanted)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < wanted)
            ;
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void grid_barrier_twice(unsigned *data, unsigned *count, unsigned *out)
{
    const unsigned i = blockIdx.x * 32 + threadIdx.x;
    data[i] = i;
    meet(count, gridDim.x);
    data[128 + i] = data[(i + 32) % 128] + 1;
    meet(count, gridDim.x);
    out[i] = data[128 + (i + 32) % 128];
}
