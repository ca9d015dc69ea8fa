// barrier_in_condition: only threads with a positive word come to the barrier, so that it joins nobody.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   barrier-divergent|race-shared|deadlock
// ALLOW:    race-shared barrier-divergent barrier-count deadlock uninitialized

extern "C" __global__ void barrier_in_condition(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[64];
    if (in[threadIdx.x] % 2) {
        tile[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = tile[threadIdx.x ^ 34];
    }
}
