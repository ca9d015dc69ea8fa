/* "Tensor Map Object Management": checks as an H200's driver 580.159.04 makes them (tests/api/data/h200.txt;
   where it is laxer than the manual, the driver wins), bytes as it stores them (tensor_map.c). Sub-byte
   types, swizzle atomicity and cuTensorMapEncodeIm2colWide need CC 10.0: UNVERIFIED, from the manual. */
#include "emu/api.h"

#include <string.h>

#include "emu/tensor_map.h"

_Static_assert(sizeof(CUtensorMap) == EMU_TENSOR_MAP_BYTES, "the opaque object");
_Static_assert((int)EMU_TENSOR_U6X16_ALIGN16 == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
                   (int)EMU_SWIZZLE_128B_ATOM_64B == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
               "the same numbers");

#define MAX_ADDRESS ((uint64_t)1 << 57)
#define MAX_DIM     ((uint64_t)1 << 32)
#define MAX_STRIDE  ((uint64_t)1 << 40)

static bool is_float(enum emu_tensor_type type)
{
    return type >= EMU_TENSOR_F16 && type <= EMU_TENSOR_TF32_FTZ;
}

/* What the types with padding to 16 bytes restrict. UNVERIFIED: from the manual. */
static CUresult check_padded(const struct emu_tensor_map *map, uint32_t row_elements)
{
    const bool six = map->type == EMU_TENSOR_U6X16_ALIGN16;
    if (map->type < EMU_TENSOR_U4X16_ALIGN16)
        return CUDA_SUCCESS;
    if (row_elements != 128)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "a row of the box of a type with padding has %u elements: wanted 128",
                             row_elements);
    if (six && map->interleave != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "interleave of 6-bit elements");
    if (map->swizzle != EMU_SWIZZLE_NONE && map->swizzle != EMU_SWIZZLE_128B &&
        map->swizzle != EMU_SWIZZLE_128B_ATOM_32B && !(six && map->swizzle == EMU_SWIZZLE_128B_ATOM_64B))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "swizzle %d of a type with padding",
                             (int)map->swizzle);
    return CUDA_SUCCESS;
}

/* What tiled and im2col maps share. `map` has everything but the box. */
static CUresult check_common(const struct emu_tensor_map *map, uint32_t row_elements)
{
    const uint64_t row_bytes = emu_tensor_shared_bytes(map->type, row_elements);
    bool sub_byte = map->type >= EMU_TENSOR_U4X16_ALIGN8, newer = api_device()->model->sm >= 100;
    bool wide = map->interleave == 2 || map->type >= EMU_TENSOR_U4X16_ALIGN16;
    unsigned unit = wide ? 32 : 16;
    if (sub_byte && !newer)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "sub-byte types need compute capability 10.0");
    if (map->swizzle > EMU_SWIZZLE_128B && !newer)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "swizzle atomicity needs compute capability 10.0");
    if (map->interleave != 0 && map->rank < 3)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "rank %u with interleave: wanted 3 to 5", map->rank);
    if (map->address % unit != 0 || map->address >= MAX_ADDRESS)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "address 0x%llx: wanted a multiple of %u",
                             (unsigned long long)map->address, unit);
    for (uint32_t k = 0; k < map->rank; k++) {
        if (map->dims[k] == 0 || map->dims[k] > MAX_DIM)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "dimension %u is %llu: wanted 1 to 2^32", k,
                                 (unsigned long long)map->dims[k]);
        if (k > 0 && (map->strides[k] % unit != 0 || map->strides[k] >= MAX_STRIDE))
            return api_set_error(CUDA_ERROR_INVALID_VALUE,
                                 "the stride of dimension %u is %llu: wanted a multiple of %u "
                                 "below 2^40",
                                 k, (unsigned long long)map->strides[k], unit);
        if (map->element_strides[k] < 1 || map->element_strides[k] > 8)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "element stride %u is %u: wanted 1 to 8", k,
                                 map->element_strides[k]);
    }
    unsigned multiple = map->type >= EMU_TENSOR_U4X16_ALIGN16 ? 128 : sub_byte ? 2 : 1;
    if (map->dims[0] % multiple != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "dimension 0 is %llu: wanted a multiple of %u",
                             (unsigned long long)map->dims[0], multiple);
    if (row_bytes % 16 != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "a row of the box has %llu bytes: wanted a multiple of 16",
                             (unsigned long long)row_bytes);
    unsigned span = map->swizzle == EMU_SWIZZLE_32B ? 32 : map->swizzle == EMU_SWIZZLE_64B ? 64 : 128;
    if (map->interleave == 0 && map->swizzle != EMU_SWIZZLE_NONE && row_bytes > span)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "a row of the box has %llu bytes: this swizzle takes %u",
                             (unsigned long long)row_bytes, span);
    if (map->nan_fill && !is_float(map->type))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "NaN fill of a type that has no NaN");
    return check_padded(map, row_elements);
}

/* Fills the members that both forms have; only what indexes later arrays is checked here. */
static CUresult fill(struct emu_tensor_map *map, const CUtensorMap *out, CUtensorMapDataType type,
                     cuuint32_t rank, const void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                     const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                     CUtensorMapFloatOOBfill oob)
{
    /* The manual wants 64 bytes of alignment; an H200's driver takes any. */
    if (out == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the tensor map is NULL");
    if (rank < 1 || rank > EMU_TENSOR_MAX_RANK)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "rank %u: wanted 1 to 5", rank);
    if (dims == NULL || element_strides == NULL || strides == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "an array of dimensions or strides is NULL");
    if ((unsigned)type >= EMU_TENSOR_TYPE_COUNT || (unsigned)interleave > 2 || (unsigned)swizzle > 6 ||
        (unsigned)promotion > 3 || (unsigned)oob > 1)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "type %d, interleave %d, swizzle %d, promotion %d or fill %d is "
                             "out of range",
                             (int)type, (int)interleave, (int)swizzle, (int)promotion, (int)oob);
    *map = (struct emu_tensor_map){
        .address = (uint64_t)(uintptr_t)address,
        .rank = rank,
        .type = (enum emu_tensor_type)type,
        .interleave = (uint32_t)interleave,
        .swizzle = (enum emu_tensor_swizzle)swizzle,
        .l2_promotion = (uint32_t)promotion,
        .nan_fill = oob == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    };
    for (uint32_t k = 0; k < rank; k++) {
        map->dims[k] = dims[k];
        map->element_strides[k] = element_strides[k];
        map->strides[k] = k > 0 ? strides[k - 1] : 0;
        map->box[k] = 1;
    }
    return CUDA_SUCCESS;
}

static void store(const struct emu_tensor_map *map, CUtensorMap *out)
{
    uint32_t words[EMU_TENSOR_MAP_BYTES / 4];
    emu_tensor_map_encode(map, words);
    memcpy(out, words, sizeof words);
}

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                        cuuint32_t tensorRank, void *globalAddress,
                                        const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                        const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
                                        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    struct emu_tensor_map map;
    CUresult result = fill(&map, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                           globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    API_REQUIRE(boxDim != NULL);
    uint64_t bytes = 1;
    for (uint32_t k = 0; k < tensorRank; k++) {
        if (boxDim[k] < 1 || boxDim[k] > 256)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "box dimension %u is %u: wanted 1 to 256", k,
                            boxDim[k]);
        map.box[k] = boxDim[k];
        bytes *= k == 0 ? emu_tensor_shared_bytes(map.type, boxDim[0]) : boxDim[k];
    }
    result = check_common(&map, boxDim[0]);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    /* UNVERIFIED: the limit; an H200's driver takes 128 KiB and refuses 256 KiB. */
    if (bytes > api_device()->model->shared_per_block_optin_bytes)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "a box of %llu bytes does not fit shared memory",
                        (unsigned long long)bytes);
    store(&map, tensorMap);
    return api_leave();
}

/* The members of im2col maps; corners: as many as there are dimensions of pixels, of im2col::w maps one. */
static CUresult fill_im2col(struct emu_tensor_map *map, const int *lower, const int *upper,
                            cuuint32_t channels, cuuint32_t pixels)
{
    if (channels < 1 || channels > 256 || pixels < 1 || pixels > 1024)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "%u channels per pixel, %u pixels per column: wanted 1 to 256 and 1 to "
                             "1024",
                             channels, pixels);
    map->im2col = true;
    map->channels = channels;
    map->pixels = pixels;
    const int limit = map->rank == 3 || map->wide ? 32768 : map->rank == 4 ? 128 : 16;
    for (uint32_t k = 0; k < (map->wide ? 1 : map->rank - 2); k++) {
        map->lower[k] = lower[k];
        map->upper[k] = upper[k];
        if (lower[k] < -limit || lower[k] >= limit || upper[k] < -limit || upper[k] >= limit)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "corner %u is %d to %d: wanted %d to %d", k,
                                 lower[k], upper[k], -limit, limit - 1);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                         cuuint32_t tensorRank, void *globalAddress,
                                         const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                         const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
                                         cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                         const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                         CUtensorMapFloatOOBfill oobFill)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    struct emu_tensor_map map;
    CUresult result = fill(&map, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                           globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    API_REQUIRE(tensorRank >= 3 && pixelBoxLowerCorner != NULL && pixelBoxUpperCorner != NULL);
    result = fill_im2col(&map, pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn);
    if (result == CUDA_SUCCESS)
        result = check_common(&map, channelsPerPixel);
    if (result == CUDA_SUCCESS)
        store(&map, tensorMap);
    return api_result(result);
}

CUresult CUDAAPI cuTensorMapEncodeIm2colWide(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
    const cuuint64_t *globalDim, const cuuint64_t *globalStrides, int pixelBoxLowerCornerWidth,
    int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
    const cuuint32_t *elementStrides, CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    struct emu_tensor_map map;
    CUresult result = fill(&map, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                           globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    /* An H200's driver encodes them too; no instruction of CC 9.0 takes one. */
    API_REQUIRE(tensorRank >= 3 &&
                (mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W || mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128));
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "interleave of an im2col::w map");
    if (swizzle != CU_TENSOR_MAP_SWIZZLE_64B && swizzle != CU_TENSOR_MAP_SWIZZLE_128B &&
        swizzle != CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B)
        return api_fail(CUDA_ERROR_INVALID_VALUE,
                        "swizzle %d of an im2col::w map: wanted 64B, 128B or 128B_ATOM_32B", (int)swizzle);
    map.wide = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ? 1 : 2;
    result = fill_im2col(&map, &pixelBoxLowerCornerWidth, &pixelBoxUpperCornerWidth, channelsPerPixel,
                         map.wide == 2 ? 128 : pixelsPerColumn);
    if (result == CUDA_SUCCESS)
        result = check_common(&map, channelsPerPixel);
    if (result == CUDA_SUCCESS)
        store(&map, tensorMap);
    return api_result(result);
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(tensorMap != NULL && globalAddress != NULL);
    uint32_t words[EMU_TENSOR_MAP_BYTES / 4];
    struct emu_tensor_map map;
    memcpy(words, tensorMap, sizeof words);
    const char *reason = emu_tensor_map_decode(words, &map);
    if (reason != NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%s", reason);
    uint64_t address = (uint64_t)(uintptr_t)globalAddress;
    unsigned unit = map.interleave == 2 || map.type >= EMU_TENSOR_U4X16_ALIGN16 ? 32 : 16;
    if (address % unit != 0 || address >= MAX_ADDRESS)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "address 0x%llx: wanted a multiple of %u",
                        (unsigned long long)address, unit);
    memcpy(tensorMap, &address, sizeof address); /* the type asks for more alignment than the driver does */
    return api_leave();
}
