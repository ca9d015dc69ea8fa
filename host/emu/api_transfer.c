/* Checks and scheduling of copies and sets ("Memory Management", and "API synchronization behavior" of the
   CUDA Driver API 13.0): synchronous forms          done on return, except device to device and sets, which
   only keep stream order asynchronous, pinned       returns at once asynchronous, pageable     the source has
   been read on return (staged if the stream is busy); a destination has been written on return Leaves out:
   CUDA arrays. */
#include "emu/api_transfer.h"

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
    if (side->device && api_memory(side->address, bytes) == NULL)
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

static CUresult side_of(CUmemorytype type, const void *host, uint64_t device, enum api_side_kind *out_kind,
                        uint64_t *out_address)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        *out_kind = API_SIDE_HOST;
        *out_address = (uint64_t)(uintptr_t)host;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
        *out_kind = API_SIDE_DEVICE;
        *out_address = device;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_UNIFIED:
        *out_kind = API_SIDE_UNIFIED;
        *out_address = device;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED, "CUDA arrays are not emulated");
    }
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "memory type %d", (int)type);
}

#define MAX_PITCH 2147483647u

/* Places a box's corner; pitch 0 means tightly packed. */
static CUresult place(struct api_copy_side *side, uint64_t address, uint64_t x, uint64_t y, uint64_t z,
                      uint64_t pitch, uint64_t height, const struct api_copy *box, const char *name)
{
    uint64_t least = box->width, offset;
    if (__builtin_add_overflow(least, x, &least))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's row overflows", name);
    if (pitch == 0)
        pitch = least;
    if (height == 0)
        height = box->height + y;
    bool rows = box->height > 1 || box->depth > 1;
    if (rows && (pitch < least || pitch > MAX_PITCH))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's pitch is %llu: wanted %llu to %u", name,
                             (unsigned long long)pitch, (unsigned long long)least, MAX_PITCH);
    if (box->depth > 1 && height < box->height + y)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's height is below the copied box", name);
    side->pitch = pitch;
    uint64_t down, back;
    if (__builtin_mul_overflow(pitch, height, &side->slice_pitch) ||
        __builtin_mul_overflow(y, pitch, &down) || __builtin_mul_overflow(z, side->slice_pitch, &back) ||
        __builtin_add_overflow(x, down, &offset) || __builtin_add_overflow(offset, back, &offset) ||
        __builtin_add_overflow(address, offset, &side->address))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the %s's corner overflows", name);
    return CUDA_SUCCESS;
}

CUresult api_copy_from_2d(const CUDA_MEMCPY2D *from, struct api_copy *out_copy)
{
    enum api_side_kind to_kind = API_SIDE_HOST, from_kind = API_SIDE_HOST;
    uint64_t to_address = 0, from_address = 0;
    struct api_copy copy = {.width = from->WidthInBytes, .height = from->Height, .depth = 1};
    CUresult result = side_of(from->srcMemoryType, from->srcHost, from->srcDevice, &from_kind, &from_address);
    if (result == CUDA_SUCCESS)
        result = side_of(from->dstMemoryType, from->dstHost, from->dstDevice, &to_kind, &to_address);
    if (result == CUDA_SUCCESS)
        result = place(&copy.from, from_address, from->srcXInBytes, from->srcY, 0, from->srcPitch, 0, &copy,
                       "source");
    if (result == CUDA_SUCCESS)
        result = place(&copy.to, to_address, from->dstXInBytes, from->dstY, 0, from->dstPitch, 0, &copy,
                       "destination");
    if (result == CUDA_SUCCESS)
        result = api_copy_check(&copy, to_kind, from_kind);
    *out_copy = copy;
    return result;
}

CUresult api_copy_from_3d(const CUDA_MEMCPY3D *from, struct api_copy *out_copy)
{
    enum api_side_kind to_kind = API_SIDE_HOST, from_kind = API_SIDE_HOST;
    uint64_t to_address = 0, from_address = 0;
    struct api_copy copy = {.width = from->WidthInBytes, .height = from->Height, .depth = from->Depth};
    if (from->srcLOD != 0 || from->dstLOD != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "LOD must be 0");
    CUresult result = side_of(from->srcMemoryType, from->srcHost, from->srcDevice, &from_kind, &from_address);
    if (result == CUDA_SUCCESS)
        result = side_of(from->dstMemoryType, from->dstHost, from->dstDevice, &to_kind, &to_address);
    if (result == CUDA_SUCCESS)
        result = place(&copy.from, from_address, from->srcXInBytes, from->srcY, from->srcZ, from->srcPitch,
                       from->srcHeight, &copy, "source");
    if (result == CUDA_SUCCESS)
        result = place(&copy.to, to_address, from->dstXInBytes, from->dstY, from->dstZ, from->dstPitch,
                       from->dstHeight, &copy, "destination");
    if (result == CUDA_SUCCESS)
        result = api_copy_check(&copy, to_kind, from_kind);
    *out_copy = copy;
    return result;
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
                            allocation->kind == API_MEMORY_VIRTUAL || allocation->kind == API_MEMORY_IPC);
}

CUresult api_copy_submit(struct api_stream *stream, const struct api_copy *copy, bool synchronous)
{
    struct api_work work = {.kind = API_WORK_COPY, .copy = *copy};
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
        api_memory(address, bytes) == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "0x%llx, %llu elements of %u bytes x %llu rows, is not live device memory",
                             (unsigned long long)address, (unsigned long long)width, element_bytes,
                             (unsigned long long)height);
    return CUDA_SUCCESS;
}
