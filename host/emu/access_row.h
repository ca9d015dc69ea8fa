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
#if defined(__AVX512F__)
    const __m512i ramp = _mm512_mullo_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi32((int)step));
    const __m512i low = _mm512_add_epi32(_mm512_set1_epi32((int)a[0]), ramp);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32((int)(16 * step)));
    return (_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(a), low) |
            _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(a + 16), high)) == 0;
#elif defined(__AVX2__)
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
#if defined(__AVX512F__)
    const __m512i step8 = _mm512_set1_epi64((long long)(8 * step));
    __m512i wanted =
        _mm512_add_epi64(_mm512_set1_epi64((long long)a[0]),
                         _mm512_set_epi64((long long)(7 * step), (long long)(6 * step), (long long)(5 * step),
                                          (long long)(4 * step), (long long)(3 * step), (long long)(2 * step),
                                          (long long)step, 0));
    unsigned apart = 0;
    for (unsigned k = 0; k < EMU_LANES; k += 8) {
        apart |= _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(a + k), wanted);
        wanted = _mm512_add_epi64(wanted, step8);
    }
    return apart == 0;
#elif defined(__AVX2__)
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

static inline void row_seen(const struct emu_warp *warp, const struct emu_op *op, enum clab_space_id space,
                            const struct emu_cta *owner, unsigned size, enum emu_access_mode mode,
                            const unsigned char *at)
{
    (void)warp, (void)op, (void)space, (void)owner, (void)size, (void)mode, (void)at;
    EMU_HOOK_ACCESS(warp, op,
                    &(struct emu_access){.kind = mode == EMU_LOAD ? EMU_ACCESS_LOAD : EMU_ACCESS_STORE,
                                         .shape = EMU_SHAPE_ROW,
                                         .space = space,
                                         .lanes = EMU_ALL,
                                         .bytes = 1u << size,
                                         .owner = owner,
                                         .at = at});
}

/* Where lane 0's element of 1 << size bytes lies in the CTA's own shared memory, the others' behind it;
   false: not of this kind. Counts the access when it is. Not for handlers with hooks: tells no observer. */
static inline bool emu_row_shared(const struct emu_warp *warp, const struct emu_op *op, const unsigned size,
                                  const enum emu_access_mode mode, unsigned char **out_at)
{
    const struct emu_cta *cta = warp->cta;
    const uint32_t *a = EMU_ROW(uint32_t, warp, op->a);
    /* Another CTA's window starts 16 MiB away, further than shared memory is long. */
    const uint32_t start = a[0] + (uint32_t)op->imm - cta->shared_window;
    if (start + ((uint64_t)EMU_LANES << size) > cta->shared_end || (start & ((1u << size) - 1)) ||
        !emu_is_row32(a, 1u << size)) {
        return false;
    }
    uint64_t *counted = mode == EMU_LOAD ? &warp->traffic->loads[CLAB_SPACE_SHARED][size]
                                         : &warp->traffic->stores[CLAB_SPACE_SHARED][size];
    *counted += EMU_LANES;
    *out_at = cta->shared + start;
    row_seen(warp, op, CLAB_SPACE_SHARED, cta, size, mode, *out_at);
    return true;
}

/* The same in global memory. */
static inline bool emu_row_global(const struct emu_warp *warp, const struct emu_op *op, const unsigned size,
                                  const enum emu_access_mode mode, unsigned char **out_at)
{
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    const uint64_t start = a[0] + op->imm;
    uint16_t flags;
    if ((start & ((1u << size) - 1)) || !emu_is_row64(a, 1u << size) ||
        !emu_access_near(emu_warp_space(warp), start, (unsigned)EMU_LANES << size, mode != EMU_LOAD,
                         &flags) ||
        (flags & (EMU_GRANULE_CONST | EMU_GRANULE_PARAM))) {
        return false;
    }
    uint64_t *counted = mode == EMU_LOAD ? &warp->traffic->loads[CLAB_SPACE_GLOBAL][size]
                                         : &warp->traffic->stores[CLAB_SPACE_GLOBAL][size];
    *counted += EMU_LANES;
    *out_at = (unsigned char *)(uintptr_t)start;
    row_seen(warp, op, CLAB_SPACE_GLOBAL, NULL, size, mode, *out_at);
    return true;
}

#endif
