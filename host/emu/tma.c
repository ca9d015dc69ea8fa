/* Tensor copies between global memory and shared memory through a tensor map. PTX ISA 9.0, "Tensors" (tiled
   mode, im2col mode, swizzling, out-of-bound access), "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor";
   CUDA driver API 13.0, cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col.

   A copy is a sequence of rows: the elements along dimension 0, dense in shared memory, each row at one place
   of the tensor's outer dimensions. A row outside the tensor, and the part of a row outside dimension 0, is
   filled on a load (the whole box is written, measured on an H200) and skipped on a store. The swizzle moves
   16-byte pieces of rows by their address in shared memory. completion counts the whole box.

   Measured on an H200 (tests/emu/memory/tensor_*.ptx): tiles, im2col, element strides, fills, swizzles of 32,
   64 and 128 bytes, the tf32 types, reductions of tiles. UNVERIFIED: swizzles of CC 10, gather4 and scatter4.
   Known to differ from an H200 (tests/conformance/known.txt, tests/emu/memory/README.md): stores and
   reductions by im2col maps fault there, some interleaved boxes at the edge hold other bytes, and a store
   into rows of 6 words wrote all of their second 16 bytes. Refused by name: the packed sub-byte types. */
#include "emu/tma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROW_BYTES 8192 /* 256 slices of 32 bytes */

struct tensor_copy {
    struct emu_copy copy;
    struct emu_tensor_map map;
    enum emu_tensor_direction direction;
    enum emu_tensor_mode mode;
    int64_t coords[EMU_TENSOR_MAX_RANK];
    int32_t offsets[3];
    bool pair;
    struct emu_bulk_target target; /* loads */
    struct emu_cta *from_cta;      /* stores */
    uint32_t from;                 /* window address */
    enum emu_reduction reduction;
    uint32_t element_bytes,
        row_elements; /* what dimension 0 counts: elements, or slices of an interleaved map */
    uint32_t counts[EMU_TENSOR_MAX_RANK]; /* rows along dimensions 1 and up */
    uint64_t bytes;                       /* of the whole box, as it is counted */
    uint32_t rows, pitch;                 /* rows, and bytes from one to the next in shared memory */
    bool failed;
};

uint32_t emu_tensor_swizzle(enum emu_tensor_swizzle swizzle, uint32_t address)
{
    switch (swizzle) {
    case EMU_SWIZZLE_32B:
    case EMU_SWIZZLE_96B:
        return address ^ (address >> 3 & 0x10);
    case EMU_SWIZZLE_64B:
        return address ^ (address >> 3 & 0x30);
    case EMU_SWIZZLE_128B:
        return address ^ (address >> 3 & 0x70);
    case EMU_SWIZZLE_128B_ATOM_32B:
        return address ^ (address >> 2 & 0x60);
    case EMU_SWIZZLE_128B_ATOM_32B_FLIP_8B:
        return address ^ (address >> 2 & 0x60) ^ (address >> 4 & 0x08);
    case EMU_SWIZZLE_128B_ATOM_64B:
        return address ^ (address >> 1 & 0x40);
    default:
        return address;
    }
}

/* --- rows */

static void fail(struct tensor_copy *t, struct emu_cta *cta, const char *space, uint64_t address,
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
 * H200). */
static void row_fill(const struct tensor_copy *t, unsigned char *row)
{
    const uint32_t bytes = t->row_elements * t->element_bytes;
    memset(row, 0, bytes);
    for (uint32_t i = 0; t->map.nan_fill && i + 2 <= bytes; i += 2) {
        row[i] = 0xf7;
        row[i + 1] = 0x7f;
    }
}

/* Loading the tf32 types rounds to 10 bits of fraction, to nearest even; every NaN becomes 7fffe000 (measured
   on an H200; UNVERIFIED: NaNs with a sign). */
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

/* Copies between a row and shared memory, through the swizzle. `linear`: the row's offset in the box. */
static void row_shared(struct tensor_copy *t, struct emu_cta *cta, uint32_t base, uint64_t linear,
                       unsigned char *row)
{
    const uint32_t bytes = t->row_elements * t->element_bytes;
    const uint32_t step = t->map.swizzle == EMU_SWIZZLE_NONE                    ? bytes
                          : t->map.swizzle == EMU_SWIZZLE_128B_ATOM_32B_FLIP_8B ? 8
                                                                                : 16;
    for (uint32_t done = 0; done < bytes; done += step) {
        const uint32_t piece = bytes - done < step ? bytes - done : step;
        const uint32_t offset =
            emu_tensor_swizzle(t->map.swizzle, (base & 0xffffff) + (uint32_t)linear + done) -
            EMU_SHARED_FIRST;
        if ((uint64_t)offset + piece > cta->shared_bytes) {
            fail(t, cta, "shared", base, "the swizzled box leaves the CTA's shared memory");
            return;
        }
        if (t->direction == EMU_TENSOR_LOAD) {
            memcpy(cta->shared + offset, row + done, piece);
        } else {
            memcpy(row + done, cta->shared + offset, piece);
        }
    }
}

/* Global memory of a row's elements [first, last), both within dimension 0. */
static unsigned char *row_global(struct tensor_copy *t, const int64_t at[EMU_TENSOR_MAX_RANK], int64_t first,
                                 int64_t last)
{
    const struct emu_space *space = t->copy.cta->run->machine->space;
    uint64_t address = t->map.address + (uint64_t)(at[0] + first) * t->element_bytes;
    for (uint32_t k = 1; k < t->map.rank; k++) {
        address += (uint64_t)at[k] * t->map.strides[k];
    }
    const uint64_t bytes = (uint64_t)(last - first) * t->element_bytes;
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

static void row_store(struct tensor_copy *t, unsigned char *to, const unsigned char *row, uint64_t bytes)
{
    if (t->direction == EMU_TENSOR_STORE) {
        memcpy(to, row, bytes);
        return;
    }
    const uint32_t size = emu_tensor_element_bytes(t->map.type);
    for (uint64_t i = 0; i + size <= bytes; i += size) {
        uint64_t value = 0;
        memcpy(&value, row + i, size);
        emu_reduce_atomic(t->reduction, to + i, value);
    }
}

/* One row at `at` (elements; anything outside the tensor is filled or skipped). */
static void row_move(struct tensor_copy *t, const int64_t at[EMU_TENSOR_MAX_RANK], uint64_t linear)
{
    _Alignas(16) unsigned char row[MAX_ROW_BYTES];
    const struct emu_cluster *cluster = t->copy.cta->cluster;
    const int64_t dim = (int64_t)t->map.dims[0], n = t->row_elements;
    int64_t first = at[0] < 0 ? -at[0] : 0, last = dim - at[0] < n ? dim - at[0] : n;
    bool inside = first < last;
    for (uint32_t k = 1; k < t->map.rank; k++) {
        inside = inside && at[k] >= 0 && at[k] < (int64_t)t->map.dims[k];
    }
    unsigned char *memory = inside ? row_global(t, at, first, last) : NULL;
    if (inside && !memory) {
        return;
    }
    const uint64_t bytes = inside ? (uint64_t)(last - first) * t->element_bytes : 0;
    if (t->direction != EMU_TENSOR_LOAD) {
        if (inside) {
            row_shared(t, t->from_cta, t->from, linear, row);
            if (!t->failed) {
                row_store(t, memory, row + first * t->element_bytes, bytes);
            }
        }
        return;
    }
    row_fill(t, row);
    if (inside) {
        memcpy(row + first * t->element_bytes, memory, bytes);
    }
    if (t->map.type == EMU_TENSOR_TF32 || t->map.type == EMU_TENSOR_TF32_FTZ) {
        row_round(row, t->row_elements * t->element_bytes);
    }
    for (uint32_t left = t->target.ranks; left && !t->failed; left &= left - 1) {
        row_shared(t, &cluster->ctas[__builtin_ctz(left)], t->target.to, linear, row);
    }
}

/* --- the order of rows */

static void rows_tile(struct tensor_copy *t)
{
    int64_t at[EMU_TENSOR_MAX_RANK];
    uint32_t i[EMU_TENSOR_MAX_RANK] = {0};
    for (uint32_t row = 0; row < t->rows && !t->failed; row++) {
        at[0] = t->coords[0];
        for (uint32_t k = 1; k < t->map.rank; k++) {
            at[k] = t->coords[k] + (int64_t)i[k] * t->map.element_strides[k];
        }
        row_move(t, at, (uint64_t)row * t->pitch);
        for (uint32_t k = 1; k < t->map.rank && ++i[k] == t->counts[k]; k++) {
            i[k] = 0;
        }
    }
}

static void rows_four(struct tensor_copy *t)
{
    for (unsigned i = 0; i < 4 && !t->failed; i++) {
        const int64_t at[EMU_TENSOR_MAX_RANK] = {t->coords[0], t->coords[1 + i], 0, 0, 0};
        row_move(t, at, (uint64_t)i * t->pitch);
    }
}

/* im2col: the pixels of a column, W first, then H, D and N, inside the box that the corners cut out. */
static void rows_im2col(struct tensor_copy *t)
{
    const struct emu_tensor_map *map = &t->map;
    const uint32_t batch = map->rank - 1;
    int64_t position[EMU_TENSOR_MAX_RANK], at[EMU_TENSOR_MAX_RANK] = {0};
    memcpy(position, t->coords, sizeof position);
    for (uint32_t pixel = 0; pixel < map->pixels && !t->failed; pixel++) {
        at[0] = position[0];
        for (uint32_t k = 1; k < batch; k++) {
            at[k] = position[k] + t->offsets[k - 1];
        }
        at[batch] = position[batch];
        row_move(t, at, (uint64_t)pixel * t->pitch);
        uint32_t k = 1;
        for (; k < batch; k++) {
            position[k] += map->element_strides[k];
            if (position[k] <= (int64_t)map->dims[k] - 1 + map->upper[k - 1]) {
                break;
            }
            position[k] = map->lower[k - 1];
        }
        position[batch] += k == batch;
    }
}

static void tensor_perform(struct emu_copy *copy)
{
    struct tensor_copy *t = (struct tensor_copy *)(void *)copy;
    struct emu_cluster *cluster = copy->cta->cluster;
    for (uint32_t left = t->target.ranks; left; left &= left - 1) {
        if (!emu_copy_alive(copy, &cluster->ctas[__builtin_ctz(left)], "writes")) {
            return;
        }
    }
    if (t->from_cta && !emu_copy_alive(copy, t->from_cta, "reads")) {
        return;
    }
    if (t->mode == EMU_TENSOR_IM2COL) {
        rows_im2col(t);
    } else if (t->mode == EMU_TENSOR_FOUR_ROWS) {
        rows_four(t);
    } else {
        rows_tile(t);
    }
    if (t->failed) {
        return;
    }
    if (t->from_cta) {
        cluster->thread->traffic.bulk_delivered_bytes += t->bytes;
        return;
    }
    for (uint32_t left = t->target.ranks; left; left &= left - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(left),
                       signalled = emu_bulk_signalled(&t->target, t->pair, rank);
        cluster->thread->traffic.bulk_delivered_bytes += t->bytes;
        if (signalled < cluster->size &&
            emu_copy_alive(copy, &cluster->ctas[signalled], "signals an mbarrier in")) {
            emu_copy_signal(copy, &cluster->ctas[signalled], t->target.mbarrier, (uint32_t)t->bytes);
        }
    }
}

/* --- issue */

static bool refuse(struct emu_warp *warp, const struct emu_op *op, unsigned lane, clab_status status,
                   uint64_t address, const char *text)
{
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
    emu_fault(warp, op, lane, status, "generic", address, "%s", text);
    return false;
}

static bool map_read(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                     const struct emu_tensor_plan *plan, struct emu_tensor_map *out)
{
    const uint64_t address = EMU_ROW(uint64_t, warp, plan->map_row)[lane] + plan->map_imm;
    uint32_t words[EMU_TENSOR_MAP_BYTES / 4];
    enum clab_space_id space;
    const unsigned char *at = emu_access_range(warp, op, lane, EMU_REACH_GENERIC, address,
                                               EMU_TENSOR_MAP_BYTES, 64, EMU_LOAD, &space);
    if (!at) {
        return false;
    }
    memcpy(words, at, sizeof words);
    const char *wrong = emu_tensor_map_decode(words, out);
    if (wrong) {
        return refuse(warp, op, lane, CLAB_FAULT, address, wrong);
    }
    if (out->address & 15) {
        return refuse(warp, op, lane, CLAB_FAULT, address,
                      "the tensor map's global address is not a multiple of 16");
    }
    if (out->interleave && out->im2col) {
        return refuse(warp, op, lane, CLAB_UNSUPPORTED, address,
                      "not supported by the emulator: im2col tensor maps with an interleaved layout");
    }
    if (out->type >= EMU_TENSOR_U4X16_ALIGN8) {
        return refuse(warp, op, lane, CLAB_UNSUPPORTED, address,
                      "not supported by the emulator: tensor maps of packed 4-bit and 6-bit elements");
    }
    if (out->rank != plan->rank) {
        char text[128];
        snprintf(text, sizeof text, "the tensor map's rank is %u, the instruction's %u", (unsigned)out->rank,
                 (unsigned)plan->rank);
        return refuse(warp, op, lane, CLAB_FAULT, address, text);
    }
    if (out->im2col != (plan->mode == EMU_TENSOR_IM2COL)) {
        return refuse(warp, op, lane, CLAB_FAULT, address,
                      "the tensor map's mode (tiled or im2col) is not that of the instruction");
    }
    return true;
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

/* Elements of a row, rows, bytes. A row narrower than the swizzle's span takes a whole line of it in shared
   memory, but is counted with its own bytes (measured on an H200). */
static void geometry(struct tensor_copy *t)
{
    t->element_bytes = t->map.interleave ? 16 * t->map.interleave : emu_tensor_element_bytes(t->map.type);
    t->row_elements = t->map.im2col ? t->map.channels : t->map.box[0];
    t->rows = t->mode == EMU_TENSOR_IM2COL ? t->map.pixels : t->mode == EMU_TENSOR_FOUR_ROWS ? 4 : 1;
    uint64_t rows = t->rows;
    for (uint32_t k = 1; k < t->map.rank && t->mode == EMU_TENSOR_TILE; k++) {
        t->counts[k] = (t->map.box[k] + t->map.element_strides[k] - 1) / t->map.element_strides[k];
        rows *= t->counts[k];
    }
    const uint32_t row_bytes = t->row_elements * t->element_bytes, span = swizzle_span(t->map.swizzle);
    t->pitch = (row_bytes + span - 1) / span * span;
    t->bytes = rows * row_bytes;
    t->rows = (uint32_t)rows;
}

/* Room of the box in shared memory; more than there can be when it is too large. */
static uint32_t room_of(const struct tensor_copy *t)
{
    const uint64_t room = (uint64_t)t->rows * t->pitch, most = UINT64_C(1) << EMU_RANK_SHIFT;
    return (uint32_t)(t->bytes > most || room > most ? most : room);
}

/* What faults with CUDA_ERROR_ILLEGAL_INSTRUCTION (H200, driver 13.0, 2026-11-30): an innermost coordinate of
   1, 2, 3, 6, -1 or -2 words where 0, 4, -4 and -8 work, for loads, im2col too, and stores; any negative
   coordinate of a store or reduction, where coordinates beyond the tensor's end only store nothing. */
static bool coordinates_allowed(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                const struct tensor_copy *t, uint32_t n_coords)
{
    char text[160];
    if (t->coords[0] * t->element_bytes % 16 != 0) {
        snprintf(text, sizeof text,
                 "the innermost coordinate %lld is %lld bytes from the tensor's start, not a multiple of 16",
                 (long long)t->coords[0], (long long)(t->coords[0] * t->element_bytes));
        return refuse(warp, op, lane, CLAB_FAULT, 0, text);
    }
    for (uint32_t k = 0; k < n_coords && t->direction != EMU_TENSOR_LOAD; k++) {
        if (t->coords[k] < 0) {
            snprintf(text, sizeof text,
                     "a store to coordinate %lld of dimension %u: stores and reductions take no negative "
                     "coordinates",
                     (long long)t->coords[k], k);
            return refuse(warp, op, lane, CLAB_FAULT, 0, text);
        }
    }
    return true;
}

static bool tensor_fill(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                        const struct emu_tensor_plan *plan, struct tensor_copy *t)
{
    const bool multicast = plan->mask_row != EMU_NO_ROW;
    if (!map_read(warp, op, lane, plan, &t->map)) {
        return false;
    }
    t->copy.perform = tensor_perform;
    t->direction = plan->direction;
    t->mode = plan->mode;
    t->pair = plan->pair;
    t->reduction = (enum emu_reduction)plan->reductions[t->map.type];
    for (uint32_t k = 0; k < plan->n_coords; k++) {
        t->coords[k] = EMU_ROW(int32_t, warp, plan->coord_rows[k])[lane];
    }
    for (uint32_t k = 0; k < plan->n_offsets; k++) {
        t->offsets[k] = EMU_ROW(uint16_t, warp, plan->offset_rows[k])[lane];
    }
    geometry(t);
    if (!coordinates_allowed(warp, op, lane, t, plan->n_coords)) {
        return false;
    }
    if (t->direction == EMU_TENSOR_REDUCE && t->reduction == EMU_REDUCE_COUNT) {
        return refuse(warp, op, lane, CLAB_FAULT, 0,
                      "the reduction does not exist for the tensor map's element type");
    }
    const uint32_t bytes = room_of(t);
    if (plan->direction == EMU_TENSOR_LOAD) {
        return emu_bulk_target_get(warp, op, lane, &plan->shared, &plan->mbarrier, bytes, 128, multicast,
                                   multicast ? EMU_ROW(uint16_t, warp, plan->mask_row)[lane] : 0, plan->pair,
                                   &t->target);
    }
    struct emu_window_place from;
    if (!emu_window_lane(warp, op, lane, &plan->shared, true, bytes, 128, EMU_LOAD, &from)) {
        return false;
    }
    t->from_cta = from.cta;
    t->from = from.address;
    return true;
}

bool emu_tensor_issue(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                      const struct emu_tensor_plan *plan)
{
    struct tensor_copy *t = calloc(1, sizeof *t);
    if (t && !tensor_fill(warp, op, lane, plan, t)) {
        free(t);
        return false;
    }
    const uint64_t bytes = t ? t->bytes : 0;
    if (t) {
        t->copy.id = ++warp->cta->cluster->copies;
        const bool load = plan->direction == EMU_TENSOR_LOAD;
        emu_hook_transfer(warp, op,
                          &(struct emu_transfer){.kind = EMU_TRANSFER_TENSOR,
                                                 .id = t->copy.id,
                                                 .lane = lane,
                                                 .ranks = t->target.ranks,
                                                 .to = emu_window_offset(t->target.to),
                                                 .to_bytes = load ? room_of(t) : 0,
                                                 .has_mbarrier = load,
                                                 .pair = t->pair,
                                                 .mbarrier = t->target.mbarrier,
                                                 .from_cta = t->from_cta,
                                                 .from = emu_window_offset(t->from),
                                                 .from_bytes = load ? 0 : room_of(t),
                                                 .global_write = !load,
                                                 .reduces = t->direction == EMU_TENSOR_REDUCE,
                                                 .bytes = bytes});
    }
    return emu_bulk_post(warp, op, lane, t ? &t->copy : NULL, plan->direction != EMU_TENSOR_LOAD, bytes);
}
