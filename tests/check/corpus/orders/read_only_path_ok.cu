// read_only_path_ok: an ordinary load.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean

// The block doubles its words in place, then every thread reads a neighbour's.
extern "C" __global__ void read_only_path_ok(unsigned *data, unsigned *out)
{
    data[threadIdx.x] *= 2; // @store
    __syncthreads();
    out[threadIdx.x] = *(data + (threadIdx.x ^ 33)); // @read
}
