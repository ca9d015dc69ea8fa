// try_wait_once: try_wait may give up before the phase is complete, and nobody asks again.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[256]:iota --arg u32[256]
// EXPECT:   async-read-early @copy @read
// ALLOW:    async-exit

extern "C" __global__ void try_wait_once(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned words[256];
    __shared__ alignas(8) unsigned long long bar;
    const unsigned b = (unsigned)__cvta_generic_to_shared(&bar), w = (unsigned)__cvta_generic_to_shared(words);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\tfence.proxy.async.shared::cta;" ::"r"(b) : "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(b) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(w), "l"(in), "r"(b) : "memory"); // @copy
    }
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(b) : "memory");
    out[threadIdx.x] = words[threadIdx.x]; // @read
}
