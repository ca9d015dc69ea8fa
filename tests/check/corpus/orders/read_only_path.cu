// read_only_path: __ldg of what the same kernel has written: the read-only path may hold the old value.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   read-only-path @store @read

// The block doubles its words in place, then every thread reads a neighbour's.
extern "C" __global__ void read_only_path(unsigned *data, unsigned *out)
{
    data[threadIdx.x] *= 2; // @store
    __syncthreads();
    out[threadIdx.x] = __ldg(data + (threadIdx.x ^ 33)); // @read
}
