/* tiles_reference: every tile's result another way. Arithmetic: n steps at once, by squaring (x -> A x + C applied n
   times is x -> A^n x + C (A^n - 1) / (A - 1), built from its binary powers). Memory: a warp reads the tile word by word.

   Contract: (const uint32 *cost, uint32 *result, const uint32 *input, uint32 tiles, uint32 rounds, uint32 words,
   uint32 memory, uint32 threads): as in tile.cuh; `threads` is the block of the kernel that is checked.
   Launch: block 256, grid = ceil(tiles / 8): a warp per tile.   Needs: CUDA C++17, sm_80. */
#include "tile.cuh"

extern "C" __global__ void tiles_reference(const u32 *cost, u32 *result, const u32 *input, u32 tiles, u32 rounds, u32 words,
                                           u32 memory, u32 threads)
{
    const u32 id = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (id >= tiles)
        return;
    const u32 n = cost[id] * rounds;
    u32 sum = 0;
    if (memory) {
        const u64 first = tile_place(id) * 4ull, count = (u64)n * 32 * threads;
        for (u64 i = lane; i < count; i += 32)
            sum += input[(first + i) & (words - 1)];
    } else {
        u32 a = 1, c = 0, power_a = A, power_c = C;
        for (u64 steps = n * 32ull; steps; steps >>= 1) {
            if (steps & 1) {
                c = power_a * c + power_c;
                a *= power_a;
            }
            power_c = power_a * power_c + power_c;
            power_a *= power_a;
        }
        for (u32 thread = lane; thread < threads; thread += 32)
            sum += a * input[(id * threads + thread) & (words - 1)] + c;
    }
    sum = __reduce_add_sync(0xffffffffu, sum);
    if (lane == 0)
        result[id] = sum;
}
