/* Texture and surface objects of the emulated device: what cuTexObjectCreate and its kind describe, and how
   instructions read and write it (CUDA Programming Guide 13.0, "Texture and Surface Memory", "Texture
   Fetching"; PTX ISA 9.0, "Texture Instructions", "Surface Instructions").

   A handle is a small number, never 0. A value that is no small number is the address of a .texref or
   .surfref variable, whose 8 bytes are the handle. */
#ifndef CLAB_EMU_TEXTURE_H
#define CLAB_EMU_TEXTURE_H

#include "emu/machine.h"

#define EMU_TEXTURE_MAX_LEVELS 17

enum emu_texel_kind {
    EMU_TEXEL_UINT,
    EMU_TEXEL_SINT,
    EMU_TEXEL_FLOAT, /* 16 or 32 bits */
    EMU_TEXEL_UNORM, /* read as [0, 1] */
    EMU_TEXEL_SNORM  /* read as [-1, 1] */
};

/* One mipmap level. The bytes are the device's memory: row y of slice z (or of layer z, or of face z) is at
   address + z * slice_bytes + y * pitch_bytes. */
struct emu_texels {
    uint64_t address, pitch_bytes, slice_bytes;
    uint32_t width, height, depth; /* in texels; 1 where a dimension is absent */
};

enum emu_address_mode { EMU_ADDRESS_WRAP, EMU_ADDRESS_CLAMP, EMU_ADDRESS_MIRROR, EMU_ADDRESS_BORDER };

struct emu_texture {
    bool is_surface;
    bool is_linear; /* a row of device memory: reads outside it give 0 */
    enum emu_texel_kind kind;
    uint8_t channels;     /* 1, 2, 4 */
    uint8_t channel_bits; /* 8, 16, 32 */
    uint8_t dims;         /* 1 to 3, without layers */
    bool layered, cube;
    uint32_t layers; /* 1 where there are none; of cubes: faces are not counted */
    uint32_t n_levels;
    struct emu_texels levels[EMU_TEXTURE_MAX_LEVELS];
    /* The sampler. */
    uint8_t address_modes[3]; /* enum emu_address_mode */
    bool normalized, linear, mip_linear, srgb;
    float bias, min_level, max_level;
    float border[4];
};

/* Enters a copy; 0 when memory is out. */
uint64_t emu_texture_new(struct emu_machine *machine, const struct emu_texture *texture);
/* Nothing that uses it may be running. False for no live handle. */
bool emu_texture_free(struct emu_machine *machine, uint64_t handle);
/* The object of a handle or of a reference's address; NULL when there is none. Valid until it is freed. */
const struct emu_texture *emu_texture_get(const struct emu_machine *machine, uint64_t handle);
/* The bytes of one texel: 1 to 16. */
static inline uint32_t emu_texel_bytes(const struct emu_texture *texture)
{
    return (uint32_t)texture->channels * texture->channel_bits / 8;
}

/* One lane's question to a texture. */
struct emu_fetch {
    unsigned dims;      /* of the instruction's geometry: 1 to 3; 2 for cubes */
    bool layered, cube; /* likewise */
    bool is_integer;    /* texel coordinates in `at` */
    float x[3];         /* coordinates, or a cube's direction */
    int32_t at[3];      /* is_integer */
    uint32_t layer;
    int32_t offset[3]; /* in texels */
    float level;       /* before bias and limits */
    int gather;        /* tld4: the component, or -1 */
};
/* What it touched, for observers and faults: at most 16 texels (two levels of eight). */
struct emu_touched {
    uint64_t address[16];
    unsigned n;
    bool bad; /* the last address may not be read */
};
/* Reads texels as the sampler says: four 32-bit values, floats or (integer texels not read as fractions)
   integers; *out_is_float says which. False when memory behind it may not be read (touched->bad), or when the
   geometry is not the object's. */
bool emu_texture_fetch(const struct emu_space *space, const struct emu_texture *texture,
                       const struct emu_fetch *fetch, uint32_t out[4], bool *out_is_float,
                       struct emu_touched *touched);

/* f32 values to a texel of the object and back, without a sampler (sust.p, and for tests). */
void emu_texel_pack(const struct emu_texture *texture, const uint32_t in[4], void *texel);

#endif
