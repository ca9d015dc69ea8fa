/* Inputs of the conformance forms: for every type a list of values at its edges; the first rows take all
   pairs of them, later rows random values of several shapes. */
#include <string.h>

#include "forms.h"

static const uint64_t f16_values[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400,
                                      0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7fff, 0xffff, 0x7c01, 0x3800,
                                      0x3e00, 0x4100, 0x3c01, 0x3bff, 0x5640, 0x7bfe, 0x3bf0, 0x0408, 0x8408,
                                      0x3bfc, 0x0402, 0xfff7, 0x0002, 0x4900, 0xc248, 0x5bf8};
static const uint64_t bf16_values[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x0001, 0x8001, 0x007f, 0x0080,
                                       0x8080, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7fff, 0xffff,
                                       0x7f81, 0x3f00, 0x3fc0, 0x4020, 0x3f81, 0x3f7f, 0x4f00, 0x4f80,
                                       0xfff7, 0x0002, 0x4120, 0xc049, 0x5f00};
static const uint64_t f32_values[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
    0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff, 0xffffffff,
    0x7f800001, 0xffc12345, 0x3f000000, 0x3fc00000, 0x40200000, 0x3f800001, 0x3f7fffff, 0x4effffff,
    0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x5f800000, 0x477fe000, 0x477ff000, 0x477fefff,
    0x33800000, 0x387fe000, 0x43e00000, 0x43e80000, 0x47600000, 0x00ffffff, 0x40490fdb, 0xc0490fdb,
    0x42c80000, 0x4b000001, 0x4affffff, 0xc1200000, 0x00400000, 0x00200001, 0x7e800000, 0x7f000000,
    0xbf000000, 0xc0200000, 0x3f7ff800, 0x00800400, 0x80800400, 0x3f7fffc0, 0x00800020, 0x80ffffff};
static const uint64_t f64_values[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x0000000000000001,
    0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x8010000000000000, 0x7fefffffffffffff,
    0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7fffffffffffffff,
    0xffffffffffffffff, 0x7ff0000000000001, 0xfff8123456789abc, 0x3fe0000000000000, 0x3ff8000000000000,
    0x4004000000000000, 0x3ff0000000000001, 0x3fefffffffffffff, 0x41dfffffffc00000, 0x41e0000000000000,
    0xc1e0000000000000, 0xc1e0000000200000, 0x41f0000000000000, 0x43e0000000000000, 0x43f0000000000000,
    0xc3e0000000000000, 0x47efffffe0000000, 0x47effffff0000000, 0x36a0000000000000, 0x3690000000000000,
    0x380fffffe0000000, 0x380ffffff0000000, 0x380fffffe8000000, 0x380fffffefffffff, 0x380ffffffc000000,
    0x40effc0000000000, 0x40effe0000000000, 0x400921fb54442d18, 0x4330000000000001};
static const uint64_t u16_values[] = {0,      1,      2,      3,      5,      7,      8,      15,
                                      16,     17,     0x7f,   0x80,   0xff,   0x100,  0x7ffe, 0x7fff,
                                      0x8000, 0x8001, 0xfffe, 0xffff, 0x5555, 0xaaaa, 0x1234};
static const uint64_t u32_values[] = {
    0,          1,          2,          3,          4,          7,          8,          15,
    16,         17,         31,         32,         33,         63,         64,         65,
    0x7f,       0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,
    0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x55555555, 0xaaaaaaaa,
    0x12345678, 0x00ffffff, 0x01000000, 0xff800000, 0x00800000};
static const uint64_t u64_values[] = {0,
                                      1,
                                      2,
                                      3,
                                      7,
                                      31,
                                      32,
                                      63,
                                      64,
                                      0xff,
                                      0x100,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000,
                                      0x100000001,
                                      0x7ffffffffffffffe,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0x8000000000000001,
                                      0xfffffffffffffffe,
                                      0xffffffffffffffff,
                                      0x5555555555555555,
                                      0xaaaaaaaaaaaaaaaa,
                                      0x0123456789abcdef,
                                      0x0020000000000001,
                                      0x003fffffffffffff,
                                      0xffffffff00000000,
                                      0xffffffff80000000,
                                      0xffffffff7fffffff};
static const uint64_t f8_values[] = {0x00, 0x80, 0x01, 0x81, 0x7f, 0xff, 0x7e, 0x7c,
                                     0xfc, 0x7b, 0x38, 0x3c, 0xb8, 0x08, 0x07};
static const uint64_t pred_values[] = {0, 1};

struct pool {
    const uint64_t *values;
    size_t count;
    unsigned bits;     /* of one element */
    unsigned elements; /* in a value */
    unsigned exponent; /* bits, 0: not a float */
};

#define POOL(VALUES, BITS, ELEMENTS, EXPONENT)                           \
    (struct pool)                                                        \
    {                                                                    \
        VALUES, sizeof VALUES / sizeof *VALUES, BITS, ELEMENTS, EXPONENT \
    }

static struct pool pool_of(const char *type)
{
    if (strcmp(type, "pred") == 0)
        return POOL(pred_values, 1, 1, 0);
    if (strcmp(type, "f16") == 0)
        return POOL(f16_values, 16, 1, 5);
    if (strcmp(type, "f16x2") == 0)
        return POOL(f16_values, 16, 2, 5);
    if (strcmp(type, "bf16") == 0)
        return POOL(bf16_values, 16, 1, 8);
    if (strcmp(type, "bf16x2") == 0)
        return POOL(bf16_values, 16, 2, 8);
    if (strcmp(type, "f32") == 0)
        return POOL(f32_values, 32, 1, 8);
    if (strcmp(type, "f32x2") == 0)
        return POOL(f32_values, 32, 2, 8);
    if (strcmp(type, "f64") == 0)
        return POOL(f64_values, 64, 1, 11);
    if (strcmp(type, "e4m3x4") == 0)
        return POOL(f8_values, 8, 4, 4);
    if (strcmp(type, "e5m2x4") == 0)
        return POOL(f8_values, 8, 4, 5);
    if (strcmp(type, "u16x2") == 0 || strcmp(type, "s16x2") == 0)
        return POOL(u16_values, 16, 2, 0);
    switch (type_bytes(type)) {
    case 1:
        return POOL(u16_values, 8, 1, 0);
    case 2:
        return POOL(u16_values, 16, 1, 0);
    case 8:
    case 16:
        return POOL(u64_values, 64, 1, 0);
    default:
        return POOL(u32_values, 32, 1, 0);
    }
}

/* splitmix64: a fixed sequence, the same everywhere. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t low_bits(uint64_t x, unsigned bits)
{
    return bits > 63 ? x : x & ((UINT64_C(1) << bits) - 1);
}

/* Floats: any bits, or an exponent near 1 (so that sums round), or few digits (so that ties happen).
   Integers: any bits, or a small number, or its negative. */
static uint64_t random_element(const struct pool *pool, uint64_t *state, unsigned least_shape)
{
    const uint64_t r = next(state), drawn = next(state) % 8,
                   shape = drawn < least_shape ? least_shape : drawn;
    if (shape == 0)
        return low_bits(pool->values[r % pool->count], pool->bits);
    if (!pool->exponent) {
        if (shape < 3)
            return low_bits(r % 64, pool->bits);
        return low_bits(shape == 3 ? 0 - r % 64 : r, pool->bits);
    }
    if (shape < 3)
        return low_bits(r, pool->bits);
    const unsigned mantissa = pool->bits - 1 - pool->exponent;
    const uint64_t bias = (UINT64_C(1) << (pool->exponent - 1)) - 1;
    const uint64_t exponent = bias - 6 + next(state) % 13;
    uint64_t digits = low_bits(r, mantissa);
    if (shape < 5)
        digits &= ~((UINT64_C(1) << (mantissa / 2)) - 1);
    return (r >> 63) << (pool->bits - 1) | exponent << mantissa | digits;
}

static uint64_t special(const struct pool *pool, uint64_t index)
{
    return low_bits(pool->values[index % pool->count], pool->bits);
}

/* Of matrix products, whose sums one special value decides: none in three warps of four, few in the fourth.
 */
static uint64_t product_element(const struct pool *pool, uint64_t *state, size_t row)
{
    if (row / 32 % 4 == 3 && next(state) % 64 == 0)
        return special(pool, next(state));
    return random_element(pool, state, 3);
}

void forms_inputs(const struct form *form, uint64_t (*out_rows)[MAX_SOURCES], size_t n)
{
    uint64_t state = 1469598103934665603u;
    for (const char *c = form->key; *c; c++)
        state = (state ^ (unsigned char)*c) * 1099511628211u;
    const bool products = strstr(form->text, "mma.") != NULL;
    struct pool pools[MAX_SOURCES] = {{0}};
    for (unsigned k = 0; k < form->n_sources; k++)
        if (form->sources[k].type[0] != '#')
            pools[k] = pool_of(form->sources[k].type);
    for (size_t i = 0; i < n; i++) {
        memset(out_rows[i], 0, sizeof out_rows[i]);
        /* Even rows: special values; the first two sources walk through all pairs in a scattered order. */
        const uint64_t pairs = (pools[0].count ? pools[0].count : 1) * (pools[1].count ? pools[1].count : 1);
        const uint64_t pair = i / 2 * UINT64_C(1000003) % pairs;
        for (unsigned k = 0; k < form->n_sources; k++) {
            const struct pool *pool = &pools[k];
            if (!pool->count)
                continue;
            for (unsigned element = 0; element < pool->elements; element++) {
                uint64_t value;
                if (products)
                    value = product_element(pool, &state, i);
                else if (i % 2 == 0 && element == 0 && k < 2)
                    value = special(pool, k == 0 ? pair : pair / (pools[0].count ? pools[0].count : 1));
                else if (i % 2 == 0)
                    value = special(pool, next(&state));
                else
                    value = random_element(pool, &state, 0);
                out_rows[i][k] |= value << (element * pool->bits);
            }
        }
    }
}
