// vote_is_no_barrier_ok: __syncthreads_or is a barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:iota --arg u32[128]
// EXPECT:   clean

extern "C" __global__ void vote_is_no_barrier_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[128];
    words[threadIdx.x] = in[threadIdx.x]; // @store
    const unsigned odd = __syncthreads_or(in[threadIdx.x] & 1);
    out[threadIdx.x] = words[127 - threadIdx.x] + odd; // @read
}
