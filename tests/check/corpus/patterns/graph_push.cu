// graph_push: vertices push to their neighbours by plain adds.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:ones --arg u32[128]
// EXPECT:   race-global @push
// ALLOW:    race-global race-same-value

extern "C" __global__ void graph_push(const unsigned *from, unsigned *to)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x;
    for (unsigned k = 1; k <= 4; k++) {
        const unsigned neighbour = (v * k + 17) % 128;
        to[neighbour] += from[v]; // @push
    }
}
