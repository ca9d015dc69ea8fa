// lazy_table: the first block that comes builds the table, and others that see it "being built" use it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1]:0 --arg u32[32] --arg u32[128]
// EXPECT:   race-global
// Word 0: 0 nothing, 1 being built, 2 built.
extern "C" __global__ void lazy_table(unsigned *state, unsigned *table, unsigned *out)
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
    } else if (first == 1) {
        __threadfence();
    }
    out[blockIdx.x * 32 + t] = table[31 - t];
}
