/* Tensor copies between global memory and shared memory through a tensor map: what is checked when one is
   issued, and its completion. PTX ISA 9.0, "Tensors", "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor";
   CUDA driver API 13.0, cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2colWide. Which
   element goes where: tma_rows.c.

   Measured on an H200, case by case (tests/emu/tensor), and as programs (tests/emu/memory/tensor_*.ptx):
   which coordinates, maps and reductions fault; tiles, im2col, interleaved layouts, element strides, fills,
   swizzles of 32, 64 and 128 bytes, the tf32 types. UNVERIFIED: what CC 10.0 brought: more swizzles, gather4
   and scatter4, packed types, im2col::w. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/tma_copy.h"

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

static void tensor_perform(struct emu_copy *copy)
{
    struct emu_tensor_copy *t = (struct emu_tensor_copy *)(void *)copy;
    struct emu_cluster *cluster = copy->cta->cluster;
    for (uint32_t left = t->target.ranks; left; left &= left - 1) {
        if (!emu_copy_alive(copy, &cluster->ctas[__builtin_ctz(left)], "writes")) {
            return;
        }
    }
    if (t->from_cta && !emu_copy_alive(copy, t->from_cta, "reads")) {
        return;
    }
    emu_tensor_rows(t);
    if (t->failed) {
        return;
    }
    if (t->from_cta) {
        cluster->thread->traffic.bulk_delivered_bytes += t->shape.bytes;
        return;
    }
    for (uint32_t left = t->target.ranks; left; left &= left - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(left),
                       signalled = emu_bulk_signalled(&t->target, t->pair, rank);
        cluster->thread->traffic.bulk_delivered_bytes += t->shape.bytes;
        if (signalled < cluster->size &&
            emu_copy_alive(copy, &cluster->ctas[signalled], "signals an mbarrier in")) {
            emu_copy_signal(copy, &cluster->ctas[signalled], t->target.mbarrier, (uint32_t)t->shape.bytes);
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

static enum emu_tensor_mode map_mode(const struct emu_tensor_map *map)
{
    return !map->im2col     ? EMU_TENSOR_TILE
           : map->wide == 1 ? EMU_TENSOR_IM2COL_W
           : map->wide == 2 ? EMU_TENSOR_IM2COL_W128
                            : EMU_TENSOR_IM2COL;
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
    emu_access_tell_map(warp, op, lane, space, at, false);
    memcpy(words, at, sizeof words);
    const char *wrong = emu_tensor_map_decode(words, out);
    if (wrong) {
        return refuse(warp, op, lane, CLAB_FAULT, address, wrong);
    }
    if (out->address & 15) {
        return refuse(warp, op, lane, CLAB_FAULT, address,
                      "the tensor map's global address is not a multiple of 16");
    }
    if (out->interleave && out->rank < 3) {
        return refuse(warp, op, lane, CLAB_FAULT, address,
                      "an interleaved tensor map has a rank of 3 or more");
    }
    if (out->nan_fill && (out->type < EMU_TENSOR_F16 || out->type > EMU_TENSOR_TF32_FTZ)) {
        return refuse(warp, op, lane, CLAB_FAULT, address,
                      "the tensor map fills with NaN, and its type has none");
    }
    if (out->rank != plan->rank) {
        char text[128];
        snprintf(text, sizeof text, "the tensor map's rank is %u, the instruction's %u", (unsigned)out->rank,
                 (unsigned)plan->rank);
        return refuse(warp, op, lane, CLAB_FAULT, address, text);
    }
    if (map_mode(out) != (plan->mode == EMU_TENSOR_FOUR_ROWS ? EMU_TENSOR_TILE : plan->mode)) {
        return refuse(warp, op, lane, CLAB_FAULT, address,
                      "the tensor map's mode (tiled, im2col, im2col::w or im2col::w::128) is not that of the "
                      "instruction");
    }
    return true;
}

/* im2col: the first pixel lies in the box that the corners cut out, in .im2col::w at most left of it along W;
   what a store writes lies in the tensor. */
static bool pixel_allowed(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                          const struct emu_tensor_copy *t)
{
    const struct emu_tensor_map *map = &t->map;
    const bool wide = t->mode != EMU_TENSOR_IM2COL;
    const uint32_t w = t->shape.first, corners = wide ? 1 : map->rank - 2;
    char text[160];
    for (uint32_t i = 0; i < corners; i++) {
        const int64_t at = t->coords[w + i], last = (int64_t)map->dims[w + i] - 1 + map->upper[i];
        if (at > last || (at < map->lower[i] && !wide)) {
            snprintf(text, sizeof text,
                     "coordinate %lld of dimension %u is outside the bounding box of pixels, %d to %lld",
                     (long long)at, w + i, map->lower[i], (long long)last);
            return refuse(warp, op, lane, CLAB_FAULT, 0, text);
        }
        if (t->direction != EMU_TENSOR_LOAD && (map->lower[i] < 0 || map->upper[i] > 0)) {
            snprintf(text, sizeof text,
                     "a store by an im2col map whose bounding box leaves the tensor: corners %d and %d of "
                     "dimension %u",
                     map->lower[i], map->upper[i], w + i);
            return refuse(warp, op, lane, CLAB_FAULT, 0, text);
        }
    }
    return true;
}

/* What faults with CUDA_ERROR_ILLEGAL_INSTRUCTION (H200, driver 13.0, 2026-11-30,
   tests/emu/tensor/coordinates.*): an innermost coordinate that is not a multiple of 16 bytes, for loads,
   im2col too, and stores; any negative coordinate of a store or reduction, where coordinates beyond the
   tensor's end only store nothing. */
static bool coordinates_allowed(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                const struct emu_tensor_copy *t, uint32_t n_coords)
{
    char text[160];
    const int64_t bits = t->coords[0] * t->shape.element_bits;
    if (bits % 128 != 0) {
        snprintf(text, sizeof text,
                 "the innermost coordinate %lld is %.4g bytes from the tensor's start, not a multiple of 16",
                 (long long)t->coords[0], (double)bits / 8);
        return refuse(warp, op, lane, CLAB_FAULT, 0, text);
    }
    if (t->shape.group_bytes != 16 && t->coords[0] % 128 != 0) {
        snprintf(text, sizeof text,
                 "the innermost coordinate %lld of a type with padding is not a multiple of 128",
                 (long long)t->coords[0]);
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
    return !t->map.im2col || pixel_allowed(warp, op, lane, t);
}

static bool tensor_fill(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                        const struct emu_tensor_plan *plan, struct emu_tensor_copy *t)
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
    emu_tensor_shape_fill(t);
    if (!coordinates_allowed(warp, op, lane, t, plan->n_coords)) {
        return false;
    }
    if (t->direction == EMU_TENSOR_REDUCE && t->reduction == EMU_REDUCE_COUNT) {
        return refuse(warp, op, lane, CLAB_FAULT, 0,
                      "the reduction does not exist for the tensor map's element type");
    }
    if (t->direction != EMU_TENSOR_LOAD && t->map.type == EMU_TENSOR_U4X16_ALIGN16) {
        return refuse(warp, op, lane, CLAB_FAULT, 0, "4-bit elements with padding can be loaded only");
    }
    const uint32_t bytes = emu_tensor_room(t);
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
    struct emu_tensor_copy *t = calloc(1, sizeof *t);
    if (t && !tensor_fill(warp, op, lane, plan, t)) {
        free(t);
        return false;
    }
    const uint64_t bytes = t ? t->shape.bytes : 0;
    if (t) {
        t->copy.id = ++warp->cta->cluster->copies;
        const bool load = plan->direction == EMU_TENSOR_LOAD;
        emu_hook_transfer(warp, op,
                          &(struct emu_transfer){.kind = EMU_TRANSFER_TENSOR,
                                                 .id = t->copy.id,
                                                 .lane = lane,
                                                 .ranks = t->target.ranks,
                                                 .to = emu_window_offset(t->target.to),
                                                 .to_bytes = load ? emu_tensor_room(t) : 0,
                                                 .has_mbarrier = load,
                                                 .pair = t->pair,
                                                 .mbarrier = t->target.mbarrier,
                                                 .from_cta = t->from_cta,
                                                 .from = emu_window_offset(t->from),
                                                 .from_bytes = load ? 0 : emu_tensor_room(t),
                                                 .global_write = !load,
                                                 .reduces = t->direction == EMU_TENSOR_REDUCE,
                                                 .bytes = bytes});
    }
    return emu_bulk_post(warp, op, lane, t ? &t->copy : NULL, plan->direction != EMU_TENSOR_LOAD, bytes);
}
