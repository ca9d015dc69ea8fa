// tree_insert_ok: before it, with a fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[8]:4294967295 --arg u32[256] --arg u32[4]
// EXPECT:   clean

extern "C" __global__ void tree_insert_ok(unsigned *child, unsigned *field, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    const unsigned mine = blockIdx.x, place = blockIdx.x / 2;
    field[mine] = mine + 100; // @field
    __threadfence();
    const unsigned before = atomicCAS(&child[place], 0xffffffffu, mine);
    if (before != 0xffffffffu) {
        __threadfence();
        out[blockIdx.x] = field[before]; // @follow
    }
}
