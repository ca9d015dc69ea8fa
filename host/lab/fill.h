/* Buffer contents: fills by element index, typed stores, and what a result must be. Pure host arithmetic. */
#ifndef CLAB_LAB_FILL_H
#define CLAB_LAB_FILL_H

#include <jansson.h>

#include "base/error.h"

/* Element types that a buffer or a scalar argument can have. */
enum clab_element {
    CLAB_U8,
    CLAB_S8,
    CLAB_U16,
    CLAB_S16,
    CLAB_U32,
    CLAB_S32,
    CLAB_U64,
    CLAB_S64,
    CLAB_F16,
    CLAB_BF16,
    CLAB_F32,
    CLAB_F64,
    CLAB_ELEMENT_COUNT
};
/* By name ("f32"); CLAB_ELEMENT_COUNT for an unknown one. Size in bytes. */
enum clab_element clab_element_get(const char *name);
const char *clab_element_name(enum clab_element element);
size_t clab_element_bytes(enum clab_element element);

enum clab_fill_kind {
    CLAB_FILL_ZERO,
    CLAB_FILL_ONES,
    CLAB_FILL_IOTA,
    CLAB_FILL_VALUE,
    CLAB_FILL_BITS,
    CLAB_FILL_RANDOM,
    CLAB_FILL_VALUES /* a list, one value per element */
};
struct clab_fill {
    enum clab_fill_kind kind;
    uint64_t seed;
    long double value;    /* of 64-bit integers too, without loss where long double holds them */
    const json_t *values; /* array of numbers, borrowed; elements beyond its end are 0 */
};
/* From a plan's {"kind":…,"seed":…,"value":…,"values":[…]}. CLAB_EXPERIMENT for an unknown kind. */
clab_status clab_fill_from_json(const json_t *object, struct clab_fill *out_fill, struct clab_error *error);
/* "ones", "bits(7)", …: for messages. Returns `text`. */
const char *clab_fill_text(const struct clab_fill *fill, char *text, size_t bytes);

#define CLAB_FILL_SEED_FACTOR \
    UINT64_C(0xd1342543de82ef95) /* a seed's place in the sequence of bits and random */

/* Writes elements [first, first + count) of the fill to `out` (count * element bytes). zero, ones, iota and
   value store that number; bits stores a seeded 0 or 1; random stores a seeded value: in [0, 1) for floats,
   any bit pattern for integers. The value at an index depends on nothing but seed and index, so that chunks
   agree. */
void clab_fill_store(const struct clab_fill *fill, enum clab_element element, uint64_t first, size_t count,
                     void *out);
/* Sum of `count` stored elements; exact for integers below 2^63 and for floats that are small integers. */
long double clab_elements_sum(enum clab_element element, const void *data, size_t count);
/* Sum of elements [0, count) of a fill, as clab_elements_sum gives it for the stored ones, without storing
 * them all. */
long double clab_fill_sum(const struct clab_fill *fill, enum clab_element element, uint64_t count);
/* One stored element as a number (u64 and s64 rounded to long double, which holds them on x86). */
long double clab_element_load(enum clab_element element, const void *data, size_t index);
/* Stores a number; floats round to nearest even, integers wrap. */
void clab_element_store(enum clab_element element, long double value, void *data, size_t index);

/* A JSON number without loss: integers of 64 bits too, where long double holds them (a u64 above 2^63 is its
   two's complement, which stores the same). The texts "nan", "inf" and "-inf" are those, which JSON has no
   numbers for. 0 for anything else. */
long double clab_json_number(const json_t *value);

/* |got - wanted| <= abs + rel * |wanted|, NaN equal only to NaN, infinities only to themselves. */
bool clab_close(long double got, long double wanted, double tolerance_abs, double tolerance_rel);

#endif
