// union_find: parents are looked up plainly while others link them by atomicCAS.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:iota
// EXPECT:   race-global @up
// ALLOW:    race-global

extern "C" __global__ void union_find(unsigned *parent)
{
    const unsigned v = blockIdx.x * 64 + threadIdx.x;
    unsigned *up = parent;
    unsigned a = v, b = (v * 5 + 3) % 128;
    for (;;) {
        while (up[a] != a) // @up
            a = up[a];
        while (up[b] != b)
            b = up[b];
        if (a == b)
            break;
        if (a < b) {
            const unsigned t = a;
            a = b;
            b = t;
        }
        if (atomicCAS(&parent[a], a, b) == a)
            break;
    }
}
