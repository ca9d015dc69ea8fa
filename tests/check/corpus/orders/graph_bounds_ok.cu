// graph_bounds_ok: as many as there are.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 5 --block 64 --arg u32[257]:iota --arg u32[256]:iota --arg u32[256]:0 --arg u32:256
// EXPECT:   clean

// The largest neighbour by a compressed graph.
extern "C" __global__ void graph_bounds_ok(const unsigned *first, const unsigned *neighbour, unsigned *out, unsigned n)
{
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) {
        unsigned best = 0;
        for (unsigned e = first[v]; e < first[v + 1]; e++) // @read
            best = max(best, neighbour[e]);
        out[v] = best; // @store
    }
}
