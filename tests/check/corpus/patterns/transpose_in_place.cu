// transpose_in_place: blocks transpose a square matrix in place, each writing where another reads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4,4 --block 16,16 --arg u32[4096]:iota --arg u32[4096]
// EXPECT:   race-global @read @write within grid
// ALLOW:    race-global

extern "C" __global__ void transpose_in_place(unsigned *a, unsigned *b)
{
    const unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    const unsigned value = a[y * 64 + x]; // @read
    a[x * 64 + y] = value;                // @write
}
