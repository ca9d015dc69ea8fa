/* Device buffers of an experiment: made, filled in chunks through one staging buffer, reset, read back and
   compared with what the experiment expects. Buffers of any size pass through at most CLAB_CHUNK_BYTES of
   host memory per buffer that is looked at. Leaves out: whether a kernel changed a buffer that it should only
   read. */
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
    buffer->verified_only = clab_json_bool(json, "verified_only", false);
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

struct clab_buffer *clab_buffers_find(const struct clab_buffer_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->buffers[i].name, name) == 0)
            return &set->buffers[i];
    return NULL;
}

CUdeviceptr clab_buffers_address(const char *name, void *set)
{
    const struct clab_buffer *buffer = clab_buffers_find(set, name);
    return buffer != NULL ? buffer->address : 0;
}

uint64_t clab_buffer_bytes(const struct clab_buffer *buffer)
{
    return buffer->count * clab_element_bytes(buffer->element);
}

/* Whether a memset makes this fill; otherwise a reset copies it. */
static bool is_constant(const struct clab_fill *fill)
{
    return fill->kind == CLAB_FILL_ZERO || fill->kind == CLAB_FILL_ONES || fill->kind == CLAB_FILL_VALUE;
}

static bool resets_by_copy(const struct clab_buffer *buffer)
{
    const size_t size = clab_element_bytes(buffer->element);
    bool copy = buffer->file != NULL;
    for (unsigned i = 0; i < buffer->n_fills; i++)
        copy |= !is_constant(&buffer->fills[i]) || (size == 8 && buffer->fills[i].kind != CLAB_FILL_ZERO) ||
                (size > 1 && buffer->address % size != 0);
    return copy && (buffer->reset_each_launch || buffer->reset_timed);
}

static clab_status allocate(const struct clab_device *device, const struct clab_buffer *buffer,
                            uint64_t bytes, const char *what, CUdeviceptr *out_address,
                            struct clab_error *error)
{
    clab_status status = CLAB_CALL(device->driver, error, cuMemAlloc_v2, (out_address, bytes),
                                   "%llu bytes for %s'%s'", (unsigned long long)bytes, what, buffer->name);
    if (status != CLAB_OK)
        *out_address = 0;
    if (status != CLAB_OK && error != NULL && error->native_code == CUDA_ERROR_OUT_OF_MEMORY)
        status =
            clab_error_set(error, CLAB_WAIVED, "%sbuffer '%s' of %llu bytes does not fit the device's memory",
                           what, buffer->name, (unsigned long long)bytes);
    return status;
}

static clab_status buffer_allocate(const struct clab_device *device, struct clab_buffer *buffer,
                                   struct clab_error *error)
{
    const uint64_t guard = device->checks_accesses ? 0 : CLAB_GUARD_BYTES;
    buffer->before_bytes = buffer->expect != NULL ? guard : 0;
    buffer->after_bytes = guard;
    clab_status status = allocate(
        device, buffer, buffer->before_bytes + buffer->offset_bytes + clab_buffer_bytes(buffer) + guard, "",
        &buffer->allocation, error);
    buffer->address = buffer->allocation + buffer->before_bytes + buffer->offset_bytes;
    if (status == CLAB_OK && resets_by_copy(buffer))
        status = allocate(device, buffer, clab_buffer_bytes(buffer), "the copy to reset ", &buffer->pristine,
                          error);
    return status;
}

/* Expectations that name another buffer of the set. */
static clab_status link_expectation(struct clab_buffer_set *set, const struct clab_buffer *buffer,
                                    struct clab_error *error)
{
    const char *summed = clab_json_text(buffer->expect, "sum_of", NULL);
    const char *same = clab_json_text(buffer->expect, "same_as", NULL);
    struct clab_buffer *other = summed != NULL ? clab_buffers_find(set, summed)
                                : same != NULL ? clab_buffers_find(set, same)
                                               : NULL;
    if ((summed != NULL || same != NULL) && other == NULL)
        return malformed(error, buffer->name, "its expectation names a buffer that does not exist");
    if (same != NULL && other->count != buffer->count)
        return malformed(error, buffer->name,
                         "is to be the same as a buffer with another number of elements");
    if (summed != NULL)
        other->wanted_sum = true;
    return CLAB_OK;
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
        status = buffer_allocate(device, buffer, error);
    }
    for (size_t i = 0; i < out_set->count && status == CLAB_OK; i++)
        status = link_expectation(out_set, &out_set->buffers[i], error);
    if (status != CLAB_OK)
        clab_buffers_free(device, out_set);
    return status;
}

void clab_buffers_free(const struct clab_device *device, struct clab_buffer_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct clab_buffer *buffer = &set->buffers[i];
        if (buffer->allocation != 0)
            (void)device->driver->cuMemFree_v2(buffer->allocation);
        if (buffer->pristine != 0)
            (void)device->driver->cuMemFree_v2(buffer->pristine);
        for (unsigned pass = 0; pass < CLAB_MAX_FILLS; pass++)
            clab_buffer_drop_shadow(device, buffer, pass);
    }
    free(set->buffers);
    json_decref(set->json);
    memset(set, 0, sizeof *set);
}

static clab_status fill_from_file(const struct clab_device *device, struct clab_buffer *buffer,
                                  struct clab_error *error)
{
    size_t bytes = 0;
    char *data = clab_file_read(buffer->file, clab_buffer_bytes(buffer), &bytes);
    if (data == NULL && errno != EFBIG)
        return clab_error_set(error, CLAB_USAGE, "buffer '%s': cannot read %s: %s", buffer->name,
                              buffer->file, strerror(errno));
    if (data == NULL || bytes != clab_buffer_bytes(buffer)) {
        free(data);
        return clab_error_set(error, CLAB_USAGE,
                              "buffer '%s': %s does not have the %llu bytes that %llu elements of %s need",
                              buffer->name, buffer->file, (unsigned long long)clab_buffer_bytes(buffer),
                              (unsigned long long)buffer->count, clab_element_name(buffer->element));
    }
    clab_status status = CLAB_CALL(device->driver, error, cuMemcpyHtoD_v2, (buffer->address, data, bytes),
                                   "'%s'", buffer->name);
    buffer->sums[0] = buffer->wanted_sum ? clab_elements_sum(buffer->element, data, buffer->count) : 0;
    buffer->sum_known[0] = true;
    free(data);
    return status;
}

/* One buffer through the staging memory, which is made on first need. */
static clab_status fill_from_host(const struct clab_device *device, const struct clab_buffer *buffer,
                                  const struct clab_fill *fill, char **staging, struct clab_error *error)
{
    const size_t size = clab_element_bytes(buffer->element);
    clab_status status = CLAB_OK;
    if (*staging == NULL && (*staging = malloc(CLAB_CHUNK_BYTES)) == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the staging buffer");
    for (uint64_t first = 0; first < buffer->count && status == CLAB_OK;) {
        uint64_t count = CLAB_CHUNK_BYTES / size;
        if (count > buffer->count - first)
            count = buffer->count - first;
        clab_fill_store(fill, buffer->element, first, count, *staging);
        status = CLAB_CALL(device->driver, error, cuMemcpyHtoD_v2,
                           (buffer->address + first * size, *staging, count * size), "'%s'", buffer->name);
        first += count;
    }
    return status;
}

static clab_status fill_elements(const struct clab_device *device, struct clab_buffer *buffer, unsigned pass,
                                 char **staging, struct clab_error *error)
{
    const unsigned number = pass % buffer->n_fills;
    const struct clab_fill *fill = &buffer->fills[number];
    if (buffer->file != NULL)
        return fill_from_file(device, buffer, error);
    if (fill->kind == CLAB_FILL_ZERO)
        return CLAB_CALL(device->driver, error, cuMemsetD8_v2,
                         (buffer->address, 0, clab_buffer_bytes(buffer)), "'%s'", buffer->name);
    if (buffer->wanted_sum && !buffer->sum_known[number]) {
        buffer->sums[number] = clab_fill_sum(fill, buffer->element, buffer->count);
        buffer->sum_known[number] = true;
    }
    if (device->timed && fill->kind != CLAB_FILL_VALUES &&
        clab_fill_device_has(buffer->element, buffer->address))
        return clab_fill_device(device, fill, buffer->element, buffer->address, buffer->count, error);
    return fill_from_host(device, buffer, fill, staging, error);
}

/* The guards, and the copy that a reset takes the contents from. */
static clab_status fill_beside(const struct clab_device *device, const struct clab_buffer *buffer,
                               struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    const uint64_t bytes = clab_buffer_bytes(buffer);
    clab_status status = CLAB_OK;
    if (buffer->before_bytes != 0)
        status = CLAB_CALL(
            driver, error, cuMemsetD8Async,
            (buffer->address - buffer->before_bytes, CLAB_GUARD_BYTE, buffer->before_bytes, device->stream),
            "the guard before '%s'", buffer->name);
    if (status == CLAB_OK && buffer->after_bytes != 0)
        status = CLAB_CALL(driver, error, cuMemsetD8Async,
                           (buffer->address + bytes, CLAB_GUARD_BYTE, buffer->after_bytes, device->stream),
                           "the guard after '%s'", buffer->name);
    if (status == CLAB_OK && buffer->pristine != 0)
        status = CLAB_CALL(driver, error, cuMemcpyDtoDAsync_v2,
                           (buffer->pristine, buffer->address, bytes, device->stream), "'%s'", buffer->name);
    return status;
}

clab_status clab_buffers_fill(const struct clab_device *device, struct clab_buffer_set *set, unsigned pass,
                              struct clab_error *error)
{
    char *staging = NULL;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++)
        status = fill_elements(device, &set->buffers[i], pass, &staging, error);
    free(staging);
    /* What the context's default stream did is done before anything of ours begins. */
    if (status == CLAB_OK)
        status = CLAB_CALL(device->driver, error, cuCtxSynchronize, (), NULL);
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++)
        status = fill_beside(device, &set->buffers[i], error);
    return status == CLAB_OK ? CLAB_CALL(device->driver, error, cuStreamSynchronize, (device->stream), NULL)
                             : status;
}

bool clab_buffer_needs_reference(const struct clab_buffer *buffer, unsigned pass)
{
    return json_object_get(buffer->expect, "reference") != NULL &&
           buffer->shadows[pass % CLAB_MAX_FILLS] == 0;
}

clab_status clab_buffer_shadow(const struct clab_device *device, struct clab_buffer *buffer, unsigned pass,
                               struct clab_error *error)
{
    CUdeviceptr *shadow = &buffer->shadows[pass % CLAB_MAX_FILLS];
    clab_status status =
        allocate(device, buffer, clab_buffer_bytes(buffer), "the reference's ", shadow, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(device->driver, error, cuMemcpyDtoDAsync_v2,
                           (*shadow, buffer->address, clab_buffer_bytes(buffer), device->stream), "'%s'",
                           buffer->name);
    return status;
}

void clab_buffer_drop_shadow(const struct clab_device *device, struct clab_buffer *buffer, unsigned pass)
{
    CUdeviceptr *shadow = &buffer->shadows[pass % CLAB_MAX_FILLS];
    if (*shadow != 0)
        (void)device->driver->cuMemFree_v2(*shadow);
    *shadow = 0;
}

bool clab_buffers_have_reset(const struct clab_buffer_set *set, bool timed)
{
    for (size_t i = 0; i < set->count; i++)
        if (timed ? set->buffers[i].reset_timed : set->buffers[i].reset_each_launch)
            return true;
    return false;
}

static clab_status reset_one(const struct clab_device *device, const struct clab_buffer *buffer,
                             const struct clab_fill *fill, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    const size_t size = clab_element_bytes(buffer->element);
    uint32_t word = 0;
    if (buffer->pristine != 0)
        return CLAB_CALL(driver, error, cuMemcpyDtoDAsync_v2,
                         (buffer->address, buffer->pristine, clab_buffer_bytes(buffer), device->stream),
                         "'%s'", buffer->name);
    if (fill->kind != CLAB_FILL_ZERO)
        clab_fill_store(fill, buffer->element, 0, 1, &word);
    if (size == 4)
        return CLAB_CALL(driver, error, cuMemsetD32Async,
                         (buffer->address, word, buffer->count, device->stream), "'%s'", buffer->name);
    if (size == 2)
        return CLAB_CALL(driver, error, cuMemsetD16Async,
                         (buffer->address, (unsigned short)word, buffer->count, device->stream), "'%s'",
                         buffer->name);
    return CLAB_CALL(driver, error, cuMemsetD8Async,
                     (buffer->address, (unsigned char)word, clab_buffer_bytes(buffer), device->stream),
                     "'%s'", buffer->name);
}

clab_status clab_buffers_reset(const struct clab_device *device, const struct clab_buffer_set *set,
                               unsigned pass, bool timed, struct clab_error *error)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct clab_buffer *buffer = &set->buffers[i];
        if (!(timed ? buffer->reset_timed : buffer->reset_each_launch))
            continue;
        clab_status status = reset_one(device, buffer, &buffer->fills[pass % buffer->n_fills], error);
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
