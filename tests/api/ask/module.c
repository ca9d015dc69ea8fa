/* Modules and the options of the JIT compiler, libraries, linking. */
#include "ask.h"

#include <unistd.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static const char broken[] = HEAD ".visible .entry e()\n{\n  frob.u32 %r1;\n  ret;\n}\n";

static void log_sizes(const char *kind, const char *text)
{
    static const unsigned sizes[] = {0, 1, 2, 16, 4096};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int which = 0; which < 2; which++) {
            char errors[4096], infos[4096];
            memset(errors, 'x', sizeof errors);
            memset(infos, 'x', sizeof infos);
            CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                      CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
            void *values[] = {errors, (void *)(uintptr_t)sizes[i], infos, (void *)(uintptr_t)sizes[i]};
            CUmodule module = NULL;
            const CUresult result = which == 0 ? cuModuleLoadDataEx(&module, text, 4, options, values)
                                               : cuModuleLoadDataEx(&module, text, 2, options, values);
            /* what is written of the sizes is theirs: only whether it stays below */
            ASKF(ask_name("%s, log of %u, %d", kind, sizes[i], which), result, " %s %s %d %d",
                 errors[0] == 'x'    ? "untouched"
                 : errors[0] == '\0' ? "empty"
                                     : "text",
                 infos[0] == 'x'    ? "untouched"
                 : infos[0] == '\0' ? "empty"
                                    : "text",
                 (uintptr_t)values[1] <= sizes[i], (uintptr_t)values[3] <= sizes[i]);
        }
}

void section_module(void)
{
    CUmodule module = NULL;
    CUfunction functions[16] = {0};
    if (!ask_setup())
        return;
    ASK("load data NULL", cuModuleLoadData(&module, NULL));
    ASK("load data into NULL", cuModuleLoadData(NULL, ask_ptx));
    ASK("load data, spaces", cuModuleLoadData(&module, "   \n\n"));
    ASK("load data, comment", cuModuleLoadData(&module, "// nothing\n"));
    ASK("load data, comment and text",
        cuModuleLoadData(&module, "// first\n\n" HEAD ".visible .entry e() { ret; }\n"));
    ASK("load data, directives only", cuModuleLoadData(&module, HEAD));
    ASK("load data, no target", cuModuleLoadData(&module, ".version 8.0\n.address_size 64\n"));
    ASK("load data, no version", cuModuleLoadData(&module, ".target sm_90\n.address_size 64\n"));
    ASK("load data, no address size",
        cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n.visible .entry e() { ret; }\n"));
    ASK("load data, no entries", cuModuleLoadData(&module, HEAD ".func f() { ret; }\n"));
    ASK("load data, broken", cuModuleLoadData(&module, broken));
    ASK("load data, cut", cuModuleLoadData(&module, HEAD ".visible .entry e() { ret;"));
    static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
    static const unsigned char fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    ASK("load data, an empty ELF", cuModuleLoadData(&module, elf));
    ASK("load data, an empty fatbin", cuModuleLoadData(&module, fatbin));
    ASK("load fat binary, PTX", cuModuleLoadFatBinary(&module, ask_ptx));
    ASK("load fat binary NULL", cuModuleLoadFatBinary(&module, NULL));
    ASK("load file NULL", cuModuleLoad(&module, NULL));
    ASK("load file empty name", cuModuleLoad(&module, ""));
    ASK("load file missing", cuModuleLoad(&module, "/nonexistent-of-clusterlab.ptx"));
    ASK("load file folder", cuModuleLoad(&module, "/"));
    char path[] = "/tmp/ask-XXXXXX";
    const int file = mkstemp(path);
    ASK("load file of nothing", cuModuleLoad(&module, path));
    if (file >= 0 && write(file, ask_ptx, strlen(ask_ptx)) == (ssize_t)strlen(ask_ptx))
        ASK("load file", cuModuleLoad(&module, path));
    unlink(path);
    log_sizes("good", HEAD ".visible .entry e() { ret; }\n");
    log_sizes("broken", broken);
    for (int option = -1; option < 36; option++) {
        static unsigned char place[256];
        CUjit_option options[] = {(CUjit_option)option};
        for (int given = 0; given < 3; given++) {
            /* 0, 1, an address; the log's buffer has no size then */
            void *values[] = {given == 2 ? (void *)place : (void *)(uintptr_t)given};
            ASK(ask_name("option %d = %s", option,
                         given == 0   ? "0"
                         : given == 1 ? "1"
                                      : "address"),
                cuModuleLoadDataEx(&module, ask_ptx, 1, options, values));
        }
    }
    static const struct {
        CUjit_option option;
        unsigned value;
    } values[] = {{CU_JIT_MAX_REGISTERS, 16},
                  {CU_JIT_MAX_REGISTERS, 255},
                  {CU_JIT_MAX_REGISTERS, 256},
                  {CU_JIT_MAX_REGISTERS, 100000},
                  {CU_JIT_THREADS_PER_BLOCK, 64},
                  {CU_JIT_THREADS_PER_BLOCK, 4096},
                  {CU_JIT_OPTIMIZATION_LEVEL, 4},
                  {CU_JIT_OPTIMIZATION_LEVEL, 5},
                  {CU_JIT_TARGET, 75},
                  {CU_JIT_TARGET, 90},
                  {CU_JIT_TARGET, 100},
                  {CU_JIT_TARGET, 91},
                  {CU_JIT_FALLBACK_STRATEGY, 2},
                  {CU_JIT_CACHE_MODE, 2},
                  {CU_JIT_CACHE_MODE, 3}};
    for (size_t i = 0; i < COUNT(values); i++) {
        CUjit_option option = values[i].option;
        void *value = (void *)(uintptr_t)values[i].value;
        ASK(ask_name("option %d = %u", (int)option, values[i].value),
            cuModuleLoadDataEx(&module, ask_ptx, 1, &option, &value));
    }
    CUjit_option both[] = {CU_JIT_THREADS_PER_BLOCK, CU_JIT_MAX_REGISTERS};
    void *two[] = {(void *)(uintptr_t)64, (void *)(uintptr_t)32};
    ASK("options of threads and registers", cuModuleLoadDataEx(&module, ask_ptx, 2, both, two));
    both[1] = CU_JIT_THREADS_PER_BLOCK;
    ASK("option twice", cuModuleLoadDataEx(&module, ask_ptx, 2, both, two));
    ASK("options NULL", cuModuleLoadDataEx(&module, ask_ptx, 1, NULL, two));
    ASK("option values NULL", cuModuleLoadDataEx(&module, ask_ptx, 1, both, NULL));
    ASKF("function count", cuModuleGetFunctionCount(&t.u, o.module), " %u", t.u);
    ASK("function count NULL", cuModuleGetFunctionCount(NULL, o.module));
    ASK("function count of NULL", cuModuleGetFunctionCount(&t.u, NULL));
    for (unsigned count = 0; count < 16; count += 3) {
        memset(functions, 0, sizeof functions);
        const CUresult result = cuModuleEnumerateFunctions(functions, count, o.module);
        unsigned n = 0;
        while (n < 16 && functions[n] != NULL)
            n++;
        ASKF(ask_name("enumerate %u", count), result, " %u", n);
    }
    for (unsigned i = 0; i < 16 && functions[i] != NULL; i++) {
        const char *name = NULL;
        ASKF(ask_name("function %u", i), cuFuncGetName(&name, functions[i]), " %s",
             name == NULL ? "NULL" : name);
    }
    ASK("enumerate NULL", cuModuleEnumerateFunctions(NULL, 1, o.module));
    ASK("function NULL", cuModuleGetFunction(NULL, o.module, "plain"));
    ASK("function NULL name", cuModuleGetFunction(&t.function, o.module, NULL));
    ASK("function of NULL", cuModuleGetFunction(&t.function, NULL, "plain"));
    ASK("function empty name", cuModuleGetFunction(&t.function, o.module, ""));
    ASK("function missing", cuModuleGetFunction(&t.function, o.module, "Plain"));
    ASK("function that is a variable", cuModuleGetFunction(&t.function, o.module, "counter"));
    ASKF("function twice", cuModuleGetFunction(&t.function, o.module, "plain"), " %d", t.function == o.plain);
    ASKF("global", cuModuleGetGlobal(&t.pointer, &t.size, o.module, "counter"), " %zu", t.size);
    ASKF("global NULL pointer", cuModuleGetGlobal(NULL, &t.size, o.module, "counter"), " %zu", t.size);
    ASKF("global NULL size", cuModuleGetGlobal(&t.pointer2, NULL, o.module, "counter"), " %d",
         t.pointer == t.pointer2);
    ASK("global NULL both", cuModuleGetGlobal(NULL, NULL, o.module, "counter"));
    ASK("global NULL name", cuModuleGetGlobal(&t.pointer, &t.size, o.module, NULL));
    ASK("global of NULL", cuModuleGetGlobal(&t.pointer, &t.size, NULL, "counter"));
    ASK("global missing", cuModuleGetGlobal(&t.pointer, &t.size, o.module, "plain"));
    ASK("texture reference missing", cuModuleGetTexRef((CUtexref *)&t.host, o.module, "counter"));
    ASK("surface reference missing", cuModuleGetSurfRef((CUsurfref *)&t.host, o.module, "counter"));
    ASK("texture reference NULL name", cuModuleGetTexRef((CUtexref *)&t.host, o.module, NULL));
    ASK("unload NULL", cuModuleUnload(NULL));
    static const char shadow[] =
        HEAD ".global .u32 hidden;\n.visible .global .align 8 .u64 shown[3];\n.weak .global .u32 weak_one;\n"
             ".common .global .u32 common_one;\n.entry inner() { ret; }\n.visible .const .u32 c = 5;\n"
             ".visible .func f() { ret; }\n.visible .entry outer() { st.global.u32 [hidden], 1; "
             "call f; ret; }\n";
    ASK("visibility", cuModuleLoadData(&module, shadow));
    static const char *const names[] = {"hidden", "shown", "weak_one", "common_one", "c"};
    for (size_t i = 0; i < COUNT(names); i++) {
        t.size = 0;
        ASKF(ask_name("visibility of %s", names[i]), cuModuleGetGlobal(&t.pointer, &t.size, module, names[i]),
             " %zu", t.size);
    }
    ASK("visibility of inner", cuModuleGetFunction(&t.function, module, "inner"));
    ASK("visibility of f", cuModuleGetFunction(&t.function, module, "f"));
    ASKF("visibility count", cuModuleGetFunctionCount(&t.u, module), " %u", t.u);
    ASK("unload", cuModuleUnload(module));
}

void section_library(void)
{
    CUlibrary library = NULL;
    CUkernel kernel = NULL, kernels[16];
    if (!ask_setup())
        return;
    ASK("load NULL", cuLibraryLoadData(NULL, ask_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK("load NULL data", cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    ASK("load garbage", cuLibraryLoadData(&library, "garbage", NULL, NULL, 0, NULL, NULL, 0));
    ASK("load broken", cuLibraryLoadData(&library, broken, NULL, NULL, 0, NULL, NULL, 0));
    ASK("module of broken", cuLibraryGetModule(&t.module, library));
    ASK("load file missing",
        cuLibraryLoadFromFile(&library, "/nonexistent-of-clusterlab", NULL, NULL, 0, NULL, NULL, 0));
    ASK("load file NULL", cuLibraryLoadFromFile(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    ASK("load jit options NULL", cuLibraryLoadData(&library, ask_ptx, NULL, NULL, 1, NULL, NULL, 0));
    CUjit_option jit = CU_JIT_MAX_REGISTERS;
    void *jit_value = (void *)(uintptr_t)32;
    ASK("load jit option", cuLibraryLoadData(&library, ask_ptx, &jit, &jit_value, 1, NULL, NULL, 0));
    for (int option = -1; option < 4; option++) {
        CUlibraryOption options[] = {(CUlibraryOption)option};
        int on = 1;
        void *values[] = {option == CU_LIBRARY_BINARY_IS_PRESERVED ? (void *)(uintptr_t)on : NULL};
        ASK(ask_name("load library option %d", option),
            cuLibraryLoadData(&library, ask_ptx, NULL, NULL, 0, options, values, 1));
    }
    ASK("load library options NULL", cuLibraryLoadData(&library, ask_ptx, NULL, NULL, 0, NULL, NULL, 1));
    ASK("kernel NULL", cuLibraryGetKernel(NULL, o.library, "plain"));
    ASK("kernel NULL name", cuLibraryGetKernel(&kernel, o.library, NULL));
    ASK("kernel missing", cuLibraryGetKernel(&kernel, o.library, "nothing"));
    ASK("kernel of NULL", cuLibraryGetKernel(&kernel, NULL, "plain"));
    ASKF("kernel twice", cuLibraryGetKernel(&kernel, o.library, "two_params"), " %d", kernel == o.kernel);
    ASKF("kernel count", cuLibraryGetKernelCount(&t.u, o.library), " %u", t.u);
    ASK("kernel count NULL", cuLibraryGetKernelCount(NULL, o.library));
    for (unsigned count = 0; count < 16; count += 3) {
        memset(kernels, 0, sizeof kernels);
        const CUresult result = cuLibraryEnumerateKernels(kernels, count, o.library);
        unsigned n = 0;
        while (n < 16 && kernels[n] != NULL)
            n++;
        ASKF(ask_name("enumerate %u", count), result, " %u", n);
    }
    for (unsigned i = 0; i < 16 && kernels[i] != NULL; i++) {
        const char *name = NULL;
        ASKF(ask_name("kernel %u", i), cuKernelGetName(&name, kernels[i]), " %s",
             name == NULL ? "NULL" : name);
    }
    ASK("enumerate NULL", cuLibraryEnumerateKernels(NULL, 1, o.library));
    ASK("module NULL", cuLibraryGetModule(NULL, o.library));
    ASKF("module", cuLibraryGetModule(&t.module, o.library), " %d", t.module != NULL);
    ASK("module's function", cuModuleGetFunction(&t.function, t.module, "two_params"));
    CUfunction function = NULL;
    ASKF("kernel's function", cuKernelGetFunction(&function, o.kernel), " %d", function == t.function);
    ASK("kernel's function NULL", cuKernelGetFunction(NULL, o.kernel));
    ASK("unload the library's module", cuModuleUnload(t.module));
    ASKF("kernel's library", cuKernelGetLibrary(&library, o.kernel), " %d", library == o.library);
    ASKF("global", cuLibraryGetGlobal(&t.pointer, &t.size, o.library, "counter"), " %zu", t.size);
    ASK("global missing", cuLibraryGetGlobal(&t.pointer, &t.size, o.library, "nothing"));
    ASK("global NULL both", cuLibraryGetGlobal(NULL, NULL, o.library, "counter"));
    ASK("managed missing", cuLibraryGetManaged(&t.pointer, &t.size, o.library, "counter"));
    ASK("unified function missing", cuLibraryGetUnifiedFunction(&t.host, o.library, "plain"));
    for (int attribute = -1; attribute < 17; attribute++) {
        t.i = -9;
        const bool varies = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS;
        ASKF(ask_name("attribute %d", attribute),
             cuKernelGetAttribute(&t.i, (CUfunction_attribute)attribute, o.kernel, 0), " %d",
             varies ? 0 : t.i);
        for (int value = -1; value < 4; value++)
            ASK(ask_name("attribute %d set to %d", attribute, value),
                cuKernelSetAttribute((CUfunction_attribute)attribute, value, o.kernel, 0));
    }
    ASK("attribute device 1", cuKernelGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, o.kernel, 1));
    ASK("attribute device -1", cuKernelGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, o.kernel, -1));
    ASK("attribute set device 1",
        cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 1, o.kernel, 1));
    ASK("attribute NULL", cuKernelGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, o.kernel, 0));
    for (size_t i = 0; i < 4; i++) {
        t.size = 9, t.size2 = 9;
        ASKF(ask_name("parameter %zu", i), cuKernelGetParamInfo(o.kernel, i, &t.size, &t.size2), " %zu %zu",
             t.size, t.size2);
    }
    ASKF("parameter NULL size", cuKernelGetParamInfo(o.kernel, 1, &t.size, NULL), " %zu", t.size);
    ASK("parameter NULL offset", cuKernelGetParamInfo(o.kernel, 1, NULL, &t.size));
    for (int config = -1; config < 5; config++)
        ASK(ask_name("cache config %d", config), cuKernelSetCacheConfig(o.kernel, (CUfunc_cache)config, 0));
    ASK("cache config device 1", cuKernelSetCacheConfig(o.kernel, CU_FUNC_CACHE_PREFER_L1, 1));
    ASK("kernel as function: attribute",
        cuFuncGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUfunction)o.kernel));
    ASK("kernel as function: set",
        cuFuncSetAttribute((CUfunction)o.kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 3));
    ASK("kernel as function: name", cuFuncGetName((const char **)&t.host, (CUfunction)o.kernel));
    ASK("kernel as function: module", cuFuncGetModule(&t.module, (CUfunction)o.kernel));
    ASK("kernel as function: parameter", cuFuncGetParamInfo((CUfunction)o.kernel, 0, &t.size, &t.size2));
    ASK("kernel as function: occupancy",
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&t.i, (CUfunction)o.kernel, 128, 0));
    ASK("kernel as function: launch",
        cuLaunchKernel((CUfunction)o.kernel, 1, 1, 1, 1, 1, 1, 0, o.stream, ask_params, NULL));
    ASK("kernel as function: loaded", cuFuncIsLoaded((CUfunctionLoadingState *)&t.i, (CUfunction)o.kernel));
    ASK("kernel as function: load", cuFuncLoad((CUfunction)o.kernel));
    cuCtxSynchronize();
    ASK("unload", cuLibraryUnload(o.library));
    ASK("unload NULL", cuLibraryUnload(NULL));
}

void section_link(void)
{
    CUlinkState state = NULL;
    void *image = NULL;
    size_t bytes = 0;
    static char good[] = HEAD ".visible .entry e() { ret; }\n",
                second[] = HEAD ".visible .entry e2() { ret; }\n",
                bad[] = HEAD ".visible .entry e() { frob; ret; }\n";
    if (!ask_setup())
        return;
    ASK("create NULL", cuLinkCreate(0, NULL, NULL, NULL));
    ASK("create options NULL", cuLinkCreate(1, NULL, NULL, &state));
    for (int option = -1; option < 36; option++) {
        CUjit_option options[] = {(CUjit_option)option};
        static unsigned char place[256];
        void *values[] = {(void *)(uintptr_t)(option == 3 || option == 5 || option == 2 || option == 19
                                                  ? (uintptr_t)place
                                                  : 1)};
        state = NULL;
        ASK(ask_name("create option %d", option), cuLinkCreate(1, options, values, &state));
        if (state != NULL)
            cuLinkDestroy(state);
    }
    MUST(cuLinkCreate(0, NULL, NULL, &state));
    ASK("add NULL data", cuLinkAddData(state, CU_JIT_INPUT_PTX, NULL, 10, "a", 0, NULL, NULL));
    ASK("add 0 bytes", cuLinkAddData(state, CU_JIT_INPUT_PTX, good, 0, "a", 0, NULL, NULL));
    ASK("add to NULL", cuLinkAddData(NULL, CU_JIT_INPUT_PTX, good, sizeof good, "a", 0, NULL, NULL));
    for (int type = -1; type < 8; type++)
        if (type != CU_JIT_INPUT_PTX)
            ASK(ask_name("add PTX as type %d", type),
                cuLinkAddData(state, (CUjitInputType)type, good, sizeof good, "a", 0, NULL, NULL));
    cuLinkDestroy(state);
    MUST(cuLinkCreate(0, NULL, NULL, &state));
    ASK("add options NULL", cuLinkAddData(state, CU_JIT_INPUT_PTX, good, sizeof good, "a", 1, NULL, NULL));
    ASK("add broken", cuLinkAddData(state, CU_JIT_INPUT_PTX, bad, sizeof bad, "a", 0, NULL, NULL));
    ASK("add good after it", cuLinkAddData(state, CU_JIT_INPUT_PTX, good, sizeof good, NULL, 0, NULL, NULL));
    ASK("complete NULL image", cuLinkComplete(state, NULL, &bytes));
    ASKF("complete", cuLinkComplete(state, &image, &bytes), " %d", bytes > 0);
    ASK("destroy", cuLinkDestroy(state));
    MUST(cuLinkCreate(0, NULL, NULL, &state));
    ASK("add without the NUL",
        cuLinkAddData(state, CU_JIT_INPUT_PTX, good, sizeof good - 1, "a", 0, NULL, NULL));
    ASK("add second", cuLinkAddData(state, CU_JIT_INPUT_PTX, second, sizeof second, "b", 0, NULL, NULL));
    ASK("complete NULL size", cuLinkComplete(state, &image, NULL));
    ASK("complete of two", cuLinkComplete(state, &image, &bytes));
    ASK("complete again", cuLinkComplete(state, &image, &bytes));
    ASK("add after", cuLinkAddData(state, CU_JIT_INPUT_PTX, second, sizeof second, "b", 0, NULL, NULL));
    ASK("load", cuModuleLoadData(&t.module, image));
    ASKF("count", cuModuleGetFunctionCount(&t.u, t.module), " %u", t.u);
    ASK("destroy second", cuLinkDestroy(state));
    ASK("function after", cuModuleGetFunction(&t.function, t.module, "e2"));
    ASK("launch after", cuLaunchKernel(t.function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK("finish", cuCtxSynchronize());
    ASK("destroy NULL", cuLinkDestroy(NULL));
    MUST(cuLinkCreate(0, NULL, NULL, &state));
    ASK("file NULL", cuLinkAddFile(state, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL));
    ASK("file missing", cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nonexistent-of-clusterlab", 0, NULL, NULL));
    ASK("file missing, library",
        cuLinkAddFile(state, CU_JIT_INPUT_LIBRARY, "/nonexistent-of-clusterlab", 0, NULL, NULL));
    ASK("complete after missing files", cuLinkComplete(state, &image, &bytes));
}
