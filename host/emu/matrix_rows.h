/* Rows of the matrices that ldmatrix and stmatrix move: sixteen bytes each, the address of row r given by
   lane r. PTX ISA 9.0, "Warp-level matrix load instruction: ldmatrix", "… store instruction: stmatrix". */
#ifndef CLAB_EMU_MATRIX_ROWS_H
#define CLAB_EMU_MATRIX_ROWS_H

#include "emu/alu.h"
#include "emu/collective.h"
#include "emu/fault.h"
#include "emu/place.h"

#define EMU_MATRIX_ROW_SIZE 4 /* log2 of a row's bytes */

/* The host addresses of `count` rows. False after a fault. A lane that is needed for an address and does not
   execute is a fault of the program's. */
static inline bool emu_matrix_rows(struct emu_warp *warp, const struct emu_op *op, unsigned count,
                                   enum emu_access_mode mode, unsigned char **out_rows)
{
    const enum emu_place_kind place = (enum emu_place_kind)op->u8[0];
    for (unsigned lane = 0; lane < count; lane++) {
        uint64_t address;
        enum emu_reach reach = EMU_REACH_SHARED_CTA;
        if (!(warp->exec >> lane & 1)) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                      "lane %u gives a row's address and does not execute", lane);
            return false;
        }
        switch (place) {
        case EMU_AT_SHARED:
            address = (uint32_t)(EMU_ROW(uint32_t, warp, op->a)[lane] + op->imm);
            break;
        case EMU_AT_KNOWN_SHARED:
            address = (warp->cta->rank << EMU_RANK_SHIFT) + EMU_SHARED_FIRST + op->imm;
            break;
        default:
            address = EMU_ROW(uint64_t, warp, op->a)[lane] + op->imm;
            reach = EMU_REACH_GENERIC;
        }
        enum clab_space_id space;
        out_rows[lane] = emu_access_range(warp, op, lane, reach, address, 16, 16, mode, &space);
        if (!out_rows[lane])
            return false;
        emu_access_count(warp, space, EMU_MATRIX_ROW_SIZE, mode, 1);
        emu_access_tell(warp, op, lane, space, out_rows[lane], 1u << EMU_MATRIX_ROW_SIZE, mode);
    }
    return true;
}

/* The address operand of ldmatrix and stmatrix, for emu_matrix_rows. */
static inline void emu_matrix_place(struct emu_op *op, const struct emu_place_address *address)
{
    op->a = address->row;
    op->imm = address->imm;
    op->u8[0] = (uint8_t)address->place;
}

#endif
