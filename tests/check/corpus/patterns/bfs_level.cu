// bfs_level: a frontier writes levels plainly: two parents store different numbers.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(6) --arg u32[64]:4294967295
// EXPECT:   race-global @visit
// ALLOW:    race-global race-same-value

extern "C" __global__ void bfs_level(const unsigned *to, unsigned *level)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x, neighbour = to[v] % 64;
    if (level[neighbour] > v) // @look
        level[neighbour] = v; // @visit
}
