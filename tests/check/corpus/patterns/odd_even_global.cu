// odd_even_global: blocks sort neighbours in global memory and meet at __syncthreads only.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[256]:random(5) --arg u32:2
// EXPECT:   race-global within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void odd_even_global(unsigned *key, unsigned blocks)
{
    const unsigned first = blockIdx.x * 64 + threadIdx.x, all = 64 * blocks;
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = first; 2 * i + round % 2 + 1 < 256; i += all) {
            const unsigned low = 2 * i + round % 2;
            const unsigned a = key[low], b = key[low + 1];
            key[low] = a < b ? a : b;
            key[low + 1] = a < b ? b : a;
        }
        __syncthreads();
    }
}
