// union_reuse_ok: with a barrier in between.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void union_reuse_ok(const unsigned *in, unsigned *out)
{
    __shared__ union {
        unsigned keys[64];
        unsigned totals[64];
    } u;
    u.keys[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const unsigned key = u.keys[(threadIdx.x + 33) % 64]; // @key
    __syncthreads();
    u.totals[threadIdx.x] = key + 1; // @total
    __syncthreads();
    out[threadIdx.x] = u.totals[63 - threadIdx.x];
}
