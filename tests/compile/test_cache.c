/* The image cache by itself: hits, keys, damage, rivals, a folder that cannot be written. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "compile/cache.h"
#include "compile/sha256.h"
#include "scratch.h"

static const char key[] = "ab00000000000000000000000000000000000000000000000000000000000001";

static struct clab_image sample(const char *text)
{
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(clab_image_from_bytes("dir/my kernel.ptx", text, strlen(text), &image, &error), CLAB_OK);
    image.entry = strdup("ns::k<4>");
    image.lowered = strdup("_ZN2ns1kILi4EEEvv");
    image.log = strdup("a warning\nof two lines");
    image.resources =
        (struct clab_image_resources){.known = true, .registers = 24, .static_smem_bytes = 1024};
    image.ptx = strdup("the ptx");
    image.ptx_bytes = 7;
    snprintf(image.compiler, sizeof image.compiler, "nvrtc 13.0");
    return image;
}

static const char text[] = ".version 8.3\n.target sm_90\n.entry k() {}\n";

static int set_up(void **state)
{
    struct clab_cache *cache = malloc(sizeof *cache);
    scratch_make();
    clab_cache_init(cache, scratch_path("cache"));
    *state = cache;
    return 0;
}

static void put_sample(struct clab_cache *cache)
{
    struct clab_image image = sample(text);
    clab_cache_put(cache, key, &image);
    clab_image_free(&image);
}

static bool has_key(struct clab_cache *cache)
{
    struct clab_image image;
    bool found = clab_cache_get(cache, key, &image);
    clab_image_free(&image);
    return found;
}

static void test_sha256_known_answers(void **state)
{
    (void)state;
    char hex[65];
    clab_sha256_of("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    clab_sha256_of("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *long_text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    clab_sha256_of(long_text, 56, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_what_is_put_is_got(void **state)
{
    struct clab_image image;
    assert_false(has_key(*state));
    put_sample(*state);
    assert_true(clab_cache_get(*state, key, &image));
    assert_true(image.cached);
    assert_int_equal(image.kind, CLAB_IMAGE_PTX);
    assert_string_equal(image.data, text);
    assert_string_equal(image.arch, "sm_90");
    assert_int_equal(image.ptx_version, 83);
    assert_string_equal(image.source_path, "dir/my kernel.ptx");
    assert_string_equal(image.entry, "ns::k<4>");
    assert_string_equal(image.lowered, "_ZN2ns1kILi4EEEvv");
    assert_string_equal(image.compiler, "nvrtc 13.0");
    assert_string_equal(image.log, "a warning\nof two lines");
    assert_string_equal(image.ptx, "the ptx");
    assert_true(image.resources.known);
    assert_int_equal(image.resources.registers, 24);
    assert_int_equal(image.resources.static_smem_bytes, 1024);
    clab_image_free(&image);
    assert_string_equal(((struct clab_cache *)*state)->note, "");
}

/* Calls `damage` on every file of the entry in turn; each must cost the hit, and a new put must mend it. */
static void each_file(struct clab_cache *cache, void (*damage)(const char *path, off_t bytes))
{
    put_sample(cache);
    char names[8][256];
    size_t count = 0;
    DIR *list = opendir(scratch_path("cache/ab"));
    for (struct dirent *item; (item = readdir(list)) != NULL && count < 8;)
        if (item->d_name[0] != '.')
            snprintf(names[count++], sizeof names[0], "%s", item->d_name);
    closedir(list);
    assert_int_equal(count, 3); /* entry, image, PTX */
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", scratch_path("cache/ab"), names[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_true(has_key(cache));
        damage(path, info.st_size);
        assert_false(has_key(cache));
        put_sample(cache);
        assert_true(has_key(cache));
    }
}

static void flip_a_bit(const char *path, off_t bytes)
{
    char byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, bytes / 2), 1);
    byte = (char)(byte ^ 1);
    assert_int_equal(pwrite(fd, &byte, 1, bytes / 2), 1);
    close(fd);
}

static void cut_off(const char *path, off_t bytes)
{
    assert_int_equal(truncate(path, bytes / 2), 0);
}

static void empty(const char *path, off_t bytes)
{
    (void)bytes;
    assert_int_equal(truncate(path, 0), 0);
}

static void delete_it(const char *path, off_t bytes)
{
    (void)bytes;
    assert_int_equal(unlink(path), 0);
}

static void test_damage_of_any_file_is_noticed_and_mended(void **state)
{
    each_file(*state, flip_a_bit);
    each_file(*state, cut_off);
    each_file(*state, empty);
    each_file(*state, delete_it);
}

static void test_two_processes_at_once(void **state)
{
    /* Both write and read one key with different images; each read is a miss or one of the two, whole. */
    pid_t children[2];
    for (int who = 0; who < 2; who++) {
        children[who] = fork();
        if (children[who] != 0)
            continue;
        char mine[128];
        snprintf(mine, sizeof mine, "%s// from %d\n", text, who);
        for (int round = 0; round < 60; round++) {
            struct clab_image image, got;
            struct clab_error error = {0};
            if (clab_image_from_bytes("k.ptx", mine, strlen(mine), &image, &error) != CLAB_OK)
                _exit(1);
            clab_cache_put(*state, key, &image);
            if (clab_cache_get(*state, key, &got) && strncmp(got.data, text, strlen(text)) != 0)
                _exit(2);
            clab_image_free(&got);
            clab_image_free(&image);
        }
        _exit(0);
    }
    for (int who = 0; who < 2; who++) {
        int status;
        waitpid(children[who], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_true(has_key(*state));
}

static void test_a_folder_that_cannot_be_made_costs_only_speed(void **state)
{
    struct clab_cache *cache = *state;
    scratch_write("file", "");
    clab_cache_init(cache, scratch_path("file/cache"));
    put_sample(cache);
    assert_false(has_key(cache));
    assert_non_null(strstr(cache->note, "cannot create"));
    clab_cache_init(cache, "");
    put_sample(cache);
    assert_false(has_key(cache));
    assert_string_equal(cache->note, "");
}

static void test_a_full_disk_costs_only_speed(void **state)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        /* Every write to a file fails with EFBIG, as it would with ENOSPC. */
        struct clab_cache *cache = *state;
        struct rlimit none = {0, 0};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &none);
        struct clab_image image, got;
        struct clab_error error = {0};
        if (clab_image_from_bytes("k.ptx", text, strlen(text), &image, &error) != CLAB_OK)
            _exit(1);
        clab_cache_put(cache, key, &image);
        if (clab_cache_get(cache, key, &got))
            _exit(2);
        _exit(strstr(cache->note, "cannot write") != NULL ? 0 : 3);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    put_sample(*state); /* and nothing that was left over is in the way */
    assert_true(has_key(*state));
}

static void test_the_folder_stays_below_its_limit(void **state)
{
    setenv("CLUSTERLAB_CACHE_LIMIT_MB", "1", 1);
    size_t big = (size_t)300 << 10;
    char *body = malloc(big + 1);
    for (int i = 0; i < 8; i++) {
        struct clab_image image;
        char name[65];
        memset(body, ' ', big);
        body[big] = '\0';
        memcpy(body, text, strlen(text));
        body[big - 1] = (char)('a' + i);
        assert_int_equal(clab_image_from_bytes("k.ptx", body, big, &image, NULL), CLAB_OK);
        snprintf(name, sizeof name, "%02x%062d", (unsigned)i, i);
        clab_cache_put(*state, name, &image);
        clab_image_free(&image);
        struct timespec pause = {0, 20000000}; /* file times are coarse */
        nanosleep(&pause, NULL);
    }
    free(body);
    unsetenv("CLUSTERLAB_CACHE_LIMIT_MB");
    int left = 0;
    for (int i = 0; i < 8; i++) {
        struct clab_image image;
        char name[65];
        snprintf(name, sizeof name, "%02x%062d", (unsigned)i, i);
        bool found = clab_cache_get(*state, name, &image);
        left += found;
        if (i == 7)
            assert_true(found); /* the newest stays */
        if (i == 0)
            assert_false(found);
        clab_image_free(&image);
    }
    assert_in_range(left, 1, 3);
}

static void test_the_key_follows_everything_that_matters(void **state)
{
    (void)state;
    struct clab_toolkit toolkit = {0};
    struct clab_compile_request base = {
        .source_path = "k.cu", .source_text = "x", .arch = "sm_90", .want = CLAB_IMAGE_CUBIN, .entry = "k"};
    char keys[9][65];
    static const char *const a[] = {"A"};
    clab_cache_key(&toolkit, &base, keys[0]);
    struct clab_compile_request r = base;
    r.source_text = "y", clab_cache_key(&toolkit, &r, keys[1]);
    r = base, r.arch = "sm_90a", clab_cache_key(&toolkit, &r, keys[2]);
    r = base, r.want = CLAB_IMAGE_PTX, clab_cache_key(&toolkit, &r, keys[3]);
    r = base, r.entry = NULL, clab_cache_key(&toolkit, &r, keys[4]);
    r = base, r.defines = a, r.define_count = 1, clab_cache_key(&toolkit, &r, keys[5]);
    r = base, r.options = a, r.option_count = 1, clab_cache_key(&toolkit, &r, keys[6]);
    r = base, r.line_info = true, clab_cache_key(&toolkit, &r, keys[7]);
    toolkit.parts[CLAB_PART_NVRTC].found = true;
    strcpy(toolkit.parts[CLAB_PART_NVRTC].path, "/another/nvrtc");
    clab_cache_key(&toolkit, &base, keys[8]);
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    /* The silent twin: the same again is the same. */
    toolkit.parts[CLAB_PART_NVRTC].found = false;
    r = base, clab_cache_key(&toolkit, &r, keys[1]);
    assert_string_equal(keys[0], keys[1]);
}

static void test_an_edited_header_changes_the_key(void **state)
{
    (void)state;
    struct clab_toolkit toolkit = {0};
    char before[65], after[65];
    const char *dirs[] = {scratch_path("inc")};
    struct clab_compile_request request = {.source_path = "k.cu",
                                           .source_text = "#include <h.h>\n",
                                           .arch = "sm_90",
                                           .want = CLAB_IMAGE_PTX,
                                           .include_dirs = dirs,
                                           .include_dir_count = 1};
    scratch_write("inc/h.h", "#define N 1\n");
    clab_cache_key(&toolkit, &request, before);
    scratch_write("inc/h.h", "#define N 2\n");
    clab_cache_key(&toolkit, &request, after);
    assert_string_not_equal(before, after);
    /* A computed include, or an option that names further files, has no key. */
    request.source_text = "#include M\n";
    clab_cache_key(&toolkit, &request, after);
    assert_string_equal(after, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_known_answers),
        cmocka_unit_test_setup_teardown(test_what_is_put_is_got, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_damage_of_any_file_is_noticed_and_mended, set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_two_processes_at_once, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_folder_that_cannot_be_made_costs_only_speed, set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_disk_costs_only_speed, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_the_folder_stays_below_its_limit, set_up, scratch_tear_down),
        cmocka_unit_test(test_the_key_follows_everything_that_matters),
        cmocka_unit_test_setup_teardown(test_an_edited_header_changes_the_key, set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
