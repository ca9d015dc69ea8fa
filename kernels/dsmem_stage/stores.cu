/* Without mbarriers: as many tiles as the ring has stages, then a cluster barrier; they are read, then a cluster barrier.
   st_cluster: ordinary st.shared::cluster into the receiver's ring. through_global: into global memory, from where the
   receiver fetches them after the barrier. */
#include "ways.cuh"

__device__ __forceinline__ void store_cluster(u32 to, uint4 value)
{
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
                 : "memory");
}


struct through_peer {
    u32 ring = 0, receiver = receiver_rank(), tile_bytes;
    __device__ explicit through_peer(u32 bytes) : tile_bytes(bytes) {}
    __device__ __forceinline__ void send(u32 stage, const uint4 *from) const
    {
        const u32 to = peer_address(ring + stage * tile_bytes, receiver);
#pragma unroll 8
        for (u32 unit = threadIdx.x; unit < tile_bytes / 16; unit += DSMEM_STAGE_THREADS)
            store_cluster(to + unit * 16, __ldg(from + unit));
    }
    __device__ __forceinline__ void fetch(u32) const {}
};

struct through_global {
    u32 ring = 0, receiver = receiver_rank(), tile_bytes, stages;
    unsigned char *scratch;
    __device__ through_global(u32 bytes, u32 count, unsigned char *memory) : tile_bytes(bytes), stages(count), scratch(memory)
    {
    }
    __device__ __forceinline__ uint4 *place_of(u32 rank, u32 stage) const
    {
        return (uint4 *)(scratch + (u64)((cluster_id() * cluster_size() + rank) * stages + stage) * tile_bytes);
    }
    __device__ __forceinline__ void send(u32 stage, const uint4 *from) const
    {
        uint4 *const to = place_of(receiver, stage);
#pragma unroll 8
        for (u32 unit = threadIdx.x; unit < tile_bytes / 16; unit += DSMEM_STAGE_THREADS)
            to[unit] = __ldg(from + unit);
    }
    __device__ __forceinline__ void fetch(u32 stage) const
    {
        const uint4 *const from = place_of(cluster_rank(), stage);
        const u32 to = ring + stage * tile_bytes;
#pragma unroll 8
        for (u32 unit = threadIdx.x; unit < tile_bytes / 16; unit += DSMEM_STAGE_THREADS) {
            const uint4 value = from[unit];
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + unit * 16), "r"(value.x), "r"(value.y),
                         "r"(value.z), "r"(value.w)
                         : "memory");
        }
    }
};

template <class Way>
__device__ __forceinline__ void batches_run(const ring &r, const unsigned char *source, u32 tiles, Way way)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const u32 ring_bytes = r.stages * r.tile_bytes, cta = cluster_id() * cluster_size() + cluster_rank();
    u32 *const before = (u32 *)memory, *const after = (u32 *)(memory + GUARD_BYTES + ring_bytes);
    walk at = walk_of(receiver_rank(), tiles);
    way.ring = shared_address(memory) + GUARD_BYTES;
    guard_write(before);
    guard_write(after);
    cluster_barrier();
    for (u32 first = 0; first < r.rounds; first += r.stages) {
        const u32 count = min(r.stages, r.rounds - first);
        for (u32 stage = 0; stage < count; stage++)
            way.send(stage, (const uint4 *)(source + (u64)at.next() * r.tile_bytes));
        cluster_barrier(); /* all have landed */
        for (u32 stage = 0; stage < count; stage++)
            way.fetch(stage);
        __syncthreads();
        for (u32 stage = 0; stage < count && r.read_all; stage++)
            digest_add(r.digests + cta * r.rounds + first + stage,
                       digest_part(way.ring + stage * r.tile_bytes, r.tile_bytes, threadIdx.x, DSMEM_STAGE_THREADS, 0));
        cluster_barrier(); /* all have been seen */
    }
    for (u32 i = 0; i < r.stages; i++)
        digest_add(r.last + cta * r.stages + i,
                   digest_part(way.ring + (r.rounds - r.stages + i) % r.stages * r.tile_bytes, r.tile_bytes, threadIdx.x,
                               DSMEM_STAGE_THREADS, 0));
    guard_check(before, r.touched + cta);
    guard_check(after, r.touched + cta);
}

extern "C" __global__ void __launch_bounds__(DSMEM_STAGE_THREADS) dsmem_stage_st_cluster(DSMEM_STAGE_PARAMETERS)
{
    batches_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, source, tiles, through_peer(tile_bytes));
}

extern "C" __global__ void __launch_bounds__(DSMEM_STAGE_THREADS) dsmem_stage_through_global(DSMEM_STAGE_PARAMETERS)
{
    batches_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, source, tiles,
                through_global(tile_bytes, stages, scratch));
}
