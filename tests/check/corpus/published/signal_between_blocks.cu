// signal_between_blocks: an all-reduce's flags are stored volatile by one thread before its block has met.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256] --arg u32[16]:0 --arg u32[64]
// EXPECT:   race-global
// ALLOW:    race-global
typedef unsigned int u32;

// Every block writes its row, signals every other, waits for their signals, and adds up the column.
extern "C" __global__ void signal_between_blocks(u32 *rows, u32 *signals, u32 *out)
{
    const u32 t = threadIdx.x, b = blockIdx.x;
    rows[b * 64 + t] = t * (b + 1);
    if (t < gridDim.x) {
        *(volatile u32 *)&signals[t * 4 + b] = 1;
        while (*(volatile u32 *)&signals[b * 4 + t] == 0)
            continue;
    }
    __syncthreads();
    if (b == 0)
        out[t] = rows[t] + rows[64 + t] + rows[128 + t] + rows[192 + t];
}
