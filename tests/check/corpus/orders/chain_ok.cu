// chain_ok: with one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 6 --block 64 --arg u32[6]:0 --arg u32[6]:0 --arg u32[6]
// EXPECT:   clean

// A chain through the blocks' slots; each waits for the one before it.
extern "C" __global__ void chain_ok(unsigned *value, unsigned *ready, unsigned *out)
{
    __shared__ unsigned before;
    if (threadIdx.x == 0) {
        if (blockIdx.x > 0)
            while (atomicAdd(&ready[blockIdx.x - 1], 0) == 0)
                ;
        __threadfence();
        before = blockIdx.x > 0 ? value[blockIdx.x - 1] : 0; // @read
    }
    __syncthreads();
    const unsigned mine = before + __syncthreads_count(threadIdx.x % 3 == 0);
    if (threadIdx.x == 0) {
        value[blockIdx.x] = mine; // @store
        __threadfence();
        atomicExch(&ready[blockIdx.x], 1);
        out[blockIdx.x] = mine;
    }
}
