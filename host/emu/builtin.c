/* What vprintf, __assertfail, malloc, free and cudaGraphSetConditional do (builtin.h). vprintf's text is
   print.c's.

   malloc takes device memory, as much as CU_LIMIT_MALLOC_HEAP_SIZE allows; what a kernel does not free stays
   until the last context goes. What it gives is aligned to 16 bytes on an H200 and to a page here; free of
   NULL is allowed, an allocation of 0 bytes has an address, and one beyond the heap is NULL (NVIDIA H200,
   driver 13.0, 2026-12-01). */
#include "emu/builtin.h"

#include <stdio.h>
#include <string.h>

#include "emu/condition.h"
#include "emu/print.h"
#include "emu/warp.h"

static bool builtin_vprintf(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                            const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result)
{
    int32_t count;
    const bool good = emu_print(warp, op, lane, arguments[0], arguments[1], &count);
    *out_result = (uint32_t)count;
    return good;
}

/* message, file, line, function, bytes of a character */
static bool builtin_assertfail(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                               const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result)
{
    char message[256], file[256], function[128];
    *out_result = 0;
    if (!emu_print_string(warp, op, lane, arguments[0], message, sizeof message) ||
        !emu_print_string(warp, op, lane, arguments[1], file, sizeof file) ||
        !emu_print_string(warp, op, lane, arguments[3], function, sizeof function)) {
        return false;
    }
    emu_fault_kind_set(warp, EMU_FAULT_ASSERT);
    emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0, "assertion `%s` failed in %s, %s:%u", message, function,
              file, (unsigned)arguments[2]);
    return false;
}

/* What an allocation takes of the heap: 16 bytes more, in units of 80 (90,670 allocations of one byte out of
   8 MiB; the distances of what follows 1, 3, 7, ... 255 and 1023 bytes: NVIDIA H200, driver 13.0,
   2026-12-01). UNVERIFIED: above 1 KiB, where it takes somewhat more: 2208 for 2047 (CUDA C++ Programming
   Guide 13.0, "Dynamic Global Memory Allocation"). */
static uint64_t heap_bytes(uint64_t bytes)
{
    return bytes > UINT64_MAX - 96 ? UINT64_MAX : (bytes + 16 + 79) / 80 * 80;
}

static bool builtin_malloc(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                           const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result)
{
    (void)op, (void)lane;
    const struct emu_run *run = warp->cta->run;
    struct emu_machine *machine = run->machine;
    const uint64_t bytes = arguments[0], limit = run->launch->heap_limit_bytes, takes = heap_bytes(bytes);
    *out_result = 0;
    atomic_store(&machine->heap_in_use, true);
    if (takes < bytes || (limit && takes > limit)) {
        return true;
    }
    const uint64_t before = atomic_fetch_add(&machine->heap_bytes, takes);
    if (!limit || before + takes <= limit) {
        *out_result = emu_memory_alloc(machine, bytes ? bytes : 1, EMU_MEMORY_HEAP);
    }
    if (!*out_result) {
        atomic_fetch_sub(&machine->heap_bytes, takes);
    }
    return true;
}

static bool builtin_free(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                         const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result)
{
    struct emu_machine *machine = warp->cta->run->machine;
    uint64_t base, bytes;
    enum emu_memory_kind kind;
    *out_result = 0;
    if (!arguments[0]) {
        return true;
    }
    if (emu_memory_find(machine, arguments[0], &base, &bytes, &kind) && kind == EMU_MEMORY_HEAP &&
        emu_memory_free(machine, arguments[0])) {
        atomic_fetch_sub(&machine->heap_bytes, heap_bytes(bytes));
        return true;
    }
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_ADDRESS);
    emu_fault(warp, op, lane, CLAB_FAULT, "generic", arguments[0],
              "free of an address that malloc did not return");
    return false;
}

/* handle, value */
static bool builtin_set_conditional(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                    const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result)
{
    *out_result = 0;
    if (emu_condition_set(warp->cta->run->machine, arguments[0], (uint32_t)arguments[1])) {
        return true;
    }
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_ADDRESS);
    emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
              "cudaGraphSetConditional: 0x%llx is not the handle of a running graph's condition",
              (unsigned long long)arguments[0]);
    return false;
}

static const struct emu_builtin builtins[] = {
    {"vprintf", 2, 1, builtin_vprintf},
    {"__assertfail", 5, 0, builtin_assertfail},
    {"malloc", 1, 1, builtin_malloc},
    {"free", 1, 0, builtin_free},
    {"cudaGraphSetConditional", 2, 0, builtin_set_conditional},
};

const struct emu_builtin *emu_builtin_get(const char *name)
{
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
        if (!strcmp(builtins[i].name, name)) {
            return &builtins[i];
        }
    }
    return NULL;
}
