// signal_between_blocks_ok: after __syncthreads, with release and acquire of system scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256] --arg u32[16]:0 --arg u32[64]
// EXPECT:   clean
typedef unsigned int u32;

// Every block writes its row, signals every other, waits for their signals, and adds up the column.
extern "C" __global__ void signal_between_blocks_ok(u32 *rows, u32 *signals, u32 *out)
{
    const u32 t = threadIdx.x, b = blockIdx.x;
    rows[b * 64 + t] = t * (b + 1);
    __syncthreads();
    if (t < gridDim.x) {
        asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(&signals[t * 4 + b]) : "memory");
        u32 seen;
        do
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(&signals[b * 4 + t]) : "memory");
        while (seen == 0);
    }
    __syncthreads();
    if (b == 0)
        out[t] = rows[t] + rows[64 + t] + rows[128 + t] + rows[192 + t];
}
