/* "Texture Object Management" and "Surface Object Management": from the descriptions of the API to objects of
   the machine (texture.h). UNVERIFIED: which of several wrong fields is reported, and with which code.

   Leaves out: views of block-compressed formats. */
#include "emu/api_array.h"

#include <stdlib.h>
#include <string.h>

#define TEXTURE_ALIGN_BYTES \
    512u /* what an H200 reports: attributes TEXTURE_ALIGNMENT, TEXTURE_PITCH_ALIGNMENT */
#define PITCH_ALIGN_BYTES 32u
#define LINEAR_MAX_TEXELS 268435456u

/* ---- resources ---- */

static CUresult format_fill(CUarray_format format, unsigned channels, struct emu_texture *out)
{
    unsigned bits, n;
    if (!api_format_texels(format, channels, &out->kind, &bits, &n))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "texel format 0x%x", (unsigned)format);
    if (n != 1 && n != 2 && n != 4)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u channels", n);
    out->channel_bits = (uint8_t)bits;
    out->channels = (uint8_t)n;
    return CUDA_SUCCESS;
}

static void level_fill(const struct api_array *array, struct emu_texels *out)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &array->desc;
    *out = (struct emu_texels){
        .address = array->base,
        .pitch_bytes = array->pitch_bytes,
        .slice_bytes = array->slice_bytes,
        .width = (uint32_t)desc->Width,
        .height = array->rows,
        .depth = (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0 ? 1 : array->slices,
    };
}

static CUresult array_fill(const struct api_array *array, struct emu_texture *out)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &array->desc;
    out->layered = (desc->Flags & CUDA_ARRAY3D_LAYERED) != 0;
    out->cube = (desc->Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
    out->layers = out->layered ? array->slices / (out->cube ? 6 : 1) : 1;
    out->dims = desc->Height == 0 ? 1 : desc->Depth == 0 || out->layered || out->cube ? 2 : 3;
    out->n_levels = 1;
    level_fill(array, &out->levels[0]);
    return format_fill(desc->Format, desc->NumChannels, out);
}

static CUresult linear_fill(const CUDA_RESOURCE_DESC *resource, struct emu_texture *out)
{
    const bool rows = resource->resType == CU_RESOURCE_TYPE_PITCH2D;
    const uint64_t address = rows ? resource->res.pitch2D.devPtr : resource->res.linear.devPtr;
    CUresult result = rows ? format_fill(resource->res.pitch2D.format, resource->res.pitch2D.numChannels, out)
                           : format_fill(resource->res.linear.format, resource->res.linear.numChannels, out);
    if (result != CUDA_SUCCESS)
        return result;
    const uint64_t texel = emu_texel_bytes(out);
    const uint64_t width = rows ? resource->res.pitch2D.width : resource->res.linear.sizeInBytes / texel;
    const uint64_t height = rows ? resource->res.pitch2D.height : 1;
    const uint64_t pitch = rows ? resource->res.pitch2D.pitchInBytes : width * texel;
    if (address % TEXTURE_ALIGN_BYTES != 0 || (rows && pitch % PITCH_ALIGN_BYTES != 0))
        return api_set_error(
            CUDA_ERROR_INVALID_VALUE, "0x%llx, pitch %llu, is not aligned to %u and %u bytes",
            (unsigned long long)address, (unsigned long long)pitch, TEXTURE_ALIGN_BYTES, PITCH_ALIGN_BYTES);
    if (width == 0 || height == 0 ||
        (rows ? width > 131072 || height > 65000 || pitch > 2097120 || pitch < width * texel
              : width > LINEAR_MAX_TEXELS))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%llu x %llu texels, pitch %llu",
                             (unsigned long long)width, (unsigned long long)height,
                             (unsigned long long)pitch);
    if (api_memory(address, (height - 1) * pitch + width * texel) == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "0x%llx is not live device memory of that size",
                             (unsigned long long)address);
    out->is_linear = !rows;
    out->dims = rows ? 2 : 1;
    out->layers = out->n_levels = 1;
    out->levels[0] = (struct emu_texels){.address = address,
                                         .pitch_bytes = pitch,
                                         .slice_bytes = pitch * height,
                                         .width = (uint32_t)width,
                                         .height = (uint32_t)height,
                                         .depth = 1};
    return CUDA_SUCCESS;
}

static CUresult resource_fill(const CUDA_RESOURCE_DESC *resource, struct emu_texture *out)
{
    struct api_array *array;
    struct api_mipmap *mipmap;
    CUresult result;
    if (resource->flags != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", resource->flags);
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        if (resource->res.array.hArray == NULL)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "the array is NULL");
        result = api_array_get(resource->res.array.hArray, &array);
        return result == CUDA_SUCCESS ? array_fill(array, out) : result;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        result = api_mipmap_get(resource->res.mipmap.hMipmappedArray, &mipmap);
        if (result == CUDA_SUCCESS)
            result = array_fill(mipmap->levels[0], out);
        for (unsigned i = 1; result == CUDA_SUCCESS && i < mipmap->n_levels; i++)
            level_fill(mipmap->levels[i], &out->levels[i]);
        if (result == CUDA_SUCCESS)
            out->n_levels = mipmap->n_levels;
        return result;
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D:
        return linear_fill(resource, out);
    }
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "resource type %d", (int)resource->resType);
}

/* ---- views ---- */

/* The formats of CUresourceViewFormat go by threes: one, two, four channels. */
static CUresult view_format(CUresourceViewFormat format, struct emu_texture *out)
{
    static const struct {
        uint8_t kind, bits;
    } rows[] = {{EMU_TEXEL_UINT, 8},  {EMU_TEXEL_SINT, 8},  {EMU_TEXEL_UINT, 16},  {EMU_TEXEL_SINT, 16},
                {EMU_TEXEL_UINT, 32}, {EMU_TEXEL_SINT, 32}, {EMU_TEXEL_FLOAT, 16}, {EMU_TEXEL_FLOAT, 32}};
    const uint32_t bytes = emu_texel_bytes(out);
    if (format == CU_RES_VIEW_FORMAT_NONE) /* "use underlying resource format", says the manual */
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "a view without a format: an H200 refuses it");
    const unsigned index = (unsigned)format - 1;
    if (index / 3 >= API_COUNT_OF(rows) && (out->kind != EMU_TEXEL_UINT || out->channel_bits != 32))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "blocks are seen in arrays of 32-bit integers");
    if (index / 3 >= API_COUNT_OF(rows))
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED, "views of block-compressed formats are not emulated");
    out->kind = (enum emu_texel_kind)rows[index / 3].kind;
    out->channel_bits = rows[index / 3].bits;
    out->channels = (uint8_t)(1u << index % 3);
    return emu_texel_bytes(out) == bytes
               ? CUDA_SUCCESS
               : api_set_error(CUDA_ERROR_INVALID_VALUE, "the view's texels have another size");
}

static CUresult view_fill(const CUDA_RESOURCE_VIEW_DESC *view, struct emu_texture *out)
{
    const unsigned first = view->firstMipmapLevel, last = view->lastMipmapLevel;
    CUresult result = view_format(view->format, out);
    if (result != CUDA_SUCCESS)
        return result;
    if (first > last || last >= out->n_levels)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "levels %u to %u of %u", first, last, out->n_levels);
    memmove(&out->levels[0], &out->levels[first], (last - first + 1) * sizeof out->levels[0]);
    out->n_levels = last - first + 1;
    if (out->layered) {
        if (view->firstLayer > view->lastLayer || view->lastLayer >= out->layers)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "layers %u to %u of %u", view->firstLayer,
                                 view->lastLayer, out->layers);
        for (unsigned i = 0; i < out->n_levels; i++)
            out->levels[i].address +=
                (uint64_t)view->firstLayer * (out->cube ? 6 : 1) * out->levels[i].slice_bytes;
        out->layers = view->lastLayer - view->firstLayer + 1;
    }
    return CUDA_SUCCESS;
}

/* ---- samplers ---- */

/* Bits 2 and 3 mean nothing; an H200's driver takes them. */
#define KNOWN_TEXTURE_FLAGS                                                              \
    (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | 4u | 8u | CU_TRSF_SRGB | \
     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

static CUresult sampler_fill(const CUDA_TEXTURE_DESC *desc, struct emu_texture *out)
{
    /* A seamless texture is a cube's, on the H200. */
    if ((desc->flags & ~(unsigned)KNOWN_TEXTURE_FLAGS) != 0 ||
        ((desc->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0 && !out->cube))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", desc->flags);
    if ((unsigned)desc->filterMode > CU_TR_FILTER_MODE_LINEAR ||
        (unsigned)desc->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "filter mode %d, of mipmaps %d", (int)desc->filterMode,
                             (int)desc->mipmapFilterMode);
    for (unsigned d = 0; d < 3; d++) {
        if ((unsigned)desc->addressMode[d] > CU_TR_ADDRESS_MODE_BORDER)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "address mode %d", (int)desc->addressMode[d]);
        out->address_modes[d] = (uint8_t)desc->addressMode[d];
    }
    out->normalized = (desc->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    out->srgb = (desc->flags & CU_TRSF_SRGB) != 0;
    out->linear = desc->filterMode == CU_TR_FILTER_MODE_LINEAR;
    out->mip_linear = desc->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    out->bias = desc->mipmapLevelBias;
    out->min_level = desc->minMipmapLevelClamp;
    out->max_level = desc->maxMipmapLevelClamp;
    memcpy(out->border, desc->borderColor, sizeof out->border);
    /* Small integers are read as fractions unless the program says otherwise. */
    if ((desc->flags & CU_TRSF_READ_AS_INTEGER) == 0 && out->channel_bits < 32) {
        if (out->kind == EMU_TEXEL_UINT)
            out->kind = EMU_TEXEL_UNORM;
        else if (out->kind == EMU_TEXEL_SINT)
            out->kind = EMU_TEXEL_SNORM;
    }
    return CUDA_SUCCESS;
}

CUresult api_texture_fill(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *desc,
                          const CUDA_RESOURCE_VIEW_DESC *view, struct emu_texture *out_texture)
{
    memset(out_texture, 0, sizeof *out_texture);
    CUresult result = resource_fill(resource, out_texture);
    if (result == CUDA_SUCCESS && view != NULL) {
        const bool linear =
            resource->resType == CU_RESOURCE_TYPE_LINEAR || resource->resType == CU_RESOURCE_TYPE_PITCH2D;
        result = linear ? CUDA_SUCCESS : view_fill(view, out_texture); /* not looked at there, on the H200 */
    }
    return result == CUDA_SUCCESS ? sampler_fill(desc, out_texture) : result;
}

CUresult api_surface_fill(const CUDA_RESOURCE_DESC *resource, struct emu_texture *out_texture)
{
    struct api_array *array;
    memset(out_texture, 0, sizeof *out_texture);
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "surfaces are made of arrays");
    CUresult result = api_array_get(resource->res.array.hArray, &array);
    /* CUDA_ARRAY3D_SURFACE_LDST is wanted by the manual; an H200's driver does not look for it. */
    if (result == CUDA_SUCCESS)
        result = resource_fill(resource, out_texture);
    out_texture->is_surface = true;
    if (out_texture->cube) { /* faces are layers to surface instructions */
        out_texture->layers *= 6;
        out_texture->layered = true;
        out_texture->cube = false;
    }
    return result;
}

/* ---- objects ---- */

struct api_texture {
    uint64_t number; /* the handle: what kernels get */
    bool is_surface, has_view;
    CUcontext context;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC desc;
    CUDA_RESOURCE_VIEW_DESC view;
    struct api_texture *next;
};
#define BUCKETS 256u
static struct api_texture *buckets[BUCKETS]; /* by number; guarded by the API's lock */

static struct api_texture **link_of(uint64_t number, bool is_surface)
{
    struct api_texture **link = &buckets[number % BUCKETS];
    while (*link != NULL && ((*link)->number != number || (*link)->is_surface != is_surface))
        link = &(*link)->next;
    return link;
}

static CUresult object_get(uint64_t number, bool is_surface, struct api_texture **out)
{
    *out = *link_of(number, is_surface);
    return *out != NULL ? CUDA_SUCCESS
                        : api_set_error(CUDA_ERROR_INVALID_VALUE, "0x%llx is no live object",
                                        (unsigned long long)number);
}

static void object_free(struct api_texture **link)
{
    struct api_texture *object = *link;
    *link = object->next;
    emu_texture_free(api_device()->machine, object->number);
    free(object);
}

/* Fills the rest of *object and enters it. */
static CUresult object_new(struct api_context *context, const struct emu_texture *texture,
                           struct api_texture *object)
{
    struct api_texture *own = malloc(sizeof *own);
    const uint64_t number = own != NULL ? emu_texture_new(api_device()->machine, texture) : 0;
    if (number == 0) {
        free(own);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no room for one more object");
    }
    object->number = number;
    object->is_surface = texture->is_surface;
    object->context = context->handle;
    object->next = buckets[number % BUCKETS];
    *own = *object;
    buckets[number % BUCKETS] = own;
    return CUDA_SUCCESS;
}

/* Arrays of another context cannot be sampled: PEER_ACCESS_NOT_ENABLED, on the H200. */
static CUresult check_owner(const struct api_context *context, const CUDA_RESOURCE_DESC *resource)
{
    struct api_array *array = NULL;
    struct api_mipmap *mipmap = NULL;
    CUcontext owner = context->handle;
    if (resource->resType == CU_RESOURCE_TYPE_ARRAY &&
        api_array_get(resource->res.array.hArray, &array) == CUDA_SUCCESS)
        owner = array->context;
    if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
        api_mipmap_get(resource->res.mipmap.hMipmappedArray, &mipmap) == CUDA_SUCCESS)
        owner = mipmap->context;
    return owner == context->handle
               ? CUDA_SUCCESS
               : api_set_error(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "the array is of another context");
}

CUresult CUDAAPI cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                                   const CUDA_TEXTURE_DESC *pTexDesc,
                                   const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pTexObject != NULL && pResDesc != NULL && pTexDesc != NULL);
    struct emu_texture texture;
    struct api_texture object = {.resource = *pResDesc, .desc = *pTexDesc};
    if (pResViewDesc != NULL) {
        object.view = *pResViewDesc;
        object.has_view = true;
    }
    CUresult result = api_texture_fill(pResDesc, pTexDesc, pResViewDesc, &texture);
    if (result == CUDA_SUCCESS)
        result = check_owner(context, pResDesc);
    if (result == CUDA_SUCCESS)
        result = object_new(context, &texture, &object);
    if (result == CUDA_SUCCESS)
        *pTexObject = object.number;
    return api_result(result);
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pSurfObject != NULL && pResDesc != NULL);
    struct emu_texture texture;
    struct api_texture object = {.resource = *pResDesc};
    CUresult result = api_surface_fill(pResDesc, &texture);
    if (result == CUDA_SUCCESS)
        result = object_new(context, &texture, &object);
    if (result == CUDA_SUCCESS)
        *pSurfObject = object.number;
    return api_result(result);
}

/* Waits for kernels that may use it. */
static CUresult destroy(const char *call, uint64_t number, bool is_surface)
{
    struct api_context *context;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (*link_of(number, is_surface) == NULL) /* no error, on the H200 */
        return api_leave();
    result = api_context_wait(context);
    struct api_texture **link = link_of(number, is_surface);
    if (result == CUDA_SUCCESS && *link != NULL)
        object_free(link);
    return api_result(result);
}

CUresult CUDAAPI cuTexObjectDestroy(CUtexObject texObject)
{
    return destroy(__func__, texObject, false);
}

CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject surfObject)
{
    return destroy(__func__, surfObject, true);
}

enum part { PART_RESOURCE, PART_TEXTURE, PART_VIEW };

static CUresult describe(const char *call, uint64_t number, bool is_surface, enum part part, void *out,
                         size_t bytes)
{
    struct api_context *context;
    struct api_texture *object;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out != NULL);
    result = object_get(number, is_surface, &object);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    if (object->context != context->handle)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the object is of another context");
    memcpy(out,
           part == PART_RESOURCE  ? (const void *)&object->resource
           : part == PART_TEXTURE ? (const void *)&object->desc
                                  : (const void *)&object->view,
           bytes);
    return api_leave();
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    return describe(__func__, texObject, false, PART_RESOURCE, pResDesc, sizeof *pResDesc);
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    return describe(__func__, texObject, false, PART_TEXTURE, pTexDesc, sizeof *pTexDesc);
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
    return describe(__func__, texObject, false, PART_VIEW, pResViewDesc, sizeof *pResViewDesc);
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    return describe(__func__, surfObject, true, PART_RESOURCE, pResDesc, sizeof *pResDesc);
}

void api_textures_free(CUcontext context)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct api_texture **link = &buckets[i]; *link != NULL;)
            if ((*link)->context == context)
                object_free(link);
            else
                link = &(*link)->next;
}
