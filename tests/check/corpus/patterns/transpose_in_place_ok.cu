// transpose_in_place_ok: into a second matrix.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4,4 --block 16,16 --arg u32[4096]:iota --arg u32[4096]
// EXPECT:   clean

extern "C" __global__ void transpose_in_place_ok(unsigned *a, unsigned *b)
{
    const unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    const unsigned value = a[y * 64 + x]; // @read
    b[x * 64 + y] = value;
}
