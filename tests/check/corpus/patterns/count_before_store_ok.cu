// count_before_store_ok: after.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[4] --arg u32[1] --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void count_before_store_ok(unsigned *partial, unsigned *count, unsigned *out)
{
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x + 1; // @store
        __threadfence();
        const bool last = atomicAdd(count, 1) == gridDim.x - 1;
        if (last) {
            __threadfence();
            for (unsigned i = 0; i < gridDim.x; i++)
                *out += *(volatile unsigned *)&partial[i]; // @read
        }
    }
}
