/* Images as data: kinds told by content, architecture, entries, and every way to be damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compile/image.h"
#include "scratch.h"

static const char ptx[] = "// made by hand: .entry not_this\n"
                          "/* .version 1.0 */ .version 8.3\n"
                          ".target sm_90a, debug\n.address_size 64\n"
                          ".file 1 \"an .entry nor_this\"\n"
                          ".visible .entry first(.param .u64 p)\n{ ret; }\n"
                          ".func helper() { ret; }\n"
                          ".entry\t_Z6secondPf // comment\n() { ret; }\n";

static struct clab_image from_text(const char *text)
{
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(clab_image_from_bytes("t.ptx", text, strlen(text), &image, &error), CLAB_OK);
    return image;
}

static void test_ptx_is_skimmed(void **state)
{
    (void)state;
    struct clab_image image = from_text(ptx);
    char **names;
    size_t count;
    assert_int_equal(image.kind, CLAB_IMAGE_PTX);
    assert_int_equal(image.ptx_version, 83);
    assert_string_equal(image.arch, "sm_90a");
    assert_int_equal(clab_image_entries(&image, &names, &count, NULL), CLAB_OK);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "first");
    assert_string_equal(names[1], "_Z6secondPf");
    clab_image_names_free(names, count);
    clab_image_free(&image);
}

static void test_an_entry_is_chosen_or_those_that_exist_are_listed(void **state)
{
    (void)state;
    struct clab_image image = from_text(ptx);
    struct clab_error error = {0};
    assert_int_equal(clab_image_choose_entry(&image, "first", &error), CLAB_OK);
    assert_string_equal(image.lowered, "first");
    assert_int_equal(clab_image_choose_entry(&image, "third", &error), CLAB_NOT_FOUND);
    assert_string_equal(error.message, "t.ptx has no entry 'third'; it has: first, _Z6secondPf");
    assert_int_equal(clab_image_choose_entry(&image, NULL, &error), CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "2 entries"));
    clab_image_free(&image);
    image = from_text(".version 8.0\n.target sm_90\n.entry only() {}\n");
    assert_int_equal(clab_image_choose_entry(&image, NULL, &error), CLAB_OK);
    assert_string_equal(image.lowered, "only");
    clab_image_free(&image);
    image = from_text(".version 8.0\n.target sm_90\n");
    assert_int_equal(clab_image_choose_entry(&image, "x", &error), CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "no entry at all"));
    clab_image_free(&image);
    clab_error_clear(&error);
}

static void test_a_cubin_says_its_chip_and_entries(void **state)
{
    (void)state;
    static const char *const names[] = {"reduce", "-device_function", "_Z1kPf"};
    struct clab_error error = {0};
    struct clab_image image;
    char **found;
    size_t bytes, count;
    char *data = fake_cubin(103, 'f', names, 3, &bytes);
    assert_int_equal(clab_image_from_bytes("c", data, bytes, &image, &error), CLAB_OK);
    assert_int_equal(image.kind, CLAB_IMAGE_CUBIN);
    assert_string_equal(image.arch, "sm_103f");
    assert_int_equal(clab_image_entries(&image, &found, &count, &error), CLAB_OK);
    assert_int_equal(count, 2);
    assert_string_equal(found[0], "reduce");
    assert_string_equal(found[1], "_Z1kPf");
    clab_image_names_free(found, count);
    clab_image_free(&image);
    free(data);
    data = fake_cubin(90, 0, names, 1, &bytes);
    assert_int_equal(clab_image_from_bytes("c", data, bytes, &image, &error), CLAB_OK);
    assert_string_equal(image.arch, "sm_90");
    clab_image_free(&image);
    free(data);
}

static void test_a_cubin_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"reduce"};
    size_t bytes;
    char *data = fake_cubin(90, 'a', names, 1, &bytes);
    for (size_t length = 0; length < bytes; length++) {
        struct clab_error error = {0};
        struct clab_image image;
        char *cut = malloc(length + 1); /* its own block, so that a read past the end is caught */
        memcpy(cut, data, length);
        assert_int_equal(clab_image_from_bytes("c", cut, length, &image, &error), CLAB_LOAD);
        if (length >= 4)
            assert_non_null(strstr(error.message, "truncated"));
        clab_error_clear(&error);
        free(cut);
    }
    free(data);
}

static void test_a_cubin_with_any_byte_changed_does_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = {"reduce", "other"};
    size_t bytes;
    char *data = fake_cubin(90, 'a', names, 2, &bytes);
    for (size_t at = 0; at < bytes; at++)
        for (int value = 0; value < 256; value += 51) {
            struct clab_error error = {0};
            struct clab_image image;
            char kept = data[at];
            data[at] = (char)value;
            if (clab_image_from_bytes("c", data, bytes, &image, &error) == CLAB_OK) {
                char **found;
                size_t count;
                if (clab_image_entries(&image, &found, &count, &error) == CLAB_OK)
                    clab_image_names_free(found, count);
                clab_image_free(&image);
            }
            clab_error_clear(&error);
            data[at] = kept;
        }
    free(data);
}

static void test_what_is_no_image(void **state)
{
    (void)state;
    struct clab_error error = {0};
    struct clab_image image;
    assert_int_equal(clab_image_read("/nonexistent/a.ptx", &image, &error), CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "No such file"));
    assert_int_equal(clab_image_read("/proc/self/exe", &image, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "not a cubin"));
    assert_int_equal(clab_image_read("/", &image, &error), CLAB_NOT_FOUND);
    assert_int_equal(clab_image_from_bytes("e", "", 0, &image, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "empty"));
    assert_int_equal(clab_image_from_bytes("t", "int main;", 9, &image, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "neither"));
    clab_error_clear(&error);
}

static void test_a_fatbin_is_known_by_its_magic(void **state)
{
    (void)state;
    struct clab_error error = {0};
    struct clab_image image;
    assert_int_equal(clab_image_from_bytes("f", "\x50\xed\x55\xba\1\0\x10\0", 8, &image, &error), CLAB_OK);
    assert_int_equal(image.kind, CLAB_IMAGE_FATBIN);
    assert_int_equal(clab_image_choose_entry(&image, NULL, &error), CLAB_USAGE);
    assert_int_equal(clab_image_choose_entry(&image, "k", &error), CLAB_OK);
    assert_string_equal(image.lowered, "k");
    clab_image_free(&image);
    clab_error_clear(&error);
}

static void test_a_copy_is_deep(void **state)
{
    (void)state;
    struct clab_image image = from_text(ptx), copy;
    image.log = strdup("said");
    assert_int_equal(clab_image_copy(&copy, &image, NULL), CLAB_OK);
    clab_image_free(&image);
    assert_string_equal(copy.data, ptx);
    assert_string_equal(copy.log, "said");
    clab_image_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx_is_skimmed),
        cmocka_unit_test(test_an_entry_is_chosen_or_those_that_exist_are_listed),
        cmocka_unit_test(test_a_cubin_says_its_chip_and_entries),
        cmocka_unit_test(test_a_cubin_cut_anywhere_is_refused),
        cmocka_unit_test(test_a_cubin_with_any_byte_changed_does_no_harm),
        cmocka_unit_test(test_what_is_no_image),
        cmocka_unit_test(test_a_fatbin_is_known_by_its_magic),
        cmocka_unit_test(test_a_copy_is_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
