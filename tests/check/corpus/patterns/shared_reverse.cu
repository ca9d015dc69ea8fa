// shared_reverse: a block reverses its words in shared memory without a barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[256]:iota
// EXPECT:   race-shared @store @read within cta
// ALLOW:    uninitialized

extern "C" __global__ void shared_reverse(unsigned *data)
{
    __shared__ unsigned tile[128];
    unsigned *mine = data + blockIdx.x * 128;
    tile[threadIdx.x] = mine[threadIdx.x]; // @store
    mine[threadIdx.x] = tile[127 - threadIdx.x]; // @read
}
