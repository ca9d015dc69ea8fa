// odd_even_global_ok: one block does all of it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[256]:random(5) --arg u32:2
// EXPECT:   clean

extern "C" __global__ void odd_even_global_ok(unsigned *key, unsigned blocks)
{
    const unsigned first = threadIdx.x, all = 64;
    if (blockIdx.x > 0)
        return;
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
