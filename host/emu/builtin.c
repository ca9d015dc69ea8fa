/* What vprintf, __assertfail, malloc, free and cudaGraphSetConditional do (builtin.h). vprintf's text is
   print.c's.

   malloc takes device memory, as much as CU_LIMIT_MALLOC_HEAP_SIZE allows; what a kernel does not free stays
   until the last context goes. Each allocation stands alone, so that accesses past its end are found; on an
   H200 (driver 13.0, 2026-12-01) the heap is one piece, its addresses multiples of 16. There free of NULL
   does nothing, a second free ends the kernel, and free of an address inside other memory goes unseen (it
   ends the kernel here). */
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

/* The heap as an H200 divides it: units of 24 chunks of 80 bytes, each unit taking 2220 bytes. An allocation
   and its 16 bytes of bookkeeping are chunks in a row within one unit, or whole units: a power of two or
   three times one. Counted are 24ths of a unit. It follows how often one thread got 1 byte out of 8 MiB
   (90,670 times; 2 more here), 1000, 1024, 4096, 10,000, 100,000 bytes, 1, 3 and 7.6 MiB, and the distances
   of pairs of 0 to 500 bytes: driver 13.0, 2026-11-30 and 2026-12-01 (tests/api/data/ask_h200.txt).
   UNVERIFIED between those sizes, of heaps of other sizes, and of many threads. */
#define HEAP_UNIT_BYTES  UINT64_C(2220)
#define HEAP_UNIT_PARTS  UINT64_C(24)
#define HEAP_LARGE_BYTES (UINT64_C(1) << 20)
#define HEAP_MOST_BYTES  (UINT64_C(1) << 48) /* more than any heap */

static uint64_t heap_parts(uint64_t bytes)
{
    const uint64_t chunks = (bytes + 16 + 79) / 80;
    if (chunks <= HEAP_UNIT_PARTS) {
        return HEAP_UNIT_PARTS / (HEAP_UNIT_PARTS / chunks);
    }
    if (bytes >= HEAP_LARGE_BYTES) {
        return (bytes + 2047) / 2048 * 9 / 8 * HEAP_UNIT_PARTS;
    }
    const uint64_t units = (bytes + 2207) / 2208;
    uint64_t takes = 1;
    while (takes < units && takes * 3 / 2 < units) {
        takes *= 2;
    }
    return (takes < units ? takes * 3 / 2 : takes) * HEAP_UNIT_PARTS;
}

static bool builtin_malloc(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                           const uint64_t arguments[EMU_BUILTIN_MAX_ARGUMENTS], uint64_t *out_result)
{
    (void)op, (void)lane;
    const struct emu_run *run = warp->cta->run;
    struct emu_machine *machine = run->machine;
    const uint64_t bytes = arguments[0], takes = bytes < HEAP_MOST_BYTES ? heap_parts(bytes) : 0;
    const uint64_t limit = run->launch->heap_limit_bytes / HEAP_UNIT_BYTES * HEAP_UNIT_PARTS;
    *out_result = 0;
    atomic_store(&machine->heap_in_use, true);
    if (!takes || (run->launch->heap_limit_bytes && takes > limit)) {
        return true;
    }
    const uint64_t before = atomic_fetch_add(&machine->heap_parts, takes);
    if (!run->launch->heap_limit_bytes || before + takes <= limit) {
        *out_result = emu_memory_alloc(machine, bytes ? bytes : 1, EMU_MEMORY_HEAP); /* 0: an address too */
    }
    if (!*out_result) {
        atomic_fetch_sub(&machine->heap_parts, takes);
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
    const bool found = emu_memory_find(machine, arguments[0], &base, &bytes, &kind);
    if (found && kind == EMU_MEMORY_HEAP && emu_memory_free(machine, arguments[0])) {
        atomic_fetch_sub(&machine->heap_parts, heap_parts(bytes));
        return true;
    }
    emu_fault_kind_set(warp, found ? EMU_FAULT_ILLEGAL_ADDRESS : EMU_FAULT_LAUNCH_FAILED);
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
