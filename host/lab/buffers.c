/* Device buffers of an experiment: made, filled in chunks through one staging buffer, reset, read back and
   compared with what the experiment expects. Buffers of any size pass through at most CHUNK_BYTES of host
   memory. */
#include "lab/buffers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "driver/call.h"
#include "lab/fill_device.h"
#include "lab/wire.h"

#define CHUNK_BYTES (UINT64_C(64) << 20)

static clab_status malformed(struct clab_error *error, const char *name, const char *what)
{
    return clab_error_set(error, CLAB_EXPERIMENT, "buffer '%s': %s", name, what);
}

static clab_status read_buffer(const json_t *json, struct clab_buffer *buffer, struct clab_error *error)
{
    snprintf(buffer->name, sizeof buffer->name, "%s", clab_json_text(json, "name", "?"));
    buffer->element = clab_element_get(clab_json_text(json, "type", ""));
    if (buffer->element == CLAB_ELEMENT_COUNT)
        return malformed(error, buffer->name, "unknown element type");
    int64_t count = clab_json_int(json, "count", -1), offset = clab_json_int(json, "offset_bytes", 0);
    if (count < 1 || offset < 0 || count > INT64_MAX / 16)
        return malformed(error, buffer->name, "count must be at least 1");
    buffer->count = (uint64_t)count;
    buffer->offset_bytes = (uint64_t)offset;
    buffer->reset_each_launch = strcmp(clab_json_text(json, "reset", ""), "launch") == 0;
    buffer->reset_timed = strcmp(clab_json_text(json, "reset", ""), "timed") == 0;
    const json_t *fills = json_object_get(json, "fill");
    buffer->n_fills = (unsigned)json_array_size(fills);
    if (buffer->n_fills > CLAB_MAX_FILLS)
        return malformed(error, buffer->name, "too many fills");
    const json_t *first = json_array_get(fills, 0);
    if (strcmp(clab_json_text(first, "kind", ""), "file") == 0) {
        buffer->file = clab_json_text(first, "path", "");
        buffer->n_fills = 1;
    }
    for (unsigned i = 0; i < buffer->n_fills && buffer->file == NULL; i++) {
        clab_status status = clab_fill_from_json(json_array_get(fills, i), &buffer->fills[i], error);
        if (status != CLAB_OK)
            return status;
    }
    if (buffer->n_fills == 0)
        buffer->n_fills = 1; /* zeroed by the memset: a CLAB_FILL_ZERO */
    const json_t *expect = json_object_get(json, "expect");
    buffer->expect = json_is_object(expect) ? expect : NULL;
    const json_t *tolerance = json_object_get(json, "tolerance");
    buffer->tolerance_abs = json_number_value(json_object_get(tolerance, "abs"));
    buffer->tolerance_rel = json_number_value(json_object_get(tolerance, "rel"));
    return CLAB_OK;
}

static struct clab_buffer *find(const struct clab_buffer_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->buffers[i].name, name) == 0)
            return &set->buffers[i];
    return NULL;
}

CUdeviceptr clab_buffers_address(const char *name, void *set)
{
    const struct clab_buffer *buffer = find(set, name);
    return buffer != NULL ? buffer->address : 0;
}

static uint64_t buffer_bytes(const struct clab_buffer *buffer)
{
    return buffer->count * clab_element_bytes(buffer->element);
}

clab_status clab_buffers_new(const struct clab_device *device, json_t *set, struct clab_buffer_set *out_set,
                             struct clab_error *error)
{
    memset(out_set, 0, sizeof *out_set);
    out_set->count = json_array_size(set);
    out_set->buffers = calloc(out_set->count + 1, sizeof *out_set->buffers);
    if (out_set->buffers == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the buffer list");
    out_set->json = json_incref(set);
    out_set->n_fills = 1;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < out_set->count && status == CLAB_OK; i++) {
        struct clab_buffer *buffer = &out_set->buffers[i];
        status = read_buffer(json_array_get(set, i), buffer, error);
        if (status != CLAB_OK)
            break;
        if (buffer->n_fills > out_set->n_fills)
            out_set->n_fills = buffer->n_fills;
        uint64_t bytes = buffer_bytes(buffer) + buffer->offset_bytes;
        status = CLAB_CALL(device->driver, error, cuMemAlloc_v2, (&buffer->allocation, bytes),
                           "%llu bytes for '%s'", (unsigned long long)bytes, buffer->name);
        if (status != CLAB_OK && error != NULL && error->native_code == CUDA_ERROR_OUT_OF_MEMORY)
            status = clab_error_set(error, CLAB_WAIVED,
                                    "buffer '%s' of %llu bytes does not fit the device's memory",
                                    buffer->name, (unsigned long long)bytes);
        buffer->address = buffer->allocation + buffer->offset_bytes;
    }
    for (size_t i = 0; i < out_set->count && status == CLAB_OK; i++) {
        const struct clab_buffer *buffer = &out_set->buffers[i];
        const char *source = clab_json_text(buffer->expect, "sum_of", NULL);
        struct clab_buffer *summed = source != NULL ? find(out_set, source) : NULL;
        if (source != NULL && summed == NULL)
            status = malformed(error, buffer->name, "expects the sum of a buffer that does not exist");
        else if (summed != NULL)
            summed->wanted_sum = true;
    }
    if (status != CLAB_OK)
        clab_buffers_free(device, out_set);
    return status;
}

void clab_buffers_free(const struct clab_device *device, struct clab_buffer_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->buffers[i].allocation != 0)
            (void)device->driver->cuMemFree_v2(set->buffers[i].allocation);
    free(set->buffers);
    json_decref(set->json);
    memset(set, 0, sizeof *set);
}

static clab_status fill_from_file(const struct clab_device *device, struct clab_buffer *buffer,
                                  struct clab_error *error)
{
    size_t bytes = 0;
    char *data = clab_file_read(buffer->file, buffer_bytes(buffer), &bytes);
    if (data == NULL && errno != EFBIG)
        return clab_error_set(error, CLAB_USAGE, "buffer '%s': cannot read %s: %s", buffer->name,
                              buffer->file, strerror(errno));
    if (data == NULL || bytes != buffer_bytes(buffer)) {
        free(data);
        return clab_error_set(error, CLAB_USAGE,
                              "buffer '%s': %s does not have the %llu bytes that %llu elements of %s need",
                              buffer->name, buffer->file, (unsigned long long)buffer_bytes(buffer),
                              (unsigned long long)buffer->count, clab_element_name(buffer->element));
    }
    clab_status status = CLAB_CALL(device->driver, error, cuMemcpyHtoD_v2, (buffer->address, data, bytes),
                                   "'%s'", buffer->name);
    buffer->sums[0] = buffer->wanted_sum ? clab_elements_sum(buffer->element, data, buffer->count) : 0;
    buffer->sum_known[0] = true;
    free(data);
    return status;
}

clab_status clab_buffers_fill(const struct clab_device *device, struct clab_buffer_set *set, unsigned pass,
                              struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    char *staging = NULL;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++) {
        struct clab_buffer *buffer = &set->buffers[i];
        const struct clab_fill *fill = &buffer->fills[pass % buffer->n_fills];
        const size_t size = clab_element_bytes(buffer->element);
        if (buffer->file != NULL) {
            status = fill_from_file(device, buffer, error);
            continue;
        }
        if (fill->kind == CLAB_FILL_ZERO) {
            status = CLAB_CALL(driver, error, cuMemsetD8_v2, (buffer->address, 0, buffer_bytes(buffer)),
                               "'%s'", buffer->name);
            continue;
        }
        const unsigned number = pass % buffer->n_fills;
        if (buffer->wanted_sum && !buffer->sum_known[number]) {
            buffer->sums[number] = clab_fill_sum(fill, buffer->element, buffer->count);
            buffer->sum_known[number] = true;
        }
        if (device->timed && clab_fill_device_has(buffer->element, buffer->address)) {
            status = clab_fill_device(device, fill, buffer->element, buffer->address, buffer->count, error);
            continue;
        }
        if (staging == NULL && (staging = malloc(CHUNK_BYTES)) == NULL)
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the staging buffer");
        for (uint64_t first = 0; first < buffer->count && status == CLAB_OK;) {
            uint64_t count = CHUNK_BYTES / size;
            if (count > buffer->count - first)
                count = buffer->count - first;
            clab_fill_store(fill, buffer->element, first, count, staging);
            status = CLAB_CALL(driver, error, cuMemcpyHtoD_v2,
                               (buffer->address + first * size, staging, count * size), "'%s'", buffer->name);
            first += count;
        }
    }
    free(staging);
    return status == CLAB_OK ? CLAB_CALL(driver, error, cuStreamSynchronize, (device->stream), NULL) : status;
}

bool clab_buffers_have_reset(const struct clab_buffer_set *set, bool timed)
{
    for (size_t i = 0; i < set->count; i++)
        if (timed ? set->buffers[i].reset_timed : set->buffers[i].reset_each_launch)
            return true;
    return false;
}

clab_status clab_buffers_reset(const struct clab_device *device, const struct clab_buffer_set *set,
                               unsigned pass, bool timed, struct clab_error *error)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        if (!(timed ? buffer->reset_timed : buffer->reset_each_launch))
            continue;
        const struct clab_fill *fill = &buffer->fills[pass % buffer->n_fills];
        clab_status status;
        if (fill->kind == CLAB_FILL_ZERO) {
            status =
                CLAB_CALL(device->driver, error, cuMemsetD8Async,
                          (buffer->address, 0, buffer_bytes(buffer), device->stream), "'%s'", buffer->name);
        } else if (fill->kind == CLAB_FILL_ONES || fill->kind == CLAB_FILL_VALUE) {
            uint32_t word = 0;
            if (clab_element_bytes(buffer->element) != 4)
                return malformed(error, buffer->name,
                                 "only zero, or 32-bit constants, can be reset before a launch");
            clab_fill_store(fill, buffer->element, 0, 1, &word);
            status = CLAB_CALL(device->driver, error, cuMemsetD32Async,
                               (buffer->address, word, buffer->count, device->stream), "'%s'", buffer->name);
        } else {
            return malformed(error, buffer->name,
                             "only zero, or 32-bit constants, can be reset before a launch");
        }
        if (status != CLAB_OK)
            return status;
    }
    return CLAB_OK;
}

/* The fills in force, for a message: "input = bits(7)". Constants and zeros say nothing and are left out. */
static void fills_text(const struct clab_buffer_set *set, unsigned pass, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < set->count && used < bytes; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        const struct clab_fill *fill = &buffer->fills[pass % buffer->n_fills];
        char one[64];
        if (fill->kind == CLAB_FILL_ZERO)
            continue;
        int n = snprintf(text + used, bytes - used, "%s%s = %s", used != 0 ? ", " : "", buffer->name,
                         clab_fill_text(fill, one, sizeof one));
        used += n > 0 ? (size_t)n : 0;
    }
}

static long double sum_of_fill(const struct clab_buffer_set *set, const char *name, unsigned pass)
{
    const struct clab_buffer *buffer = find(set, name);
    return buffer->sums[pass % buffer->n_fills];
}

static clab_status check_chunk(const struct clab_buffer_set *set, const struct clab_buffer *buffer,
                               unsigned pass, const void *data, uint64_t first, uint64_t count,
                               struct clab_error *error)
{
    const json_t *value = json_object_get(buffer->expect, "value");
    const json_t *values = json_object_get(buffer->expect, "values");
    const char *sum_of = clab_json_text(buffer->expect, "sum_of", NULL);
    const json_t *fill_json = json_object_get(buffer->expect, "fill");
    struct clab_fill fill = {0};
    if (json_is_object(fill_json)) {
        clab_status status = clab_fill_from_json(fill_json, &fill, error);
        if (status != CLAB_OK)
            return status;
    } else if (value == NULL && values == NULL && sum_of == NULL) {
        return malformed(error, buffer->name, "expect must be value, values, sum_of or fill");
    }
    const long double sum = sum_of != NULL ? sum_of_fill(set, sum_of, pass) : 0;
    for (uint64_t i = 0; i < count; i++) {
        long double wanted = sum;
        if (value != NULL) {
            wanted = (long double)json_number_value(value);
        } else if (values != NULL) {
            wanted = (long double)json_number_value(json_array_get(values, first + i));
        } else if (sum_of == NULL) {
            unsigned char one[8];
            clab_fill_store(&fill, buffer->element, first + i, 1, one);
            wanted = clab_element_load(buffer->element, one, 0);
        }
        long double got = clab_element_load(buffer->element, data, i);
        if (clab_close(got, wanted, buffer->tolerance_abs, buffer->tolerance_rel))
            continue;
        char fills[256];
        fills_text(set, pass, fills, sizeof fills);
        return clab_error_set(error, CLAB_WRONG, "%s[%llu] is %.10Lg, wanted %.10Lg%s%s", buffer->name,
                              (unsigned long long)(first + i), got, wanted, fills[0] != '\0' ? " with " : "",
                              fills);
    }
    return CLAB_OK;
}

clab_status clab_buffers_check(const struct clab_device *device, const struct clab_buffer_set *set,
                               unsigned pass, struct clab_error *error)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        if (buffer->expect == NULL)
            continue;
        const size_t size = clab_element_bytes(buffer->element);
        uint64_t chunk = CHUNK_BYTES / size < buffer->count ? CHUNK_BYTES / size : buffer->count;
        char *data = malloc(chunk * size);
        if (data == NULL)
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory to read back '%s'", buffer->name);
        clab_status status = CLAB_OK;
        for (uint64_t first = 0; first < buffer->count && status == CLAB_OK; first += chunk) {
            uint64_t count = chunk < buffer->count - first ? chunk : buffer->count - first;
            status = CLAB_CALL(device->driver, error, cuMemcpyDtoH_v2,
                               (data, buffer->address + first * size, count * size), "'%s'", buffer->name);
            if (status == CLAB_OK)
                status = check_chunk(set, buffer, pass, data, first, count, error);
        }
        free(data);
        if (status != CLAB_OK)
            return status;
    }
    return CLAB_OK;
}

static json_t *number(enum clab_element element, const void *data, size_t index)
{
    const long double value = clab_element_load(element, data, index);
    char text[32];
    if (element < CLAB_F16)
        return json_integer(
            (json_int_t)(element == CLAB_U64 ? (int64_t)((const uint64_t *)data)[index] : (int64_t)value));
    if (isfinite(value))
        return json_real((double)value);
    snprintf(text, sizeof text, "%Lg", value);
    return json_string(text);
}

clab_status clab_buffers_dump(const struct clab_device *device, const struct clab_buffer_set *set,
                              json_t **out_dumps, struct clab_error *error)
{
    json_t *dumps = json_object();
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        if (!clab_json_bool(json_array_get(set->json, i), "dump", false))
            continue;
        const size_t count = buffer->count < CLAB_DUMP_LIMIT ? buffer->count : CLAB_DUMP_LIMIT;
        const size_t bytes = count * clab_element_bytes(buffer->element);
        void *data = malloc(bytes);
        json_t *values = json_array();
        if (data == NULL)
            status = clab_error_set(error, CLAB_NO_MEMORY, "no memory to read back '%s'", buffer->name);
        if (status == CLAB_OK)
            status = CLAB_CALL(device->driver, error, cuMemcpyDtoH_v2, (data, buffer->address, bytes), "'%s'",
                               buffer->name);
        for (size_t j = 0; j < count && status == CLAB_OK; j++)
            json_array_append_new(values, number(buffer->element, data, j));
        json_object_set_new(dumps, buffer->name, values);
        free(data);
    }
    if (status != CLAB_OK) {
        json_decref(dumps);
        dumps = NULL;
    }
    *out_dumps = dumps;
    return status;
}
