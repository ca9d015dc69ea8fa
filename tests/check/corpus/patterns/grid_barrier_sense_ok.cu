// grid_barrier_sense_ok: with __threadfence before the arrival and after the wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256] --arg u32[1] --arg u32[256]
// EXPECT:   clean

extern "C" __global__ void grid_barrier_sense_ok(unsigned *data, unsigned *count, unsigned *out)
{
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    data[i] = i; // @store
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*(volatile unsigned *)count < gridDim.x)
            ;
        __threadfence();
    }
    __syncthreads();
    out[i] = data[(i + 64) % 256]; // @read
}
