// read_only_last_ok: through the L2.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 32 --arg u32[8]:iota --arg u32[8] --arg u32[1]:0 --arg u32[1]
// EXPECT:   clean

// The winner of the last ticket sums what all blocks stored.
extern "C" __global__ void read_only_last_ok(const unsigned *__restrict__ in, unsigned *parts, unsigned *count, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    parts[blockIdx.x] = in[blockIdx.x] * 3; // @store
    __threadfence();
    if (atomicAdd(count, 1) == gridDim.x - 1) {
        __threadfence();
        unsigned sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += __ldcg(parts + i); // @read
        out[0] = sum;
    }
}
