// count_before_store: the block counts itself done before it stores its partial sum.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[4] --arg u32[1] --arg u32[1]
// EXPECT:   race-global @store @read within grid

extern "C" __global__ void count_before_store(unsigned *partial, unsigned *count, unsigned *out)
{
    if (threadIdx.x == 0) {
        __threadfence();
        const bool last = atomicAdd(count, 1) == gridDim.x - 1;
        partial[blockIdx.x] = blockIdx.x + 1; // @store
        if (last) {
            __threadfence();
            for (unsigned i = 0; i < gridDim.x; i++)
                *out += *(volatile unsigned *)&partial[i]; // @read
        }
    }
}
