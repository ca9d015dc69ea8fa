/* Accuses host/base/str.c: growing text, files, and the nearest name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_text_grows(void **state)
{
    (void)state;
    struct clab_str str = {0};
    char *empty = clab_str_take(&str);
    assert_string_equal(empty, "");
    free(empty);
    for (int i = 0; i < 1000; i++) {
        clab_str_addf(&str, "%d,", i % 10);
        assert_int_equal(strlen(str.text), str.bytes);
    }
    clab_str_add_bytes(&str, "abc", 2);
    clab_str_add_bytes(&str, NULL, 0);
    clab_str_add(&str, "!");
    assert_int_equal(str.bytes, 2003);
    char *text = clab_str_take(&str);
    assert_memory_equal(text, "0,1,2,3,", 8);
    assert_string_equal(text + 2000, "ab!");
    assert_null(str.text);
    free(text);
}

static void test_text_that_does_not_fit_fails_once_and_for_all(void **state)
{
    (void)state;
    struct clab_str str = {0};
    clab_str_add(&str, "kept");
    clab_str_add_bytes(&str, "x", SIZE_MAX);
    assert_true(str.failed);
    assert_string_equal(str.text, "kept");
    clab_str_add(&str, "more");
    clab_str_addf(&str, "%d", 1);
    assert_string_equal(str.text, "kept");
    assert_null(clab_str_take(&str));
    assert_false(str.failed);
    clab_str_free(&str);
}

/* A folder of its own for each test that writes. */
static int make_folder(void **state)
{
    char *folder = strdup("/tmp/clab-test-str-XXXXXX");
    *state = folder;
    return folder && mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char *folder = *state;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries)
        closedir(entries);
    int result = rmdir(folder);
    free(folder);
    return result;
}

static size_t count_files(const char *folder)
{
    size_t count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static void test_file_round_trip(void **state)
{
    char path[256];
    snprintf(path, sizeof path, "%s/image", (const char *)*state);
    static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 100000};
    static char data[100000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(clab_file_write_atomic(path, data, sizes[i]), 0);
        size_t bytes = 77;
        char *text = clab_file_read(path, sizeof data, &bytes);
        assert_non_null(text);
        assert_int_equal(bytes, sizes[i]);
        assert_memory_equal(text, data, bytes);
        assert_int_equal(text[bytes], 0);
        free(text);
        if (sizes[i] > 0) {
            errno = 0;
            assert_null(clab_file_read(path, sizes[i] - 1, &bytes));
            assert_int_equal(errno, EFBIG);
        }
    }
    assert_int_equal(count_files(*state), 1); /* no temporary file stays */
    struct stat status;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0666 & ~mask);
}

static void test_file_that_grows_while_stat_says_empty(void **state)
{
    (void)state;
    size_t bytes = 0;
    char *text = clab_file_read("/proc/self/status", 1 << 20, &bytes);
    assert_non_null(text);
    assert_true(bytes > 0);
    assert_non_null(strstr(text, "Name:"));
    free(text);
}

static void test_file_errors(void **state)
{
    char path[256];
    size_t bytes;
    assert_null(clab_file_read("/nonexistent/file", 10, &bytes));
    assert_int_equal(errno, ENOENT);
    assert_null(clab_file_read(*state, 10, &bytes));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(clab_file_write_atomic("/nonexistent/file", "x", 1), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(clab_file_write_atomic(*state, "x", 1), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(clab_file_write_atomic("/dev/full", "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    snprintf(path, sizeof path, "%s/", (const char *)*state);
    assert_int_equal(count_files(path), 0);
}

static void test_links_and_devices_are_written_through(void **state)
{
    char target[256], path[256];
    struct stat status;
    snprintf(target, sizeof target, "%s/target", (const char *)*state);
    snprintf(path, sizeof path, "%s/link", (const char *)*state);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(clab_file_write_atomic(path, "abc", 3), 0);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat(target, &status), 0);
    assert_int_equal(status.st_size, 3);
    assert_int_equal(clab_file_write_atomic("/dev/null", "abc", 3), 0);
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
}

static void test_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"atomic", "cg", "mapa", "reduce_mapa"};
    assert_ptr_equal(clab_nearest_name("atmoic", names, 4), names[0]);
    assert_ptr_equal(clab_nearest_name("Atomic", names, 4), names[0]);
    assert_ptr_equal(clab_nearest_name("atom", names, 1), NULL); /* two edits, and a third of four is one */
    assert_ptr_equal(clab_nearest_name("mapas", names, 4), names[2]);
    assert_ptr_equal(clab_nearest_name("reduce-mapa", names, 4), names[3]);
    assert_ptr_equal(clab_nearest_name("redmapa", names, 4), NULL);
    assert_ptr_equal(clab_nearest_name("xg", names, 4), NULL);
    assert_ptr_equal(clab_nearest_name("", names, 4), NULL);
    assert_ptr_equal(clab_nearest_name("atomic", names, 0), NULL);
    char longest[65 + 1], longer[66 + 1];
    memset(longest, 'a', sizeof longest);
    memset(longer, 'a', sizeof longer);
    longest[64] = longer[65] = 0;
    const char *const long_names[] = {longer, longest};
    assert_ptr_equal(clab_nearest_name(longest, long_names, 2), longest);
    assert_ptr_equal(clab_nearest_name(longer, long_names, 2), NULL); /* too long to compare */
}

static void test_paths_are_shown_from_the_current_folder(void **state)
{
    (void)state;
    char folder[4096], path[5000];
    assert_non_null(getcwd(folder, sizeof folder));
    snprintf(path, sizeof path, "%s/kernels/reduce.lua", folder);
    assert_string_equal(clab_path_shown(path), "kernels/reduce.lua");
    snprintf(path, sizeof path, "%sx/reduce.lua", folder); /* begins alike, lies elsewhere */
    assert_ptr_equal(clab_path_shown(path), path);
    assert_string_equal(clab_path_shown("kernels/reduce.lua"), "kernels/reduce.lua");
    assert_string_equal(clab_path_shown(""), "");
}

static void test_names_lose_their_escapes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a/b.cu", "a/b.cu"},
        {"\\316\\261.cu", "\316\261.cu"},
        {"a\\\"b\\\\c", "a\"b\\c"},
        {"\\0601", "01"},
        {"end\\", "end\\"},
        {"\\000x", "?x"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", cases[i][0]);
        clab_unescape(name);
        assert_string_equal(name, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_grows),
        cmocka_unit_test(test_text_that_does_not_fit_fails_once_and_for_all),
        cmocka_unit_test_setup_teardown(test_file_round_trip, make_folder, remove_folder),
        cmocka_unit_test(test_file_that_grows_while_stat_says_empty),
        cmocka_unit_test_setup_teardown(test_file_errors, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_links_and_devices_are_written_through, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_nearest_name),
        cmocka_unit_test(test_paths_are_shown_from_the_current_folder),
        cmocka_unit_test(test_names_lose_their_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
