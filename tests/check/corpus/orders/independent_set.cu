// independent_set: statuses that others wait for are plain.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:0 --arg u32:128
// EXPECT:   race-global|deadlock @read
// ALLOW:    race-global deadlock race-same-value fault

// A maximal independent set: a vertex decides when its smaller neighbours have.
extern "C" __global__ void independent_set(unsigned *status, unsigned n)
{
    const unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n)
        return;
    unsigned in = 1;
    for (unsigned k = 1; k <= 2 && v >= k; k++) {
        unsigned s;
        while ((s = status[v - k]) == 0) // @read
            ;
        in = in && s == 2;
    }
    status[v] = in ? 1 : 2; // @store
}
