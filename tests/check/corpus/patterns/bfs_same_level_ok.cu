// bfs_same_level_ok: one writer, chosen by atomicExch.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(6) --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void bfs_same_level_ok(const unsigned *to, unsigned *level)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x, neighbour = to[v] % 64;
    atomicExch(&level[neighbour], 3);
}
