/* The device's memory without a kernel: allocation, release, limits, registered host memory, checks and their
 * words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/core.h"
#include "emu/machine.h"
#include "emu/mbarrier.h"
#include "emu/space.h"
#include "emu/tensor_map.h"
#include "emu/tma.h"

static struct emu_machine *machine;

static int set_up(void **state)
{
    (void)state;
    struct clab_error error = {0};
    return emu_machine_new(emu_model_get("sm_90"), &machine, &error) != CLAB_OK;
}

static int tear_down(void **state)
{
    (void)state;
    emu_machine_free(machine);
    return 0;
}

static uint64_t free_bytes(void)
{
    uint64_t free, total;
    emu_memory_info(machine, &free, &total);
    assert_true(free <= total);
    return free;
}

static void explain_is(uint64_t address, uint64_t bytes, bool write, const char *wanted)
{
    char text[256];
    emu_space_explain(machine->space, address, bytes, write, text, sizeof text);
    if (!strstr(text, wanted)) {
        fail_msg("'%s', wanted '%s'", text, wanted);
    }
}

static void allocations(void **state)
{
    (void)state;
    const uint64_t before = free_bytes();
    const uint64_t a = emu_memory_alloc(machine, 1000, EMU_MEMORY_DEVICE),
                   b = emu_memory_alloc(machine, 1, EMU_MEMORY_DEVICE);
    assert_true(a && b && a % 512 == 0 && b % 512 == 0);
    assert_int_equal(free_bytes(), before - 1001);
    uint64_t base, bytes;
    enum emu_memory_kind kind;
    assert_true(emu_memory_find(machine, a + 999, &base, &bytes, &kind));
    assert_true(base == a && bytes == 1000 && kind == EMU_MEMORY_DEVICE);
    assert_false(emu_memory_find(machine, a + 1000, &base, &bytes, &kind));
    assert_non_null(emu_memory_host(machine, a + 1, 999));
    assert_null(emu_memory_host(machine, a + 1, 1000));
    assert_false(emu_memory_free(machine, a + 512));
    assert_true(emu_memory_free(machine, a));
    assert_false(emu_memory_free(machine, a));
    assert_true(emu_memory_free(machine, b));
    assert_int_equal(free_bytes(), before);
    assert_int_equal(emu_memory_alloc(machine, 0, EMU_MEMORY_DEVICE), 0);
    assert_int_equal(emu_memory_alloc(machine, UINT64_MAX, EMU_MEMORY_DEVICE), 0);
    assert_int_equal(emu_memory_alloc(machine, before + 1, EMU_MEMORY_DEVICE), 0);
}

/* The exact end, the granule's middle, read-only and freed memory. */
static void checks(void **state)
{
    (void)state;
    const struct emu_space *space = machine->space;
    const uint64_t a = emu_memory_alloc(machine, 1000, EMU_MEMORY_DEVICE);
    const uint64_t c = emu_memory_alloc(machine, 64, EMU_MEMORY_CONST);
    assert_ptr_equal(emu_space_read(space, a + 996, 4), (void *)(uintptr_t)(a + 996));
    assert_null(emu_space_read(space, a + 1000, 4));
    assert_non_null(emu_space_write(space, a + 992, 8));
    assert_null(emu_space_write(space, a + 1000, 1));
    assert_non_null(emu_space_range_read(space, a, 1000));
    assert_null(emu_space_range_read(space, a, 1001));
    assert_null(emu_space_range_read(space, a, 0));
    assert_null(emu_space_range_write(space, a - 1, 2));
    assert_non_null(emu_space_read(space, c, 16));
    assert_null(emu_space_write(space, c, 1));
    assert_null(emu_space_range_write(space, c, 64));
    assert_int_equal(emu_space_classify(space, c), EMU_ADDRESS_CONST);
    assert_int_equal(emu_space_classify(space, space->shared_window + 5), EMU_ADDRESS_SHARED);
    assert_int_equal(emu_space_classify(space, space->local_window + 5), EMU_ADDRESS_LOCAL);
    explain_is(0, 4, false, "null address");
    explain_is(a + 998, 4, false, "out of bounds: 4 bytes at offset 998 of the 1000 bytes allocated");
    explain_is(a + 1002, 4, false, "out of bounds: 2 bytes beyond the 1000 bytes allocated");
    explain_is(c, 4, true, "read-only: constant memory");
    explain_is(UINT64_MAX - 3, 4, false, "not an address of device memory");
    emu_memory_free(machine, a);
    assert_null(emu_space_read(space, a, 4));
    explain_is(a + 4, 4, false, "freed: offset 4 of the 1000 bytes that were allocated");
    emu_memory_free(machine, c);
}

/* Freed memory is used again only when placement has gone round, and all of it comes back. */
static void reuse(void **state)
{
    (void)state;
    const uint64_t before = free_bytes();
    const uint64_t size = (before / 4) & ~UINT64_C(4095);
    uint64_t last = 0;
    for (int i = 0; i < 40; i++) {
        const uint64_t a = emu_memory_alloc(machine, size, EMU_MEMORY_DEVICE);
        assert_true(a != 0 && a != last);
        last = a;
        assert_true(emu_memory_free(machine, a));
    }
    assert_int_equal(free_bytes(), before);
    uint64_t small[200];
    for (int i = 0; i < 200; i++) {
        small[i] = emu_memory_alloc(machine, (uint64_t)i + 1, EMU_MEMORY_DEVICE);
        assert_true(small[i] != 0);
    }
    for (int i = 0; i < 200; i++) {
        assert_true(emu_memory_free(machine, small[(i * 7) % 200]));
    }
    assert_int_equal(free_bytes(), before);
}

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %llu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A large allocation is as good as a small one, and costs little memory of the host while nobody uses it. */
static void large(void **state)
{
    (void)state;
    enum { ROUNDS = 150 };
    const uint64_t bytes = (UINT64_C(1) << 30) + 700, before = resident_bytes();
    uint64_t last = 0, small = 0;
    for (unsigned i = 0; i < ROUNDS; i++) { /* more than once round the arena of 282 GB */
        const uint64_t a = emu_memory_alloc(machine, bytes, EMU_MEMORY_DEVICE);
        assert_true(a != 0);
        for (uint64_t at = 0; at < bytes - 4; at += UINT64_C(64) << 20) {
            assert_non_null(emu_space_range_write(machine->space, a + at, 4));
        }
        assert_non_null(emu_space_range_write(machine->space, a + bytes - 4, 4));
        assert_null(emu_space_range_read(machine->space, a + bytes - 3, 4));
        assert_null(emu_space_range_read(machine->space, a - 1, 1));
        if (i == 0) {
            assert_non_null(emu_space_range_read(machine->space, a, bytes));
            assert_null(emu_space_range_read(machine->space, a, bytes + 1));
            small = emu_memory_alloc(machine, 100, EMU_MEMORY_DEVICE);
            *(uint32_t *)(uintptr_t)small = 7;
        }
        assert_true(emu_memory_free(machine, a));
        for (uint64_t at = 0; at < bytes; at += UINT64_C(200) << 20) {
            assert_null(emu_space_range_read(machine->space, a + at, 1));
        }
        explain_is(a + bytes / 2, 4, false, "freed: offset");
        last = i == 0 ? a : last;
    }
    explain_is(last + bytes / 2, 4, false, "freed: the allocation here was released before");
    explain_is(last, 4, false, "freed: the allocation here was released before");
    assert_non_null(emu_space_range_write(machine->space, small, 100));
    assert_null(emu_space_range_write(machine->space, small, 101));
    assert_int_equal(*(uint32_t *)(uintptr_t)small, 7);
    assert_true(emu_memory_free(machine, small));
    assert_true(resident_bytes() < before + (UINT64_C(64) << 20));
}

/* The same in many small steps: what is behind the rover goes back to the host. */
static void many_small(void **state)
{
    (void)state;
    const uint64_t before = resident_bytes();
    uint64_t kept[2] = {0}, first = 0;
    for (unsigned i = 0; i < 100000; i++) { /* 13 GB of addresses; two allocations are live at a time */
        const uint64_t a = emu_memory_alloc(machine, 131072 - i % 512, EMU_MEMORY_DEVICE);
        assert_true(a != 0);
        assert_non_null(emu_space_range_write(machine->space, a, 131072 - i % 512));
        first = first ? first : a;
        if (kept[i % 2]) {
            assert_non_null(emu_space_range_write(machine->space, kept[i % 2], 130000));
            assert_true(emu_memory_free(machine, kept[i % 2]));
            assert_null(emu_space_range_write(machine->space, kept[i % 2], 1));
        }
        kept[i % 2] = a;
    }
    explain_is(first, 4, false, "freed: the allocation here was released before");
    assert_true(emu_memory_free(machine, kept[0]) && emu_memory_free(machine, kept[1]));
    assert_true(resident_bytes() < before + (UINT64_C(16) << 20));
}

static void host_memory(void **state)
{
    (void)state;
    const struct emu_space *space = machine->space;
    const long page = sysconf(_SC_PAGESIZE);
    unsigned char *pages =
        mmap(NULL, 4 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_false(emu_space_host_visible(space));
    assert_true(emu_memory_register(machine, pages + 8, 100, false));
    assert_true(emu_space_host_visible(space));
    const uint64_t at = (uint64_t)(uintptr_t)pages + 8;
    assert_ptr_equal(emu_space_read(space, at + 96, 4), pages + 104);
    assert_null(emu_space_read(space, at + 100, 4));
    assert_null(emu_space_read(space, at - 4, 4));
    assert_non_null(emu_space_range_write(space, at, 100));
    explain_is(at + 98, 4, false,
               "out of bounds: 4 bytes at offset 98 of the 100 bytes of host memory registered");
    assert_false(emu_memory_register(machine, pages + 50, 4, false)); /* overlaps */
    assert_false(emu_memory_unregister(machine, pages));
    assert_true(emu_memory_unregister(machine, pages + 8));
    assert_null(emu_space_read(space, at, 4));
    /* Not mapped, and mapped read-only. */
    munmap(pages + page, (size_t)page);
    assert_false(emu_memory_register(machine, pages, 2 * (size_t)page, false));
    assert_int_equal(mprotect(pages, (size_t)page, PROT_READ), 0);
    assert_false(emu_memory_register(machine, pages, (size_t)page, false));
    assert_true(emu_memory_register(machine, pages, (size_t)page, true));
    assert_non_null(emu_space_read(space, (uint64_t)(uintptr_t)pages, 4));
    assert_null(emu_space_write(space, (uint64_t)(uintptr_t)pages, 4));
    explain_is((uint64_t)(uintptr_t)pages, 4, true, "read-only: registered host memory");
    assert_true(emu_memory_unregister(machine, pages));
    munmap(pages, (size_t)page);
    munmap(pages + 2 * page, 2 * (size_t)page);
    /* Device memory cannot be registered. */
    const uint64_t a = emu_memory_alloc(machine, 64, EMU_MEMORY_DEVICE);
    assert_false(emu_memory_register(machine, (void *)(uintptr_t)a, 64, false));
    emu_memory_free(machine, a);
}

static void parameter_blocks(void **state)
{
    (void)state;
    struct emu_space *space = machine->space;
    const uint64_t before = free_bytes();
    const uint64_t a = emu_space_params_take(space, 40), b = emu_space_params_take(space, 32764);
    assert_true(a && b && a != b);
    assert_int_equal(free_bytes(), before);
    assert_non_null(emu_space_read(space, a + 36, 4));
    assert_null(emu_space_read(space, a + 40, 4));
    assert_null(emu_space_write(space, a, 4));
    assert_int_equal(emu_space_classify(space, b), EMU_ADDRESS_PARAM);
    assert_false(emu_memory_free(machine, a));
    emu_space_params_give(space, a);
    assert_null(emu_space_read(space, a, 4));
    assert_int_equal(emu_space_params_take(space, 8), a);
    emu_space_params_give(space, a);
    emu_space_params_give(space, b);
    assert_int_equal(emu_space_params_take(space, 32769), 0);
}

/* PTX ISA 9.0, "Swizzling Modes": where the bytes of one pattern go. */
static void swizzles(void **state)
{
    (void)state;
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_NONE, 0x3f0), 0x3f0);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_32B, 0x80), 0x90);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_32B, 0x100), 0x100);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_64B, 0x180), 0x1b0);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_128B, 0x380), 0x3f0);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_128B, 0x3f0), 0x380);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_128B_ATOM_32B, 0x180), 0x1e0);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_128B_ATOM_32B_FLIP_8B, 0x80), 0xa8);
    assert_int_equal(emu_tensor_swizzle(EMU_SWIZZLE_128B_ATOM_64B, 0x80), 0xc0);
    /* Each is its own inverse. */
    for (unsigned mode = 0; mode < EMU_SWIZZLE_COUNT; mode++) {
        for (uint32_t address = 0; address < 2048; address++) {
            const uint32_t once = emu_tensor_swizzle((enum emu_tensor_swizzle)mode, address);
            assert_int_equal(emu_tensor_swizzle((enum emu_tensor_swizzle)mode, once), address);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations),
        cmocka_unit_test(checks),
        cmocka_unit_test(reuse),
        cmocka_unit_test(large),
        cmocka_unit_test(many_small),
        cmocka_unit_test(host_memory),
        cmocka_unit_test(parameter_blocks),
        cmocka_unit_test(swizzles),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
