// look_back_plain_ok: the sum first, then a fence, then the status.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 32 --arg u32[8]:ones --arg u32[8] --arg u32[8] --arg u32[8]
// EXPECT:   clean

extern "C" __global__ void look_back_plain_ok(const unsigned *in, unsigned *status, unsigned *sum, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    const unsigned tile = blockIdx.x;
    unsigned before = 0;
    if (tile > 0) {
        while (*(volatile unsigned *)&status[tile - 1] == 0)
            ;
        __threadfence();
        before = sum[tile - 1]; // @read
    }
    sum[tile] = before + in[tile]; // @sum
    __threadfence();
    *(volatile unsigned *)&status[tile] = 1;
    out[tile] = before;
}
