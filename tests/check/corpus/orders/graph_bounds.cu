// graph_bounds: one vertex too many.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 5 --block 64 --arg u32[257]:iota --arg u32[256]:iota --arg u32[256]:0 --arg u32:256
// EXPECT:   out-of-bounds @read
// ALLOW:    out-of-bounds uninitialized

// The largest neighbour by a compressed graph.
extern "C" __global__ void graph_bounds(const unsigned *first, const unsigned *neighbour, unsigned *out, unsigned n)
{
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v <= n) {
        unsigned best = 0;
        for (unsigned e = first[v]; e < first[v + 1]; e++) // @read
            best = max(best, neighbour[e]);
        out[v] = best; // @store
    }
}
