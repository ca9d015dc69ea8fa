// trips_differ: a barrier in a loop that threads leave at different times.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]:0
// EXPECT:   barrier-divergent|deadlock|barrier-count @bar
// ALLOW:    barrier-divergent barrier-count mask-exited deadlock

extern "C" __global__ void trips_differ(const unsigned *count, unsigned *out)
{
    __shared__ unsigned turn[64];
    turn[threadIdx.x] = 0;
    for (unsigned i = 0; i < count[threadIdx.x] / 8; i++) {
        turn[threadIdx.x] += i;
        __syncthreads(); // @bar
    }
    out[threadIdx.x] = turn[threadIdx.x];
}
