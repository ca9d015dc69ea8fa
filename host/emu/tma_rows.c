/* The rows of a tensor copy: which element comes from where, what is outside the tensor, how shared memory
   holds the box. PTX ISA 9.0, "Tensors" (tiled mode, im2col mode, im2col::w modes, interleave layout,
   swizzling, sub-byte types, out-of-bound access).

   A copy is a sequence of rows: the elements along dimension 0, dense in shared memory, each row at one place
   of the outer dimensions. A row outside the tensor, and the part of a row outside dimension 0, is filled on
   a load (the whole box is written, measured on an H200) and skipped on a store. The swizzle moves 16-byte
   pieces of rows by their address in shared memory.

   Interleaved maps have dimensions W, H, D, slices of channels, N, as many as the rank; dimension 0 counts
   slices of 16 or 32 bytes. A box has one slice of channels, whatever the map's box or channels per pixel
   say, and element strides hold along W too (measured on an H200: tests/emu/tensor/interleaved.*). */
#include <stdio.h>
#include <string.h>

#include "emu/tma_copy.h"

#define MAX_ROW_BYTES 2048 /* 256 elements of 8 bytes */

/* --- shape */

/* Bytes in global memory of so many elements along dimension 0; of packed types a number that fills bytes. */
static int64_t bytes_of(const struct emu_tensor_copy *t, int64_t elements)
{
    return elements * t->shape.element_bits / 8;
}

/* Bytes that a swizzle pattern is wide; 1 without one. */
static uint32_t swizzle_span(enum emu_tensor_swizzle swizzle)
{
    switch (swizzle) {
    case EMU_SWIZZLE_NONE:
        return 1;
    case EMU_SWIZZLE_32B:
        return 32;
    case EMU_SWIZZLE_64B:
        return 64;
    case EMU_SWIZZLE_96B:
        return 96;
    default:
        return 128;
    }
}

/* Rows of a .im2col::w copy: pixels, and a halo after each group of them. */
static uint32_t wide_group(const struct emu_tensor_copy *t)
{
    return t->mode == EMU_TENSOR_IM2COL_W128 ? 32 : t->map.pixels;
}

static uint32_t wide_groups(const struct emu_tensor_copy *t)
{
    return t->mode == EMU_TENSOR_IM2COL_W128 ? 4 : 1;
}

static uint64_t rows_count(struct emu_tensor_copy *t)
{
    const struct emu_tensor_map *map = &t->map;
    uint64_t rows = 1; /* up to 2^32 of a hostile map */
    switch (t->mode) {
    case EMU_TENSOR_FOUR_ROWS:
        return 4;
    case EMU_TENSOR_IM2COL:
        return map->pixels;
    case EMU_TENSOR_IM2COL_W:
    case EMU_TENSOR_IM2COL_W128:
        return wide_groups(t) * (wide_group(t) + (uint32_t)t->offsets[0]);
    default:
        for (uint32_t k = t->shape.first; k < map->rank; k++) {
            const bool slices = map->interleave && k == map->rank - 2;
            t->shape.counts[k] =
                slices ? 1 : (map->box[k] + map->element_strides[k] - 1) / map->element_strides[k];
            rows *= t->shape.counts[k];
        }
        return rows;
    }
}

/* A row narrower than the swizzle's span takes a whole line of it in shared memory, but is counted with its
   own bytes (measured on an H200). UNVERIFIED: that the types with padding are counted without it, as
   CUTLASS's kernels for CC 10.0 expect. */
void emu_tensor_shape_fill(struct emu_tensor_copy *t)
{
    const struct emu_tensor_map *map = &t->map;
    struct emu_tensor_shape *s = &t->shape;
    const bool padded =
        !map->interleave && (map->type == EMU_TENSOR_U4X16_ALIGN16 || map->type == EMU_TENSOR_U6X16_ALIGN16);
    s->element_bits = map->interleave ? 128 * map->interleave : emu_tensor_element_bits(map->type);
    s->row_elements = map->interleave ? 1 : map->im2col ? map->channels : map->box[0];
    s->group_bytes = padded ? 2 * s->element_bits : 16;
    s->first = map->interleave ? 0 : 1;
    s->rows = rows_count(t);
    const uint32_t row_bytes = (uint32_t)bytes_of(t, s->row_elements), span = swizzle_span(map->swizzle);
    const uint32_t shared_bytes = padded ? s->row_elements : row_bytes;
    s->pitch = map->interleave ? shared_bytes : (shared_bytes + span - 1) / span * span;
    s->bytes = s->rows * row_bytes;
}

uint32_t emu_tensor_room(const struct emu_tensor_copy *t)
{
    const uint64_t room = t->shape.rows * t->shape.pitch, most = UINT64_C(1) << EMU_RANK_SHIFT;
    return (uint32_t)(t->shape.bytes > most || room > most ? most : room);
}

/* --- one row */

static void fail(struct emu_tensor_copy *t, struct emu_cta *cta, const char *space, uint64_t address,
                 const char *text)
{
    if (!t->failed) {
        t->failed = true;
        emu_fault_async(t->copy.cta->cluster, cta, EMU_FAULT_ILLEGAL_ADDRESS, space, address,
                        "tensor copy issued by CTA (%u,%u,%u): %s", t->copy.cta->ctaid[0],
                        t->copy.cta->ctaid[1], t->copy.cta->ctaid[2], text);
    }
}

/* Fill of elements outside the tensor. The NaN is 7ff7 in every 16 bits, whatever the type (measured on an
   H200). */
static void row_fill(const struct emu_tensor_copy *t, unsigned char *row)
{
    const uint32_t bytes = (uint32_t)bytes_of(t, t->shape.row_elements);
    memset(row, 0, bytes);
    for (uint32_t i = 0; t->map.nan_fill && i + 2 <= bytes; i += 2) {
        row[i] = 0xf7;
        row[i + 1] = 0x7f;
    }
}

/* Loading the tf32 types rounds to 10 bits of fraction, to nearest even; every NaN becomes 7fffe000, with a
   sign too (measured on an H200). */
static void row_round(unsigned char *row, uint32_t bytes)
{
    for (uint32_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t u;
        memcpy(&u, row + i, 4);
        const bool is_nan = (u & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
        u = is_nan ? UINT32_C(0x7fffe000) : (u + 0xfff + (u >> 13 & 1)) & ~UINT32_C(0x1fff);
        memcpy(row + i, &u, 4);
    }
}

/* Sixteen elements of 6 bits: in bytes of their own, whose two high bits are dropped, or packed. */
static void six_bits_pack(unsigned char packed[12], const unsigned char bytes[16])
{
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t four = (bytes[4 * i] & 63u) | (bytes[4 * i + 1] & 63u) << 6 |
                              (bytes[4 * i + 2] & 63u) << 12 | (bytes[4 * i + 3] & 63u) << 18;
        packed[3 * i] = (unsigned char)four;
        packed[3 * i + 1] = (unsigned char)(four >> 8);
        packed[3 * i + 2] = (unsigned char)(four >> 16);
    }
}

/* Copies between a row and shared memory, through the swizzle. `linear`: the row's offset in the box. Padding
   is left as it is on a load ("un-initialized"). */
static void row_shared(struct emu_tensor_copy *t, struct emu_cta *cta, uint32_t base, uint64_t linear,
                       unsigned char *row)
{
    const uint32_t bytes = (uint32_t)bytes_of(t, t->shape.row_elements), data = t->shape.group_bytes;
    const bool padded = data != 16, six = padded && t->map.type == EMU_TENSOR_U6X16_ALIGN16;
    const uint32_t step = t->map.swizzle == EMU_SWIZZLE_NONE && !padded                    ? bytes
                          : t->map.swizzle == EMU_SWIZZLE_128B_ATOM_32B_FLIP_8B && !padded ? 8
                                                                                           : data;
    for (uint32_t done = 0, at = 0; done < bytes; done += step, at += padded ? 16 : step) {
        const uint32_t piece = bytes - done < step ? bytes - done : step;
        const uint32_t offset =
            emu_tensor_swizzle(t->map.swizzle, (base & 0xffffff) + (uint32_t)linear + at) - EMU_SHARED_FIRST;
        if ((uint64_t)offset + (padded ? 16 : piece) > cta->shared_bytes) {
            fail(t, cta, "shared", base, "the swizzled box leaves the CTA's shared memory");
            return;
        }
        if (t->direction == EMU_TENSOR_LOAD) {
            memcpy(cta->shared + offset, row + done, piece);
        } else if (six) {
            six_bits_pack(row + done, cta->shared + offset);
        } else {
            memcpy(row + done, cta->shared + offset, piece);
        }
    }
}

static uint64_t row_address(const struct emu_tensor_copy *t, const int64_t at[EMU_TENSOR_MAX_RANK],
                            int64_t first)
{
    uint64_t address = t->map.address + (uint64_t)bytes_of(t, at[0] + first);
    for (uint32_t k = 1; k < t->map.rank; k++) {
        address += (uint64_t)at[k] * t->map.strides[k];
    }
    return address;
}

/* Global memory of a row's elements [first, last), both within dimension 0. */
static unsigned char *row_global(struct emu_tensor_copy *t, const int64_t at[EMU_TENSOR_MAX_RANK],
                                 int64_t first, int64_t last)
{
    const struct emu_space *space = t->copy.cta->run->machine->space;
    const uint64_t address = row_address(t, at, first);
    const uint64_t bytes = (uint64_t)bytes_of(t, last - first);
    void *memory = t->direction == EMU_TENSOR_LOAD ? emu_space_range_read(space, address, bytes)
                                                   : emu_space_range_write(space, address, bytes);
    if (!memory) {
        char text[300], why[200];
        emu_space_explain(space, address, bytes, t->direction != EMU_TENSOR_LOAD, why, sizeof why);
        snprintf(text, sizeof text, "the tensor reaches outside memory: %s", why);
        fail(t, t->copy.cta, "global", address, text);
    } else {
        emu_copy_tell(t->copy.cta, t->copy.id, EMU_EVENT_COPY_GLOBAL, address, bytes,
                      t->direction != EMU_TENSOR_LOAD);
    }
    return memory;
}

static void row_store(struct emu_tensor_copy *t, unsigned char *to, const unsigned char *row, uint64_t bytes)
{
    if (t->direction == EMU_TENSOR_STORE) {
        memcpy(to, row, bytes);
        return;
    }
    const uint32_t size = emu_tensor_element_bits(t->map.type) / 8;
    for (uint64_t i = 0; i + size <= bytes; i += size) {
        uint64_t value = 0;
        memcpy(&value, row + i, size);
        emu_reduce_atomic(t->reduction, to + i, value);
    }
}

/* Where a row ends along dimension 0. Stores and reductions write whole 16 bytes: up to 15 bytes behind the
   tensor's end are overwritten with what the box has there (measured on an H200, all types:
   tests/emu/tensor/stores.*). Where an allocation ends with the tensor, nothing is there to be seen, and the
   end is exact. */
static int64_t row_end(const struct emu_tensor_copy *t, const int64_t at[EMU_TENSOR_MAX_RANK], int64_t first)
{
    const int64_t dim = (int64_t)t->map.dims[0], bits = t->shape.element_bits;
    const int64_t whole = (dim * bits + 127) / 128 * 128 / bits;
    if (t->direction == EMU_TENSOR_LOAD || whole == dim ||
        !emu_space_range_write(t->copy.cta->run->machine->space, row_address(t, at, first),
                               (uint64_t)bytes_of(t, whole - at[0] - first))) {
        return dim;
    }
    return whole;
}

/* One row at `at` (elements; anything outside the tensor is filled or skipped). */
static void row_move(struct emu_tensor_copy *t, const int64_t at[EMU_TENSOR_MAX_RANK], uint64_t linear)
{
    _Alignas(16) unsigned char row[MAX_ROW_BYTES];
    const struct emu_cluster *cluster = t->copy.cta->cluster;
    const int64_t n = t->shape.row_elements, first = at[0] < 0 ? -at[0] : 0;
    bool inside = first < n && at[0] + first < (int64_t)t->map.dims[0];
    for (uint32_t k = 1; k < t->map.rank; k++) {
        inside = inside && at[k] >= 0 && at[k] < (int64_t)t->map.dims[k];
    }
    const int64_t end = inside ? row_end(t, at, first) - at[0] : 0, last = end < n ? end : n;
    unsigned char *memory = inside ? row_global(t, at, first, last) : NULL;
    if (inside && !memory) {
        return;
    }
    const uint64_t bytes = inside ? (uint64_t)bytes_of(t, last - first) : 0;
    if (t->direction != EMU_TENSOR_LOAD) {
        if (inside) {
            row_shared(t, t->from_cta, t->from, linear, row);
            if (!t->failed) {
                row_store(t, memory, row + bytes_of(t, first), bytes);
            }
        }
        return;
    }
    row_fill(t, row);
    if (inside) {
        memcpy(row + bytes_of(t, first), memory, bytes);
        if (t->map.type == EMU_TENSOR_TF32 || t->map.type == EMU_TENSOR_TF32_FTZ) {
            row_round(row + bytes_of(t, first), (uint32_t)bytes);
        }
    }
    for (uint32_t left = t->target.ranks; left && !t->failed; left &= left - 1) {
        row_shared(t, &cluster->ctas[__builtin_ctz(left)], t->target.to, linear, row);
    }
}

/* --- the order of rows */

static void rows_tile(struct emu_tensor_copy *t)
{
    int64_t at[EMU_TENSOR_MAX_RANK];
    uint32_t i[EMU_TENSOR_MAX_RANK] = {0};
    for (uint64_t row = 0; row < t->shape.rows && !t->failed; row++) {
        at[0] = t->coords[0];
        for (uint32_t k = t->shape.first; k < t->map.rank; k++) {
            at[k] = t->coords[k] + (int64_t)i[k] * t->map.element_strides[k];
        }
        row_move(t, at, row * t->shape.pitch);
        for (uint32_t k = t->shape.first; k < t->map.rank && ++i[k] == t->shape.counts[k]; k++) {
            i[k] = 0;
        }
    }
}

static void rows_four(struct emu_tensor_copy *t)
{
    for (unsigned i = 0; i < 4 && !t->failed; i++) {
        const int64_t at[EMU_TENSOR_MAX_RANK] = {t->coords[0], t->coords[1 + i], 0, 0, 0};
        row_move(t, at, (uint64_t)i * t->shape.pitch);
    }
}

/* im2col: the pixels of a column, W first, then H, D and N, inside the box that the corners cut out. The
   dimensions of pixels follow the channels, or begin at 0 where the layout is interleaved. */
static void rows_im2col(struct emu_tensor_copy *t)
{
    const struct emu_tensor_map *map = &t->map;
    const uint32_t w = t->shape.first, batch = map->rank - 1, end = w + map->rank - 2;
    int64_t position[EMU_TENSOR_MAX_RANK], at[EMU_TENSOR_MAX_RANK];
    memcpy(position, t->coords, sizeof position);
    for (uint32_t pixel = 0; pixel < map->pixels && !t->failed; pixel++) {
        memcpy(at, position, sizeof at);
        for (uint32_t k = w; k < end; k++) {
            at[k] += t->offsets[k - w];
        }
        row_move(t, at, (uint64_t)pixel * t->shape.pitch);
        uint32_t k = w;
        for (; k < end; k++) {
            position[k] += map->element_strides[k];
            if (position[k] <= (int64_t)map->dims[k] - 1 + map->upper[k - w]) {
                break;
            }
            position[k] = map->lower[k - w];
        }
        position[batch] += k == end;
    }
}

/* im2col::w: pixels along W at one H and D, from image to image; wHalo pixels more, beyond the box too, after
   all of them or, in im2col::w::128, after every 32. UNVERIFIED: the manual's text leaves open that images
   follow each other, and that the halo steps by the element stride. */
static void rows_wide(struct emu_tensor_copy *t)
{
    const struct emu_tensor_map *map = &t->map;
    const uint32_t batch = map->rank - 1, halo = (uint32_t)t->offsets[0];
    const int64_t step = map->element_strides[1], offset = t->offsets[1];
    const int64_t lower = map->lower[0] + offset, upper = (int64_t)map->dims[1] - 1 + map->upper[0] + offset;
    int64_t next[EMU_TENSOR_MAX_RANK], at[EMU_TENSOR_MAX_RANK];
    uint64_t row = 0;
    memcpy(next, t->coords, sizeof next);
    next[1] += offset;
    for (uint32_t group = 0; group < wide_groups(t); group++) {
        for (uint32_t i = 0; i < wide_group(t) && !t->failed; i++) {
            memcpy(at, next, sizeof at);
            row_move(t, at, row++ * t->shape.pitch);
            next[1] += step;
            if (next[1] > upper) {
                next[1] = lower;
                next[batch]++;
            }
        }
        for (uint32_t i = 0; i < halo && !t->failed; i++) {
            at[1] += step;
            row_move(t, at, row++ * t->shape.pitch);
        }
    }
}

void emu_tensor_rows(struct emu_tensor_copy *t)
{
    switch (t->mode) {
    case EMU_TENSOR_IM2COL:
        rows_im2col(t);
        break;
    case EMU_TENSOR_IM2COL_W:
    case EMU_TENSOR_IM2COL_W128:
        rows_wide(t);
        break;
    case EMU_TENSOR_FOUR_ROWS:
        rows_four(t);
        break;
    default:
        rows_tile(t);
        break;
    }
}
