/* Text that kernels print (vprintf). */
#ifndef CLAB_EMU_PRINT_H
#define CLAB_EMU_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/warp.h"

/* Formats one lane's vprintf and writes it to stdout; the API flushes. format, arguments: generic addresses.
   *out_count: arguments used, or -1 for a null format. False after emu_fault: an address or a conversion that
   cannot be. */
bool emu_print(struct emu_warp *warp, const struct emu_op *op, unsigned lane, uint64_t format,
               uint64_t arguments, int32_t *out_count);
/* Copies the string at a generic address, cut to size - 1 bytes; a null address gives "(null)". False after
 * emu_fault. */
bool emu_print_string(struct emu_warp *warp, const struct emu_op *op, unsigned lane, uint64_t address,
                      char *out_text, size_t size);

#endif
