/* Functions that a program calls and the device runtime supplies: vprintf, __assertfail, malloc, free,
   cudaGraphSetConditional. CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Dynamic Global
   Memory Allocation", "Conditional Graph Nodes". */
#ifndef CLAB_EMU_BUILTIN_H
#define CLAB_EMU_BUILTIN_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/emit.h"
#include "emu/op.h"

#define EMU_BUILTIN_MAX_ARGUMENTS 5

struct emu_builtin {
    const char *name;
    unsigned n_arguments, n_returns;
    /* Runs for one lane; arguments and result zero-extended to 64 bits. False after emu_fault. */
    bool (*run)(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result);
};
/* NULL when the device runtime has no function of that name. */
const struct emu_builtin *emu_builtin_get(const char *name);

#ifdef EMU_SET
/* Emits a call of `builtin`. arguments and returns: the lists of the instruction, NULL when absent.
 * (ops_builtin.c) */
clab_status EMU_SETNAME(emu_builtin_emit)(struct emu_emit *emit, const struct emu_builtin *builtin,
                                          const struct ptx_function *function,
                                          const struct ptx_operand *arguments,
                                          const struct ptx_operand *returns);
#endif

#endif
