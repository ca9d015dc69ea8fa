// workspace_reused: a split tile's partial sums go into the one workspace again before the finisher has read the last ones.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 3 --block 64 --arg u32[1024]:iota --arg u32[512]:0 --arg u32[8]:0 --arg u32[512]:0
// EXPECT:   race-global
// Stream-K: blocks 1 and 2 compute parts of a tile, block 0 adds them up when both have raised the tile's counter.
extern "C" __global__ void workspace_reused(const unsigned *in, unsigned *workspace, unsigned *arrived, unsigned *out)
{
    const unsigned t = threadIdx.x;
    for (unsigned tile = 0; tile < 4; tile++) {
        unsigned *mine = workspace;
        if (blockIdx.x != 0) {
            mine[(blockIdx.x - 1) * 64 + t] = in[tile * 64 + t] * blockIdx.x;
            __threadfence();
            __syncthreads();
            if (t == 0)
                atomicAdd(&arrived[tile], 1);
        } else {
            if (t == 0)
                while (atomicAdd(&arrived[tile], 0) < 2)
                    __nanosleep(20);
            __syncthreads();
            __threadfence();
            out[tile * 64 + t] = mine[t] + mine[64 + t];
        }
    }
}
