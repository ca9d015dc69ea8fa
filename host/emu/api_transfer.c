/* Checks and scheduling of copies and sets ("Memory Management", and "API synchronization behavior" of the
   CUDA Driver API 13.0). Synchronous forms are done on return, except device to device and sets, which only
   keep stream order. Asynchronous forms on pinned memory return at once; on pageable memory the source has
   been read on return (staged if the stream is busy), a destination has been written on return. */
#include "emu/api_transfer.h"

#include "emu/api_array.h"

#include <stdlib.h>
#include <string.h>

struct api_copy api_copy_linear(uint64_t to, uint64_t from, uint64_t bytes)
{
    return (struct api_copy){
        .to = {.address = to, .pitch = bytes, .slice_pitch = bytes},
        .from = {.address = from, .pitch = bytes, .slice_pitch = bytes},
        .width = bytes,
        .height = 1,
        .depth = 1,
    };
}

/* Bytes from a side's first to behind its last; false on overflow. */
static bool extent(const struct api_copy_side *side, const struct api_copy *copy, uint64_t *out_bytes)
{
    uint64_t slices, rows;
    return !__builtin_mul_overflow(copy->depth - 1, side->slice_pitch, &slices) &&
           !__builtin_mul_overflow(copy->height - 1, side->pitch, &rows) &&
           !__builtin_add_overflow(slices, rows, out_bytes) &&
           !__builtin_add_overflow(*out_bytes, copy->width, out_bytes) && *out_bytes <= INT64_MAX;
}

static CUresult check_side(struct api_copy_side *side, const struct api_copy *copy, enum api_side_kind kind,
                           const char *name)
{
    uint64_t bytes;
    if (!extent(side, copy, &bytes))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's extent overflows", name);
    bool known = api_allocation_find(side->address) != NULL || api_memory_reserved(side->address) ||
                 api_memory(side->address, 1) != NULL;
    side->device = kind == API_SIDE_DEVICE || known;
    if (side->device && api_memory(side->address, bytes) == NULL &&
        !api_graph_memory_holds(side->address, bytes))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%s: 0x%llx, %llu bytes, is not live device memory",
                             name, (unsigned long long)side->address, (unsigned long long)bytes);
    if (!side->device && side->address == 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s is NULL", name);
    return CUDA_SUCCESS;
}

CUresult api_copy_check(struct api_copy *copy, enum api_side_kind to, enum api_side_kind from)
{
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        return CUDA_SUCCESS;
    CUresult result = check_side(&copy->to, copy, to, "destination");
    return result == CUDA_SUCCESS ? check_side(&copy->from, copy, from, "source") : result;
}

/* One side of a box as the API describes it. */
struct given {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    uint64_t x, y, z; /* of the corner; x in bytes */
    uint64_t pitch, height;
    const char *name;
};

#define MAX_PITCH 2147483647u

/* Places a box's corner; pitch 0 means tightly packed. */
static CUresult place(struct api_copy_side *side, uint64_t address, const struct given *given,
                      const struct api_copy *box)
{
    uint64_t least = box->width, offset, pitch = given->pitch, height = given->height;
    if (__builtin_add_overflow(least, given->x, &least))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's row overflows", given->name);
    if (pitch == 0)
        pitch = least;
    if (height == 0)
        height = box->height + given->y;
    if (pitch < least || ((box->height > 1 || box->depth > 1) && pitch > MAX_PITCH))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's pitch is %llu: wanted %llu to %u",
                             given->name, (unsigned long long)pitch, (unsigned long long)least, MAX_PITCH);
    if (height < box->height + given->y)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's height is below the copied box",
                             given->name);
    side->pitch = pitch;
    uint64_t down, back;
    if (__builtin_mul_overflow(pitch, height, &side->slice_pitch) ||
        __builtin_mul_overflow(given->y, pitch, &down) ||
        __builtin_mul_overflow(given->z, side->slice_pitch, &back) ||
        __builtin_add_overflow(given->x, down, &offset) || __builtin_add_overflow(offset, back, &offset) ||
        __builtin_add_overflow(address, offset, &side->address))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's corner overflows", given->name);
    return CUDA_SUCCESS;
}

/* The same in an array: the box must lie inside it. */
static CUresult place_in_array(struct api_copy_side *side, const struct given *given,
                               const struct api_copy *box)
{
    struct api_array *array;
    CUresult result = api_array_get(given->array, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (given->x > array->row_bytes || box->width > array->row_bytes - given->x || given->y > array->rows ||
        box->height > array->rows - given->y || given->z > array->slices ||
        box->depth > array->slices - given->z)
        return api_set_error(
            CUDA_ERROR_INVALID_VALUE,
            "the %s: %llu bytes x %llu x %llu at %llu, %llu, %llu leaves an array of %llu x %u x %u",
            given->name, (unsigned long long)box->width, (unsigned long long)box->height,
            (unsigned long long)box->depth, (unsigned long long)given->x, (unsigned long long)given->y,
            (unsigned long long)given->z, (unsigned long long)array->row_bytes, array->rows, array->slices);
    *side = (struct api_copy_side){.address = array->base + given->z * array->slice_bytes +
                                              given->y * array->pitch_bytes + given->x,
                                   .pitch = array->pitch_bytes,
                                   .slice_pitch = array->slice_bytes};
    return CUDA_SUCCESS;
}

static CUresult side_place(struct api_copy_side *side, const struct given *given, const struct api_copy *box,
                           enum api_side_kind *out_kind)
{
    switch (given->type) {
    case CU_MEMORYTYPE_HOST:
        *out_kind = API_SIDE_HOST;
        return place(side, (uint64_t)(uintptr_t)given->host, given, box);
    case CU_MEMORYTYPE_DEVICE:
        *out_kind = API_SIDE_DEVICE;
        return place(side, given->device, given, box);
    case CU_MEMORYTYPE_UNIFIED:
        *out_kind = API_SIDE_UNIFIED;
        return place(side, given->device, given, box);
    case CU_MEMORYTYPE_ARRAY:
        *out_kind = API_SIDE_DEVICE;
        return place_in_array(side, given, box);
    }
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "memory type %d", (int)given->type);
}

static CUresult box_place(struct api_copy *copy, const struct given *from, const struct given *to)
{
    enum api_side_kind from_kind = API_SIDE_HOST, to_kind = API_SIDE_HOST;
    CUresult result = side_place(&copy->from, from, copy, &from_kind);
    if (result == CUDA_SUCCESS)
        result = side_place(&copy->to, to, copy, &to_kind);
    return result == CUDA_SUCCESS ? api_copy_check(copy, to_kind, from_kind) : result;
}

CUresult api_copy_from_3d(const CUDA_MEMCPY3D *box, struct api_copy *out_copy)
{
    const struct given from = {.type = box->srcMemoryType,
                               .host = box->srcHost,
                               .device = box->srcDevice,
                               .array = box->srcArray,
                               .x = box->srcXInBytes,
                               .y = box->srcY,
                               .z = box->srcZ,
                               .pitch = box->srcPitch,
                               .height = box->srcHeight,
                               .name = "source"};
    const struct given to = {.type = box->dstMemoryType,
                             .host = box->dstHost,
                             .device = box->dstDevice,
                             .array = box->dstArray,
                             .x = box->dstXInBytes,
                             .y = box->dstY,
                             .z = box->dstZ,
                             .pitch = box->dstPitch,
                             .height = box->dstHeight,
                             .name = "destination"};
    *out_copy = (struct api_copy){.width = box->WidthInBytes, .height = box->Height, .depth = box->Depth};
    /* srcLOD and dstLOD must be 0 by the manual; an H200's driver does not look at them. */
    return box_place(out_copy, &from, &to);
}

CUresult api_copy_from_2d(const CUDA_MEMCPY2D *box, struct api_copy *out_copy)
{
    const CUDA_MEMCPY3D flat = {.srcMemoryType = box->srcMemoryType,
                                .srcHost = box->srcHost,
                                .srcDevice = box->srcDevice,
                                .srcArray = box->srcArray,
                                .srcXInBytes = box->srcXInBytes,
                                .srcY = box->srcY,
                                .srcPitch = box->srcPitch,
                                .dstMemoryType = box->dstMemoryType,
                                .dstHost = box->dstHost,
                                .dstDevice = box->dstDevice,
                                .dstArray = box->dstArray,
                                .dstXInBytes = box->dstXInBytes,
                                .dstY = box->dstY,
                                .dstPitch = box->dstPitch,
                                .WidthInBytes = box->WidthInBytes,
                                .Height = box->Height,
                                .Depth = 1};
    return api_copy_from_3d(&flat, out_copy);
}

/* Packs a pageable source into one heap block, so that the program may reuse it at once. */
static bool stage(struct api_copy *copy)
{
    uint64_t row = copy->width, slice, bytes;
    if (__builtin_mul_overflow(row, copy->height, &slice) ||
        __builtin_mul_overflow(slice, copy->depth, &bytes))
        return false;
    unsigned char *block = malloc(bytes);
    if (block == NULL)
        return false;
    const unsigned char *from = (const unsigned char *)(uintptr_t)copy->from.address;
    for (uint64_t z = 0; z < copy->depth; z++)
        for (uint64_t y = 0; y < copy->height; y++)
            memcpy(block + z * slice + y * row, from + z * copy->from.slice_pitch + y * copy->from.pitch,
                   row);
    copy->from =
        (struct api_copy_side){.address = (uint64_t)(uintptr_t)block, .pitch = row, .slice_pitch = slice};
    copy->staged = true;
    return true;
}

static bool is_on_device(const struct api_copy_side *side)
{
    const struct api_allocation *allocation = side->device ? api_allocation_find(side->address) : NULL;
    return side->device && (allocation == NULL || allocation->kind == API_MEMORY_DEVICE ||
                            allocation->kind == API_MEMORY_VIRTUAL || allocation->kind == API_MEMORY_IPC ||
                            allocation->kind == API_MEMORY_ARRAY || allocation->kind == API_MEMORY_GRAPH);
}

CUresult api_copy_submit(struct api_stream *stream, const struct api_copy *copy, bool synchronous)
{
    struct api_work work = {.kind = API_WORK_COPY, .copy = *copy};
    const bool empty = copy->width == 0 || copy->height == 0 || copy->depth == 0;
    if (stream->capture != NULL && empty && !synchronous) /* no node, on the H200 */
        return CUDA_SUCCESS;
    if (stream->capture != NULL)
        return api_submit(stream, &work, synchronous ? API_SYNC : API_ASYNC);
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        work = (struct api_work){.kind = API_WORK_EMPTY};
    bool device_only = is_on_device(&copy->to) && is_on_device(&copy->from);
    if (synchronous && !device_only)
        return api_submit(stream, &work, API_SYNC);
    if (work.kind == API_WORK_COPY && !copy->to.device)
        return api_submit(stream, &work, API_SYNC);
    if (work.kind == API_WORK_COPY && !copy->from.device && (api_stream_idle(stream) || !stage(&work.copy)))
        return api_submit(stream, &work, API_SYNC);
    return api_submit(stream, &work, API_ASYNC);
}

CUresult api_set_check(uint64_t address, uint64_t pitch, unsigned element_bytes, uint64_t width,
                       uint64_t height)
{
    uint64_t row, down, bytes;
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    if (address % element_bytes != 0 || (height > 1 && pitch % element_bytes != 0))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "address 0x%llx or pitch %llu is not a multiple of %u",
                             (unsigned long long)address, (unsigned long long)pitch, element_bytes);
    if (__builtin_mul_overflow(width, (uint64_t)element_bytes, &row) || (height > 1 && pitch < row) ||
        __builtin_mul_overflow(height - 1, pitch, &down) || __builtin_add_overflow(row, down, &bytes) ||
        (api_memory(address, bytes) == NULL && !api_graph_memory_holds(address, bytes)))
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "0x%llx, %llu elements of %u bytes x %llu rows, is not live device memory",
                             (unsigned long long)address, (unsigned long long)width, element_bytes,
                             (unsigned long long)height);
    return CUDA_SUCCESS;
}
