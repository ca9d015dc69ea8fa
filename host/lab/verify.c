/* Whether a buffer set holds what the experiment expects after a launch: each expectation is an oracle that
   says what an element must be; the guards around the buffers must be as they were written. Buffers of any
   size pass through CLAB_CHUNK_BYTES of host memory, twice that where one is compared with another. Leaves
   out: whether a kernel changed a buffer that it should only read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/call.h"
#include "lab/buffers.h"
#include "lab/wire.h"

/* The fills in force, for a message: "input = bits(7)". Constants and zeros say nothing and are left out. */
static void fills_text(const struct clab_buffer_set *set, unsigned pass, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < set->count && used < bytes; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        const struct clab_fill *fill = &buffer->fills[pass % buffer->n_fills];
        char one[64];
        if (fill->kind == CLAB_FILL_ZERO || fill->kind == CLAB_FILL_VALUES)
            continue;
        int n = snprintf(text + used, bytes - used, "%s%s = %s", used != 0 ? ", " : "", buffer->name,
                         clab_fill_text(fill, one, sizeof one));
        used += n > 0 ? (size_t)n : 0;
    }
}

static long double sum_of_fill(const struct clab_buffer_set *set, const char *name, unsigned pass)
{
    const struct clab_buffer *buffer = clab_buffers_find(set, name);
    return buffer->sums[pass % buffer->n_fills];
}

/* A number of the experiment file as the buffer's element type holds it: u64 above 2^63 came as a negative
 * one. */
static long double wanted_number(const struct clab_buffer *buffer, const json_t *value)
{
    const long double number = clab_json_number(value);
    return buffer->element == CLAB_U64 && number < 0 ? number + ldexpl(1.0L, 64) : number;
}

/* What an element must be. `other`: the same chunk of what it is compared with, of type `other_type`. */
struct oracle {
    const json_t *value, *values;
    bool is_sum, is_fill;
    long double sum;
    struct clab_fill fill;
    enum clab_element other_type;
    CUdeviceptr other; /* 0 none */
    char note[128];    /* where `other` comes from, for messages */
};

static clab_status oracle_init(const struct clab_buffer_set *set, const struct clab_buffer *buffer,
                               unsigned pass, struct oracle *oracle, struct clab_error *error)
{
    const char *sum_of = clab_json_text(buffer->expect, "sum_of", NULL);
    const char *same_as = clab_json_text(buffer->expect, "same_as", NULL);
    const json_t *fill = json_object_get(buffer->expect, "fill");
    const json_t *reference = json_object_get(buffer->expect, "reference");
    memset(oracle, 0, sizeof *oracle);
    oracle->value = json_object_get(buffer->expect, "value");
    oracle->values = json_object_get(buffer->expect, "values");
    oracle->other_type = buffer->element;
    if (sum_of != NULL) {
        oracle->is_sum = true;
        oracle->sum = sum_of_fill(set, sum_of, pass);
    } else if (json_is_object(fill)) {
        oracle->is_fill = true;
        return clab_fill_from_json(fill, &oracle->fill, error);
    } else if (same_as != NULL) {
        const struct clab_buffer *other = clab_buffers_find(set, same_as);
        oracle->other = other->address;
        oracle->other_type = other->element;
        snprintf(oracle->note, sizeof oracle->note, " (as in '%s')", same_as);
    } else if (json_is_object(reference)) {
        oracle->other = buffer->shadows[pass % CLAB_MAX_FILLS];
        snprintf(oracle->note, sizeof oracle->note, " (as the reference '%s' has it)",
                 clab_json_text(reference, "entry", ""));
        if (oracle->other == 0)
            return clab_error_set(error, CLAB_INTERNAL, "buffer '%s': the reference kernel did not run",
                                  buffer->name);
    } else if (oracle->value == NULL && oracle->values == NULL) {
        return clab_error_set(error, CLAB_EXPERIMENT,
                              "buffer '%s': expect must be value, values, sum_of, fill, same_as or reference",
                              buffer->name);
    }
    return CLAB_OK;
}

static long double wanted_at(const struct oracle *oracle, const struct clab_buffer *buffer, const void *other,
                             uint64_t first, uint64_t i)
{
    unsigned char one[8];
    if (oracle->is_sum)
        return oracle->sum;
    if (other != NULL)
        return clab_element_load(oracle->other_type, other, i);
    if (!oracle->is_fill)
        return wanted_number(buffer, oracle->value != NULL ? oracle->value
                                                           : json_array_get(oracle->values, first + i));
    clab_fill_store(&oracle->fill, buffer->element, first + i, 1, one);
    return clab_element_load(buffer->element, one, 0);
}

static clab_status check_chunk(const struct clab_buffer_set *set, const struct clab_buffer *buffer,
                               unsigned pass, const struct oracle *oracle, const void *data,
                               const void *other, uint64_t first, uint64_t count, struct clab_error *error)
{
    for (uint64_t i = 0; i < count; i++) {
        const long double wanted = wanted_at(oracle, buffer, other, first, i);
        const long double got = clab_element_load(buffer->element, data, i);
        if (clab_close(got, wanted, buffer->tolerance_abs, buffer->tolerance_rel))
            continue;
        char fills[256];
        fills_text(set, pass, fills, sizeof fills);
        return clab_error_set(error, CLAB_WRONG, "%s[%llu] is %.10Lg, wanted %.10Lg%s%s%s", buffer->name,
                              (unsigned long long)(first + i), got, wanted, oracle->note,
                              fills[0] != '\0' ? " with " : "", fills);
    }
    return CLAB_OK;
}

/* One buffer, chunk by chunk. */
static clab_status check_buffer(const struct clab_device *device, const struct clab_buffer_set *set,
                                const struct clab_buffer *buffer, unsigned pass, struct clab_error *error)
{
    const size_t size = clab_element_bytes(buffer->element);
    const uint64_t chunk = CLAB_CHUNK_BYTES / size < buffer->count ? CLAB_CHUNK_BYTES / size : buffer->count;
    struct oracle oracle;
    clab_status status = oracle_init(set, buffer, pass, &oracle, error);
    if (status != CLAB_OK)
        return status;
    const size_t other_size = clab_element_bytes(oracle.other_type);
    char *data = malloc(chunk * size), *other = oracle.other != 0 ? malloc(chunk * other_size) : NULL;
    if (data == NULL || (oracle.other != 0 && other == NULL))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory to read back '%s'", buffer->name);
    for (uint64_t first = 0; first < buffer->count && status == CLAB_OK; first += chunk) {
        const uint64_t count = chunk < buffer->count - first ? chunk : buffer->count - first;
        status = CLAB_CALL(device->driver, error, cuMemcpyDtoH_v2,
                           (data, buffer->address + first * size, count * size), "'%s'", buffer->name);
        if (status == CLAB_OK && other != NULL)
            status = CLAB_CALL(device->driver, error, cuMemcpyDtoH_v2,
                               (other, oracle.other + first * other_size, count * other_size),
                               "the oracle of '%s'", buffer->name);
        if (status == CLAB_OK)
            status = check_chunk(set, buffer, pass, &oracle, data, other, first, count, error);
    }
    free(data);
    free(other);
    return status;
}

/* The guard of `bytes` from `start` on. `past_end`: it stands after the elements. */
static clab_status check_guard(const struct clab_device *device, const struct clab_buffer *buffer,
                               CUdeviceptr start, uint64_t bytes, bool past_end, struct clab_error *error)
{
    unsigned char guard[CLAB_GUARD_BYTES];
    if (bytes == 0)
        return CLAB_OK;
    clab_status status = CLAB_CALL(device->driver, error, cuMemcpyDtoH_v2, (guard, start, bytes),
                                   "a guard of '%s'", buffer->name);
    if (status != CLAB_OK)
        return status;
    uint64_t changed = 0, first = 0, last = 0;
    for (uint64_t i = 0; i < bytes; i++)
        if (guard[i] != CLAB_GUARD_BYTE) {
            first = changed++ == 0 ? i : first;
            last = i;
        }
    if (changed == 0)
        return CLAB_OK;
    return clab_error_set(
        error, CLAB_WRONG,
        "the kernel wrote outside '%s': %llu of the %llu bytes %s it changed, %llu to %llu bytes %s",
        buffer->name, (unsigned long long)changed, (unsigned long long)bytes, past_end ? "after" : "before",
        (unsigned long long)(past_end ? first : bytes - first),
        (unsigned long long)(past_end ? last : bytes - last), past_end ? "past its end" : "before its start");
}

clab_status clab_buffers_check(const struct clab_device *device, const struct clab_buffer_set *set,
                               unsigned pass, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++)
        if (set->buffers[i].expect != NULL && !(set->as_timed && set->buffers[i].verified_only))
            status = check_buffer(device, set, &set->buffers[i], pass, error);
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        status = check_guard(device, buffer, buffer->address - buffer->before_bytes, buffer->before_bytes,
                             false, error);
        if (status == CLAB_OK)
            status = check_guard(device, buffer, buffer->address + clab_buffer_bytes(buffer),
                                 buffer->after_bytes, true, error);
    }
    return status;
}
