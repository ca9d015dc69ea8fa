// transpose_in_place: both threads of a pair exchange it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2,2 --block 256 --arg u32[1024]:iota --arg u32:32
// EXPECT:   race-global within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void transpose_in_place(unsigned *m, unsigned n)
{
    const unsigned x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16;
    if (x < n && y < n ) {
        const unsigned above = m[y * n + x], below = m[x * n + y]; // @read
        m[y * n + x] = below; // @store
        m[x * n + y] = above; // @other
    }
}
