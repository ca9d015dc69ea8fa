/* Encoding and decoding of tensor maps (tensor_map.h). */
#include "emu/tensor_map.h"

#include <string.h>

#define WORDS          (EMU_TENSOR_MAP_BYTES / 4)
#define WORD_FLAGS     2
#define WORD_STRIDES   3
#define WORD_HIGH      7
#define WORD_DIMS      8
#define WORD_STEPS     13
#define WORD_BOX       14
#define WORD_PIXELS    15
#define WORD_BOX_BYTES 16
#define WORD_ALIGNMENT 18

uint32_t emu_tensor_element_bits(enum emu_tensor_type type)
{
    static const uint8_t bits[EMU_TENSOR_TYPE_COUNT] = {8,  16, 32, 32, 64, 64, 16, 32,
                                                        64, 16, 32, 32, 32, 4,  4,  6};
    return bits[type];
}

uint64_t emu_tensor_shared_bytes(enum emu_tensor_type type, uint64_t elements)
{
    return type >= EMU_TENSOR_U4X16_ALIGN16 ? elements : elements * emu_tensor_element_bits(type) / 8;
}

/* Codes of word 2, 10:7, with 1 << 4 for its bit 16. */
static const uint8_t type_codes[EMU_TENSOR_TYPE_COUNT] = {0, 1,  2, 3,      4,      5,  6,  7,
                                                          9, 10, 8, 7 | 16, 8 | 16, 11, 12, 13};

static uint32_t swizzle_bits(enum emu_tensor_swizzle swizzle)
{
    switch (swizzle) {
    case EMU_SWIZZLE_128B_ATOM_32B:
        return 3u << 13 | 1u << 19;
    case EMU_SWIZZLE_128B_ATOM_32B_FLIP_8B:
        return 3u << 13 | 2u << 19;
    case EMU_SWIZZLE_128B_ATOM_64B:
        return 3u << 13 | 3u << 19;
    case EMU_SWIZZLE_96B:
        return 1u << 22;
    default:
        return (uint32_t)swizzle << 13;
    }
}

/* EMU_SWIZZLE_COUNT for bits that mean nothing. */
static enum emu_tensor_swizzle swizzle_of(uint32_t flags)
{
    const uint32_t mode = flags >> 13 & 3, atomicity = flags >> 19 & 7;
    if (flags >> 22 & 1) {
        return mode == 0 && atomicity == 0 ? EMU_SWIZZLE_96B : EMU_SWIZZLE_COUNT;
    }
    if (atomicity == 0) {
        return (enum emu_tensor_swizzle)mode;
    }
    return mode == 3 && atomicity <= 3
               ? (enum emu_tensor_swizzle)(EMU_SWIZZLE_128B_ATOM_32B + (int)atomicity - 1)
               : EMU_SWIZZLE_COUNT;
}

/* Corners of an im2col box in word 14: fields of `bits`, the lower corner's from bit 0, the upper's from
 * bit 16. */
static unsigned corner_bits(const struct emu_tensor_map *map)
{
    return map->rank == 3 || map->wide ? 16 : map->rank == 4 ? 8 : 5;
}

static unsigned corner_count(const struct emu_tensor_map *map)
{
    return map->wide ? 1 : map->rank - 2;
}

static uint32_t corners_encode(const struct emu_tensor_map *map)
{
    const unsigned bits = corner_bits(map);
    const uint32_t mask = (1u << bits) - 1;
    uint32_t word = 0;
    for (unsigned i = 0; i < corner_count(map); i++) {
        word |= ((uint32_t)map->lower[i] & mask) << bits * i | ((uint32_t)map->upper[i] & mask)
                                                                   << (16 + bits * i);
    }
    return word;
}

static int32_t sign_extend(uint32_t value, unsigned bits)
{
    const uint32_t sign = 1u << (bits - 1);
    return (int32_t)(((value & ((sign << 1) - 1)) ^ sign) - sign);
}

static void corners_decode(uint32_t word, struct emu_tensor_map *out)
{
    const unsigned bits = corner_bits(out);
    for (unsigned i = 0; i < corner_count(out); i++) {
        out->lower[i] = sign_extend(word >> bits * i, bits);
        out->upper[i] = sign_extend(word >> (16 + bits * i), bits);
    }
}

static uint32_t shared_alignment(enum emu_tensor_swizzle swizzle)
{
    switch (swizzle) {
    case EMU_SWIZZLE_NONE:
        return 16;
    case EMU_SWIZZLE_32B:
        return 256;
    case EMU_SWIZZLE_64B:
        return 512;
    default:
        return 1024;
    }
}

void emu_tensor_map_encode(const struct emu_tensor_map *map, uint32_t out_words[WORDS])
{
    memset(out_words, 0, EMU_TENSOR_MAP_BYTES);
    out_words[0] = (uint32_t)map->address;
    out_words[1] = (uint32_t)(map->address >> 32);
    const uint32_t code = type_codes[map->type];
    out_words[WORD_FLAGS] = (uint32_t)map->im2col | map->wide << 1 | (map->rank - 1) << 4 | (code & 15) << 7 |
                            (code >> 4) << 16 | map->interleave << 11 | swizzle_bits(map->swizzle) |
                            (uint32_t)map->nan_fill << 15 | map->l2_promotion << 17;
    uint64_t box_bits = emu_tensor_element_bits(map->type);
    for (uint32_t k = 0; k < map->rank; k++) {
        out_words[WORD_DIMS + k] = (uint32_t)(map->dims[k] - 1);
        out_words[WORD_STEPS] |= ((map->element_strides[k] - 1) & 7) << 3 * k;
        if (k) {
            const uint64_t units = map->strides[k] >> 4;
            out_words[WORD_STRIDES + k - 1] = (uint32_t)units;
            out_words[WORD_HIGH] |= (uint32_t)(units >> 32 & 15) << 4 * (k - 1);
        }
        if (!map->im2col) {
            const uint32_t box = (map->box[k] - 1) & 255;
            box_bits *= map->box[k] / map->element_strides[k];
            out_words[k ? WORD_BOX : WORD_STEPS] |= box << (k ? 8 * (k - 1) : 24);
        }
    }
    if (map->im2col) {
        out_words[WORD_STEPS] |= ((map->channels - 1) & 255) << 24;
        out_words[WORD_BOX] = corners_encode(map);
        out_words[WORD_PIXELS] = (map->pixels - 1) & 1023;
        box_bits *= (uint64_t)map->channels * map->pixels;
    }
    out_words[WORD_BOX_BYTES] = (uint32_t)(box_bits / 8);
    out_words[WORD_ALIGNMENT] = shared_alignment(map->swizzle);
}

const char *emu_tensor_map_decode(const uint32_t words[WORDS], struct emu_tensor_map *out)
{
    memset(out, 0, sizeof *out);
    const uint32_t flags = words[WORD_FLAGS];
    const uint32_t code = (flags >> 7 & 15) | (flags >> 16 & 1) << 4;
    out->address = words[0] | (uint64_t)words[1] << 32;
    out->rank = (flags >> 4 & 7) + 1;
    out->interleave = flags >> 11 & 3;
    out->swizzle = swizzle_of(flags);
    out->nan_fill = flags >> 15 & 1;
    out->l2_promotion = flags >> 17 & 3;
    out->type = EMU_TENSOR_TYPE_COUNT;
    for (unsigned type = 0; type < EMU_TENSOR_TYPE_COUNT; type++) {
        if (type_codes[type] == code) {
            out->type = (enum emu_tensor_type)type;
        }
    }
    if (out->rank > EMU_TENSOR_MAX_RANK || out->type == EMU_TENSOR_TYPE_COUNT ||
        out->swizzle == EMU_SWIZZLE_COUNT || out->interleave == 3) {
        return "the 128 bytes are not a tensor map";
    }
    for (uint32_t k = 0; k < EMU_TENSOR_MAX_RANK; k++) {
        const bool used = k < out->rank;
        out->dims[k] = used ? (uint64_t)words[WORD_DIMS + k] + 1 : 1;
        out->element_strides[k] = used ? (words[WORD_STEPS] >> 3 * k & 7) + 1 : 1;
        out->box[k] = used ? (k ? words[WORD_BOX] >> 8 * (k - 1) & 255 : words[WORD_STEPS] >> 24) + 1 : 1;
        if (k && used) {
            const uint64_t high = words[WORD_HIGH] >> 4 * (k - 1) & 15;
            out->strides[k] = (words[WORD_STRIDES + k - 1] | high << 32) << 4;
        }
    }
    out->im2col = flags & 1;
    if (out->im2col) {
        out->wide = flags >> 1 & 3;
        if (out->rank < 3 || out->wide == 3) {
            return "the 128 bytes are not a tensor map";
        }
        out->channels = (words[WORD_STEPS] >> 24) + 1;
        out->pixels = (words[WORD_PIXELS] & 1023) + 1;
        corners_decode(words[WORD_BOX], out);
        for (uint32_t k = 0; k < EMU_TENSOR_MAX_RANK; k++) {
            out->box[k] = 1;
        }
    }
    return NULL;
}
