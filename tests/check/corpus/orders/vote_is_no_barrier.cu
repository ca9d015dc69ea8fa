// vote_is_no_barrier: a vote of the warp stands where the block's should.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:iota --arg u32[128]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized

extern "C" __global__ void vote_is_no_barrier(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[128];
    words[threadIdx.x] = in[threadIdx.x]; // @store
    const unsigned odd = __any_sync(0xffffffff, in[threadIdx.x] & 1);
    out[threadIdx.x] = words[127 - threadIdx.x] + odd; // @read
}
