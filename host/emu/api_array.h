/* CUDA arrays and mipmapped arrays, for api_array.c, api_transfer.c (copies) and api_texture.c. Guarded by
   the API's lock. */
#ifndef CLAB_EMU_API_ARRAY_H
#define CLAB_EMU_API_ARRAY_H

#include "emu/api.h"
#include "emu/texture.h"

/* An array's memory is rows of device memory whose address the program never learns. */
struct api_array {
    CUarray handle;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR desc; /* as given: 0 for absent dimensions */
    struct api_mipmap *mipmap;    /* NULL unless it is a level of one */
    uint64_t base, pitch_bytes, slice_bytes;
    uint64_t row_bytes;
    uint32_t rows, slices; /* at least 1; slices: depth or layers */
};
struct api_mipmap {
    CUmipmappedArray handle;
    CUcontext context;
    unsigned n_levels;
    struct api_array *levels[EMU_TEXTURE_MAX_LEVELS];
};

/* Errors: INVALID_HANDLE. */
CUresult api_array_get(CUarray handle, struct api_array **out_array);
CUresult api_mipmap_get(CUmipmappedArray handle, struct api_mipmap **out_mipmap);
/* Frees those of a context that ends. */
void api_arrays_free(CUcontext context);

/* How texels of a format look; false for formats without texels of their own (block-compressed, planar). */
bool api_format_texels(CUarray_format format, unsigned channels, enum emu_texel_kind *out_kind,
                       unsigned *out_channel_bits, unsigned *out_channels);

/* ---- texture and surface objects (api_texture.c) ---- */

/* Checks the descriptions and fills `out_texture`. Errors as cuTexObjectCreate gives them, recorded. */
CUresult api_texture_fill(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *desc,
                          const CUDA_RESOURCE_VIEW_DESC *view, struct emu_texture *out_texture);
CUresult api_surface_fill(const CUDA_RESOURCE_DESC *resource, struct emu_texture *out_texture);
/* Frees the objects of a context that ends. */
void api_textures_free(CUcontext context);

/* ---- references (api_texref.c) ---- */

/* The reference behind a module's variable of type .texref or .surfref, made on first use. */
CUresult api_reference_of(struct api_module *module, const char *name, bool is_surface, void **out_handle);
void api_references_free(CUcontext context);

#endif
