/* Kinds of kernel faults, so that the API can return the code that a GPU would (CUDA 13.0 driver API,
   "CUresult"; which fault gives which code: measured on an H200, design "Faults"). The launch state holds
   one, EMU_FAULT_NONE while nothing failed; emu_fault() leaves EMU_FAULT_ILLEGAL_INSTRUCTION there unless a
   kind was set. */
#ifndef CLAB_EMU_FAULT_H
#define CLAB_EMU_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/op.h"

enum emu_fault_kind {
    EMU_FAULT_NONE,
    EMU_FAULT_ILLEGAL_ADDRESS,    /* CUDA_ERROR_ILLEGAL_ADDRESS: outside every allocation, freed, read-only */
    EMU_FAULT_MISALIGNED_ADDRESS, /* CUDA_ERROR_MISALIGNED_ADDRESS */
    EMU_FAULT_INVALID_ADDRESS_SPACE, /* CUDA_ERROR_INVALID_ADDRESS_SPACE: an operation that the space does not
                                        have */
    EMU_FAULT_LAUNCH_FAILED, /* CUDA_ERROR_LAUNCH_FAILED: a CTA that has exited, not started or never existed
                              */
    EMU_FAULT_ILLEGAL_INSTRUCTION, /* CUDA_ERROR_ILLEGAL_INSTRUCTION: trap, undefined uses of an instruction
                                    */
    EMU_FAULT_INVALID_PC,          /* CUDA_ERROR_INVALID_PC: a call of something that is no function */
    EMU_FAULT_ASSERT               /* CUDA_ERROR_ASSERT */
};

/* Sets the kind of the fault that the next (or the last) emu_fault of this launch reports. */
void emu_fault_kind_set(struct emu_warp *warp, enum emu_fault_kind kind);

#endif
