// shared_reverse_ok: with __syncthreads between the stores and the reads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[256]:iota
// EXPECT:   clean

extern "C" __global__ void shared_reverse_ok(unsigned *data)
{
    __shared__ unsigned tile[128];
    unsigned *mine = data + blockIdx.x * 128;
    tile[threadIdx.x] = mine[threadIdx.x]; // @store
    __syncthreads();
    mine[threadIdx.x] = tile[127 - threadIdx.x]; // @read
}
