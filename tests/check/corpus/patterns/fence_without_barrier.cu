// fence_without_barrier: the last block reads what other threads of the blocks stored: the fence of thread 0 covers its own words only.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256] --arg u32[1] --arg u32[1]
// EXPECT:   race-global @store @read within grid

extern "C" __global__ void fence_without_barrier(unsigned *data, unsigned *count, unsigned *out)
{
    __shared__ bool last;
    data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x; // @store
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        unsigned sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            sum += data[b * 64 + threadIdx.x]; // @read
        atomicAdd(out, sum);
    }
}
