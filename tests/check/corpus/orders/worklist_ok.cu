// worklist_ok: with an atomic.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32[256]:0 --arg u32[1]:0 --arg u32:256
// EXPECT:   clean

// Vertices with an odd value are put into a worklist.
extern "C" __global__ void worklist_ok(const unsigned *value, unsigned *list, unsigned *size, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (value[i] & 1))
        list[atomicAdd(size, 1)] = i; // @take
}
