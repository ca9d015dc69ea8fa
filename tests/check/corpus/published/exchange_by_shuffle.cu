// exchange_by_shuffle: lane 0 takes a slot and fills it, a vote says that it has, and the others read it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[1]:0 --arg u32[64] --arg u32[64]
// EXPECT:   race-global
extern "C" __global__ void exchange_by_shuffle(unsigned *next, unsigned *slots, unsigned *out)
{
    unsigned slot = 0, done = 0;
    if (threadIdx.x == 0) {
        slot = atomicAdd(next, 1);
        slots[slot] = blockIdx.x * 7;
        done = 1;
    }
    slot = __shfl_sync(0xffffffff, slot, 0);
    while (!__any_sync(0xffffffff, done))
        continue;
    out[blockIdx.x * 32 + threadIdx.x] = slots[slot] + done;
}
