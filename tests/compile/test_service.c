/* The compile service end to end, with this program as its own worker. Sources with the words CRASH_ME or
   HANG_ME make the worker do so: it looks at each message before the real loop gets it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "compile/compile.h"
#include "compile/wire.h"
#include "scratch.h"

/* --- the worker's side
 * -------------------------------------------------------------------------------------- */

static bool read_all(int fd, char *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(fd, to + done, bytes - done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static void *real_worker(void *in_fd)
{
    exit(clab_compile_worker(*(int *)in_fd, STDOUT_FILENO));
}

static int worker_main(void)
{
    int ends[2], raw = dup(STDOUT_FILENO); /* the real worker turns standard output over */
    pthread_t thread;
    struct clab_wire_head head;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, real_worker, &ends[0]) != 0)
        return 9;
    while (read_all(STDIN_FILENO, (char *)&head, sizeof head)) {
        char *payload = malloc((size_t)head.bytes);
        if (payload == NULL || !read_all(STDIN_FILENO, payload, (size_t)head.bytes))
            return 9;
        if (memmem(payload, (size_t)head.bytes, "CRASH_ME", 8) != NULL)
            raise(SIGKILL);
        if (memmem(payload, (size_t)head.bytes, "HANG_ME", 7) != NULL)
            pause();
        if (memmem(payload, (size_t)head.bytes, "BABBLE", 6) != NULL)
            clab_write_all(raw, "this is no answer, and longer than a head\n", 42);
        clab_write_all(ends[1], &head, sizeof head);
        clab_write_all(ends[1], payload, (size_t)head.bytes);
        free(payload);
    }
    close(ends[1]);
    pthread_join(thread, NULL);
    return 0;
}

/* --- the tests
 * ---------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    scratch_make();
    scratch_write("value.h", "#define VALUE 1\n");
    scratch_write("k.cu", "#include \"value.h\"\nextern \"C\" __global__ void k(int *p) { *p = VALUE; }\n");
    scratch_write("k.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() { ret; }\n");
    scratch_write("crash.cu", "extern \"C\" __global__ void k(int *p) { *p = 1; } // CRASH_ME\n");
    scratch_write("hang.cu", "extern \"C\" __global__ void k(int *p) { *p = 1; } // HANG_ME\n");
    scratch_write("babble.cu", "extern \"C\" __global__ void k(int *p) { *p = 1; } // BABBLE\n");
    scratch_write("bad.cu", "extern \"C\" __global__ void k(int *p) { *p = what; }\n");
    return 0;
}

static struct clab_compile_request request_for(const char *name, const char *arch)
{
    return (struct clab_compile_request){
        .source_path = scratch_path(name), .arch = arch, .want = CLAB_IMAGE_CUBIN, .entry = "k"};
}

/* Compiles one request with a new service; says how many compiles that took. */
static size_t compile_once(const char *name, clab_status wanted, char sha256[65])
{
    struct clab_compiler *compiler = scratch_compiler(1, 0);
    struct clab_compile_request request = request_for(name, "sm_90");
    struct clab_image image;
    struct clab_error error = {0};
    clab_status status = clab_compile(compiler, &request, &image, &error);
    if (status != wanted)
        print_error("%s: %s\n", name, error.message);
    assert_int_equal(status, wanted);
    snprintf(sha256, 65, "%s", image.sha256);
    size_t compiled = clab_compiler_compiled(compiler);
    assert_string_equal(clab_compiler_cache_note(compiler), "");
    clab_image_free(&image);
    clab_error_clear(&error);
    clab_compiler_free(compiler);
    return compiled;
}

static void test_a_second_run_compiles_nothing(void **state)
{
    (void)state;
    char first[65], second[65];
    assert_int_equal(compile_once("k.cu", CLAB_OK, first), 1);
    assert_int_equal(compile_once("k.cu", CLAB_OK, second), 0);
    assert_string_equal(first, second);
}

static void test_an_edited_user_header_recompiles(void **state)
{
    (void)state;
    char first[65], second[65];
    assert_int_equal(compile_once("k.cu", CLAB_OK, first), 1);
    scratch_write("value.h", "#define VALUE 2\n");
    assert_int_equal(compile_once("k.cu", CLAB_OK, second), 1);
    assert_string_not_equal(first, second);
}

static void test_an_error_is_not_cached(void **state)
{
    (void)state;
    char ignored[65];
    assert_int_equal(compile_once("bad.cu", CLAB_COMPILE, ignored), 1);
    assert_int_equal(compile_once("bad.cu", CLAB_COMPILE, ignored), 1);
}

static void count_progress(void *context, size_t done, size_t count)
{
    size_t *seen = context;
    assert_int_equal(done, *seen + 1);
    assert_in_range(done, 1, count);
    *seen = done;
}

static void test_a_batch_with_every_kind_of_fate(void **state)
{
    (void)state;
    struct clab_compiler *compiler = scratch_compiler(2, 4000);
    struct clab_compile_request requests[] = {
        request_for("k.cu", "sm_90"),      request_for("crash.cu", "sm_90"), request_for("bad.cu", "sm_90"),
        request_for("k.cu", "sm_100"),     request_for("k.cu", "sm_90"),     request_for("hang.cu", "sm_90"),
        request_for("gone.cu", "sm_90"),   request_for("k.ptx", "sm_90a"),   request_for("k.cu", "sm_77"),
        request_for("babble.cu", "sm_90"), request_for("k.ptx", "sm_100"),   request_for("k.cu", "sm_120a")};
    enum { COUNT = sizeof requests / sizeof requests[0] };
    static const clab_status wanted[COUNT] = {CLAB_OK,    CLAB_WORKER,  CLAB_COMPILE,    CLAB_OK,
                                              CLAB_OK,    CLAB_TIMEOUT, CLAB_NOT_FOUND,  CLAB_OK,
                                              CLAB_USAGE, CLAB_WORKER,  CLAB_PTX_TARGET, CLAB_OK};
    struct clab_compile_result results[COUNT];
    size_t seen = 0;
    clab_compile_all(compiler, requests, COUNT, results, count_progress, &seen);
    assert_int_equal(seen, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        if (results[i].status != wanted[i])
            print_error("request %zu: %s\n", i, results[i].error.message);
        assert_int_equal(results[i].status, wanted[i]);
        if (wanted[i] != CLAB_OK)
            assert_true(results[i].error.message[0] != '\0');
    }
    assert_non_null(strstr(results[1].error.message, "signal 9"));
    assert_non_null(strstr(results[1].error.message, "crash.cu"));
    assert_non_null(strstr(results[5].error.message, "4000 ms"));
    assert_int_equal(results[2].error.line, 1);
    /* The same request twice is one compile. */
    assert_string_equal(results[0].image.sha256, results[4].image.sha256);
    assert_int_equal(clab_compiler_compiled(compiler), 5); /* three of k.cu, bad.cu, k.ptx */
    for (size_t i = 0; i < COUNT; i++)
        clab_compile_result_free(&results[i]);
    clab_compiler_free(compiler);
}

static void test_images_that_need_no_compiler(void **state)
{
    (void)state;
    static const char *const names[] = {"k"};
    struct clab_compiler *compiler = scratch_compiler(1, 0);
    struct clab_compile_request request = request_for("k.ptx", "sm_90");
    struct clab_image image;
    struct clab_error error = {0};
    request.want = CLAB_IMAGE_PTX;
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_OK);
    assert_int_equal(image.kind, CLAB_IMAGE_PTX);
    assert_string_equal(image.lowered, "k");
    clab_image_free(&image);
    request.arch = "sm_100";
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_PTX_TARGET);
    request.arch = "sm_90";
    request.entry = "nope";
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_NOT_FOUND);
    /* A cubin as it is; one for another chip; one that is cut. */
    size_t bytes;
    char *cubin = fake_cubin(90, 'a', names, 1, &bytes);
    FILE *file = fopen(scratch_path("k.cubin"), "w");
    fwrite(cubin, 1, bytes, file);
    fclose(file);
    request = request_for("k.cubin", "sm_90");
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_OK);
    assert_string_equal(image.arch, "sm_90a");
    clab_image_free(&image);
    request.arch = "sm_100";
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "exactly that chip"));
    assert_int_equal(truncate(scratch_path("k.cubin"), (off_t)bytes - 1), 0);
    request.arch = "sm_90";
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "truncated"));
    assert_int_equal(clab_compiler_compiled(compiler), 0);
    free(cubin);
    clab_error_clear(&error);
    clab_compiler_free(compiler);
}

static void test_a_device_gets_the_suffix_that_the_ptx_has(void **state)
{
    (void)state;
    struct clab_compiler *compiler = scratch_compiler(1, 0);
    struct clab_compile_request request = request_for("k.ptx", "sm_90");
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_PTX_TARGET);
    assert_string_equal(error.remedy, "assemble it for sm_90a");
    request.adopt_suffix = true;
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_OK);
    assert_string_equal(image.arch, "sm_90a");
    clab_image_free(&image);
    clab_error_clear(&error);
    clab_compiler_free(compiler);
}

static void test_no_worker_program_and_no_toolkit(void **state)
{
    (void)state;
    struct clab_compiler_options options = {.cache_dir = "", .program = "/nonexistent/clusterlab"};
    struct clab_compiler *compiler = clab_compiler_new(&options);
    struct clab_compile_request request = request_for("k.cu", "sm_90");
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_WORKER);
    assert_non_null(strstr(error.message, "/nonexistent/clusterlab"));
    clab_compiler_free(compiler);
    options.program = "/bin/false";
    compiler = clab_compiler_new(&options);
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_WORKER);
    assert_non_null(strstr(error.message, "ended with status 1"));
    clab_compiler_free(compiler);
    setenv("CLUSTERLAB_TOOLKIT", scratch_path("nothing"), 1);
    compiler = clab_compiler_new(&options);
    assert_int_equal(clab_compile(compiler, &request, &image, &error), CLAB_NO_TOOLKIT);
    assert_non_null(strstr(error.message, "NVRTC"));
    assert_true(error.remedy[0] != '\0');
    unsetenv("CLUSTERLAB_TOOLKIT");
    clab_error_clear(&error);
    clab_compiler_free(compiler);
}

static void test_a_full_disk_costs_only_speed(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        /* No file may grow: neither cache nor precompiled headers, here and in the workers. */
        struct rlimit none = {0, 0};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &none);
        struct clab_compiler *compiler = scratch_compiler(1, 0);
        struct clab_compile_request requests[2] = {request_for("k.cu", "sm_90"),
                                                   request_for("k.cu", "sm_90")};
        struct clab_compile_result results[2];
        requests[1].line_info = true;
        clab_compile_all(compiler, requests, 2, results, NULL, NULL);
        for (int i = 0; i < 2; i++)
            if (results[i].status != CLAB_OK)
                _exit(fprintf(stderr, "%s\n", results[i].error.message) > 0 ? 1 : 2);
        const char *note = clab_compiler_cache_note(compiler);
        int status = strstr(note, "cannot write") != NULL ? 0 : 3;
        clab_compiler_free(compiler);
        _exit(status);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static volatile sig_atomic_t interrupted;

static void on_alarm(int number)
{
    (void)number;
    interrupted = 1;
}

static void test_an_interrupt_ends_what_is_unfinished(void **state)
{
    (void)state;
    const struct clab_compiler_options options = {.cache_dir = "", .workers = 1, .interrupted = &interrupted};
    struct clab_compiler *compiler = clab_compiler_new(&options);
    struct clab_compile_request requests[] = {request_for("k.cu", "sm_90"), request_for("hang.cu", "sm_90"),
                                              request_for("k.cu", "sm_100")};
    struct clab_compile_result results[3];
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    alarm(3);
    clab_compile_all(compiler, requests, 3, results, NULL, NULL);
    assert_int_equal(results[0].status, CLAB_OK); /* what was done is kept */
    assert_int_equal(results[1].status, CLAB_INTERRUPTED);
    assert_int_equal(results[2].status, CLAB_INTERRUPTED);
    interrupted = 0;
    for (int i = 0; i < 3; i++)
        clab_compile_result_free(&results[i]);
    clab_compiler_free(compiler);
}

/* Several services at once, in processes of their own, on one cache. */
static void test_two_services_share_a_cache(void **state)
{
    (void)state;
    pid_t children[2];
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct clab_compiler *compiler = scratch_compiler(1, 0);
            struct clab_compile_request request = request_for("k.cu", "sm_90");
            struct clab_image image;
            clab_status status = clab_compile(compiler, &request, &image, NULL);
            clab_image_free(&image);
            clab_compiler_free(compiler);
            _exit((int)status);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
    char ignored[65];
    assert_int_equal(compile_once("k.cu", CLAB_OK, ignored), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--compile-worker") == 0)
        return worker_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_second_run_compiles_nothing, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_an_edited_user_header_recompiles, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_an_error_is_not_cached, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_batch_with_every_kind_of_fate, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_images_that_need_no_compiler, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_device_gets_the_suffix_that_the_ptx_has, set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_no_worker_program_and_no_toolkit, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_disk_costs_only_speed, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_an_interrupt_ends_what_is_unfinished, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_two_services_share_a_cache, set_up, scratch_tear_down),
    };
    signal(SIGPIPE, SIG_IGN);
    toolkit_or_skip(CLAB_PART_NVRTC);
    toolkit_or_skip(CLAB_PART_NVJITLINK);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
