// graph_pull: vertices pull their neighbours' values while these are replaced.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(4) --arg u32[128]
// EXPECT:   race-global @pull @put
// ALLOW:    race-global

extern "C" __global__ void graph_pull(unsigned *value, unsigned *next)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x;
    unsigned most = value[v];
    for (unsigned k = 1; k <= 4; k++) {
        const unsigned other = value[(v * k + 17) % 128]; // @pull
        most = other > most ? other : most;
    }
    value[v] = most; // @put
}
