// trips_differ: warps go round a loop of barriers different numbers of times.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   race-shared|barrier-count|deadlock
// ALLOW:    race-shared barrier-count deadlock

extern "C" __global__ void trips_differ(unsigned *out)
{
    __shared__ unsigned words[64];
    const unsigned trips = 3 + threadIdx.x / 32;
    words[threadIdx.x] = threadIdx.x;
    for (unsigned i = 0; i < trips; i++) {
        __syncthreads();
        const unsigned seen = words[63 - threadIdx.x];
        __syncthreads();
        words[threadIdx.x] = seen + i;
    }
    __syncthreads();
    out[threadIdx.x] = words[63 - threadIdx.x];
}
