/* Tensor copies of one thread (cp.async.bulk.tensor, cp.reduce.async.bulk.tensor): checked when issued,
 * performed later. */
#ifndef CLAB_EMU_TMA_H
#define CLAB_EMU_TMA_H

#include "emu/bulk.h"
#include "emu/tensor_map.h"

enum emu_tensor_direction { EMU_TENSOR_LOAD, EMU_TENSOR_STORE, EMU_TENSOR_REDUCE };
enum emu_tensor_mode {
    EMU_TENSOR_TILE,
    EMU_TENSOR_IM2COL,
    EMU_TENSOR_IM2COL_W,
    EMU_TENSOR_IM2COL_W128,
    EMU_TENSOR_FOUR_ROWS
}; /* four rows: gather4, scatter4 */

/* One instruction, decoded. */
struct emu_tensor_plan {
    enum emu_tensor_direction direction;
    enum emu_tensor_mode mode;
    uint32_t rank;
    struct emu_window_operand shared, mbarrier; /* mbarrier: of loads */
    uint32_t map_row;                           /* 64-bit lanes */
    uint64_t map_imm;
    uint32_t n_coords, coord_rows[EMU_TENSOR_MAX_RANK]; /* signed 32-bit lanes */
    uint32_t n_offsets, offset_rows[3];                 /* im2col: 16-bit lanes; im2col::w: halo, offset */
    uint32_t mask_row;                                  /* multicast: 16-bit lanes; EMU_NO_ROW without */
    bool pair;                                          /* .cta_group::2 */
    uint8_t reductions[EMU_TENSOR_TYPE_COUNT];          /* enum emu_reduction, by the map's type */
};
/* Issues the copy of `lane`. False after a fault. */
bool emu_tensor_issue(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                      const struct emu_tensor_plan *plan);

/* Where the swizzle puts a byte: acts on window addresses. */
uint32_t emu_tensor_swizzle(enum emu_tensor_swizzle swizzle, uint32_t address);

#endif
