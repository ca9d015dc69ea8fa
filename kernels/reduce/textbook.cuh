/* What the textbook variants share: the block sum, and the cluster instructions as inline PTX.

   Contract of each variant: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n)
   after. Launch: block a power of two up to 1024, one-dimensional; grid x 2 x block >= n, any more CTAs add zero; the
   grid a multiple of the cluster, which is one-dimensional, 1 to 16 CTAs. */
#pragma once

#define MAX_BLOCK   1024
#define MAX_CLUSTER 16

/* Sums the CTA's 2 x blockDim.x elements in a tree over `tile`; thread 0 gets the total, which is tile[0] too. Ends with
   a CTA barrier. */
__device__ __forceinline__ float block_total(float tile[MAX_BLOCK], const float *input, unsigned long long n)
{
    const unsigned int tid = threadIdx.x;
    const unsigned long long first = blockIdx.x * 2ull * blockDim.x + tid, second = first + blockDim.x;

    float total = first < n ? input[first] : 0.0f;
    if (second < n)
        total += input[second];
    tile[tid] = total;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            tile[tid] = total += tile[tid + half];
        __syncthreads();
    }
    return total;
}

/* PTX ISA 8.0, sm_90: barrier.cluster, mapa, ld and st on shared::cluster. Every thread of a warp comes along
   (.aligned). The "memory" clobbers keep the compiler's own ordering in step with the hardware's. */

__device__ __forceinline__ void cluster_arrive_release()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/* Publishes nothing: what this thread wrote before need not be visible to the peers. */
__device__ __forceinline__ void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ unsigned int cluster_rank()
{
    unsigned int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ unsigned int cluster_size()
{
    unsigned int size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/* The shared::cluster address that `here`, a shared variable of this CTA, has in the CTA of that rank. */
__device__ __forceinline__ unsigned int cluster_map(const float *here, unsigned int rank)
{
    unsigned int own = (unsigned int)__cvta_generic_to_shared(here), there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    return there;
}

__device__ __forceinline__ float cluster_load(unsigned int address)
{
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
    return value;
}

__device__ __forceinline__ void cluster_store(unsigned int address, float value)
{
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
