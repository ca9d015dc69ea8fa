// syncthreads_or_ok: __syncthreads_or as the only barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[96]:iota --arg u32[96]
// EXPECT:   clean

extern "C" __global__ void syncthreads_or_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[96];
    tile[threadIdx.x] = in[threadIdx.x];
    const bool any = __syncthreads_or(in[threadIdx.x] > 90);
    unsigned value = tile[95 - threadIdx.x];
    __syncthreads();
    tile[threadIdx.x] = value + any; // @store
    if (__syncthreads_count(value & 1))
        value += tile[95 - threadIdx.x]; // @second
    out[threadIdx.x] = value;
}
