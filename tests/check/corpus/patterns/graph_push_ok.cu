// graph_push_ok: by atomics.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:ones --arg u32[128]
// EXPECT:   clean

extern "C" __global__ void graph_push_ok(const unsigned *from, unsigned *to)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x;
    for (unsigned k = 1; k <= 4; k++) {
        const unsigned neighbour = (v * k + 17) % 128;
        atomicAdd(&to[neighbour], from[v]);
    }
}
