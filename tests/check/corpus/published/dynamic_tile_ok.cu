// dynamic_tile_ok: a barrier at the end of the turn.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[1]:0 --arg u32[1024]:iota --arg u32[1024]
// EXPECT:   clean
extern "C" __global__ void dynamic_tile_ok(unsigned *next, const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile;
    for (;;) {
        if (threadIdx.x == 0)
            tile = atomicAdd(next, 1);
        __syncthreads();
        const unsigned mine = tile;
        if (mine >= 16)
            return;
        out[mine * 64 + threadIdx.x] = in[mine * 64 + 63 - threadIdx.x];
        __syncthreads();
    }
}
