/* What cubins leave open: cubins of nvJitLink's, whole, with a name changed, without symbols, and cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "compile/compile.h"
#include "inspect/complete.h"

static struct clab_toolkit toolkit;

/* nvJitLink 13.0 loses some kB for each driver call that it puts in place of an instruction; elsewhere it
   runs in a worker. LeakSanitizer asks for this by name. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libnvJitLink";
}

#define HEAD ".version 8.6\n.target sm_90\n.address_size 64\n"

static const char plain[] = HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %a;\n"
                                 "ld.param.u64 %a, [p];\nst.global.b32 [%a], 1;\nret;\n}\n";
static const char prints[] =
    HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n.visible .entry k()\n{\n"
         "{ .param .b64 f; .param .b64 v; .param .b32 r;\nst.param.b64 [f], 0;\nst.param.b64 [v], 0;\n"
         "call.uni (r), vprintf, (f, v); }\nret;\n}\n";
#define COPIES                                                                                               \
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %a;\n.reg .b16 %m;\n.shared .align 16 .b8 s[16];\n" \
         ".shared .b64 b;\nld.param.u64 %a, [p];\nmov.b16 %m, 3;\n"
#define COPY      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define MULTICAST COPY ".multicast::cluster [s], [%a], 16, [b], %m;\n"
#define UNICAST   COPY " [s], [%a], 16, [b];\n"
static const char multicasts[] = COPIES MULTICAST "ret;\n}\n";
static const char both[] = COPIES MULTICAST UNICAST "ret;\n}\n";
static const char both_turned[] = COPIES UNICAST MULTICAST "ret;\n}\n";

static struct clab_image assemble(const char *ptx, const char *arch)
{
    const struct clab_compile_request request = {
        .source_path = "k.ptx", .arch = arch, .want = CLAB_IMAGE_CUBIN, .entry = "k"};
    struct clab_image image;
    struct clab_error error = {0};
    if (clab_link_ptx(&toolkit, &request, ptx, strlen(ptx), &image, &error) != CLAB_OK)
        fail_msg("%s: %s\n%s", arch, error.message, error.log != NULL ? error.log : "");
    return image;
}

static void check(const struct clab_image *cubin, enum clab_complete wanted, const char *names)
{
    struct clab_str got = {0};
    assert_int_equal(clab_cubin_complete(cubin, &got), wanted);
    if (names == NULL)
        assert_true(got.text == NULL || got.text[0] == '\0');
    else if (got.text == NULL || strstr(got.text, names) == NULL)
        fail_msg("'%s' is not among '%s'", names, got.text != NULL ? got.text : "");
    clab_str_free(&got);
}

static void nothing_is_open(void **state)
{
    (void)state;
    struct clab_image image = assemble(plain, "sm_90");
    check(&image, CLAB_COMPLETE, NULL);
    clab_image_free(&image);
}

static void what_every_driver_has_is_not_open(void **state)
{
    (void)state;
    struct clab_image image = assemble(prints, "sm_90");
    check(&image, CLAB_COMPLETE, NULL);
    clab_image_free(&image);
}

static void driver_calls_are_named(void **state)
{
    (void)state;
    struct clab_image image = assemble(multicasts, "sm_120");
    check(&image, CLAB_COMPLETE_DRIVER, "__cuda_syscall_cp_async_bulk_multicast");
    clab_image_free(&image);
    /* The silent twin: an instruction there. */
    image = assemble(multicasts, "sm_90");
    check(&image, CLAB_COMPLETE, NULL);
    clab_image_free(&image);
}

/* In one order, whatever the code's: equal causes are told once. */
static void names_are_sorted(void **state)
{
    (void)state;
    static const char wanted[] =
        "__cuda_syscall_cp_async_bulk_multicast, __cuda_syscall_cp_async_bulk_unicast";
    struct clab_image image = assemble(both, "sm_120");
    check(&image, CLAB_COMPLETE_DRIVER, wanted);
    clab_image_free(&image);
    image = assemble(both_turned, "sm_120");
    check(&image, CLAB_COMPLETE_DRIVER, wanted);
    clab_image_free(&image);
}

/* Every `text` becomes `by`, which is as long. */
static void replace(struct clab_image *image, const char *text, const char *by)
{
    const size_t bytes = strlen(text);
    for (size_t i = 0; i + bytes <= image->bytes; i++)
        if (memcmp(image->data + i, text, bytes) == 0)
            memcpy(image->data + i, by, bytes);
}

static void a_name_that_nobody_has_is_open(void **state)
{
    (void)state;
    struct clab_image image = assemble(multicasts, "sm_120");
    replace(&image, "__cuda_syscall_", "__nobody_s_one_");
    check(&image, CLAB_INCOMPLETE, "__nobody_s_one_cp_async_bulk_multicast");
    clab_image_free(&image);
}

static void no_symbols_no_open_ones(void **state)
{
    (void)state;
    struct clab_image image = assemble(multicasts, "sm_120");
    Elf64_Ehdr elf;
    memcpy(&elf, image.data, sizeof elf);
    for (size_t i = 0; i < elf.e_shnum; i++) {
        Elf64_Shdr section;
        char *at = image.data + elf.e_shoff + i * sizeof section;
        memcpy(&section, at, sizeof section);
        if (section.sh_type == SHT_SYMTAB)
            section.sh_type = SHT_NOTE;
        memcpy(at, &section, sizeof section);
    }
    check(&image, CLAB_COMPLETE, NULL);
    clab_image_free(&image);
}

/* Whatever the answer, nothing behind the end is read: the bytes are a heap block of just that size. */
static void cut_anywhere(void **state)
{
    (void)state;
    struct clab_image image = assemble(multicasts, "sm_120");
    for (size_t cut = 1; cut < image.bytes; cut += 13) {
        struct clab_image part = {.kind = CLAB_IMAGE_CUBIN, .data = malloc(cut), .bytes = cut};
        struct clab_str names = {0};
        assert_non_null(part.data);
        memcpy(part.data, image.data, cut);
        (void)clab_cubin_complete(&part, &names);
        clab_str_free(&names);
        free(part.data);
    }
    clab_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_open),         cmocka_unit_test(what_every_driver_has_is_not_open),
        cmocka_unit_test(driver_calls_are_named),  cmocka_unit_test(a_name_that_nobody_has_is_open),
        cmocka_unit_test(no_symbols_no_open_ones), cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(names_are_sorted),
    };
    clab_toolkit_find(&toolkit);
    if (!toolkit.parts[CLAB_PART_NVJITLINK].found) {
        puts("skipped: nvJitLink is not here");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
