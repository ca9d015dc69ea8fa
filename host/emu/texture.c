/* Textures: the table of objects, and the sampler. Instructions: ops_texture.c, ops_surface.c.

   Filtering is that of the Programming Guide's section "Linear Filtering"; how weights and sums are rounded,
   that absent channels read as 0 and integer coordinates outside as 0 in every address mode: H200,
   driver 13.0, 2026-11-30 (tests/api/probe_textures.c). UNVERIFIED: sums of .snorm texels, levels of mipmaps
   between two, and filtering near the edges of a cube's faces (each face clamps here). Leaves out: anisotropy
   (one sample is taken), block-compressed formats. */
#include "emu/texture.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emu/half.h"

/* --- objects: a directory of pages, so that running kernels read it without a lock */

#define PAGE_SLOTS 1024u
#define PAGES      1024u /* 1 Mi objects, as many as a GPU has */

struct emu_textures {
    _Atomic(_Atomic(struct emu_texture *) *) pages[PAGES];
    uint32_t used; /* slots ever used; under the machine's lock, like the rest */
    uint32_t *free;
    size_t n_free, free_capacity;
};

static _Atomic(struct emu_texture *) *slot_of(const struct emu_textures *textures, uint64_t handle)
{
    const uint64_t index = handle - 1;
    if (!textures || index >= PAGE_SLOTS * PAGES) {
        return NULL;
    }
    _Atomic(struct emu_texture *) *page = atomic_load_explicit(
        &((struct emu_textures *)(uintptr_t)textures)->pages[index / PAGE_SLOTS], memory_order_acquire);
    return page ? &page[index % PAGE_SLOTS] : NULL;
}

static uint64_t slot_take(struct emu_textures *textures)
{
    if (textures->n_free > 0) {
        return textures->free[--textures->n_free];
    }
    if (textures->used == PAGE_SLOTS * PAGES) {
        return 0;
    }
    const uint32_t index = textures->used;
    if (index % PAGE_SLOTS == 0) {
        _Atomic(struct emu_texture *) *page = calloc(PAGE_SLOTS, sizeof *page);
        if (!page) {
            return 0;
        }
        atomic_store_explicit(&textures->pages[index / PAGE_SLOTS], page, memory_order_release);
    }
    textures->used++;
    return (uint64_t)index + 1;
}

uint64_t emu_texture_new(struct emu_machine *machine, const struct emu_texture *texture)
{
    struct emu_texture *own = malloc(sizeof *own);
    uint64_t handle = 0;
    pthread_mutex_lock(&machine->lock);
    struct emu_textures *textures = atomic_load(&machine->textures);
    if (!textures) {
        textures = calloc(1, sizeof *textures);
        atomic_store(&machine->textures, textures);
    }
    if (own && textures) {
        handle = slot_take(textures);
    }
    if (handle) {
        *own = *texture;
        atomic_store_explicit(slot_of(textures, handle), own, memory_order_release);
    }
    pthread_mutex_unlock(&machine->lock);
    if (!handle) {
        free(own);
    }
    return handle;
}

bool emu_texture_free(struct emu_machine *machine, uint64_t handle)
{
    pthread_mutex_lock(&machine->lock);
    struct emu_textures *textures = atomic_load(&machine->textures);
    _Atomic(struct emu_texture *) *slot = slot_of(textures, handle);
    struct emu_texture *texture = slot ? atomic_exchange(slot, NULL) : NULL;
    if (texture) {
        if (textures->n_free == textures->free_capacity) {
            const size_t capacity = textures->free_capacity ? 2 * textures->free_capacity : 64;
            uint32_t *larger = realloc(textures->free, capacity * sizeof *larger);
            if (larger) {
                textures->free = larger;
                textures->free_capacity = capacity;
            }
        }
        if (textures->n_free < textures->free_capacity) { /* else the slot stays unused */
            textures->free[textures->n_free++] = (uint32_t)handle;
        }
        free(texture);
    }
    pthread_mutex_unlock(&machine->lock);
    return texture != NULL;
}

void emu_textures_free(struct emu_machine *machine)
{
    struct emu_textures *textures = atomic_load(&machine->textures);
    if (!textures) {
        return;
    }
    for (uint32_t i = 0; i < textures->used; i++) {
        free(atomic_load(slot_of(textures, (uint64_t)i + 1)));
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        free(atomic_load(&textures->pages[i]));
    }
    free(textures->free);
    free(textures);
}

const struct emu_texture *emu_texture_get(const struct emu_machine *machine, uint64_t handle)
{
    const struct emu_textures *textures =
        atomic_load_explicit(&((struct emu_machine *)(uintptr_t)machine)->textures, memory_order_acquire);
    if (handle >= UINT32_MAX) { /* a reference's address */
        const void *at = handle % 8 == 0 ? emu_space_read(machine->space, handle, 8) : NULL;
        if (!at) {
            return NULL;
        }
        memcpy(&handle, at, sizeof handle);
    }
    _Atomic(struct emu_texture *) *slot = slot_of(textures, handle);
    return slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
}

/* --- texels */

union channel {
    uint32_t bits;
    float f32;
    int32_t s32;
};

static bool reads_as_float(const struct emu_texture *texture)
{
    return texture->kind != EMU_TEXEL_UINT && texture->kind != EMU_TEXEL_SINT;
}

/* A byte of an sRGB texture, in 1/16384 (H200, driver 13.0, 2026-11-30: less exact than the function). */
static const uint16_t srgb[256] = {
    0,     5,     10,    15,    20,    25,    30,    35,    40,    45,    50,    55,    60,    66,    72,
    78,    85,    92,    99,    107,   115,   123,   131,   140,   150,   159,   169,   180,   190,   201,
    213,   224,   236,   250,   262,   276,   290,   304,   318,   332,   348,   364,   380,   396,   412,
    430,   448,   466,   484,   504,   524,   544,   564,   584,   604,   624,   648,   672,   692,   716,
    740,   764,   788,   816,   840,   864,   896,   920,   944,   976,   1000,  1032,  1064,  1088,  1120,
    1152,  1184,  1216,  1248,  1280,  1312,  1352,  1384,  1416,  1456,  1488,  1528,  1560,  1600,  1640,
    1672,  1712,  1752,  1792,  1832,  1872,  1920,  1952,  2000,  2048,  2080,  2128,  2176,  2224,  2272,
    2320,  2368,  2416,  2464,  2512,  2560,  2608,  2656,  2704,  2752,  2816,  2864,  2912,  2976,  3024,
    3072,  3136,  3184,  3248,  3296,  3360,  3424,  3472,  3536,  3600,  3664,  3712,  3776,  3840,  3904,
    3968,  4032,  4096,  4160,  4224,  4288,  4352,  4416,  4512,  4576,  4640,  4704,  4768,  4864,  4928,
    4992,  5056,  5152,  5216,  5280,  5376,  5440,  5536,  5600,  5696,  5760,  5824,  5920,  6016,  6080,
    6176,  6240,  6336,  6400,  6496,  6592,  6688,  6752,  6848,  6944,  7008,  7104,  7200,  7296,  7392,
    7488,  7584,  7680,  7744,  7872,  7936,  8064,  8128,  8256,  8320,  8448,  8512,  8640,  8768,  8832,
    8960,  9024,  9152,  9280,  9344,  9472,  9600,  9664,  9792,  9920,  9984,  10112, 10240, 10304, 10432,
    10560, 10688, 10816, 10880, 11008, 11136, 11264, 11392, 11456, 11584, 11712, 11840, 11968, 12096, 12224,
    12352, 12480, 12608, 12736, 12864, 12992, 13120, 13248, 13376, 13504, 13632, 13760, 13888, 14016, 14144,
    14272, 14400, 14528, 14656, 14848, 14976, 15104, 15232, 15360, 15488, 15616, 15744, 16000, 16128, 16256,
    16384,
};

/* The value of one channel of a texel. */
static union channel channel_read(const struct emu_texture *texture, const unsigned char *texel,
                                  unsigned index)
{
    union channel value = {0};
    const unsigned bytes = texture->channel_bits / 8;
    memcpy(&value.bits, texel + index * bytes, bytes);
    const unsigned unused = 32u - texture->channel_bits;
    switch (texture->kind) {
    case EMU_TEXEL_UINT:
        break;
    case EMU_TEXEL_SINT:
        value.s32 = (int32_t)(value.bits << unused) >> unused;
        break;
    case EMU_TEXEL_FLOAT:
        if (bytes == 2) {
            value.f32 = emu_f16_to_f32(value.bits);
        }
        break;
    case EMU_TEXEL_UNORM:
        if (texture->srgb && bytes == 1 && index < 3) {
            value.f32 = (float)srgb[value.bits] / 16384.0f;
        } else {
            value.f32 = (float)value.bits / (bytes == 1 ? 255.0f : 65535.0f);
        }
        break;
    case EMU_TEXEL_SNORM:
        value.s32 = (int32_t)(value.bits << unused) >> unused;
        value.f32 = (float)value.s32 / (bytes == 1 ? 127.0f : 32767.0f);
        value.f32 = value.f32 < -1.0f ? -1.0f : value.f32;
        break;
    }
    return value;
}

static float clamp_float(float value, float low, float high)
{
    return value >= low ? value > high ? high : value : low; /* NaN: low */
}

void emu_texel_pack(const struct emu_texture *texture, const uint32_t in[4], void *texel)
{
    const unsigned bytes = texture->channel_bits / 8;
    for (unsigned i = 0; i < texture->channels; i++) {
        union channel value = {.bits = in[i]};
        if (texture->kind == EMU_TEXEL_FLOAT && bytes == 2) {
            value.bits = emu_f32_to_f16(value.f32);
        } else if (texture->kind == EMU_TEXEL_UNORM) {
            const float top = bytes == 1 ? 255.0f : 65535.0f;
            value.bits = (uint32_t)rintf(clamp_float(value.f32, 0.0f, 1.0f) * top);
        } else if (texture->kind == EMU_TEXEL_SNORM) {
            const float top = bytes == 1 ? 127.0f : 32767.0f;
            value.s32 = (int32_t)rintf(clamp_float(value.f32, -1.0f, 1.0f) * top);
        }
        memcpy((unsigned char *)texel + i * bytes, &value.bits, bytes);
    }
}

/* --- addressing */

/* The texel that a coordinate names; -1: the border. */
static int64_t resolve(int64_t i, int64_t n, unsigned mode, bool normalized)
{
    if (i >= 0 && i < n) {
        return i;
    }
    if (mode == EMU_ADDRESS_BORDER) {
        return -1;
    }
    if (normalized && mode == EMU_ADDRESS_WRAP) {
        return (i % n + n) % n;
    }
    if (normalized && mode == EMU_ADDRESS_MIRROR) {
        const int64_t turn = (i % (2 * n) + 2 * n) % (2 * n);
        return turn < n ? turn : 2 * n - 1 - turn;
    }
    return i < 0 ? 0 : n - 1;
}

/* One texel of a level; outside the border's colour, or 0. `slice`: layer or face, valid. */
static bool texel_read(const struct emu_space *space, const struct emu_texture *texture,
                       const struct emu_texels *level, const int64_t at[3], uint64_t slice, bool has_border,
                       union channel out[4], struct emu_touched *touched)
{
    for (unsigned c = 0; c < 4; c++) {
        out[c] = (union channel){.bits = 0};
    }
    if (at[0] < 0 || at[1] < 0 || at[2] < 0) {
        for (unsigned c = 0; c < texture->channels && has_border; c++) {
            out[c].f32 = texture->border[c];
        }
        return true;
    }
    const uint32_t bytes = emu_texel_bytes(texture);
    const uint64_t address = level->address + (slice + (uint64_t)at[2]) * level->slice_bytes +
                             (uint64_t)at[1] * level->pitch_bytes + (uint64_t)at[0] * bytes;
    const unsigned char *texel = emu_space_read(space, address, bytes);
    if (touched->n < sizeof touched->address / sizeof touched->address[0]) {
        touched->address[touched->n++] = address;
    }
    if (!texel) {
        touched->address[touched->n - 1] = address;
        touched->bad = true;
        return false;
    }
    for (unsigned c = 0; c < texture->channels; c++) {
        out[c] = channel_read(texture, texel, c);
    }
    return true;
}

/* --- sampling one level */

/* A coordinate far outside every texture is as good as a less far one, and converts. */
static double tame(double x)
{
    return x > -1e9 ? x < 1e9 ? x : 1e9 : -1e9;
}

struct axis {
    int64_t first;   /* texel; the second is its neighbour */
    uint32_t weight; /* of the second, in 1/256 */
};

static struct axis axis_of(const struct emu_texture *texture, const struct emu_fetch *fetch, unsigned d,
                           uint32_t size, bool linear)
{
    struct axis axis = {.weight = 0};
    if (fetch->is_integer) {
        axis.first = (int64_t)fetch->at[d] + fetch->offset[d];
        return axis;
    }
    double x = tame((double)fetch->x[d]);
    if (texture->normalized || fetch->cube) {
        const unsigned mode = texture->address_modes[d];
        if (mode == EMU_ADDRESS_WRAP && !fetch->cube) {
            x -= floor(x);
        } else if (mode == EMU_ADDRESS_CLAMP || fetch->cube) {
            x = x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
        }
        x *= size;
    }
    if (!linear) {
        axis.first = (int64_t)floor(x) + fetch->offset[d];
        return axis;
    }
    x -= 0.5;
    axis.first = (int64_t)floor(x);
    axis.weight = (uint32_t)floor((x - (double)axis.first) * 256.0 + 0.5);
    axis.first += fetch->offset[d];
    return axis;
}

/* `weight` of 1/256 shared between two, the second of which has `second` of 1/256. A half goes to the second
   when `up`, else to the first: so the sum stays 256. */
static void weight_split(uint32_t weight, uint32_t second, bool up, uint32_t *out_first, uint32_t *out_second)
{
    const uint32_t taken = (weight * (up ? second : 256 - second) + 128) / 256;
    *out_first = up ? weight - taken : taken;
    *out_second = weight - *out_first;
}

/* The weights of the 2, 4 or 8 texels (bit d of an index: the second along axis d), each rounded to 1/256 on
   its own, along x, then z, then y. */
static void weights_of(const struct axis axes[3], unsigned dims, uint32_t out[8])
{
    out[0] = 256 - axes[0].weight;
    out[1] = axes[0].weight;
    if (dims == 3) {
        for (unsigned x = 0; x < 2; x++) {
            weight_split(out[x], axes[2].weight, x == 1, &out[x], &out[4 + x]);
        }
    }
    for (unsigned k = 0; k < (dims == 3 ? 8u : 2u) && dims > 1; k += (k & 1) ? 3 : 1) {
        weight_split(out[k], axes[1].weight, k & 1, &out[k], &out[k + 2]);
    }
}

/* A filtered value, as exact as its format is in the filter: 16 bits of a fraction, or a half. */
static float filtered(const struct emu_texture *texture, unsigned index, double sum)
{
    if (texture->kind == EMU_TEXEL_UNORM && !(texture->srgb && texture->channel_bits == 8 && index < 3)) {
        return (float)floor(sum * 65535.0 + 0.5) / 65535.0f;
    }
    if (texture->kind == EMU_TEXEL_SNORM) {
        return (float)rint(sum * 32767.0) / 32767.0f;
    }
    if (texture->kind == EMU_TEXEL_FLOAT && texture->channel_bits == 32) {
        return (float)sum;
    }
    return emu_f16_to_f32(emu_f32_to_f16((float)sum));
}

static bool level_fetch(const struct emu_space *space, const struct emu_texture *texture,
                        const struct emu_fetch *fetch, unsigned index, uint64_t slice, union channel out[4],
                        struct emu_touched *touched)
{
    const struct emu_texels *level = &texture->levels[index];
    const uint32_t sizes[3] = {level->width, level->height, level->depth};
    const bool gather = fetch->gather >= 0;
    const bool linear = (texture->linear && reads_as_float(texture) && !fetch->is_integer) || gather;
    struct axis axes[3] = {{0}, {0}, {0}};
    int64_t texels[3][2] = {{0, 0}, {0, 0}, {0, 0}};
    uint32_t weights[8] = {256};
    double sums[4] = {0, 0, 0, 0};
    for (unsigned d = 0; d < fetch->dims; d++) {
        const unsigned mode = texture->is_linear || fetch->is_integer ? EMU_ADDRESS_BORDER
                              : fetch->cube                           ? EMU_ADDRESS_CLAMP
                                                                      : texture->address_modes[d];
        axes[d] = axis_of(texture, fetch, d, sizes[d], linear);
        for (unsigned second = 0; second < 2; second++) {
            texels[d][second] = resolve(axes[d].first + second, sizes[d], mode, texture->normalized);
        }
        if (texels[d][0] == texels[d][1]) {
            axes[d].weight = 0;
        }
    }
    if (linear) {
        weights_of(axes, fetch->dims, weights);
    }
    for (unsigned corner = 0; corner < (linear ? 1u << fetch->dims : 1u); corner++) {
        const int64_t at[3] = {texels[0][corner & 1], texels[1][corner >> 1 & 1], texels[2][corner >> 2 & 1]};
        union channel texel[4];
        if (linear && !gather && weights[corner] == 0) {
            continue;
        }
        if (!texel_read(space, texture, level, at, slice, !fetch->is_integer && reads_as_float(texture),
                        texel, touched)) {
            return false;
        }
        if (gather) { /* counter-clockwise from the lower left: (0,1) (1,1) (1,0) (0,0) */
            static const uint8_t place[4] = {3, 2, 0, 1};
            out[place[corner & 3]] = texel[fetch->gather];
        } else if (!linear) {
            memcpy(out, texel, sizeof texel);
        } else {
            for (unsigned c = 0; c < 4; c++) {
                sums[c] += weights[corner] * (double)texel[c].f32 / 256.0;
            }
        }
    }
    if (linear && !gather) {
        for (unsigned c = 0; c < 4; c++) {
            out[c].f32 = filtered(texture, c, sums[c]);
        }
    }
    return true;
}

/* A direction's face and the place on it ("Cubemap Textures" of the Programming Guide). */
static unsigned cube_face(const float direction[3], float out[2])
{
    const float x = direction[0], y = direction[1], z = direction[2];
    const float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
    float m = az, s = z >= 0 ? x : -x, t = -y;
    unsigned face = z >= 0 ? 4u : 5u;
    if (ax >= ay && ax >= az) {
        m = ax;
        s = x >= 0 ? -z : z;
        face = x >= 0 ? 0u : 1u;
    } else if (ay >= az) {
        m = ay;
        s = x;
        t = y >= 0 ? z : -z;
        face = y >= 0 ? 2u : 3u;
    }
    out[0] = m > 0 ? (s / m + 1.0f) / 2.0f : 0.5f;
    out[1] = m > 0 ? (t / m + 1.0f) / 2.0f : 0.5f;
    return face;
}

/* Is the instruction's geometry the object's? Arrays of two dimensions, of whatever height and number of
   layers, are read by one dimension in their first row and by two in their first layer: NVIDIA H200, driver
   13.0, 2026-12-01 (Dr.Jit makes its one-dimensional textures arrays of height 1). Of three dimensions it
   reads zeros by fewer, and by three of two; that is reported here. */
static bool geometry_fits(const struct emu_fetch *fetch, const struct emu_texture *texture)
{
    return (fetch->dims == texture->dims && fetch->layered == texture->layered &&
            fetch->cube == texture->cube) ||
           (fetch->dims <= 2 && !fetch->layered && !fetch->cube && texture->dims == 2 && !texture->cube);
}

bool emu_texture_fetch(const struct emu_space *space, const struct emu_texture *texture,
                       const struct emu_fetch *request, uint32_t out[4], bool *out_is_float,
                       struct emu_touched *touched)
{
    struct emu_fetch fetch = *request;
    uint64_t slice = 0;
    union channel value[4] = {{0}, {0}, {0}, {0}};
    touched->n = 0;
    touched->bad = false;
    *out_is_float = reads_as_float(texture);
    if (!geometry_fits(&fetch, texture)) {
        return false;
    }
    if (fetch.layered) {
        slice = fetch.layer < texture->layers ? fetch.layer : texture->layers - 1;
    }
    if (fetch.cube) {
        float place[2];
        slice = slice * 6 + cube_face(fetch.x, place);
        fetch.x[0] = place[0];
        fetch.x[1] = place[1];
    }
    const float top = (float)(texture->n_levels - 1);
    float level =
        texture->n_levels > 1
            ? clamp_float(clamp_float(fetch.level + texture->bias, texture->min_level, texture->max_level),
                          0.0f, top)
            : 0.0f;
    float weight = 0.0f;
    unsigned index = (unsigned)(level + 0.5f);
    if (texture->mip_linear && *out_is_float) {
        index = (unsigned)level;
        weight = floorf((level - (float)index) * 256.0f + 0.5f) / 256.0f;
    }
    if (!level_fetch(space, texture, &fetch, index, slice, value, touched)) {
        return false;
    }
    if (weight > 0.0f) {
        union channel next[4] = {{0}, {0}, {0}, {0}};
        if (!level_fetch(space, texture, &fetch, index + 1, slice, next, touched)) {
            return false;
        }
        for (unsigned c = 0; c < 4; c++) {
            value[c].f32 =
                (float)((1.0 - (double)weight) * (double)value[c].f32 + (double)weight * (double)next[c].f32);
        }
    }
    for (unsigned c = 0; c < 4; c++) {
        out[c] = value[c].bits;
    }
    return true;
}
