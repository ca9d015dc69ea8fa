// bfs_same_level: parents of one level store the same number: benign, and a milder kind.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(6) --arg u32[64]
// EXPECT:   race-same-value @visit

extern "C" __global__ void bfs_same_level(const unsigned *to, unsigned *level)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x, neighbour = to[v] % 64;
    level[neighbour] = 3; // @visit
}
