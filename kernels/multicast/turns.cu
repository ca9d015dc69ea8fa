/* Explicit multicast by turns: in each round another CTA loads the whole tile and sends it to all. Between its turns a producer
   waits for nothing, so that phases of the other rounds pass unseen, against PTX's rule that some thread waits for each (the
   checker: mbarrier-ahead). The parity does not mislead: the stage of its own turn goes no further without its copy. */
#include "ways.cuh"

struct turns : together {
    const unsigned char *source;
    u32 tile_bytes, rank = cluster_rank();
    mutable walk at;
    __device__ turns(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes),
          at(cluster_id() + cluster_rank() * cluster_count(), cluster_count() * cluster_size(), tiles)
    {
    }
    __device__ __forceinline__ bool fills(u32 round) const { return round % size == rank; }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in_multicast(stage, source + (u64)at.next() * tile_bytes, tile_bytes, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_turns(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, turns(source, tile_bytes, tiles));
}
