// bank_padding_overrun_ok: strided by 33.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[66]
// EXPECT:   clean

extern "C" __global__ void bank_padding_overrun_ok(unsigned *out)
{
    __shared__ unsigned rows[66];
    const unsigned row = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned *mine = rows + row * 33;
    mine[lane] = row * 100 + lane; // @store
    if (lane == 0)
        mine[32] = row * 100 + 50; // @pad
    __syncthreads();
    out[row * 33 + lane] = mine[lane];
}
