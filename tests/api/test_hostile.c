/* Images and kernels that mean ill: cut or spoilt images at every call that takes one, texts of absurd size
   or depth, shapes at the limits. Each is answered with an error that has words, in bounded time and memory;
   afterwards the context works. */
#include "api_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char good[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    ".reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [p]; mov.u32 %r, 7; st.global.u32 [%a], %r; ret; }\n";

static void still_works(void)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr address;
    unsigned word = 0;
    void *params[] = {&address};
    OK(cuModuleLoadData(&module, good));
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuMemAlloc(&address, 4));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&word, address, 4));
    assert_int_equal(word, 7);
    OK(cuMemFree(address));
    OK(cuModuleUnload(module));
}

/* ---- images ---- */

static void file_write(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Every call that is told an image's size, or can find it out. */
static void try_sized(const char *path, const unsigned char *data, size_t bytes)
{
    static const CUjitInputType types[] = {CU_JIT_INPUT_PTX, CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_CUBIN,
                                           CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY};
    CUmodule module;
    CUlibrary library;
    CUlinkState link;
    unsigned char *copy = malloc(bytes ? bytes : 1); /* of this size, so that AddressSanitizer sees its end */
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        OK(cuLinkCreate(0, NULL, NULL, &link));
        cuLinkAddData(link, types[i], copy, bytes, "cut", 0, NULL, NULL);
        OK(cuLinkDestroy(link));
    }
    file_write(path, copy, bytes);
    if (cuModuleLoad(&module, path) == CUDA_SUCCESS)
        OK(cuModuleUnload(module));
    if (cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS)
        OK(cuLibraryUnload(library));
    OK(cuLinkCreate(0, NULL, NULL, &link));
    cuLinkAddFile(link, CU_JIT_INPUT_FATBINARY, path, 0, NULL, NULL);
    OK(cuLinkDestroy(link));
    free(copy);
}

static void test_cut_images(void **state)
{
    static const char *const files[] = {"plain.fatbin", "zstd.fatbin", "lz4.fatbin", "cubin.fatbin",
                                        "newer.fatbin"};
    char path[] = "/tmp/clusterlab_cut_XXXXXX", name[4096];
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t bytes = 0; bytes < sizeof good; bytes += 7)
        try_sized(path, (const unsigned char *)good, bytes);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        static unsigned char data[1 << 16];
        snprintf(name, sizeof name, "data/%s", files[i]);
        FILE *file = fopen(name, "rb");
        assert_non_null(file);
        size_t bytes = fread(data, 1, sizeof data, file);
        fclose(file);
        assert_true(bytes > 64);
        for (size_t cut = 0; cut < bytes; cut += cut < 128 ? 1 : 101)
            try_sized(path, data, cut);
        for (size_t at = 0; at < 160 && at < bytes; at++) { /* headers, a byte wrong at a time */
            data[at] ^= 0xff;
            try_sized(path, data, bytes);
            data[at] ^= 0xff;
        }
    }
    unlink(path);
    still_works();
}

static void test_garbage(void **state)
{
    static unsigned char image[8192];
    CUmodule module;
    CUlibrary library;
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        unsigned value = seed * 2654435761u;
        for (size_t i = 0; i < sizeof image; i++) {
            value = value * 1664525 + 1013904223;
            image[i] = i + 64 < sizeof image ? (unsigned char)(value >> 24) : 0;
        }
        if (seed % 3 == 0) /* printable */
            for (size_t i = 0; i + 64 < sizeof image; i++)
                image[i] = (unsigned char)(32 + image[i] % 95);
        if (seed % 5 == 0)
            memcpy(image, good, 60);
        if (seed % 7 == 0)
            memcpy(image,
                   "\x7f"
                   "ELF\2\1\1",
                   7);
        assert_int_not_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
        assert_int_not_equal(cuModuleLoadDataEx(&module, image, 0, NULL, NULL), CUDA_SUCCESS);
        assert_int_not_equal(cuModuleLoadFatBinary(&module, image), CUDA_SUCCESS);
        CUkernel kernel = NULL;
        OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0)); /* whatever it is: so an H200 */
        assert_int_not_equal(cuLibraryGetKernel(&kernel, library, "k"), CUDA_SUCCESS);
        assert_int_not_equal(cuLibraryGetModule(&module, library), CUDA_SUCCESS);
        OK(cuLibraryUnload(library));
    }
    WANT(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuModuleLoadFatBinary(&module, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    WANT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent-of-clusterlab/image"));
    still_works();
}

/* ---- texts of absurd size ---- */

struct text {
    char *data;
    size_t bytes, room;
};

static void add(struct text *text, const char *words, size_t times)
{
    size_t length = strlen(words);
    if (text->bytes + length * times + 1 > text->room) {
        text->room = 2 * (text->bytes + length * times + 1);
        text->data = realloc(text->data, text->room);
        assert_non_null(text->data);
    }
    for (size_t i = 0; i < times; i++, text->bytes += length)
        memcpy(text->data + text->bytes, words, length);
    text->data[text->bytes] = '\0';
}

#define HEAD ".version 8.1\n.target sm_90\n.address_size 64\n"
#define ROOT ".visible .entry k() {\n"

/* Loads it, and launches it when that works; the code of what failed first. */
static CUresult run(struct text *text, unsigned grid)
{
    CUmodule module;
    CUfunction function;
    CUresult result = cuModuleLoadData(&module, text->data);
    free(text->data);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuModuleGetFunction(&function, module, "k");
    if (result == CUDA_SUCCESS)
        result = cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    if (result == CUDA_SUCCESS)
        result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS)
        OK(cuModuleUnload(module));
    return result;
}

static void test_giants(void **state)
{
    struct rusage usage;
    struct text text;
    char line[64];
    (void)state;
    text = (struct text){0}; /* nested scopes, far deeper than any compiler writes */
    add(&text, HEAD ROOT, 1), add(&text, "{", 5000000), add(&text, "}", 5000000), add(&text, "}", 1);
    WANT(CUDA_ERROR_INVALID_PTX, run(&text, 1));
    text = (struct text){0}; /* a comment that never ends, an expression of brackets, a name of a megabyte */
    add(&text, HEAD "/*", 1), add(&text, "/*", 5000000);
    WANT(CUDA_ERROR_INVALID_PTX, run(&text, 1));
    text = (struct text){0};
    add(&text, HEAD ".global .u32 x = ", 1), add(&text, "(", 1000000), add(&text, "1;", 1);
    WANT(CUDA_ERROR_INVALID_PTX, run(&text, 1));
    text = (struct text){0};
    add(&text, HEAD ROOT ".reg .b32 ", 1), add(&text, "a", 1000000), add(&text, "; ret; }", 1);
    OK(run(&text, 1));
    text = (struct text){0}; /* a million registers, a million labels */
    add(&text, HEAD ROOT ".reg .b32 %r<1000000>; mov.u32 %r999999, 1; ret; }", 1);
    OK(run(&text, 1));
    text = (struct text){0};
    add(&text, HEAD ROOT, 1);
    for (unsigned i = 0; i < 1000000; i++) {
        snprintf(line, sizeof line, "L%u:\n", i);
        add(&text, line, 1);
    }
    add(&text, "ret; }", 1);
    OK(run(&text, 1));
    text = (struct text){0}; /* a switch of 20,000 cases */
    add(&text, HEAD ROOT ".reg .u32 %r; mov.u32 %r, 5;\nT: .branchtargets L0", 1);
    for (unsigned i = 1; i < 20000; i++) {
        snprintf(line, sizeof line, ", L%u", i);
        add(&text, line, 1);
    }
    add(&text, ";\nbrx.idx %r, T;\n", 1);
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(line, sizeof line, "L%u: ret;\n", i);
        add(&text, line, 1);
    }
    add(&text, "}", 1);
    OK(run(&text, 1));
    text = (struct text){0}; /* more memory than there is, in each space */
    add(&text, HEAD ".global .b8 x[1099511627776];\n" ROOT "ret; }", 1);
    WANT(CUDA_ERROR_OUT_OF_MEMORY, run(&text, 1));
    text = (struct text){0};
    add(&text,
        HEAD ROOT ".local .b8 x[1099511627776]; .reg .b64 %a; mov.u64 %a, x; st.local.u8 [%a], 1; ret; }", 1);
    assert_int_not_equal(run(&text, 1), CUDA_SUCCESS);
    text = (struct text){0};
    add(&text, HEAD ROOT ".shared .b8 x[1099511627776]; .reg .b32 %a; mov.u32 %a, x; ret; }", 1);
    assert_int_not_equal(run(&text, 1), CUDA_SUCCESS);
    getrusage(RUSAGE_SELF, &usage);
    assert_true(usage.ru_maxrss < 3000000); /* KiB, AddressSanitizer's included */
    still_works();
}

static void test_depth(void **state)
{
    struct text text = {0};
    char line[64];
    (void)state;
    add(&text, HEAD ".func f0() { ret; }\n",
        1); /* a chain of calls, all of it within a thread's stack or an error */
    for (unsigned i = 1; i < 4000; i++) {
        snprintf(line, sizeof line, ".func f%u() { call f%u; ret; }\n", i, i - 1);
        add(&text, line, 1);
    }
    add(&text, ROOT "call f3999; ret; }", 1);
    CUresult result = run(&text, 1);
    assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_ILLEGAL_ADDRESS ||
                result == CUDA_ERROR_HARDWARE_STACK_ERROR || result == CUDA_ERROR_LAUNCH_FAILED);
}

static void test_endless_depth(void **state)
{
    struct text text = {0};
    (void)state;
    add(&text,
        HEAD ".func f()\n{ .local .b8 x[64]; .reg .b64 %a; mov.u64 %a, x; st.local.u8 [%a], 1; call f; ret; "
             "}\n" ROOT "call f; ret; }",
        1);
    assert_int_not_equal(run(&text, 1), CUDA_SUCCESS);
}

static void test_shapes(void **state)
{
    CUmodule module;
    CUfunction function;
    (void)state;
    OK(cuModuleLoadData(&module, HEAD ROOT "ret; }"));
    OK(cuModuleGetFunction(&function, module, "k"));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0x80000000u, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 65536, 1, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 32, 32, 2, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0xffffffffu, NULL, NULL, NULL));
    /* The largest grid is legal; the budget ends it. */
    OK(cuLaunchKernel(function, 0x7fffffff, 65535, 65535, 1, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_LAUNCH_TIMEOUT, cuCtxSynchronize());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_cut_images), IN_CONTEXT(test_garbage),       IN_CONTEXT(test_giants),
        IN_CONTEXT(test_depth),      IN_CONTEXT(test_endless_depth), IN_CONTEXT(test_shapes),
    };
    setenv("CLUSTERLAB_EMU_BUDGET", "2000000", 1);
    return RUN_ALONE(tests);
}
