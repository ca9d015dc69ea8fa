/* mbarriers, bulk copies and cluster barriers as inline PTX. PTX ISA 8.0, sm_90. Addresses are 32-bit shared window
   addresses; those of a peer come from peer_address. */
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ u32 cluster_rank()
{
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ u32 cluster_size()
{
    u32 size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/* The grids here are one row of clusters. */
__device__ __forceinline__ u32 cluster_id()
{
    u32 id;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
    return id;
}

__device__ __forceinline__ u32 cluster_count()
{
    u32 count;
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
    return count;
}

/* The same offset in the shared memory of the CTA of that rank. */
__device__ __forceinline__ u32 peer_address(u32 address, u32 rank)
{
    u32 peer;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address), "r"(rank));
    return peer;
}

/* .aligned wants the whole warp together, which a branch before it does not leave behind by itself. */
__device__ __forceinline__ void cluster_barrier()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

__device__ __forceinline__ void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* After the inits, before the cluster barrier that lets peers use them. */
__device__ __forceinline__ void barrier_init_visible()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* The common idiom. Its default semantics are .release.cta, too narrow a scope for a peer by the letter of the memory
   model; what it costs to write a wider one is what arrive_scope measures. */
__device__ __forceinline__ void arrive_remote(u32 peer_barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(peer_barrier) : "memory");
}

/* Until the phase of that parity has completed. */
__device__ __forceinline__ void wait_phase(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "AGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra AGAIN;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* From global memory to `to`, whose CTA has `barrier` too: this one or, with peer addresses, a peer. */
__device__ __forceinline__ void copy_in(u32 to, const void *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* To the same offset of every CTA in `mask`, each of whose barriers at the same offset gets the bytes. */
__device__ __forceinline__ void copy_in_multicast(u32 to, const void *from, u32 bytes, u32 barrier, u32 mask)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "h"((unsigned short)mask)
                 : "memory");
}

/* What cuda.h calls CUtensorMap, which NVRTC cannot include. */
struct alignas(64) tensor_map {
    u64 words[16];
};

__device__ __forceinline__ void copy_box(u32 to, const tensor_map *map, int x, int y, u32 barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void copy_box_multicast(u32 to, const tensor_map *map, int x, int y, u32 barrier, u32 mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((unsigned short)mask)
                 : "memory");
}
