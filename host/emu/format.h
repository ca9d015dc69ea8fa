/* Small floating-point formats: encoding a double with any rounding, decoding. For the conversions that are
   not worth a vectorised loop of their own. Formats: PTX ISA 9.0, "Alternate Floating-Point Data Formats",
   "Sub-byte Formats". */
#ifndef CLAB_EMU_FORMAT_H
#define CLAB_EMU_FORMAT_H

#include "emu/alu.h"
#include "emu/round.h"

/* Rounding beyond emu_round: ties away from zero (.rna), random bits (.rs). */
enum { EMU_RNA = EMU_RP + 1, EMU_RS };

struct emu_format {
    uint8_t mantissa_bits;
    int16_t least_exponent; /* of a normal number */
    uint32_t sign;          /* the sign bit; 0: unsigned */
    uint32_t max;           /* code of the largest finite number */
    uint32_t infinity;      /* 0: the format has none */
    uint32_t nan;           /* what a NaN becomes: for the formats without NaN, the largest number */
};

static const struct emu_format emu_f16 = {10, -14, 0x8000, 0x7bff, 0x7c00, 0x7fff};
static const struct emu_format emu_bf16 = {7, -126, 0x8000, 0x7f7f, 0x7f80, 0x7fff};
static const struct emu_format emu_e4m3 = {3, -6, 0x80, 0x7e, 0, 0x7f};
static const struct emu_format emu_e5m2 = {2, -14, 0x80, 0x7b, 0x7c, 0x7f};
static const struct emu_format emu_e2m3 = {3, 0, 0x20, 0x1f, 0, 0x1f};
static const struct emu_format emu_e3m2 = {2, -2, 0x20, 0x1f, 0, 0x1f};
static const struct emu_format emu_e2m1 = {1, 0, 0x8, 0x7, 0, 0x7};

/* The format named by an element type or by a packed type; NULL for others. */
static inline const struct emu_format *emu_format_of(enum ptx_type type)
{
    switch (type) {
    case PTX_F16:
    case PTX_F16X2:
        return &emu_f16;
    case PTX_BF16:
    case PTX_BF16X2:
        return &emu_bf16;
    case PTX_E4M3X2:
    case PTX_E4M3X4:
        return &emu_e4m3;
    case PTX_E5M2X2:
    case PTX_E5M2X4:
        return &emu_e5m2;
    case PTX_E2M3X2:
    case PTX_E2M3X4:
        return &emu_e2m3;
    case PTX_E3M2X2:
    case PTX_E3M2X4:
        return &emu_e3m2;
    case PTX_E2M1X2:
    case PTX_E2M1X4:
        return &emu_e2m1;
    default:
        return NULL;
    }
}

/* x in the format, rounded in the mode; finite: .satfinite, no infinity comes out. random: for EMU_RS, of
   random_bits bits, added below the last place. */
static inline uint32_t emu_format_encode(double x, const struct emu_format *format, unsigned mode,
                                         bool finite, uint32_t random, unsigned random_bits)
{
    const uint64_t u = emu_f64_bits(x);
    const bool negative = u >> 63;
    const uint32_t sign = negative ? format->sign : 0;
    const unsigned field = (unsigned)(u >> 52) & 0x7ff;
    uint64_t mantissa = u & UINT64_C(0x000fffffffffffff);
    if (field == 0x7ff && mantissa)
        return format->nan;
    uint32_t code = format->max + 1;
    bool exact = field == 0x7ff;
    if (field != 0x7ff) {
        mantissa |= field ? UINT64_C(1) << 52 : 0;
        const int exponent = field ? (int)field - 1023 : -1022;
        const int base = exponent > format->least_exponent ? exponent : format->least_exponent;
        const int bits = base - format->mantissa_bits - (exponent - 52); /* that are dropped, > 0 */
        const unsigned drop = bits > 62 ? 62 : (unsigned)bits;
        const uint64_t kept = mantissa >> drop, rest = mantissa & ((UINT64_C(1) << drop) - 1);
        const uint64_t half = UINT64_C(1) << (drop - 1);
        bool up = false;
        switch (mode) {
        case EMU_RN:
            up = rest > half || (rest == half && (kept & 1));
            break;
        case EMU_RNA:
            up = rest >= half;
            break;
        case EMU_RM:
            up = negative && rest;
            break;
        case EMU_RP:
            up = !negative && rest;
            break;
        case EMU_RS: {
            const uint64_t top =
                drop > random_bits ? rest >> (drop - random_bits) : rest << (random_bits - drop);
            up = (top + random) >> random_bits;
            break;
        }
        default:
            break;
        }
        exact = false;
        /* A normal number's leading one adds 1 to the exponent field. */
        code = ((uint32_t)(base - format->least_exponent) << format->mantissa_bits) + (uint32_t)(kept + up);
    }
    if (code <= format->max)
        return code | sign;
    if (finite)
        return format->max | sign;
    const bool toward_zero =
        mode == EMU_RZ || mode == EMU_RS || (mode == EMU_RM && !negative) || (mode == EMU_RP && negative);
    if (!exact && toward_zero)
        return format->max | sign;
    return format->infinity ? format->infinity | sign : format->nan;
}

/* The value of a code. */
static inline double emu_format_decode(uint32_t code, const struct emu_format *format)
{
    const uint32_t magnitude = code & (format->sign - 1);
    const bool negative = code & format->sign;
    const uint32_t implicit = UINT32_C(1) << format->mantissa_bits;
    if (magnitude > format->max) {
        const bool infinite = format->infinity && magnitude == format->infinity;
        return emu_bits_f64(infinite
                                ? (negative ? UINT64_C(0xfff0000000000000) : UINT64_C(0x7ff0000000000000))
                                : EMU_NAN_F64);
    }
    const uint32_t field = magnitude >> format->mantissa_bits;
    const uint32_t mantissa = (magnitude & (implicit - 1)) | (field ? implicit : 0);
    const int exponent = format->least_exponent - format->mantissa_bits + (field ? (int)field - 1 : 0);
    const double scale = emu_bits_f64((uint64_t)(exponent + 1023) << 52);
    return negative ? -(mantissa * scale) : mantissa * scale;
}

#endif
