// independent_set_ok: volatile, which no compiler keeps in a register, and which races with nothing.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:0 --arg u32:128
// EXPECT:   clean

// A maximal independent set: a vertex decides when its smaller neighbours have.
extern "C" __global__ void independent_set_ok(volatile unsigned *status, unsigned n)
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
