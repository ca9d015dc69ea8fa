/* Device models: one row per emulated device, each number with its source.

   Sources, by mark:
     [M]   read from an H200 (driver 580.159.04, 2026-11-30), or measured on it
     [CPG] CUDA Programming Guide 13.0, "Compute Capabilities", tables of technical specifications
     [DS]  NVIDIA's data sheet or architecture white paper of the product
     [?]   not published: our choice, which no verdict depends on

   CC 9.0, 10.0, 10.3, 11.0: 228 KiB shared memory per SM and 227 KiB per CTA, 64 K registers, 2048 threads
   (11.0: 1536) per SM; CC 12.x: 100 and 99 KiB, 1536 threads, 24 CTAs per SM [CPG]. SM groups: which SMs can
   host one cluster together. Only the H200's are known (they follow from the active-cluster counts it
   answers); the others are whole GPCs as far as published, marked UNVERIFIED. */
#include "emu/core.h"

#include <string.h>

#define KIB 1024u
#define GIB (UINT64_C(1) << 30)

const struct emu_model emu_models[] = {
    {
        .arch = "sm_90",
        .name = "NVIDIA H200 (emulated by clusterlab)",
        .sm = 90,
        .cc_major = 9,
        .cc_minor = 0,
        .sms = 132,
        .clock_khz = 1980000,
        .memory_clock_khz = 3201000,
        .bus_bits = 6016,
        .l2_bytes = 62914560, /* [M] */
        .shared_per_sm_bytes = 228 * KIB,
        .shared_per_block_optin_bytes = 227 * KIB,
        .registers_per_sm = 65536,
        .threads_per_sm = 2048,
        .ctas_per_sm = 32,
        .memory_bytes = 150109880320, /* [M] */
        .max_cluster_portable = 8,
        .max_cluster = 16,                                        /* [M] */
        .sm_groups = {18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2}, /* [M] */
    },
    {
        .arch = "sm_100",
        .name = "NVIDIA B200 (emulated by clusterlab)",
        .sm = 100,
        .cc_major = 10,
        .cc_minor = 0,
        .sms = 148,
        .clock_khz = 1965000,
        .memory_clock_khz = 3996000,
        .bus_bits = 8192,
        .l2_bytes = 132644864, /* [DS] */
        .shared_per_sm_bytes = 228 * KIB,
        .shared_per_block_optin_bytes = 227 * KIB,
        .registers_per_sm = 65536,
        .threads_per_sm = 2048,
        .ctas_per_sm = 32,
        .memory_bytes = 178 * GIB, /* [DS]: 180 GB usable */
        .max_cluster_portable = 8,
        .max_cluster = 16, /* ptx-facts: 16 on B200 */
        /* UNVERIFIED: 148 SMs over 8 GPCs; the split is our choice [?]. */
        .sm_groups = {20, 20, 18, 18, 18, 18, 18, 18},
    },
    {
        .arch = "sm_103",
        .name = "NVIDIA B300 (emulated by clusterlab)",
        .sm = 103,
        .cc_major = 10,
        .cc_minor = 3,
        .sms = 148,
        .clock_khz = 2032000,
        .memory_clock_khz = 3996000,
        .bus_bits = 8192,
        .l2_bytes = 132644864, /* [DS] */
        .shared_per_sm_bytes = 228 * KIB,
        .shared_per_block_optin_bytes = 227 * KIB,
        .registers_per_sm = 65536,
        .threads_per_sm = 2048,
        .ctas_per_sm = 32,
        .memory_bytes = 268 * GIB, /* [DS]: 288 GB */
        .max_cluster_portable = 8,
        .max_cluster = 16,
        /* UNVERIFIED: as B200 [?]. */
        .sm_groups = {20, 20, 18, 18, 18, 18, 18, 18},
    },
    {
        .arch = "sm_110",
        .name = "NVIDIA Thor (emulated by clusterlab)",
        .sm = 110,
        .cc_major = 11,
        .cc_minor = 0,
        .sms = 20,
        .clock_khz = 1575000,
        .memory_clock_khz = 4266000,
        .bus_bits = 256,
        .l2_bytes = 33554432, /* [DS] */
        .shared_per_sm_bytes = 228 * KIB,
        .shared_per_block_optin_bytes = 227 * KIB,
        .registers_per_sm = 65536,
        .threads_per_sm = 1536,
        .ctas_per_sm = 24,
        .memory_bytes = 122 * GIB, /* [DS]: 128 GB shared with the host */
        .max_cluster_portable = 8,
        .max_cluster = 8, /* ptx-facts: Jetson Thor's maximum is 8 */
        /* UNVERIFIED: 20 SMs in 3 GPCs; the split is our choice [?]. */
        .sm_groups = {8, 6, 6},
    },
    {
        .arch = "sm_120",
        .name = "NVIDIA GeForce RTX 5090 (emulated by clusterlab)",
        .sm = 120,
        .cc_major = 12,
        .cc_minor = 0,
        .sms = 170,
        .clock_khz = 2407000,
        .memory_clock_khz = 14001000,
        .bus_bits = 512,
        .l2_bytes = 100663296, /* [DS] */
        .shared_per_sm_bytes = 100 * KIB,
        .shared_per_block_optin_bytes = 99 * KIB,
        .registers_per_sm = 65536,
        .threads_per_sm = 1536,
        .ctas_per_sm = 24,
        .memory_bytes = UINT64_C(34190917632), /* [DS]: 32 GB */
        /* UNVERIFIED: 16 with the non-portable attribute, as on the other discrete parts. */
        .max_cluster_portable = 8,
        .max_cluster = 16,
        /* UNVERIFIED: 170 SMs in 11 GPCs of up to 16; the split is our choice [?]. */
        .sm_groups = {16, 16, 16, 16, 16, 16, 16, 16, 14, 14, 14},
    },
    {
        .arch = "sm_121",
        .name = "NVIDIA GB10 (emulated by clusterlab)",
        .sm = 121,
        .cc_major = 12,
        .cc_minor = 1,
        .sms = 48,
        .clock_khz = 2418000,
        .memory_clock_khz = 4266000,
        .bus_bits = 256,
        .l2_bytes = 25165824, /* [DS] */
        .shared_per_sm_bytes = 100 * KIB,
        .shared_per_block_optin_bytes = 99 * KIB,
        .registers_per_sm = 65536,
        .threads_per_sm = 1536,
        .ctas_per_sm = 24,
        .memory_bytes = 119 * GIB, /* [DS]: 128 GB shared with the host */
        /* UNVERIFIED: 8, as on the other integrated part. */
        .max_cluster_portable = 8,
        .max_cluster = 8,
        /* UNVERIFIED: 48 SMs; the split is our choice [?]. */
        .sm_groups = {16, 16, 16},
    },
};
const unsigned emu_model_count = sizeof emu_models / sizeof emu_models[0];

const struct emu_model *emu_model_get(const char *arch)
{
    size_t bytes = strlen(arch);
    if (bytes > 0 && (arch[bytes - 1] == 'a' || arch[bytes - 1] == 'f'))
        bytes--;
    for (unsigned i = 0; i < emu_model_count; i++)
        if (strlen(emu_models[i].arch) == bytes && memcmp(emu_models[i].arch, arch, bytes) == 0)
            return &emu_models[i];
    return NULL;
}
