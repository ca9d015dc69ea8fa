/* CUDA arrays and mipmapped arrays ("Memory Management" of the CUDA Driver API 13.0). An array is rows of
   device memory, one after the other. Limits are those that an H200 reports as attributes. UNVERIFIED: which
   of several wrong fields of a description is reported.

   Leaves out: sparse and deferred arrays, block-compressed and planar formats (refused by name). */
#include "emu/api_array.h"

#include <stdlib.h>
#include <string.h>

#define ROW_ALIGN_BYTES 64u

bool api_format_texels(CUarray_format format, unsigned channels, enum emu_texel_kind *out_kind,
                       unsigned *out_channel_bits, unsigned *out_channels)
{
    static const struct {
        CUarray_format format;
        uint8_t kind, bits, channels; /* channels 0: as asked for */
    } rows[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, EMU_TEXEL_UINT, 8, 0},
        {CU_AD_FORMAT_UNSIGNED_INT16, EMU_TEXEL_UINT, 16, 0},
        {CU_AD_FORMAT_UNSIGNED_INT32, EMU_TEXEL_UINT, 32, 0},
        {CU_AD_FORMAT_SIGNED_INT8, EMU_TEXEL_SINT, 8, 0},
        {CU_AD_FORMAT_SIGNED_INT16, EMU_TEXEL_SINT, 16, 0},
        {CU_AD_FORMAT_SIGNED_INT32, EMU_TEXEL_SINT, 32, 0},
        {CU_AD_FORMAT_HALF, EMU_TEXEL_FLOAT, 16, 0},
        {CU_AD_FORMAT_FLOAT, EMU_TEXEL_FLOAT, 32, 0},
        {CU_AD_FORMAT_UNORM_INT8X1, EMU_TEXEL_UNORM, 8, 1},
        {CU_AD_FORMAT_UNORM_INT8X2, EMU_TEXEL_UNORM, 8, 2},
        {CU_AD_FORMAT_UNORM_INT8X4, EMU_TEXEL_UNORM, 8, 4},
        {CU_AD_FORMAT_UNORM_INT16X1, EMU_TEXEL_UNORM, 16, 1},
        {CU_AD_FORMAT_UNORM_INT16X2, EMU_TEXEL_UNORM, 16, 2},
        {CU_AD_FORMAT_UNORM_INT16X4, EMU_TEXEL_UNORM, 16, 4},
        {CU_AD_FORMAT_SNORM_INT8X1, EMU_TEXEL_SNORM, 8, 1},
        {CU_AD_FORMAT_SNORM_INT8X2, EMU_TEXEL_SNORM, 8, 2},
        {CU_AD_FORMAT_SNORM_INT8X4, EMU_TEXEL_SNORM, 8, 4},
        {CU_AD_FORMAT_SNORM_INT16X1, EMU_TEXEL_SNORM, 16, 1},
        {CU_AD_FORMAT_SNORM_INT16X2, EMU_TEXEL_SNORM, 16, 2},
        {CU_AD_FORMAT_SNORM_INT16X4, EMU_TEXEL_SNORM, 16, 4},
    };
    for (size_t i = 0; i < API_COUNT_OF(rows); i++)
        if (rows[i].format == format) {
            *out_kind = (enum emu_texel_kind)rows[i].kind;
            *out_channel_bits = rows[i].bits;
            *out_channels = rows[i].channels != 0 ? rows[i].channels : channels;
            return true;
        }
    return false;
}

/* Enters a call about an array, or about a mipmapped one: it works in its context, whatever is current. */
static void *enter(const char *call, enum emu_handle_kind kind, const void *handle, CUresult *out_result)
{
    void *object = api_enter_object(call, kind, handle, CUDA_ERROR_INVALID_HANDLE, out_result);
    if (object == NULL)
        return NULL;
    const CUcontext context = kind == EMU_HANDLE_ARRAY ? ((const struct api_array *)object)->context
                                                       : ((const struct api_mipmap *)object)->context;
    *out_result = api_use_context(api_context_get(context));
    return *out_result == CUDA_SUCCESS ? object : NULL;
}

CUresult api_array_get(CUarray handle, struct api_array **out_array)
{
    *out_array = emu_handle_get(EMU_HANDLE_ARRAY, handle);
    return *out_array != NULL ? CUDA_SUCCESS : api_set_error(CUDA_ERROR_INVALID_HANDLE, "not a live array");
}

CUresult api_mipmap_get(CUmipmappedArray handle, struct api_mipmap **out_mipmap)
{
    *out_mipmap = emu_handle_get(EMU_HANDLE_MIPMAP, handle);
    return *out_mipmap != NULL ? CUDA_SUCCESS
                               : api_set_error(CUDA_ERROR_INVALID_HANDLE, "not a live mipmapped array");
}

/* ---- descriptions ---- */

static CUresult check_size(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    const size_t w = desc->Width, h = desc->Height, d = desc->Depth;
    const bool layered = (desc->Flags & CUDA_ARRAY3D_LAYERED) != 0,
               cube = (desc->Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
    size_t limits[3] = {131072, 65536, 16384};
    if (w == 0 || (layered && d == 0) || (!layered && d != 0 && h == 0))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%zu x %zu x %zu is no array", w, h, d);
    if (cube && (w != h || d == 0 || d % 6 != 0 || (!layered && d != 6)))
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "a cubemap has square faces, six or, layered, a multiple");
    if (cube || layered) {
        limits[0] = limits[1] = 32768;
        limits[2] = cube ? 2046 : 2048;
    } else if (d != 0) {
        limits[0] = limits[1] = 16384;
        /* CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE and its like; surfaces have one limit only */
        if (w <= 8192 && h <= 8192 && (desc->Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
            limits[2] = 32768;
    }
    if (w > limits[0] || h > limits[1] || d > limits[2])
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%zu x %zu x %zu is more than the device takes", w, h,
                             d);
    return CUDA_SUCCESS;
}

#define KNOWN_FLAGS                                                                                          \
    (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER | \
     CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)

/* Channels of the packed and block-compressed formats, which an H200 takes; 0 for others. Video formats are
   refused there, too. */
static unsigned compressed_channels(CUarray_format format)
{
    switch ((unsigned)format) {
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
        return 1;
    case CU_AD_FORMAT_BC5_UNORM:
    case CU_AD_FORMAT_BC5_SNORM:
        return 2;
    case CU_AD_FORMAT_BC6H_UF16:
    case CU_AD_FORMAT_BC6H_SF16:
        return 3;
    case CU_AD_FORMAT_UNORM_INT_101010_2:
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC2_UNORM:
    case CU_AD_FORMAT_BC2_UNORM_SRGB:
    case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB:
    case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
        return 4;
    default:
        return 0;
    }
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint32_t *out_texel_bytes)
{
    enum emu_texel_kind kind;
    unsigned bits, channels;
    if ((desc->Flags & ~(unsigned)KNOWN_FLAGS) != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", desc->Flags);
    if ((desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED, "sparse and deferred arrays are not emulated");
    if (!api_format_texels(desc->Format, desc->NumChannels, &kind, &bits, &channels))
        return desc->NumChannels != 0 && compressed_channels(desc->Format) == desc->NumChannels
                   ? api_set_error(CUDA_ERROR_NOT_SUPPORTED, "array format 0x%x is not emulated",
                                   (unsigned)desc->Format)
                   : api_set_error(CUDA_ERROR_INVALID_VALUE, "array format 0x%x with %u channels",
                                   (unsigned)desc->Format, desc->NumChannels);
    if ((desc->NumChannels != 1 && desc->NumChannels != 2 && desc->NumChannels != 4) ||
        channels != desc->NumChannels)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u channels", desc->NumChannels);
    if ((desc->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0 && (desc->Height == 0 || desc->Depth != 0))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "texture gather is for two-dimensional arrays");
    *out_texel_bytes = bits / 8 * channels;
    return check_size(desc);
}

/* ---- creation ---- */

/* `with_context`: because its context ends. */
static void array_free(struct api_array *array, bool with_context)
{
    struct api_allocation *memory = api_allocation_find(array->base);
    if (memory != NULL && memory->base == array->base)
        api_allocation_free(memory);
    if (array->handle != NULL && with_context)
        emu_handle_free_with_context(EMU_HANDLE_ARRAY, array->handle);
    else if (array->handle != NULL)
        emu_handle_free(array->handle);
    free(array);
}

/* `desc` is checked. */
static CUresult array_new(struct api_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                          uint32_t texel_bytes, struct api_array **out_array)
{
    struct api_array *array = calloc(1, sizeof *array);
    if (array == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an array's record");
    array->desc = *desc;
    array->context = context->handle;
    array->row_bytes = desc->Width * texel_bytes;
    array->rows = desc->Height != 0 ? (uint32_t)desc->Height : 1;
    array->slices = desc->Depth != 0 ? (uint32_t)desc->Depth : 1;
    array->pitch_bytes = (array->row_bytes + ROW_ALIGN_BYTES - 1) / ROW_ALIGN_BYTES * ROW_ALIGN_BYTES;
    array->slice_bytes = array->pitch_bytes * array->rows;
    struct api_allocation *memory =
        api_allocation_new(context, array->slice_bytes * array->slices, API_MEMORY_ARRAY);
    if (memory != NULL) {
        array->base = memory->base;
        array->handle = emu_handle_new(EMU_HANDLE_ARRAY, array);
    }
    if (array->handle == NULL) {
        const unsigned long long bytes = array->slice_bytes * array->slices;
        array_free(array, false);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an array of %llu bytes", bytes);
    }
    *out_array = array;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pHandle != NULL && pAllocateArray != NULL);
    struct api_array *array = NULL;
    uint32_t texel_bytes = 0;
    CUresult result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = check(pAllocateArray, &texel_bytes);
    if (result == CUDA_SUCCESS)
        result = array_new(context, pAllocateArray, texel_bytes, &array);
    if (result == CUDA_SUCCESS)
        *pHandle = array->handle;
    return api_result(result);
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    if (pAllocateArray == NULL)
        return cuArray3DCreate_v2(pHandle, NULL);
    const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = pAllocateArray->Width,
                                          .Height = pAllocateArray->Height,
                                          .Format = pAllocateArray->Format,
                                          .NumChannels = pAllocateArray->NumChannels};
    return cuArray3DCreate_v2(pHandle, &desc);
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    CUresult result;
    struct api_array *array = enter(__func__, EMU_HANDLE_ARRAY, hArray, &result);
    if (array == NULL)
        return result;
    if (array->mipmap != NULL)
        return api_leave(); /* it goes with its mipmapped array; no error, on the H200 */
    result = api_context_wait(api_context_get(array->context));
    if (result == CUDA_SUCCESS && emu_handle_get(EMU_HANDLE_ARRAY, hArray) == array)
        array_free(array, false);
    return api_result(result);
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUresult result;
    const struct api_array *array = enter(__func__, EMU_HANDLE_ARRAY, hArray, &result);
    if (array == NULL)
        return result;
    API_REQUIRE(pArrayDescriptor != NULL);
    *pArrayDescriptor = array->desc;
    return api_leave();
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult result = cuArray3DGetDescriptor_v2(pArrayDescriptor != NULL ? &desc : NULL, hArray);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = desc.Width,
                                                    .Height = desc.Height,
                                                    .Format = desc.Format,
                                                    .NumChannels = desc.NumChannels};
    return result;
}

/* ---- questions that only other kinds of arrays have an answer to ---- */

static CUresult of_other_kinds(const char *call, CUarray handle, const void *out, const char *what)
{
    struct api_array *array;
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out != NULL && handle != NULL);
    result = api_array_get(handle, &array);
    return result != CUDA_SUCCESS ? api_result(result) : api_fail(CUDA_ERROR_INVALID_VALUE, "%s", what);
}

CUresult CUDAAPI cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    (void)planeIdx;
    return of_other_kinds(__func__, hArray, pPlaneArray, "the array is not planar");
}

CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
    return of_other_kinds(__func__, array, sparseProperties, "the array is not sparse");
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                              CUarray array, CUdevice device)
{
    (void)device;
    return of_other_kinds(__func__, array, memoryRequirements, "the array's mapping is not deferred");
}

static CUresult of_other_mipmaps(const char *call, CUmipmappedArray handle, const void *out, const char *what)
{
    struct api_mipmap *mipmap;
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out != NULL);
    result = api_mipmap_get(handle, &mipmap);
    return result != CUDA_SUCCESS ? api_result(result) : api_fail(CUDA_ERROR_INVALID_VALUE, "%s", what);
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                                       CUmipmappedArray mipmap, CUdevice device)
{
    (void)device;
    return of_other_mipmaps(__func__, mipmap, memoryRequirements, "the array's mapping is not deferred");
}

CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                                     CUmipmappedArray mipmap)
{
    return of_other_mipmaps(__func__, mipmap, sparseProperties, "the array is not sparse");
}

/* ---- mipmapped arrays ---- */

static void mipmap_free(struct api_mipmap *mipmap, bool with_context)
{
    for (unsigned i = 0; i < mipmap->n_levels; i++)
        if (mipmap->levels[i] != NULL)
            array_free(mipmap->levels[i], with_context);
    if (mipmap->handle != NULL && with_context)
        emu_handle_free_with_context(EMU_HANDLE_MIPMAP, mipmap->handle);
    else if (mipmap->handle != NULL)
        emu_handle_free(mipmap->handle);
    free(mipmap);
}

static size_t halved(size_t size, unsigned times)
{
    return size == 0 ? 0 : size >> times != 0 ? size >> times : 1;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                        const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                        unsigned int numMipmapLevels)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pHandle != NULL && pMipmappedArrayDesc != NULL);
    const CUDA_ARRAY3D_DESCRIPTOR *desc = pMipmappedArrayDesc;
    const bool layered = (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    uint32_t texel_bytes = 0;
    CUresult result = check(desc, &texel_bytes);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    size_t longest = desc->Width > desc->Height ? desc->Width : desc->Height;
    if (!layered && desc->Depth > longest)
        longest = desc->Depth;
    const unsigned most = 64u - (unsigned)__builtin_clzll(longest); /* 1 + floor(log2) */
    struct api_mipmap *mipmap = calloc(1, sizeof *mipmap);
    if (mipmap == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a mipmapped array's record");
    mipmap->context = context->handle;
    mipmap->n_levels = numMipmapLevels < 1 ? 1 : numMipmapLevels > most ? most : numMipmapLevels;
    if (mipmap->n_levels > EMU_TEXTURE_MAX_LEVELS)
        mipmap->n_levels = EMU_TEXTURE_MAX_LEVELS;
    for (unsigned i = 0; i < mipmap->n_levels && result == CUDA_SUCCESS; i++) {
        CUDA_ARRAY3D_DESCRIPTOR level = *desc;
        level.Width = halved(desc->Width, i);
        level.Height = halved(desc->Height, i);
        level.Depth = layered ? desc->Depth : halved(desc->Depth, i);
        result = array_new(context, &level, texel_bytes, &mipmap->levels[i]);
        if (result == CUDA_SUCCESS)
            mipmap->levels[i]->mipmap = mipmap;
    }
    if (result == CUDA_SUCCESS) {
        mipmap->handle = emu_handle_new(EMU_HANDLE_MIPMAP, mipmap);
        if (mipmap->handle == NULL)
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no room for one more handle");
    }
    if (result != CUDA_SUCCESS) {
        mipmap_free(mipmap, false);
        return api_result(result);
    }
    *pHandle = mipmap->handle;
    return api_leave();
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                          unsigned int level)
{
    CUresult result;
    const struct api_mipmap *mipmap = enter(__func__, EMU_HANDLE_MIPMAP, hMipmappedArray, &result);
    if (mipmap == NULL)
        return result;
    API_REQUIRE(pLevelArray != NULL && level < mipmap->n_levels);
    *pLevelArray = mipmap->levels[level]->handle;
    return api_leave();
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    CUresult result;
    struct api_mipmap *mipmap = enter(__func__, EMU_HANDLE_MIPMAP, hMipmappedArray, &result);
    if (mipmap == NULL)
        return result;
    result = api_context_wait(api_context_get(mipmap->context));
    if (result == CUDA_SUCCESS && emu_handle_get(EMU_HANDLE_MIPMAP, hMipmappedArray) == mipmap)
        mipmap_free(mipmap, false);
    return api_result(result);
}

void api_arrays_free(CUcontext context)
{
    size_t cursor = 0;
    for (struct api_mipmap *mipmap; (mipmap = emu_handle_next(EMU_HANDLE_MIPMAP, &cursor)) != NULL;)
        if (mipmap->context == context)
            mipmap_free(mipmap, true);
    cursor = 0;
    for (struct api_array *array; (array = emu_handle_next(EMU_HANDLE_ARRAY, &cursor)) != NULL;)
        if (array->context == context)
            array_free(array, true);
}
