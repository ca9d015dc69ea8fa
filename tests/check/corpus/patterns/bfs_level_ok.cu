// bfs_level_ok: with atomicMin.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(6) --arg u32[64]:4294967295
// EXPECT:   clean

extern "C" __global__ void bfs_level_ok(const unsigned *to, unsigned *level)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x, neighbour = to[v] % 64;
    atomicMin(&level[neighbour], v);
}
