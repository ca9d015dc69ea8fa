// cell_lists: the lists are followed while others still link.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[8]:0 --arg u32[128]:0 --arg u32[128]:random(2) --arg u32[8]
// EXPECT:   race-global @link @follow within cta
// ALLOW:    race-global

// Particles are put into lists of their cells, and the lists are summed.
extern "C" __global__ void cell_lists(unsigned *head, unsigned *next, const unsigned *cell, unsigned *out)
{
    const unsigned i = threadIdx.x;
    next[i] = atomicExch(&head[cell[i] % 8], i + 1); // @link
    if (i < 8) {
        unsigned sum = 0;
        for (unsigned at = atomicAdd(&head[i], 0); at; at = next[at - 1]) // @follow
            sum += at;
        out[i] = sum;
    }
}
