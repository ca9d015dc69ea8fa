// grid_barrier_sense: blocks meet at a counter in global memory without fences.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256] --arg u32[1] --arg u32[256]
// EXPECT:   race-global @store @read within grid

extern "C" __global__ void grid_barrier_sense(unsigned *data, unsigned *count, unsigned *out)
{
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    data[i] = i; // @store
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (*(volatile unsigned *)count < gridDim.x)
            ;
    }
    __syncthreads();
    out[i] = data[(i + 64) % 256]; // @read
}
