/* f16 and bf16 as 32-bit integers in, floats out, and back, rounded to nearest even. Branch-free, so that
   lane loops vectorise on every instruction set. Other formats and rounding modes: format.h. */
#ifndef CLAB_EMU_HALF_H
#define CLAB_EMU_HALF_H

#include "emu/alu.h"

/* Exact. A NaN stays a NaN. Rebias the exponent by 112; exponents 0 and 31 need a correction: a subnormal is
   made a normal number with a wrong leading one, which the subtraction removes. */
static inline float emu_f16_to_f32(uint32_t h)
{
    const uint32_t shifted = (h & 0x7fffu) << 13;
    const uint32_t exponent = shifted & UINT32_C(0x0f800000);
    const uint32_t normal = shifted + (UINT32_C(112) << 23);
    const uint32_t special = shifted + (UINT32_C(224) << 23);
    const float subnormal = emu_bits_f32(shifted + (UINT32_C(113) << 23)) - emu_bits_f32(UINT32_C(113) << 23);
    const uint32_t large = exponent == UINT32_C(0x0f800000) ? special : normal;
    const uint32_t magnitude = exponent == 0 ? emu_f32_bits(subnormal) : large;
    return emu_bits_f32(magnitude | (h & 0x8000u) << 16);
}

/* Rounds to nearest even; NaN is 7fff. Below 2^-14 an addition of 0.5 leaves the rounded subnormal in the low
 * bits. */
static inline uint32_t emu_f32_to_f16(float x)
{
    const uint32_t u = emu_f32_bits(x);
    const uint32_t magnitude = u & UINT32_C(0x7fffffff);
    const uint32_t odd = magnitude >> 13 & 1;
    const uint32_t normal = (magnitude - (UINT32_C(112) << 23) + 0xfffu + odd) >> 13;
    const uint32_t subnormal = emu_f32_bits(emu_bits_f32(magnitude) + 0.5f) - UINT32_C(0x3f000000);
    const uint32_t finite = magnitude < UINT32_C(0x38800000) ? subnormal : normal;
    const uint32_t r = magnitude >= UINT32_C(0x47800000) ? 0x7c00u : finite;
    return magnitude > UINT32_C(0x7f800000) ? EMU_NAN_F16 : r | (u >> 16 & 0x8000u);
}

static inline float emu_bf16_to_f32(uint32_t h)
{
    return emu_bits_f32(h << 16);
}

/* Rounds to nearest even; NaN is 7fff. */
static inline uint32_t emu_f32_to_bf16(float x)
{
    const uint32_t u = emu_f32_bits(x);
    const uint32_t r = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    return (u & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000) ? EMU_NAN_F16 : r;
}

/* s plus the sign of what its rounding lost, as a number whose last bit is odd when anything was lost:
   rounding that once more to fewer bits (two or more fewer) gives the correctly rounded exact value (round to
   odd). */
static inline double emu_to_odd(double s, double error)
{
    const uint64_t u = emu_f64_bits(s);
    const bool inexact = error > 0 || error < 0; /* false for the NaN of an infinite s */
    const uint64_t toward = (error > 0) == (s > 0) ? u + 1 : u - 1;
    return emu_bits_f64(inexact && !(u & 1) ? toward : u);
}

/* Error of s = a + b, exactly (Knuth's two-sum; round to nearest). */
static inline double emu_sum_error(double a, double b, double s)
{
    const double bb = s - a;
    return (a - (s - bb)) + (b - bb);
}

/* A double already rounded to odd, to f32, rounded to odd again. */
static inline float emu_odd_f32(double x)
{
    const float f = (float)x;
    const double back = f;
    const uint32_t u = emu_f32_bits(f);
    const bool inexact = (x > back || x < back) && back - back == 0;
    const bool larger = (x < 0 ? -x : x) > (back < 0 ? -back : back);
    const uint32_t toward = larger ? u + 1 : u - 1;
    return emu_bits_f32(inexact && !(u & 1) ? toward : u);
}

/* x * y + z, rounded once to nearest: products of f32 are exact in f64. */
static inline float emu_fma_f32(float x, float y, float z)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(x, y, z);
#else
    const double p = (double)x * y;
    const double s = p + z;
    return (float)emu_to_odd(s, emu_sum_error(p, z, s));
#endif
}

#endif
