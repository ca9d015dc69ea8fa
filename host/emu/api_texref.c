/* "Texture Reference Management" and "Surface Reference Management" (deprecated, and still in use). A
   module's .texref or .surfref variable holds the handle of an object of the machine; every change of the
   reference makes that object anew. UNVERIFIED: the state of a fresh reference (clamped, nearest, one f32
   channel), and that a change takes effect for launches that come later only (running ones are waited for
   here). */
#include "emu/api_array.h"

#include <stdlib.h>
#include <string.h>

struct api_reference {
    void *handle;
    CUcontext context;
    CUmodule module;  /* NULL: made by cuTexRefCreate */
    uint64_t address; /* of the variable, 0 none */
    bool is_surface, is_bound;
    uint64_t number; /* of the object, 0 none */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC desc;
    CUarray_format format;
    unsigned channels;
};

static enum emu_handle_kind kind_of(bool is_surface)
{
    return is_surface ? EMU_HANDLE_SURFREF : EMU_HANDLE_TEXREF;
}

static CUresult reference_get(const void *handle, bool is_surface, struct api_reference **out)
{
    *out = emu_handle_get(kind_of(is_surface), handle);
    if (*out != NULL && (*out)->module != NULL && emu_handle_get(EMU_HANDLE_MODULE, (*out)->module) == NULL)
        *out = NULL; /* its module was unloaded */
    return *out != NULL ? CUDA_SUCCESS : api_set_error(CUDA_ERROR_INVALID_HANDLE, "not a live reference");
}

static void store(const struct api_reference *reference)
{
    void *at = reference->address != 0 ? api_memory(reference->address, sizeof reference->number) : NULL;
    if (at != NULL)
        memcpy(at, &reference->number, sizeof reference->number);
}

static void unbind(struct api_reference *reference)
{
    if (reference->number != 0)
        emu_texture_free(api_device()->machine, reference->number);
    reference->number = 0;
    store(reference);
}

static void reference_free(struct api_reference *reference)
{
    if (reference->number != 0)
        emu_texture_free(api_device()->machine, reference->number);
    emu_handle_free(reference->handle);
    free(reference);
}

static CUresult reference_new(CUcontext context, CUmodule module, uint64_t address, bool is_surface,
                              struct api_reference **out)
{
    struct api_reference *reference = calloc(1, sizeof *reference);
    if (reference == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a reference");
    *reference = (struct api_reference){.context = context,
                                        .module = module,
                                        .address = address,
                                        .is_surface = is_surface,
                                        .format = CU_AD_FORMAT_FLOAT,
                                        .channels = 1};
    for (unsigned d = 0; d < 3; d++)
        reference->desc.addressMode[d] = CU_TR_ADDRESS_MODE_CLAMP;
    reference->handle = emu_handle_new(kind_of(is_surface), reference);
    if (reference->handle == NULL) {
        free(reference);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no room for one more handle");
    }
    *out = reference;
    return CUDA_SUCCESS;
}

CUresult api_reference_of(struct api_module *module, const char *name, bool is_surface, void **out_handle)
{
    uint64_t address;
    struct api_reference *reference;
    size_t cursor = 0;
    if (!emu_module_reference(module->emu, name, is_surface, &address))
        return api_set_error(CUDA_ERROR_NOT_FOUND, "the module has no %s reference %s",
                             is_surface ? "surface" : "texture", name);
    while ((reference = emu_handle_next(kind_of(is_surface), &cursor)) != NULL)
        if (reference->module == module->handle && reference->address == address) {
            *out_handle = reference->handle;
            return CUDA_SUCCESS;
        }
    CUresult result = reference_new(module->context->handle, module->handle, address, is_surface, &reference);
    if (result == CUDA_SUCCESS)
        *out_handle = reference->handle;
    return result;
}

void api_references_free(CUcontext context)
{
    for (unsigned is_surface = 0; is_surface < 2; is_surface++) {
        size_t cursor = 0;
        for (struct api_reference *r; (r = emu_handle_next(kind_of(is_surface != 0), &cursor)) != NULL;)
            if (r->context == context)
                reference_free(r);
    }
}

/* Makes the object that the reference now describes. */
static CUresult rebind(struct api_reference *reference)
{
    struct emu_texture texture;
    if (!reference->is_bound)
        return CUDA_SUCCESS;
    CUDA_RESOURCE_DESC *resource = &reference->resource;
    if (resource->resType == CU_RESOURCE_TYPE_LINEAR) {
        resource->res.linear.format = reference->format;
        resource->res.linear.numChannels = reference->channels;
    }
    CUresult result = reference->is_surface ? api_surface_fill(resource, &texture)
                                            : api_texture_fill(resource, &reference->desc, NULL, &texture);
    if (result != CUDA_SUCCESS)
        return result;
    unbind(reference);
    reference->number = emu_texture_new(api_device()->machine, &texture);
    store(reference);
    return reference->number != 0 ? CUDA_SUCCESS
                                  : api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no room for one more object");
}

/* Begins a call that changes a reference: nothing that reads it is running afterwards. */
static CUresult enter_change(const char *call, const void *handle, bool is_surface,
                             struct api_reference **out)
{
    struct api_context *context;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_context_wait(context);
    if (result == CUDA_SUCCESS)
        result = reference_get(handle, is_surface, out);
    return result == CUDA_SUCCESS ? CUDA_SUCCESS : api_result(result);
}

#define ENTER_CHANGE(reference, handle, is_surface)                                   \
    struct api_reference *reference;                                                  \
    do {                                                                              \
        CUresult entered_ = enter_change(__func__, handle, is_surface, &(reference)); \
        if (entered_ != CUDA_SUCCESS)                                                 \
            return entered_;                                                          \
    } while (0)

static CUresult bind(struct api_reference *reference, const CUDA_RESOURCE_DESC *resource)
{
    const CUDA_RESOURCE_DESC old = reference->resource;
    const bool was_bound = reference->is_bound;
    reference->resource = *resource;
    reference->is_bound = true;
    CUresult result = rebind(reference);
    if (result != CUDA_SUCCESS) {
        reference->resource = old;
        reference->is_bound = was_bound;
    }
    return result;
}

/* ---- what is bound ---- */

CUresult CUDAAPI cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
    ENTER_CHANGE(reference, hTexRef, false);
    if (hArray == NULL) {
        reference->is_bound = false;
        unbind(reference);
        return api_leave();
    }
    API_REQUIRE(Flags == CU_TRSA_OVERRIDE_FORMAT);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = hArray;
    CUresult result = bind(reference, &resource);
    struct api_array *array;
    if (result == CUDA_SUCCESS && api_array_get(hArray, &array) == CUDA_SUCCESS) {
        reference->format = array->desc.Format;
        reference->channels = array->desc.NumChannels;
    }
    return api_result(result);
}

CUresult CUDAAPI cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
                                           unsigned int Flags)
{
    ENTER_CHANGE(reference, hTexRef, false);
    API_REQUIRE(Flags == CU_TRSA_OVERRIDE_FORMAT);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    resource.res.mipmap.hMipmappedArray = hMipmappedArray;
    return api_result(bind(reference, &resource));
}

CUresult CUDAAPI cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
    ENTER_CHANGE(reference, hTexRef, false);
    const size_t offset = dptr % 512;
    if (offset != 0 && ByteOffset == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not aligned to 512 bytes",
                        (unsigned long long)dptr);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    resource.res.linear.devPtr = dptr - offset;
    resource.res.linear.sizeInBytes = bytes + offset;
    CUresult result = bind(reference, &resource);
    if (result == CUDA_SUCCESS && ByteOffset != NULL)
        *ByteOffset = offset;
    return api_result(result);
}

CUresult CUDAAPI cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                         CUdeviceptr dptr, size_t Pitch)
{
    ENTER_CHANGE(reference, hTexRef, false);
    API_REQUIRE(desc != NULL);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = dptr;
    resource.res.pitch2D.format = desc->Format;
    resource.res.pitch2D.numChannels = desc->NumChannels;
    resource.res.pitch2D.width = desc->Width;
    resource.res.pitch2D.height = desc->Height;
    resource.res.pitch2D.pitchInBytes = Pitch;
    return api_result(bind(reference, &resource));
}

CUresult CUDAAPI cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                         CUdeviceptr dptr, size_t Pitch)
{
    return cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch);
}

CUresult CUDAAPI cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
    ENTER_CHANGE(reference, hSurfRef, true);
    API_REQUIRE(Flags == 0);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = hArray;
    return api_result(bind(reference, &resource));
}

/* ---- how it is read ---- */

CUresult CUDAAPI cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
    ENTER_CHANGE(reference, hTexRef, false);
    enum emu_texel_kind kind;
    unsigned bits, channels;
    API_REQUIRE(NumPackedComponents == 1 || NumPackedComponents == 2 || NumPackedComponents == 4);
    API_REQUIRE(api_format_texels(fmt, (unsigned)NumPackedComponents, &kind, &bits, &channels));
    reference->format = fmt;
    reference->channels = (unsigned)NumPackedComponents;
    return api_result(rebind(reference));
}

#define MAX_ANISOTROPY 16u

CUresult CUDAAPI cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
    ENTER_CHANGE(reference, hTexRef, false);
    API_REQUIRE(dim >= 0 && dim < 3 && (unsigned)am <= CU_TR_ADDRESS_MODE_BORDER);
    reference->desc.addressMode[dim] = am;
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    ENTER_CHANGE(reference, hTexRef, false);
    API_REQUIRE((unsigned)fm <= CU_TR_FILTER_MODE_LINEAR);
    reference->desc.filterMode = fm;
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    ENTER_CHANGE(reference, hTexRef, false);
    API_REQUIRE((unsigned)fm <= CU_TR_FILTER_MODE_LINEAR);
    reference->desc.mipmapFilterMode = fm;
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
    ENTER_CHANGE(reference, hTexRef, false);
    reference->desc.mipmapLevelBias = bias;
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp,
                                             float maxMipmapLevelClamp)
{
    ENTER_CHANGE(reference, hTexRef, false);
    reference->desc.minMipmapLevelClamp = minMipmapLevelClamp;
    reference->desc.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
    ENTER_CHANGE(reference, hTexRef, false);
    reference->desc.maxAnisotropy = maxAniso < MAX_ANISOTROPY ? maxAniso : MAX_ANISOTROPY;
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
    ENTER_CHANGE(reference, hTexRef, false);
    API_REQUIRE(pBorderColor != NULL);
    memcpy(reference->desc.borderColor, pBorderColor, sizeof reference->desc.borderColor);
    return api_result(rebind(reference));
}

CUresult CUDAAPI cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
    ENTER_CHANGE(reference, hTexRef, false);
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    API_REQUIRE((Flags & ~known) == 0);
    reference->desc.flags = Flags;
    return api_result(rebind(reference));
}

/* ---- questions ---- */

/* Begins a question: the reference, or no success; `out` must not be NULL. */
static CUresult enter_question(const char *call, const void *handle, bool is_surface, const void *out,
                               struct api_reference **out_reference)
{
    struct api_context *context;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out != NULL);
    result = reference_get(handle, is_surface, out_reference);
    return result == CUDA_SUCCESS ? CUDA_SUCCESS : api_result(result);
}

#define ENTER_QUESTION(reference, handle, is_surface, out)                                   \
    struct api_reference *reference;                                                         \
    do {                                                                                     \
        CUresult entered_ = enter_question(__func__, handle, is_surface, out, &(reference)); \
        if (entered_ != CUDA_SUCCESS)                                                        \
            return entered_;                                                                 \
    } while (0)

CUresult CUDAAPI cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pdptr);
    const CUDA_RESOURCE_DESC *resource = &reference->resource;
    const bool linear = resource->resType == CU_RESOURCE_TYPE_LINEAR;
    if (!reference->is_bound || (!linear && resource->resType != CU_RESOURCE_TYPE_PITCH2D))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "no device memory is bound");
    *pdptr = linear ? resource->res.linear.devPtr : resource->res.pitch2D.devPtr;
    return api_leave();
}

static CUresult bound_array(struct api_reference *reference, CUarray *out)
{
    if (!reference->is_bound || reference->resource.resType != CU_RESOURCE_TYPE_ARRAY)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "no array is bound");
    *out = reference->resource.res.array.hArray;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, phArray);
    return bound_array(reference, phArray);
}

CUresult CUDAAPI cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
    ENTER_QUESTION(reference, hSurfRef, true, phArray);
    return bound_array(reference, phArray);
}

CUresult CUDAAPI cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, phMipmappedArray);
    if (!reference->is_bound || reference->resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "no mipmapped array is bound");
    *phMipmappedArray = reference->resource.res.mipmap.hMipmappedArray;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
    ENTER_QUESTION(reference, hTexRef, false, pam);
    API_REQUIRE(dim >= 0 && dim < 3);
    *pam = reference->desc.addressMode[dim];
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pfm);
    *pfm = reference->desc.filterMode;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pFormat);
    *pFormat = reference->format;
    if (pNumChannels != NULL)
        *pNumChannels = (int)reference->channels;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pfm);
    *pfm = reference->desc.mipmapFilterMode;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pbias);
    *pbias = reference->desc.mipmapLevelBias;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp,
                                             CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pminMipmapLevelClamp);
    *pminMipmapLevelClamp = reference->desc.minMipmapLevelClamp;
    if (pmaxMipmapLevelClamp != NULL)
        *pmaxMipmapLevelClamp = reference->desc.maxMipmapLevelClamp;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pmaxAniso);
    *pmaxAniso = (int)reference->desc.maxAnisotropy;
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pBorderColor);
    memcpy(pBorderColor, reference->desc.borderColor, sizeof reference->desc.borderColor);
    return api_leave();
}

CUresult CUDAAPI cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
    ENTER_QUESTION(reference, hTexRef, false, pFlags);
    *pFlags = reference->desc.flags;
    return api_leave();
}

/* ---- references of the program's own ---- */

CUresult CUDAAPI cuTexRefCreate(CUtexref *pTexRef)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pTexRef != NULL);
    struct api_reference *reference = NULL;
    CUresult result = reference_new(context->handle, NULL, 0, false, &reference);
    if (result == CUDA_SUCCESS)
        *pTexRef = reference->handle;
    return api_result(result);
}

CUresult CUDAAPI cuTexRefDestroy(CUtexref hTexRef)
{
    ENTER_CHANGE(reference, hTexRef, false);
    if (reference->module != NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the reference belongs to a module");
    reference_free(reference);
    return api_leave();
}
