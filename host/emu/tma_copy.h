/* One tensor copy under way: what was asked (tma.c) and how its rows lie (tma_rows.c). Private to those two.
 */
#ifndef CLAB_EMU_TMA_COPY_H
#define CLAB_EMU_TMA_COPY_H

#include "emu/tma.h"

struct emu_tensor_copy {
    struct emu_copy copy;
    struct emu_tensor_map map;
    enum emu_tensor_direction direction;
    enum emu_tensor_mode mode;
    int64_t coords[EMU_TENSOR_MAX_RANK];
    int32_t offsets[3]; /* im2col; of .im2col::w pixels of the halo, and the offset along W */
    bool pair;
    struct emu_bulk_target target; /* loads */
    struct emu_cta *from_cta;      /* stores */
    uint32_t from;                 /* window address */
    enum emu_reduction reduction;
    struct emu_tensor_shape {
        uint32_t element_bits; /* in global memory; of an interleaved map, of a slice */
        uint32_t row_elements; /* along dimension 0, in one place of global memory */
        uint32_t group_bytes;  /* types with padding: bytes of data in each 16 of shared memory; else 16 */
        uint32_t first;        /* dimensions from here on are walked row by row */
        uint32_t counts[EMU_TENSOR_MAX_RANK]; /* of tiles: rows along those */
        uint64_t rows;
        uint32_t pitch; /* bytes in shared memory from one row to the next */
        uint64_t bytes; /* of the whole box, as they are counted */
    } shape;
    bool failed;
};

/* Fills t->shape from the map, the mode and, for the halo, the offsets. */
void emu_tensor_shape_fill(struct emu_tensor_copy *t);
/* Room of the box in shared memory, bytes; more than there can be when it is too large. */
uint32_t emu_tensor_room(const struct emu_tensor_copy *t);
/* Moves all rows; t->failed after a fault, which is reported. */
void emu_tensor_rows(struct emu_tensor_copy *t);

#endif
