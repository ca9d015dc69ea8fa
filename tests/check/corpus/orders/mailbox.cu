// mailbox: the flag has block scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[1] --arg u32:1
// EXPECT:   race-remote|race-scope @store @read within cluster
// ALLOW:    race-scope race-remote narrow-scope
#include <cooperative_groups.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

// A mailbox in the peer's shared memory: a word and the turn it belongs to.
extern "C" __global__ void mailbox(unsigned *out, unsigned turns)
{
    __shared__ unsigned word, turn_of;
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();
    if (threadIdx.x == 0)
        word = turn_of = 0;
    cluster.sync();
    if (threadIdx.x == 0) {
        using remote = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
        unsigned *box = cluster.map_shared_rank(&word, rank ^ 1);
        remote sent(*cluster.map_shared_rank(&turn_of, rank ^ 1)), got(turn_of);
        if (rank == 0) {
            box[0] = 17; // @store
            sent.store(1, cuda::memory_order_release);
        } else {
            while (got.load(cuda::memory_order_acquire) == 0)
                ;
            out[0] = word; // @read
        }
    }
    cluster.sync();
}
