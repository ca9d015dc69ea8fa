/* How many CTAs of a kernel one SM holds, and how many clusters the device holds (CUDA Driver API 13.0,
   "Occupancy").

   CTAs per SM are limited by CTA slots, threads, registers and shared memory. Registers are allocated per
   warp in units of 256, warps in multiples of four; shared memory in units of 128 bytes, 1 KiB of it reserved
   per CTA (CUDA 13.0, cuda_occupancy.h). Active clusters: the sum over the model's SM groups of at least
   `size` SMs of floor(SMs x CTAs per SM / size), with at most eight CTAs per SM; that formula gave every
   count that an H200 answered (driver 580.159.04: cluster sizes 1 to 32, blocks of 32 to 1024 threads, 0 to
   227 KiB of shared memory). */
#include "emu/core.h"

#define REGISTER_UNIT     256u /* per warp */
#define WARP_UNIT         4u   /* warps are allocated to the SM's four partitions */
#define SHARED_UNIT       128u
#define SHARED_RESERVED   1024u
#define REGISTERS_PER_CTA 65536u
/* UNVERIFIED on other devices than the H200. */
#define CLUSTER_CTAS_PER_SM 8u

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t emu_occupancy_ctas(const struct emu_model *model, const struct emu_kernel *kernel,
                            uint32_t block_threads, uint32_t dynamic_shared_bytes)
{
    struct emu_kernel_info info;
    emu_kernel_info_get(kernel, &info);
    if (block_threads == 0 || block_threads > 1024)
        return 0;
    uint32_t warps = (block_threads + 31) / 32;
    uint32_t ctas = least(model->ctas_per_sm, model->threads_per_sm / (warps * 32));

    uint32_t registers = info.registers_modelled;
    if (registers != 0) {
        uint32_t per_warp = (uint32_t)round_up((uint64_t)registers * 32, REGISTER_UNIT);
        uint32_t warps_per_sm = model->registers_per_sm / WARP_UNIT / per_warp * WARP_UNIT;
        /* The number is an estimate, at times twice what ptxas needs: it lowers the count, and refuses
         * nothing. */
        bool fits = (uint64_t)per_warp * round_up(warps, WARP_UNIT) <= REGISTERS_PER_CTA;
        ctas = least(ctas, fits && warps_per_sm > warps ? warps_per_sm / warps : 1);
    }

    uint64_t shared = (uint64_t)info.static_shared_bytes + dynamic_shared_bytes;
    if (shared > model->shared_per_block_optin_bytes)
        return 0;
    uint64_t per_cta = round_up(shared + SHARED_RESERVED, SHARED_UNIT);
    return least(ctas, (uint32_t)(model->shared_per_sm_bytes / per_cta));
}

uint32_t emu_occupancy_clusters(const struct emu_model *model, const struct emu_kernel *kernel,
                                uint32_t block_threads, uint32_t dynamic_shared_bytes, uint32_t size)
{
    uint32_t per_sm = emu_occupancy_ctas(model, kernel, block_threads, dynamic_shared_bytes), clusters = 0;
    per_sm = least(per_sm, CLUSTER_CTAS_PER_SM);
    if (size == 0)
        return 0;
    for (unsigned i = 0; i < sizeof model->sm_groups && model->sm_groups[i] != 0; i++)
        if (model->sm_groups[i] >= size)
            clusters += model->sm_groups[i] * per_sm / size;
    return clusters;
}
