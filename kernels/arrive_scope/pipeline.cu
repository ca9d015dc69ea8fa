/* The multicast pipeline (kernels/multicast/slices.cu) with the consumer's release and the waits as options say:

     -DARRIVE_DEFAULT    mbarrier.arrive.shared::cluster: .release.cta by default, one lane per peer
     -DARRIVE_RELAXED    .relaxed.cluster, one lane per peer (PTX ISA 8.6)
     -DARRIVE_RELEASE    .release.cluster, one lane per peer
     -DONE_THREAD        the same by one thread in a loop over the peers
     -DACQUIRE_CLUSTER   the waits with .acquire.cluster, else their default, .acquire.cta

   By the memory model only .release.cluster with .acquire.cluster orders a peer's copy into the stage after the reads that
   the release announces. The narrower forms are common practice: the copy is issued by a thread that waited for the
   arrivals, and each arrival is issued after its reads returned. */
#include "../multicast/ways.cuh"

#if defined(ARRIVE_RELEASE)
#define ARRIVE "mbarrier.arrive.release.cluster.shared::cluster.b64"
#elif defined(ARRIVE_RELAXED)
#define ARRIVE "mbarrier.arrive.relaxed.cluster.shared::cluster.b64"
#elif defined(ARRIVE_DEFAULT)
#define ARRIVE "mbarrier.arrive.shared::cluster.b64"
#endif

#if defined(ACQUIRE_CLUSTER)
#define TRY_WAIT "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
#else
#define TRY_WAIT "mbarrier.try_wait.parity.shared::cta.b64"
#endif

__device__ __forceinline__ void announce(u32 peer_barrier)
{
    asm volatile(ARRIVE " _, [%0];" ::"r"(peer_barrier) : "memory");
}

struct pipeline : together {
    const unsigned char *source;
    u32 tile_bytes, slice_bytes, offset;
    mutable walk at;
    __device__ pipeline(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), slice_bytes(bytes / cluster_size()), offset(cluster_rank() * slice_bytes),
          at(cluster_id(), cluster_count(), tiles)
    {
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in_multicast(stage + offset, source + (u64)at.next() * tile_bytes + offset, slice_bytes, full, all());
    }
    __device__ __forceinline__ void release(u32 empty, u32) const
    {
        const u32 lane = threadIdx.x % 32;
#if defined(ONE_THREAD)
        for (u32 rank = 0; lane == 0 && rank < size; rank++)
            announce(peer_address(empty, rank));
#else
        if (lane < size)
            announce(peer_address(empty, lane));
#endif
    }
    __device__ __forceinline__ void wait(u32 barrier, u32 parity) const
    {
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "AGAIN:\n" TRY_WAIT " done, [%0], %1;\n"
                     "@!done bra AGAIN;\n"
                     "}" ::"r"(barrier),
                     "r"(parity)
                     : "memory");
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) arrive_scope(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, pipeline(source, tile_bytes, tiles));
}
