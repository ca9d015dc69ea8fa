/* The device's address space: one arena reserved at machine creation, a granule map that says for every 256
   bytes of it how many are valid and what they are, and the two generic windows (PTX ISA 9.0, "Generic
   Addressing").

     [shared window 4 GiB][local window 4 GiB][device memory: .global, .const, parameters, managed and pinned
   memory]

   A device address is its host address. The windows are reserved, never mapped: a generic address inside one
   names (rank << 24) + 0x400 + offset of shared memory, or an offset of the executing thread's local memory.
   Memory that the program registers (cuMemHostRegister) lies outside the arena, in a small sorted table.

   Allocation and release lock; the checks below do not, and may run on any host thread at the same time. */
#ifndef CLAB_EMU_SPACE_H
#define CLAB_EMU_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core.h"
#include "emu/fault.h"

#define EMU_WINDOW_BYTES (UINT64_C(1) << 32)
#define EMU_SHARED_FIRST                                                                       \
    UINT32_C(0x400)          /* offset of a CTA's first user byte; the 1 KiB below is reserved \
                              */
#define EMU_RANK_SHIFT    24 /* shared window address = (rank << 24) + EMU_SHARED_FIRST + offset */
#define EMU_GRANULE_SHIFT 8
#define EMU_GRANULE_BYTES (1u << EMU_GRANULE_SHIFT)

/* One entry of the map. */
#define EMU_GRANULE_VALID     UINT16_C(0x01ff) /* leading bytes that may be accessed, 0..256 */
#define EMU_GRANULE_FREED     UINT16_C(0x0200)
#define EMU_GRANULE_CONST     UINT16_C(0x0400) /* .const variable */
#define EMU_GRANULE_PARAM     UINT16_C(0x0800) /* parameter block of a launch */
#define EMU_GRANULE_READ_ONLY UINT16_C(0x8000) /* the sign bit: a signed compare refuses writes */

struct emu_space {
    uint64_t shared_window, local_window; /* generic addresses, 4 GiB aligned */
    uint64_t base;                        /* device memory: [base, base + granules * EMU_GRANULE_BYTES) */
    uint64_t granules;
    uint16_t *map; /* one entry per granule and one more, which is 0 like the first: checks without a branch
                      end there */
    struct emu_space_private *private;
};

/* `memory_bytes`: the device's memory. Reserves less when the process's address space is limited. */
clab_status emu_space_new(uint64_t memory_bytes, struct emu_space **out_space, struct clab_error *error);
void emu_space_free(struct emu_space *space);

/* A parameter block in device memory, for cvta.param: `bytes` readable by the kernel, written by the host
   through the returned address before the launch starts. Blocks are pooled. 0 when out of memory. At most
   32764 bytes. */
uint64_t emu_space_params_take(struct emu_space *space, uint32_t bytes);
void emu_space_params_give(struct emu_space *space, uint64_t address);
/* A block of the same pool that kernels may write, all 0. It goes back by emu_space_params_give. */
uint64_t emu_space_workspace_take(struct emu_space *space, uint32_t bytes);

/* Slow paths of the checks below: registered host memory. */
void *emu_space_host_read(const struct emu_space *space, uint64_t address, uint64_t bytes);
void *emu_space_host_write(const struct emu_space *space, uint64_t address, uint64_t bytes);

/* Whether a range lies outside the arena, all of it in registered host memory. */
static inline bool emu_space_is_host_row(const struct emu_space *space, uint64_t address, uint64_t bytes,
                                         bool write)
{
    return (address - space->base) >> EMU_GRANULE_SHIFT >= space->granules &&
           (write ? emu_space_host_write(space, address, bytes) : emu_space_host_read(space, address, bytes));
}

/* Host pointer for an access of `bytes` (1..32, a power of two) at a multiple of `bytes`, or NULL when any
   byte may not be accessed. The caller has checked the alignment, so that an access never leaves its granule.
 */
static inline void *emu_space_read(const struct emu_space *space, uint64_t address, unsigned bytes)
{
    const uint64_t index = (address - space->base) >> EMU_GRANULE_SHIFT;
    if (__builtin_expect(index < space->granules, 1)) {
        const unsigned valid = space->map[index] & EMU_GRANULE_VALID;
        return (address & (EMU_GRANULE_BYTES - 1)) + bytes <= valid ? (void *)(uintptr_t)address : NULL;
    }
    return emu_space_host_read(space, address, bytes);
}
static inline void *emu_space_write(const struct emu_space *space, uint64_t address, unsigned bytes)
{
    const uint64_t index = (address - space->base) >> EMU_GRANULE_SHIFT;
    if (__builtin_expect(index < space->granules, 1)) {
        const int valid = (int16_t)(space->map[index] & (EMU_GRANULE_VALID | EMU_GRANULE_READ_ONLY));
        return (int)(address & (EMU_GRANULE_BYTES - 1)) + (int)bytes <= valid ? (void *)(uintptr_t)address
                                                                              : NULL;
    }
    return emu_space_host_write(space, address, bytes);
}
/* The same for a range of any length and alignment (coalesced accesses, bulk copies). bytes 0 gives NULL. */
void *emu_space_range_read(const struct emu_space *space, uint64_t address, uint64_t bytes);
void *emu_space_range_write(const struct emu_space *space, uint64_t address, uint64_t bytes);

/* What a generic address names. */
enum emu_address_class {
    EMU_ADDRESS_GLOBAL,
    EMU_ADDRESS_CONST,
    EMU_ADDRESS_PARAM,
    EMU_ADDRESS_SHARED,
    EMU_ADDRESS_LOCAL
};
enum emu_address_class emu_space_classify(const struct emu_space *space, uint64_t address);

/* Says why [address, address + bytes) of device memory may not be read (or written): "out of bounds: …",
   "freed: …", "null address", … Lower case, no full stop; never fails. */
void emu_space_explain(const struct emu_space *space, uint64_t address, uint64_t bytes, bool write,
                       char *out_text, size_t size);

#endif
