/* Libraries whose code cannot be compiled, what pools keep, pools of host memory, malloc in kernels, the
   calls of cudaGL.h, cudaEGL.h and cudaVDPAU.h. */
#include "ask.h"

#include <dlfcn.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/* ---- libraries: when is a mistake found? ---- */

static void late(const void *argument)
{
    const char *const text = argument;
    static char errors[1024], infos[1024];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {errors, (void *)(uintptr_t)sizeof errors, infos, (void *)(uintptr_t)sizeof infos};
    CUlibrary library = NULL;
    if (!ask_context())
        return;
    ASKF("load", cuLibraryLoadData(&library, text, options, values, 4, NULL, NULL, 0), " %d log %d",
         library != NULL, errors[0] != '\0');
    ASKF("count", cuLibraryGetKernelCount(&t.u, library), " %u", t.u);
    ASK("enumerate", cuLibraryEnumerateKernels(&t.kernel, 1, library));
    t.kernel = NULL;
    ASKF("kernel", cuLibraryGetKernel(&t.kernel, library, "e"), " %d log %d", t.kernel != NULL,
         errors[0] != '\0');
    ASK("kernel missing", cuLibraryGetKernel(&t.kernel, library, "missing"));
    ASK("global", cuLibraryGetGlobal(&t.pointer, &t.size, library, "g"));
    ASK("managed", cuLibraryGetManaged(&t.pointer, &t.size, library, "g"));
    ASKF("module", cuLibraryGetModule(&t.module, library), " log %d", errors[0] != '\0');
    ASK("module again", cuLibraryGetModule(&t.module, library));
    ASK("kernel after it", cuLibraryGetKernel(&t.kernel, library, "e"));
    if (t.kernel != NULL) {
        ASK("attribute", cuKernelGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, t.kernel, 0));
        ASK("function", cuKernelGetFunction(&t.function, t.kernel));
        ASK("launch", cuLaunchKernel((CUfunction)t.kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    }
    ASK("unload", cuLibraryUnload(library));
}

static void late_without_context(const void *argument)
{
    CUlibrary library = NULL;
    cuInit(0);
    ASK("load", cuLibraryLoadData(&library, argument, NULL, NULL, 0, NULL, NULL, 0));
    ASKF("count", cuLibraryGetKernelCount(&t.u, library), " %u", t.u);
    ASK("kernel", cuLibraryGetKernel(&t.kernel, library, "e"));
    ASK("attribute", cuKernelGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, t.kernel, 0));
    ASK("global", cuLibraryGetGlobal(&t.pointer, &t.size, library, "g"));
    ASK("module", cuLibraryGetModule(&t.module, library));
    ASK("unload", cuLibraryUnload(library));
}

static const unsigned char empty_elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
static const unsigned char empty_fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};

void section_late_library(void)
{
    static const struct {
        const char *name;
        const void *text;
    } cases[] = {
        {"good", HEAD ".visible .global .u32 g;\n.visible .entry e() { ret; }\n"},
        {"garbage", "garbage"},
        {"empty", ""},
        {"broken", HEAD ".visible .global .u32 g;\n.visible .entry e()\n{\n  frob.u32 %r1;\n  ret;\n}\n"},
        {"cut", HEAD ".visible .entry e() { ret;"},
        {"no entry", HEAD ".visible .global .u32 g;\n"},
        {"unresolved", HEAD ".extern .func f();\n.visible .entry e() { call f; ret; }\n"},
        {"later target", ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry e() { ret; }\n"},
        {"later version", ".version 19.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }\n"},
        {"an empty ELF", empty_elf},
        {"an empty fatbin", empty_fatbin},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        ask_child(cases[i].name, late, cases[i].text);
    for (size_t i = 0; i < COUNT(cases); i++)
        ask_child(ask_name("%s, no context", cases[i].name), late_without_context, cases[i].text);
}

/* ---- what pools keep ---- */

static void sizes_of(const char *when, CUmemoryPool pool)
{
    for (int attribute = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT; attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
         attribute++) {
        cuuint64_t bytes = 99;
        ASKF(ask_name("%s, %d", when, attribute),
             cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, &bytes), " %llu",
             (unsigned long long)bytes);
    }
}

void section_reserve(void)
{
    static const size_t sizes[] = {1, 1 << 20, 5 << 20, 31 << 20, 33 << 20, 70 << 20};
    static const size_t limits[] = {1, 1 << 20, 32 << 20, 40 << 20};
    CUdeviceptr got[8];
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    if (!ask_context())
        return;
    for (size_t keep = 0; keep < 2; keep++) {
        CUmemoryPool pool = NULL;
        cuuint64_t threshold = keep == 0 ? 0 : (cuuint64_t)50 << 20;
        ask_prefix("threshold %llu", (unsigned long long)threshold);
        MUST(cuMemPoolCreate(&pool, &properties));
        MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
        for (size_t i = 0; i < COUNT(sizes); i++) {
            MUST(cuMemAllocFromPoolAsync(&got[i], sizes[i], pool, NULL));
            sizes_of(ask_name("after %zu", sizes[i]), pool);
        }
        MUST(cuStreamSynchronize(NULL));
        sizes_of("synchronized", pool);
        ASKF("mapping of the first",
             cuPointerGetAttribute(&t.size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, got[0]), " %zu", t.size);
        for (size_t i = COUNT(sizes); i-- > 2;) {
            MUST(cuMemFreeAsync(got[i], NULL));
            sizes_of(ask_name("freed %zu", sizes[i]), pool);
        }
        MUST(cuStreamSynchronize(NULL));
        sizes_of("freed and synchronized", pool);
        MUST(cuMemAllocFromPoolAsync(&got[2], 3 << 20, pool, NULL));
        sizes_of("again 3 MiB", pool);
        MUST(cuCtxSynchronize());
        sizes_of("context synchronized", pool);
        ASK("trim to 40 MiB", cuMemPoolTrimTo(pool, (size_t)40 << 20));
        sizes_of("trimmed to 40 MiB", pool);
        ASK("trim", cuMemPoolTrimTo(pool, 0));
        sizes_of("trimmed", pool);
        for (size_t i = 0; i < 3; i++)
            MUST(cuMemFreeAsync(got[i], NULL));
        MUST(cuStreamSynchronize(NULL));
        sizes_of("all freed", pool);
        ASK("trim all", cuMemPoolTrimTo(pool, 0));
        sizes_of("all trimmed", pool);
        ASK("destroy", cuMemPoolDestroy(pool));
    }
    for (size_t i = 0; i < COUNT(limits); i++) {
        CUmemoryPool pool = NULL;
        properties.maxSize = limits[i];
        ask_prefix("at most %zu", limits[i]);
        MUST(cuMemPoolCreate(&pool, &properties));
        for (size_t k = 0; k < COUNT(sizes); k++) {
            CUdeviceptr one = 0;
            ASK(ask_name("alloc %zu", sizes[k]), cuMemAllocFromPoolAsync(&one, sizes[k], pool, NULL));
            if (one != 0)
                cuMemFreeAsync(one, NULL);
            cuStreamSynchronize(NULL);
        }
        cuMemPoolDestroy(pool);
    }
}

/* ---- pools of host and managed memory ---- */

static void a_pool(const CUmemPoolProps *properties)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr p = 0;
    CUmemAccess_flags flags = 9;
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
    ASK("create", cuMemPoolCreate(&pool, properties));
    if (pool == NULL)
        return;
    ASKF("access of the device", cuMemPoolGetAccess(&flags, pool, &device), " %d", (int)flags);
    ASKF("access of the host", cuMemPoolGetAccess(&flags, pool, &host), " %d", (int)flags);
    ASK("alloc", cuMemAllocFromPoolAsync(&p, 1 << 20, pool, o.stream));
    ASK("synchronize", cuStreamSynchronize(o.stream));
    if (p == 0)
        return;
    ASK("set before access", cuMemsetD8Async(p, 1, 64, o.stream));
    ASK("done", cuStreamSynchronize(o.stream));
    CUmemAccessDesc wanted = {.location = device, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASK("give the device access", cuMemPoolSetAccess(pool, &wanted, 1));
    ASKF("access then", cuMemPoolGetAccess(&flags, pool, &device), " %d", (int)flags);
    wanted.location = host;
    ASK("give the host access", cuMemPoolSetAccess(pool, &wanted, 1));
    ASK("set", cuMemsetD8Async(p, 1, 64, o.stream));
    ASK("set done", cuStreamSynchronize(o.stream));
    for (int attribute = 1; attribute <= 21; attribute++) {
        uint64_t value[4] = {0};
        const bool number = attribute == 2 || (attribute >= 8 && attribute != 11 && attribute != 17 &&
                                               attribute != 19 && attribute != 20);
        ASKF(ask_name("attribute %d", attribute),
             cuPointerGetAttribute(value, (CUpointer_attribute)attribute, p), " %d",
             number ? (int)value[0] : -1);
    }
    ASK("read by the host",
        properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? 0 : *(volatile char *)(uintptr_t)p);
    sizes_of("in use", pool);
    ASK("free", cuMemFreeAsync(p, o.stream));
    ASK("free done", cuStreamSynchronize(o.stream));
    sizes_of("unused", pool);
    ASK("destroy", cuMemPoolDestroy(pool));
}

static void pool_kind(const void *argument)
{
    const CUmemPoolProps *const properties = argument;
    if (!ask_setup())
        return;
    a_pool(properties);
    CUmemLocation where = properties->location;
    CUmemoryPool pool = NULL;
    ASKF("default", cuMemGetDefaultMemPool(&pool, &where, properties->allocType), " %d", pool != NULL);
    pool = NULL;
    ASKF("current", cuMemGetMemPool(&pool, &where, properties->allocType), " %d", pool != NULL);
    if (pool != NULL) {
        ASK("alloc of the current", cuMemAllocFromPoolAsync(&t.pointer, 64, pool, o.stream));
        ASK("synchronized", cuStreamSynchronize(o.stream));
        ASK("set current", cuMemSetMemPool(&where, properties->allocType, pool));
    }
}

void section_host_pool(void)
{
    static const struct {
        const char *name;
        CUmemPoolProps properties;
    } kinds[] = {
        {"pinned device", {.allocType = 1, .location = {.type = 1, .id = 0}}},
        {"pinned host", {.allocType = 1, .location = {.type = 2, .id = 0}}},
        {"pinned node", {.allocType = 1, .location = {.type = 3, .id = 0}}},
        {"managed none", {.allocType = 2, .location = {.type = 0, .id = 0}}},
        {"managed device", {.allocType = 2, .location = {.type = 1, .id = 0}}},
        {"managed host", {.allocType = 2, .location = {.type = 2, .id = 0}}},
        {"managed node", {.allocType = 2, .location = {.type = 3, .id = 0}}},
    };
    for (size_t i = 0; i < COUNT(kinds); i++)
        ask_child(kinds[i].name, pool_kind, &kinds[i].properties);
}

/* ---- the heap of malloc in kernels, the buffer of printf ---- */

static const char heap_ptx[] = HEAD
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
    /* out[0]: how many of n bytes one thread gets, at most `most`; out[1], out[2]: the first two */
    ".visible .entry fill(.param .u64 p_out, .param .u64 p_n, .param .u64 p_most)\n{\n"
    ".reg .b64 o, n, p, most, i;\n.reg .pred q;\n"
    "ld.param.u64 o, [p_out];\nld.param.u64 n, [p_n];\nld.param.u64 most, [p_most];\nmov.u64 i, 0;\n"
    "L:\n{ .param .b64 a; .param .b64 r; st.param.b64 [a], n;\ncall (r), malloc, (a); ld.param.b64 p, [r]; "
    "}\n"
    "setp.eq.u64 q, p, 0;\n@q bra DONE;\n"
    "setp.eq.u64 q, i, 0;\n@q st.global.u64 [o+8], p;\nsetp.eq.u64 q, i, 1;\n@q st.global.u64 [o+16], p;\n"
    "add.u64 i, i, 1;\nsetp.lt.u64 q, i, most;\n@q bra L;\nDONE:\nst.global.u64 [o], i;\nret;\n}\n"
    ".visible .entry free_null()\n{\n.reg .b64 p;\nmov.u64 p, 0;\n"
    "{ .param .b64 a; st.param.b64 [a], p;\ncall free, (a); }\nret;\n}\n"
    ".visible .entry free_twice()\n{\n.reg .b64 p;\n"
    "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 64;\ncall (r), malloc, (a); ld.param.b64 p, [r]; }\n"
    "{ .param .b64 a; st.param.b64 [a], p;\ncall free, (a); }\n"
    "{ .param .b64 a; st.param.b64 [a], p;\ncall free, (a); }\nret;\n}\n"
    ".visible .entry free_wild(.param .u64 p_p)\n{\n.reg .b64 p;\nld.param.u64 p, [p_p];\n"
    "{ .param .b64 a; st.param.b64 [a], p;\ncall free, (a); }\nret;\n}\n";

static void fill_with(uint64_t n, uint64_t most)
{
    uint64_t got[3] = {0};
    CUmodule module = NULL;
    CUfunction fill = NULL;
    CUdeviceptr out = 0;
    if (!ask_context())
        return;
    MUST(cuModuleLoadData(&module, heap_ptx));
    MUST(cuModuleGetFunction(&fill, module, "fill"));
    MUST(cuMemAlloc(&out, 24));
    MUST(cuMemsetD8(out, 0, 24));
    void *params[] = {&out, &n, &most};
    MUST(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ASK("done", cuCtxSynchronize());
    MUST(cuMemcpyDtoH(got, out, 24));
    ASKF("how many", 0, " %llu, apart %lld, aligned to %llu", (unsigned long long)got[0],
         (long long)(got[2] - got[1]), (unsigned long long)(got[1] & -got[1]) % 4096);
}

static void fill_heap(const void *argument)
{
    fill_with(*(const uint64_t *)argument, 9000); /* many more take an H200 seconds */
}

static void two_of(const void *argument)
{
    fill_with(*(const uint64_t *)argument, 2);
}

static void heap_limits(const void *argument)
{
    (void)argument;
    CUmodule module = NULL;
    CUfunction fill = NULL, one = NULL;
    CUdeviceptr out = 0;
    uint64_t n = 64, most = 1;
    if (!ask_context())
        return;
    ASK("first", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
    MUST(cuModuleLoadData(&module, heap_ptx));
    ASK("after the load", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 24 << 20));
    ASK("print after the load", cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4 << 20));
    MUST(cuModuleGetFunction(&fill, module, "fill"));
    MUST(cuModuleGetFunction(&one, module, "free_null"));
    ASK("after the function", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
    MUST(cuMemAlloc(&out, 24));
    void *params[] = {&out, &n, &most};
    MUST(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ASK("after the launch", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 40 << 20));
    ASK("done", cuCtxSynchronize());
    ASK("after it", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 48 << 20));
    ASK("the same again", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
    ASK("print after it", cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 8 << 20));
    ASK("stack after it", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    ASKF("it is", cuCtxGetLimit(&t.size, CU_LIMIT_MALLOC_HEAP_SIZE), " %zu", t.size);
    MUST(cuLaunchKernel(one, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK("free of NULL", cuCtxSynchronize());
    ASK("host set of the heap", cuMemsetD8(out, 0, 8));
    MUST(cuModuleUnload(module));
    ASK("after the unload", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 56 << 20));
}

static void wrong_free(const void *argument)
{
    const char *const name = argument;
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr out = 0;
    if (!ask_context())
        return;
    MUST(cuModuleLoadData(&module, heap_ptx));
    MUST(cuModuleGetFunction(&function, module, name));
    MUST(cuMemAlloc(&out, 4096));
    out += strcmp(name, "free_wild") == 0 ? 64 : 0;
    void *params[] = {&out};
    MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ASK("done", cuCtxSynchronize());
}

void section_heap(void)
{
    static const uint64_t small[] = {0, 1, 8, 16, 17, 32, 48, 64, 100, 112, 113, 128, 200, 256, 500};
    static const uint64_t sizes[] = {1000,    1024,    4096,       10000,      100000,
                                     1 << 20, 3 << 20, 7800 << 10, 8100 << 10, 8 << 20};
    for (size_t i = 0; i < COUNT(sizes); i++)
        ask_child(ask_name("%llu bytes", (unsigned long long)sizes[i]), fill_heap, &sizes[i]);
    for (size_t i = 0; i < COUNT(small); i++)
        ask_child(ask_name("two of %llu bytes", (unsigned long long)small[i]), two_of, &small[i]);
    ask_child("limits", heap_limits, NULL);
    ask_child("free twice", wrong_free, "free_twice");
    ask_child("free of what is not from malloc", wrong_free, "free_wild");
}

/* ---- graphics ---- */

typedef int any_call(void *a, uintptr_t b, uintptr_t c, uintptr_t d);

void section_interop(void)
{
    static const char *const names[] = {
#define NAME(name) #name,
#include "interop.def"
    };
    static const int versions[] = {2000, 2020, 2030, 3000, 3010, 3020, 4000,
                                   4010, 6050, 7000, 8000, 9000, 13000};
    static unsigned char place[4096];
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; i < COUNT(names); i++) {
        ASK(ask_name("exports %s", names[i]), dlsym(driver, names[i]) != NULL);
        for (size_t v = 0; v < COUNT(versions); v++) {
            CUdriverProcAddressQueryResult status = 9;
            t.host = NULL;
            ASKF(ask_name("%s %d", names[i], versions[v]),
                 cuGetProcAddress(names[i], &t.host, versions[v], 0, &status), " %d %d", (int)status,
                 t.host != NULL);
        }
    }
    for (int state = 0; state < 2; state++) {
        ask_prefix(state == 0 ? "before cuInit" : "with a context");
        if (state == 1 && !ask_context())
            return;
        for (size_t i = 0; i < COUNT(names); i++) {
            any_call *call = NULL;
            void *const address = dlsym(driver, names[i]);
            memcpy(&call, &address, sizeof call);
            memset(place, 0, sizeof place);
            if (call != NULL)
                ASK(ask_name("%s", names[i]), call(place, 0, 0, 0));
        }
    }
}
