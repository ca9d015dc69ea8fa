/* The most frequent access, in as few steps as it has: a whole warp names consecutive elements of shared or
   global memory. What is not that goes through access.h, which also words the faults. Kept apart from it so
   that a handler's fast half needs no stack: with AVX2, ld.shared.u32 takes 42 host instructions in place of
   93 (callgrind, gcc 12, the barrier loop of tools/bench-emulator). */
#ifndef CLAB_EMU_ACCESS_ROW_H
#define CLAB_EMU_ACCESS_ROW_H

#include "emu/access.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Whether a[i] = a[0] + i * step for all lanes. */
static inline bool emu_is_row32(const uint32_t *a, uint32_t step)
{
#if defined(__AVX2__)
    const __m256i *row = (const __m256i *)(const void *)a;
    const __m256i ramp =
        _mm256_mullo_epi32(_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), _mm256_set1_epi32((int)step));
    const __m256i first = _mm256_add_epi32(_mm256_set1_epi32((int)a[0]), ramp);
    __m256i apart = _mm256_setzero_si256();
    for (unsigned k = 0; k < EMU_LANES / 8; k++) {
        const __m256i wanted = _mm256_add_epi32(first, _mm256_set1_epi32((int)(8 * k * step)));
        apart = _mm256_or_si256(apart, _mm256_xor_si256(_mm256_loadu_si256(&row[k]), wanted));
    }
    return _mm256_testz_si256(apart, apart);
#else
    uint32_t apart = 0;
    EMU_EACH_LANE(i)
    {
        apart |= a[i] ^ (a[0] + i * step);
    }
    return apart == 0;
#endif
}

static inline bool emu_is_row64(const uint64_t *a, uint64_t step)
{
#if defined(__AVX2__)
    const __m256i *row = (const __m256i *)(const void *)a;
    const __m256i ramp = _mm256_set_epi64x((long long)(3 * step), (long long)(2 * step), (long long)step, 0);
    const __m256i first = _mm256_add_epi64(_mm256_set1_epi64x((long long)a[0]), ramp);
    __m256i apart = _mm256_setzero_si256();
    for (unsigned k = 0; k < EMU_LANES / 4; k++) {
        const __m256i wanted = _mm256_add_epi64(first, _mm256_set1_epi64x((long long)(4 * k * step)));
        apart = _mm256_or_si256(apart, _mm256_xor_si256(_mm256_loadu_si256(&row[k]), wanted));
    }
    return _mm256_testz_si256(apart, apart);
#else
    uint64_t apart = 0;
    EMU_EACH_LANE(i)
    {
        apart |= a[i] ^ (a[0] + i * step);
    }
    return apart == 0;
#endif
}

/* Where lane 0's element of 1 << size bytes lies in the CTA's own shared memory, the others' behind it; NULL:
   not of this kind. Counts the access when it is. Not for handlers with hooks: tells no observer. */
static inline unsigned char *emu_row_shared(const struct emu_warp *warp, const struct emu_op *op,
                                            const unsigned size, const enum emu_access_mode mode)
{
    const struct emu_cta *cta = warp->cta;
    const uint32_t *a = EMU_ROW(uint32_t, warp, op->a);
    /* Another CTA's window starts 16 MiB away, further than shared memory is long. */
    const uint32_t start = a[0] + (uint32_t)op->imm - (cta->rank << EMU_RANK_SHIFT) - EMU_SHARED_FIRST;
    if (start + ((uint64_t)EMU_LANES << size) > cta->shared_bytes || (start & ((1u << size) - 1)) ||
        !emu_is_row32(a, 1u << size)) {
        return NULL;
    }
    uint64_t *counted = mode == EMU_LOAD ? &warp->traffic->loads[CLAB_SPACE_SHARED][size]
                                         : &warp->traffic->stores[CLAB_SPACE_SHARED][size];
    *counted += EMU_LANES;
    return cta->shared + start;
}

/* The same in global memory. */
static inline unsigned char *emu_row_global(const struct emu_warp *warp, const struct emu_op *op,
                                            const unsigned size, const enum emu_access_mode mode)
{
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    const uint64_t start = a[0] + op->imm;
    uint16_t flags;
    if ((start & ((1u << size) - 1)) || !emu_is_row64(a, 1u << size) ||
        !emu_access_near(emu_warp_space(warp), start, (unsigned)EMU_LANES << size, mode != EMU_LOAD,
                         &flags) ||
        (flags & (EMU_GRANULE_CONST | EMU_GRANULE_PARAM))) {
        return NULL;
    }
    uint64_t *counted = mode == EMU_LOAD ? &warp->traffic->loads[CLAB_SPACE_GLOBAL][size]
                                         : &warp->traffic->stores[CLAB_SPACE_GLOBAL][size];
    *counted += EMU_LANES;
    return (unsigned char *)(uintptr_t)start;
}

#endif
