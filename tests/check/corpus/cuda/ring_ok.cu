// ring_ok: a ring of bulk copies between a producing thread and a consuming warp.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[32]
// EXPECT:   clean

static __device__ unsigned at(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared); }
static __device__ void wait(unsigned bar, unsigned parity)
{
    asm volatile("{ .reg .pred done;\nagain: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra again; }" ::"r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void ring_ok(const unsigned *in, unsigned *out)
{
    __shared__ alignas(128) unsigned tile[2][64];
    __shared__ unsigned long long full[2], empty[2];
    if (threadIdx.x < 2) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&full[threadIdx.x])) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at(&empty[threadIdx.x])) : "memory");
    }
    __syncthreads();
    if (threadIdx.x < 32) { // the consumers
        unsigned sum = 0;
        for (unsigned i = 0; i < 8; i++) {
            wait(at(&full[i % 2]), i / 2 % 2);
            sum += tile[i % 2][threadIdx.x] + tile[i % 2][threadIdx.x + 32];
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&empty[i % 2])) : "memory");
        }
        out[threadIdx.x] = sum;
    } else if (threadIdx.x == 32) { // the producer
        for (unsigned i = 0; i < 8; i++) {
            wait(at(&empty[i % 2]), i / 2 % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(at(&full[i % 2])) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" // @copy
                         ::"r"(at(tile[i % 2])), "l"(in + i * 64), "r"(at(&full[i % 2])) : "memory");
        }
    }
}
