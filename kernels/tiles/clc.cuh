/* Cluster launch control and the mbarrier it answers through, as inline PTX. PTX ISA 9.0, clusterlaunchcontrol.try_cancel,
   clusterlaunchcontrol.query_cancel, mbarrier; sm_100. The "memory" clobbers keep the compiler's order in step. */
#pragma once

#include "tile.cuh"

/* A 16-byte answer and the barrier that tells that it is there. */
struct __align__(16) clc_slot {
    uint4 answer;
    u64 barrier;
};

__device__ __forceinline__ u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void clc_init(clc_slot *slot)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&slot->barrier)) : "memory");
}

/* This phase waits for 16 bytes: by one thread of each CTA that the answer goes to. */
__device__ __forceinline__ void clc_arm(clc_slot *slot)
{
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], 16;" ::"r"(
                     shared_address(&slot->barrier))
                 : "memory");
}

/* Asks for one cluster that has not started. Before a slot is used again: every thread has read the last answer, a barrier
   of the CTA (or cluster) lies between, and this fence orders those reads before the write that the request makes. */
__device__ __forceinline__ void clc_ask(clc_slot *slot)
{
    asm volatile("fence.proxy.async.shared::cta;\n\t"
                 "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
                     shared_address(&slot->answer)),
                 "r"(shared_address(&slot->barrier))
                 : "memory");
}

/* Whether the answer took a cluster; then *out_ctaid is the ctaid.x of that cluster's first CTA. */
__device__ __forceinline__ bool clc_wait(clc_slot *slot, u32 parity, u32 *out_ctaid)
{
    u32 taken, x;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 ".reg .b128 r;\n\t"
                 ".reg .b64 lo, hi;\n\t"
                 "clc_wait:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%3], %4;\n\t"
                 "@!p bra clc_wait;\n\t"
                 "ld.shared.v2.b64 {lo, hi}, [%2];\n\t"
                 "mov.b128 r, {lo, hi};\n\t"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "mov.u32 %1, 0;\n\t"
                 "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, r;\n\t"
                 "}"
                 : "=&r"(taken), "=&r"(x)
                 : "r"(shared_address(&slot->answer)), "r"(shared_address(&slot->barrier)), "r"(parity)
                 : "memory");
    *out_ctaid = x;
    return taken != 0;
}
