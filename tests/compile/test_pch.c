/* Precompiled headers: which sources share one, and those that are kept: hits, edits, damage, other toolkits,
   a limit, a system that fixes no addresses. This program is its own compile worker. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "compile/compile.h"
#include "compile/pch.h"
#include "scratch.h"

#define HEADERS "#include <cooperative_groups.h>\n#include \"value.h\"\n"
#define KERNEL                                                                                       \
    "extern \"C\" __global__ void k(int *p) { cooperative_groups::this_cluster().sync(); *p = %d + " \
    "VALUE; }\n"

static const struct clab_toolkit *toolkit;

static int set_up(void **state)
{
    (void)state;
    scratch_make();
    scratch_write("value.h", "#define VALUE 1\n");
    return 0;
}

/* --- keys */

static void key_of(const char *text, const char *arch, const char *define, const struct clab_toolkit *kit,
                   char key[65])
{
    const char *const defines[] = {define};
    const struct clab_compile_request request = {.source_path = scratch_path("k.cu"),
                                                 .source_text = text,
                                                 .arch = arch,
                                                 .defines = defines,
                                                 .define_count = define != NULL ? 1 : 0};
    clab_pch_key(kit, &request, key);
}

static void test_what_shares_a_key(void **state)
{
    (void)state;
    char key[65], other[65];
    key_of(HEADERS "int a;\n", "sm_90", NULL, toolkit, key);
    assert_int_equal(strlen(key), 64);
    static const char *const same[] = {HEADERS "int b; // another body\n",
                                       "/* a comment\n   of two lines */\n\n// and one\n#include "
                                       "<cooperative_groups.h>\n/* */ #include \"value.h\"\n"
                                       "int c;\n#include <cuda/barrier>\n"};
    for (size_t i = 0; i < 2; i++) {
        key_of(same[i], "sm_90", NULL, toolkit, other);
        assert_string_equal(key, other);
    }
    static const char *const differ[] = {
        "#define N 1\n" HEADERS "int a;\n", "#include <cooperative_groups.h>\nint a;\n#include \"value.h\"\n",
        "#define LONG 1 \\\n 2\n" HEADERS "int a;\n", HEADERS "#pragma once\nint a;\n"};
    for (size_t i = 0; i < sizeof differ / sizeof differ[0]; i++) {
        key_of(differ[i], "sm_90", NULL, toolkit, other);
        assert_int_equal(strlen(other), 64);
        assert_string_not_equal(key, other);
    }
    key_of(HEADERS, "sm_90a", NULL, toolkit, other);
    assert_string_not_equal(key, other);
    key_of(HEADERS, "sm_90", "N=1", toolkit, other);
    assert_string_not_equal(key, other);
    struct clab_toolkit *newer = malloc(sizeof *newer);
    *newer = *toolkit;
    snprintf(newer->parts[CLAB_PART_NVRTC].path, sizeof newer->parts[0].path, "%s",
             scratch_path("libnvrtc.so.13"));
    scratch_write("libnvrtc.so.13", "another");
    key_of(HEADERS, "sm_90", NULL, newer, other);
    free(newer);
    assert_string_not_equal(key, other);
    scratch_write("value.h", "#define VALUE 2\n");
    key_of(HEADERS, "sm_90", NULL, toolkit, other);
    assert_string_not_equal(key, other);
}

/* Nothing that takes long is included, or only behind the first declaration; or what it depends on cannot be
   known. */
static void test_what_has_no_key(void **state)
{
    (void)state;
    static const char *const texts[] = {"#include \"value.h\"\nint a;\n",
                                        "int a;\n",
                                        "",
                                        "int a;\n#include <cooperative_groups.h>\n",
                                        "// #include <cooperative_groups.h>\nint a;\n",
                                        "#define H <cuda/barrier>\n#include H\n"};
    char key[65];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        key_of(texts[i], "sm_90", NULL, toolkit, key);
        assert_string_equal(key, "");
    }
    /* The twin: by way of a header of the user's. */
    scratch_write("value.h", "#include <cuda/barrier>\n");
    key_of(texts[0], "sm_90", NULL, toolkit, key);
    assert_int_equal(strlen(key), 64);
}

static void test_a_key_is_seen_from_the_next_run_on(void **state)
{
    (void)state;
    const char *dir = scratch_path("cache/pch");
    const time_t now = time(NULL);
    assert_false(clab_pch_seen(dir, "abc", now));
    assert_false(clab_pch_seen(dir, "abc", now)); /* the same run */
    assert_true(clab_pch_seen(dir, "abc", now + 2));
    assert_false(clab_pch_seen(dir, "abcd", now + 2));
    assert_false(clab_pch_seen("", "abc", now + 2));
    assert_false(clab_pch_seen("/proc/nothing", "abc", now + 2));
}

/* --- kept files */

/* Files in CACHE/pch that end so; the last one's path. */
static int count_files(const char *ending, char path[4200])
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", scratch_path("cache/pch"));
    DIR *list = opendir(dir);
    struct dirent *item;
    int count = 0;
    while (list != NULL && (item = readdir(list)) != NULL) {
        const size_t length = strlen(item->d_name), wanted = strlen(ending);
        if (length <= wanted || strcmp(item->d_name + length - wanted, ending) != 0)
            continue;
        count++;
        snprintf(path, 4200, "%s/%s", dir, item->d_name);
    }
    if (list != NULL)
        closedir(list);
    return count;
}

/* Compiles `count` sources in one run, with bodies of their own; checks each against a compile without. */
static void compile_run(int first, int count)
{
    struct clab_compiler *compiler = scratch_compiler(1, 0);
    struct clab_compile_request requests[4] = {0};
    struct clab_compile_result results[4];
    char texts[4][512];
    for (int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], HEADERS KERNEL, first + i);
        requests[i] = (struct clab_compile_request){.source_path = scratch_path("k.cu"),
                                                    .source_text = texts[i],
                                                    .arch = "sm_90",
                                                    .want = CLAB_IMAGE_CUBIN,
                                                    .entry = "k"};
    }
    clab_compile_all(compiler, requests, (size_t)count, results, NULL, NULL);
    for (int i = 0; i < count; i++) {
        struct clab_image plain;
        struct clab_error error = {0};
        if (results[i].status != CLAB_OK)
            fail_msg("%s\n%s", results[i].error.message, results[i].error.log);
        assert_false(results[i].image.cached);
        assert_null(results[i].image.log);
        if (i == count - 1) {
            assert_int_equal(clab_nvrtc_compile(toolkit, &requests[i], &plain, &error), CLAB_OK);
            assert_string_equal(results[i].image.sha256, plain.sha256);
            clab_image_free(&plain);
        }
        clab_compile_result_free(&results[i]);
    }
    clab_compiler_free(compiler);
}

/* As if it had been in an earlier second: of marks and of sums, which tell the last use. */
static void age(const char *path)
{
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static bool used_now(const char *sum)
{
    struct stat info;
    assert_int_equal(stat(sum, &info), 0);
    return info.st_mtim.tv_sec > 1000000000;
}

/* Makes a .sum as an earlier run of the system would have left it. */
static void other_boot(const char *sum)
{
    size_t bytes;
    char *text = clab_file_read(sum, 4096, &bytes);
    assert_non_null(text);
    memset(strrchr(text, ' ') + 1, '0', 36);
    assert_int_equal(clab_file_write_quick(sum, text, bytes), 0);
    free(text);
}

static bool is_other_boot(const char *sum)
{
    size_t bytes;
    char *text = clab_file_read(sum, 4096, &bytes);
    const bool is = text != NULL && strstr(text, "000000000000000000000000000000000000") != NULL;
    free(text);
    return is;
}

static bool can_fix_addresses(void)
{
    pid_t child = fork();
    if (child == 0) {
        const int now = personality(0xffffffff);
        _exit(now != -1 && personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

static void test_kept_from_run_to_run(void **state)
{
    (void)state;
    char path[4200] = "", sum[4200] = "", mark[4200] = "";
    if (!can_fix_addresses())
        skip();
    compile_run(1, 1);
    assert_int_equal(count_files(".seen", mark), 1);
    assert_int_equal(count_files(".pch", path), 0); /* nobody has asked before */
    age(mark);
    compile_run(2, 1);
    assert_int_equal(count_files(".pch", path), 1);
    assert_int_equal(count_files(".sum", sum), 1);
    assert_int_equal(count_files(".part", mark), 0);
    age(sum);
    compile_run(3, 1);
    assert_true(used_now(sum));
    /* An edited header of the user's: the file is for another text. */
    age(sum);
    scratch_write("value.h", "#define VALUE 2\n");
    compile_run(3, 1);
    assert_false(used_now(sum));
    scratch_write("value.h", "#define VALUE 1\n");
    compile_run(4, 1);
    assert_true(used_now(sum));
    /* Damage. */
    count_files(".sum", sum);
    age(sum);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "damage", 6, 30000000), 6);
    close(fd);
    compile_run(6, 1); /* removed, and made anew */
    assert_int_equal(count_files(".pch", path), 1);
    assert_true(used_now(sum));
    /* Damage that does not show in the file's time, as after a crash: the system was started anew since. */
    struct stat before;
    assert_int_equal(stat(path, &before), 0);
    fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "damage", 6, 30000000), 6);
    close(fd);
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    other_boot(sum);
    compile_run(10, 1);
    struct stat after;
    assert_int_equal(stat(path, &after), 0);
    assert_int_not_equal(after.st_ino == before.st_ino && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec, 1);
    /* The twin: whole, it is used on and has the new boot's mark. */
    other_boot(sum);
    compile_run(11, 1);
    assert_int_equal(stat(path, &before), 0);
    assert_true(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    assert_false(is_other_boot(sum));
    assert_int_equal(truncate(path, 1000), 0);
    compile_run(7, 1);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > 1000000);
    /* No room for it: it goes as soon as it is made. */
    unlink(path);
    setenv("CLUSTERLAB_PCH_LIMIT_MB", "10", 1);
    compile_run(8, 1);
    assert_int_equal(count_files(".pch", path), 0);
    assert_int_equal(count_files(".sum", sum), 0);
    setenv("CLUSTERLAB_PCH_LIMIT_MB", "0", 1);       /* none are kept: not even marks */
    assert_int_equal(count_files(".seen", mark), 2); /* for the two texts of value.h */
    unlink(mark);
    assert_int_equal(count_files(".seen", mark), 1);
    unlink(mark);
    compile_run(9, 1);
    assert_int_equal(count_files(".pch", path), 0);
    assert_int_equal(count_files(".seen", mark), 0);
    unsetenv("CLUSTERLAB_PCH_LIMIT_MB");
}

static void test_three_of_a_run_share_one(void **state)
{
    (void)state;
    char path[4200];
    compile_run(1, 3);
    assert_int_equal(count_files(".pch", path), can_fix_addresses() ? 1 : 0);
}

/* As in a container whose seccomp filter forbids it: all is compiled, and nothing kept. */
static void test_where_addresses_cannot_be_fixed(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = {sizeof code / sizeof code[0], code};
        char path[4200];
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        compile_run(1, 4); /* the second to fourth from the worker's own file */
        _exit(count_files(".pch", path) == 0 && count_files(".seen", path) == 1 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* With our texts for host headers, which NVRTC gets on a second try. */
static void test_host_headers(void **state)
{
    (void)state;
    char path[4200];
    scratch_write("value.h", "#include <climits>\n#define VALUE (INT_MAX - 100)\n");
    compile_run(1, 3);
    compile_run(4, 3);
    assert_int_equal(count_files(".pch", path), can_fix_addresses() ? 1 : 0);
}

/* In this process, whose addresses are its own: a file in the scratch folder. */
static void test_in_a_scratch_folder(void **state)
{
    (void)state;
    struct clab_pch_store store;
    struct clab_image plain, image;
    struct clab_error error = {0};
    char text[512], dir[4096];
    clab_pch_store_init(&store);
    store.fixed = false;
    snprintf(text, sizeof text, HEADERS KERNEL, 1);
    scratch_write("pch/empty", "");
    snprintf(dir, sizeof dir, "%s", scratch_path("pch"));
    const struct clab_compile_request request = {.source_path = scratch_path("k.cu"),
                                                 .source_text = text,
                                                 .arch = "sm_90",
                                                 .want = CLAB_IMAGE_CUBIN,
                                                 .entry = "k"};
    char key[65];
    clab_pch_key(toolkit, &request, key);
    struct clab_pch_plan plan = {.key = key, .kept_dir = "/nonexistent", .scratch_dir = dir, .make = true};
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &plain, &error), CLAB_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(clab_nvrtc_compile_pch(toolkit, &request, &plan, &store, &image, &error), CLAB_OK);
        assert_string_equal(image.sha256, plain.sha256);
        assert_null(image.log);
        clab_image_free(&image);
    }
    /* Where the folder cannot be used, the compile is done without. */
    plan.scratch_dir = "/nonexistent";
    assert_int_equal(clab_nvrtc_compile_pch(toolkit, &request, &plan, &store, &image, &error), CLAB_OK);
    assert_string_equal(image.sha256, plain.sha256);
    clab_image_free(&image);
    clab_image_free(&plain);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--compile-worker") == 0)
        return clab_compile_worker(STDIN_FILENO, STDOUT_FILENO);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_shares_a_key, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_what_has_no_key, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_key_is_seen_from_the_next_run_on, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_kept_from_run_to_run, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_three_of_a_run_share_one, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_where_addresses_cannot_be_fixed, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_host_headers, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_in_a_scratch_folder, set_up, scratch_tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]); /* compile_pch test_what* */
    signal(SIGPIPE, SIG_IGN);
    toolkit_or_skip(CLAB_PART_CUDA_INCLUDE);
    toolkit_or_skip(CLAB_PART_CCCL_INCLUDE);
    toolkit = toolkit_or_skip(CLAB_PART_NVRTC);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
