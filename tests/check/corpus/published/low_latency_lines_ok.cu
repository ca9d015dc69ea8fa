// low_latency_lines_ok: data and flags come with one load of 16 bytes, as NCCL's LL protocol has it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[128]:0 --arg u32[64]
// EXPECT:   clean
typedef unsigned int u32;

// 8 bytes of data and two flags a line, written and read as a whole.
extern "C" __global__ void low_latency_lines_ok(u32 *lines, u32 *out)
{
    const u32 t = threadIdx.x;
    u32 *line = lines + 4 * t;
    if (blockIdx.x == 0) {
        asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(line), "r"(t * 3), "r"(1), "r"(t * 5) : "memory");
    } else {
        u32 a, b, f, g;
        do
            asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(f), "=r"(b), "=r"(g) : "l"(line) : "memory");
        while (f != 1 || g != 1);
        out[2 * t] = a;
        out[2 * t + 1] = b;
    }
}
