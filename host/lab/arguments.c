/* Kernel arguments: device addresses, typed scalars, and tensor maps through cuTensorMapEncodeTiled and
   cuTensorMapEncodeIm2col (CUDA Driver API 13.0, "Tensor Map Object Management"). The plan has checked every
   rule that needs no device (tensor_map.c in this folder); here come the address's alignment and the compute
   capability. Leaves out: cuTensorMapEncodeIm2colWide. */
#include "lab/arguments.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "driver/call.h"
#include "lab/fill.h"
#include "lab/wire.h"

#define MOST_ARGUMENTS 256
#define MAX_RANK       5

_Static_assert(sizeof(CUtensorMap) <= sizeof((struct clab_launch *)0)->values[0],
               "a tensor map is an argument");

static size_t read_u64(const json_t *list, cuuint64_t *out, size_t most)
{
    size_t n = 0;
    for (; n < json_array_size(list) && n < most; n++)
        out[n] = (cuuint64_t)json_integer_value(json_array_get(list, n));
    return n;
}

static void read_u32(const json_t *list, cuuint32_t *out, size_t most)
{
    for (size_t i = 0; i < json_array_size(list) && i < most; i++)
        out[i] = (cuuint32_t)json_integer_value(json_array_get(list, i));
}

static void read_int(const json_t *list, int *out, size_t most)
{
    for (size_t i = 0; i < json_array_size(list) && i < most; i++)
        out[i] = (int)json_integer_value(json_array_get(list, i));
}

/* Sub-byte element types and the swizzles with an atom came with compute capability 10.0 (an H200's driver
   580.159.04 refuses them; cuda.h 13.0 does not say so). */
static clab_status check_capability(const struct clab_device *device, const json_t *map,
                                    struct clab_error *error)
{
    const int64_t type = clab_json_int(map, "type_code", 0), swizzle = clab_json_int(map, "swizzle", 0);
    const bool sub_byte = type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
               atom = swizzle > CU_TENSOR_MAP_SWIZZLE_128B;
    if (device->cc_major >= 10 || (!sub_byte && !atom))
        return CLAB_OK;
    return clab_error_set(error, CLAB_WAIVED,
                          "a tensor map with %s needs compute capability 10.0; the device has %d.%d",
                          sub_byte ? clab_json_text(map, "type", "a sub-byte type") : "swizzle atomicity",
                          device->cc_major, device->cc_minor);
}

clab_status clab_tensor_map_encode(const struct clab_device *device, const json_t *map, CUdeviceptr address,
                                   CUtensorMap *out_map, struct clab_error *error)
{
    const char *buffer = clab_json_text(map, "buffer", "");
    const CUtensorMapDataType type = (CUtensorMapDataType)clab_json_int(map, "type_code", 0);
    const CUtensorMapInterleave interleave = (CUtensorMapInterleave)clab_json_int(map, "interleave", 0);
    const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)clab_json_int(map, "swizzle", 0);
    const CUtensorMapL2promotion promotion = (CUtensorMapL2promotion)clab_json_int(map, "l2_promotion", 0);
    const CUtensorMapFloatOOBfill fill = (CUtensorMapFloatOOBfill)clab_json_int(map, "fill", 0);
    const json_t *im2col = json_object_get(map, "im2col");
    cuuint64_t dims[MAX_RANK] = {0}, strides[MAX_RANK] = {0};
    cuuint32_t box[MAX_RANK] = {0}, steps[MAX_RANK] = {0};
    const cuuint32_t rank = (cuuint32_t)read_u64(json_object_get(map, "dims"), dims, MAX_RANK);
    (void)read_u64(json_object_get(map, "strides"), strides, MAX_RANK);
    read_u32(json_object_get(map, "box"), box, MAX_RANK);
    read_u32(json_object_get(map, "element_strides"), steps, MAX_RANK);
    const unsigned unit =
        interleave == CU_TENSOR_MAP_INTERLEAVE_32B || type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ? 32 : 16;
    if (address % unit != 0)
        return clab_error_set(error, CLAB_EXPERIMENT,
                              "the tensor map of buffer '%s' starts at 0x%llx, wanted a multiple of %u bytes",
                              buffer, (unsigned long long)address, unit);
    clab_status status = check_capability(device, map, error);
    if (status != CLAB_OK)
        return status;
    void *start = (void *)(uintptr_t)address;
    if (!json_is_object(im2col))
        return CLAB_CALL(
            device->driver, error, cuTensorMapEncodeTiled,
            (out_map, type, rank, start, dims, strides, box, steps, interleave, swizzle, promotion, fill),
            "tensor map of '%s', rank %u", buffer, rank);
    int lower[MAX_RANK] = {0}, upper[MAX_RANK] = {0};
    read_int(json_object_get(im2col, "lower"), lower, MAX_RANK);
    read_int(json_object_get(im2col, "upper"), upper, MAX_RANK);
    return CLAB_CALL(device->driver, error, cuTensorMapEncodeIm2col,
                     (out_map, type, rank, start, dims, strides, lower, upper,
                      (cuuint32_t)clab_json_int(im2col, "channels", 0),
                      (cuuint32_t)clab_json_int(im2col, "pixels", 0), steps, interleave, swizzle, promotion,
                      fill),
                     "im2col tensor map of '%s', rank %u", buffer, rank);
}

static void store_scalar(enum clab_element element, const json_t *value, unsigned char *out)
{
    if (json_is_integer(value) && element < CLAB_F16) {
        const json_int_t bits =
            json_integer_value(value); /* u64 above 2^63 arrives as its two's complement */
        memcpy(out, &bits, clab_element_bytes(element));
    } else {
        clab_element_store(element, clab_json_number(value), out, 0);
    }
}

/* One argument's bytes; *out_what names it for messages. */
static clab_status prepare(const struct clab_device *device, size_t index, const json_t *argument,
                           CUdeviceptr (*buffer_address)(const char *, void *), void *context,
                           unsigned char *out, size_t *out_bytes, const char **out_what,
                           struct clab_error *error)
{
    const json_t *map = json_object_get(argument, "tensor_map");
    const char *buffer = clab_json_text(map != NULL ? map : argument, "buffer", NULL);
    const char *type = clab_json_text(argument, "type", NULL);
    const CUdeviceptr address = buffer != NULL ? buffer_address(buffer, context) : 0;
    if (buffer != NULL && address == 0)
        return clab_error_set(error, CLAB_EXPERIMENT, "argument %zu: no buffer '%s'", index, buffer);
    if (map != NULL) {
        CUtensorMap encoded;
        clab_status status = clab_tensor_map_encode(device, map, address, &encoded, error);
        memcpy(out, &encoded, sizeof encoded);
        *out_bytes = sizeof encoded;
        *out_what = "a tensor map";
        return status;
    }
    if (buffer != NULL) {
        memcpy(out, &address, sizeof address);
        *out_bytes = sizeof address;
        *out_what = "a buffer";
        return CLAB_OK;
    }
    const enum clab_element element = type != NULL ? clab_element_get(type) : CLAB_ELEMENT_COUNT;
    if (element == CLAB_ELEMENT_COUNT)
        return clab_error_set(error, CLAB_EXPERIMENT,
                              "argument %zu: neither a buffer, a typed scalar nor a tensor map", index);
    store_scalar(element, json_object_get(argument, "value"), out);
    *out_bytes = clab_element_bytes(element);
    *out_what = type;
    return CLAB_OK;
}

/* The bytes of each parameter, for who has to write the arguments. */
static void remedy_sizes(const struct clab_loaded *loaded, struct clab_error *error)
{
    struct clab_str text = {0};
    for (size_t i = 0; i < loaded->n_params; i++)
        clab_str_addf(&text, "%s%zu",
                      i == 0                     ? ""
                      : i + 1 < loaded->n_params ? ", "
                                                 : " and ",
                      loaded->param_bytes[i]);
    clab_error_remedy(
        error,
        "arguments of %s bytes, in this order: 8 for a buffer or a 64-bit number, 4 for u32 or f32, 128 "
        "for a tensor map",
        text.text != NULL ? text.text : "?");
    clab_str_free(&text);
}

clab_status clab_arguments_prepare(const struct clab_device *device, const struct clab_loaded *loaded,
                                   const json_t *arguments,
                                   CUdeviceptr (*buffer_address)(const char *name, void *context),
                                   void *context, struct clab_launch *launch, struct clab_error *error)
{
    const size_t count = json_array_size(arguments);
    const bool known = loaded->n_params != SIZE_MAX;
    if (count > MOST_ARGUMENTS || (known && count != loaded->n_params)) {
        clab_error_set(error, CLAB_EXPERIMENT, "kernel '%s' takes %zu argument%s, %zu %s given",
                       loaded->entry, known ? loaded->n_params : (size_t)MOST_ARGUMENTS,
                       known && loaded->n_params == 1 ? "" : "s", count, count == 1 ? "is" : "are");
        if (known && loaded->n_params != 0)
            remedy_sizes(loaded, error);
        return clab_launch_blame(error, loaded);
    }
    for (size_t i = 0; i < count; i++) {
        const char *what = "";
        size_t bytes = 0;
        clab_status status = prepare(device, i, json_array_get(arguments, i), buffer_address, context,
                                     launch->values[i], &bytes, &what, error);
        if (status != CLAB_OK)
            return status;
        if (known && bytes != loaded->param_bytes[i]) {
            clab_error_set(error, CLAB_EXPERIMENT,
                           "argument %zu of kernel '%s' has %zu bytes, %zu are given (%s)", i, loaded->entry,
                           loaded->param_bytes[i], bytes, what);
            return clab_launch_blame(error, loaded);
        }
        launch->params[i] = launch->values[i];
    }
    return CLAB_OK;
}
