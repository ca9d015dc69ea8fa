// lazy_table_ok: others wait until it is built.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1]:0 --arg u32[32] --arg u32[128]
// EXPECT:   clean
// Word 0: 0 nothing, 1 being built, 2 built.
extern "C" __global__ void lazy_table_ok(unsigned *state, unsigned *table, unsigned *out)
{
    __shared__ unsigned first;
    const unsigned t = threadIdx.x;
    if (t == 0)
        first = atomicCAS(state, 0, 1);
    __syncthreads();
    if (first == 0) {
        table[t] = t * t;
        __threadfence();
        __syncthreads();
        if (t == 0)
            atomicExch(state, 2);
    } else {
        if (t == 0)
            while (atomicAdd(state, 0) != 2)
                __nanosleep(20);
        __syncthreads();
        __threadfence();
    }
    out[blockIdx.x * 32 + t] = table[31 - t];
}
