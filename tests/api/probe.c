/* Asks a libcuda what it answers and prints one line per answer: run on a GPU it records evidence, run on the
   stand-in driver its output is compared with that record (conformance.py).

   usage: probe LIBCUDA SECTION…       sections: errors device context calls launch clusters tensormap
   function graph linking faults

   Nothing is linked to: the functions come from dlopen through host/driver/cuda.def. Each section runs in a
   child. A call that crashes the driver is recorded as such: the section starts again, in silence up to that
   call, and leaves it out. Faults leave a context unusable, so each has its own child. */
#define PROBE_SECTION_SECONDS 0 /* no limit */
#include "probing.h"

static const char *const ptx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n.visible .const .align 4 .b8 table[12];\n"
    ".visible .entry plain(.param .u64 p, .param .u32 n)\n{ ret; }\n"
    ".visible .entry small() .maxntid 64, 1, 1 { ret; }\n"
    ".visible .entry exact() .reqntid 32, 2, 1 { ret; }\n"
    ".visible .entry two() .reqnctapercluster 2 { ret; }\n"
    ".visible .entry explicit_() .explicitcluster { ret; }\n"
    ".visible .entry rank4() .explicitcluster .maxclusterrank 4 { ret; }\n"
    ".visible .entry shared() { .shared .align 16 .b8 block[4096]; .reg .b32 r; mov.u32 r, block; "
    "st.shared.u32 [r], r; "
    "ret; }\n"
    ".visible .entry store(.param .u64 p)\n{ .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p]; mov.u32 v, 1;\n"
    "  st.global.u32 [a], v; ret; }\n"
    ".visible .entry load_shared(.param .u32 p)\n{ .reg .b32 a, v; ld.param.u32 a, [p]; ld.shared.u32 v, "
    "[a];\n"
    "  st.shared.u32 [a], v; ret; }\n"
    ".visible .entry load_small(.param .u32 p)\n{ .shared .align 16 .b8 s[16]; .reg .b32 a, v; ld.param.u32 "
    "a, [p];\n"
    "  mov.u32 v, s; st.shared.u32 [v], a; ld.shared.u32 v, [a]; st.shared.u32 [a], v; ret; }\n"
    ".visible .entry trap_() { trap; ret; }\n"
    ".visible .entry brk() { brkpt; ret; }\n"
    ".visible .entry write_const(.param .u64 p)\n{ .reg .b64 a; .reg .b32 v; mov.u64 a, table; "
    "cvta.const.u64 a, a;\n"
    "  mov.u32 v, 1; st.u32 [a], v; ret; }\n"
    ".visible .entry atom_shared_misaligned()\n{ .shared .align 8 .b8 s[16]; .reg .b32 a, v; mov.u32 a, s;\n"
    "  add.u32 a, a, 2; atom.shared.add.u32 v, [a], 1; ret; }\n";

static CUmodule module;

static void load(void)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    start();
    CUresult result = cu.cuModuleLoadDataEx(&module, ptx, 2, options, values);
    if (result != CUDA_SUCCESS) {
        say("module not loaded: %d %s\n", (int)result, log);
        exit(1);
    }
}

static CUfunction get(const char *name)
{
    CUfunction function = NULL;
    CUresult result = cu.cuModuleGetFunction(&function, module, name);
    if (result != CUDA_SUCCESS)
        say("no function %s: %d\n", name, (int)result);
    return function;
}

static void errors(void)
{
    for (int code = 0; code < 1001; code++) {
        const char *name = NULL, *text = NULL;
        CUresult named = cu.cuGetErrorName((CUresult)code, &name),
                 told = cu.cuGetErrorString((CUresult)code, &text);
        if (named == CUDA_SUCCESS || told == CUDA_SUCCESS)
            say("error %d %s | %s\n", code, name, text);
        else if (code == 9)
            say("error unknown %d %d %d %d\n", (int)named, (int)told, name != NULL, text != NULL);
    }
}

static void device(void)
{
    start();
    for (int attribute = 0; attribute < 150; attribute++) {
        int value = -12345;
        CUresult result = cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)attribute, 0);
        say("attribute %d %d %d\n", attribute, (int)result, value);
    }
    size_t bytes = 0;
    char text[64] = "";
    int value = 0, other = 0;
    say("total %d", (int)cu.cuDeviceTotalMem_v2(&bytes, 0));
    say(" %zu\n", bytes);
    say("pci %d", (int)cu.cuDeviceGetPCIBusId(text, (int)sizeof text, 0));
    say(" %s\n", text);
    say("count %d", (int)cu.cuDeviceGetCount(&value));
    say(" %d\n", value);
    say("get -1 %d, get 99 %d\n", (int)cu.cuDeviceGet(&value, -1), (int)cu.cuDeviceGet(&value, 99));
    say("capability %d", (int)cu.cuDeviceComputeCapability(&value, &other, 0));
    say(" %d.%d\n", value, other);
    CUdevprop properties = {0};
    say("properties %d", (int)cu.cuDeviceGetProperties(&properties, 0));
    say(" %d %d %d %d %d %d %d\n", properties.maxThreadsPerBlock, properties.sharedMemPerBlock,
        properties.totalConstantMemory, properties.SIMDWidth, properties.memPitch, properties.regsPerBlock,
        properties.textureAlign);
    for (int type = 0; type < 2; type++) {
        value = -1;
        say("affinity %d %d", type,
            (int)cu.cuDeviceGetExecAffinitySupport(&value, (CUexecAffinityType)type, 0));
        say(" %d\n", value);
    }
    for (int attribute = 0; attribute < 7; attribute++) {
        value = -1;
        CUresult result = cu.cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)attribute, 0, 0);
        say("p2p %d %d %d\n", attribute, (int)result, value);
    }
    value = -1;
    say("peer %d", (int)cu.cuDeviceCanAccessPeer(&value, 0, 0));
    say(" %d\n", value);
}

static void contexts(void)
{
    start();
    for (int limit = 0; limit < 12; limit++) {
        size_t value = 0;
        CUresult result = cu.cuCtxGetLimit(&value, (CUlimit)limit);
        say("limit %d %d %zu", limit, (int)result, value);
        result = cu.cuCtxSetLimit((CUlimit)limit, limit == 5 ? 64 : 70000);
        size_t now = 0;
        cu.cuCtxGetLimit(&now, (CUlimit)limit);
        say(" set %d %zu\n", (int)result, now);
    }
    int least = 9, greatest = 9;
    cu.cuCtxGetStreamPriorityRange(&least, &greatest);
    unsigned version = 0, flags = 99;
    say("priority %d %d\n", least, greatest);
    say("version %d", (int)cu.cuCtxGetApiVersion(context, &version));
    say(" %u\n", version);
    SAY("version of NULL", cu.cuCtxGetApiVersion(NULL, &version));
    SAY("version into NULL", cu.cuCtxGetApiVersion(context, NULL));
    say("flags %d", (int)cu.cuCtxGetFlags(&flags));
    say(" %u\n", flags);
    CUcontext made = NULL, popped = NULL;
    SAY("create", cu.cuCtxCreate_v2(&made, 0, 0));
    SAY("create bad flags", cu.cuCtxCreate_v2(&popped, 0x10000, 0));
    SAY("create bad device", cu.cuCtxCreate_v2(&popped, 0, 9));
    SAY("create NULL", cu.cuCtxCreate_v2(NULL, 0, 0));
    say("pop %d", (int)cu.cuCtxPopCurrent_v2(&popped));
    say(" %d\n", popped == made);
    say("destroy %d\n", (int)cu.cuCtxDestroy_v2(made));
    SAY("destroy primary", cu.cuCtxDestroy_v2(context));
    SAY("destroy NULL", cu.cuCtxDestroy_v2(NULL));
    SAY("id of NULL", cu.cuCtxGetId(NULL, &(unsigned long long){0}));
    SAY("id into NULL", cu.cuCtxGetId(context, NULL));
    SAY("device of the current", cu.cuCtxGetDevice(&(CUdevice){0}));
    cu.cuCtxSetCurrent(NULL);
    size_t bytes;
    CUdeviceptr pointer;
    say("no context: alloc %d info %d synchronize %d\n", (int)cu.cuMemAlloc_v2(&pointer, 16),
        (int)cu.cuMemGetInfo_v2(&bytes, &bytes), (int)cu.cuCtxSynchronize());
    say("no context: pop %d get %d set NULL %d\n", (int)cu.cuCtxPopCurrent_v2(&popped),
        (int)cu.cuCtxGetCurrent(&popped), (int)cu.cuCtxSetCurrent(NULL));
    cu.cuCtxSetCurrent(context);
    SAY("reset", cu.cuDevicePrimaryCtxReset_v2(0));
    SAY("after reset: alloc", cu.cuMemAlloc_v2(&pointer, 16));
    SAY("after reset: release", cu.cuDevicePrimaryCtxRelease_v2(0));
    SAY("after reset: release again", cu.cuDevicePrimaryCtxRelease_v2(0));
    CUcontext again = NULL;
    SAY("retain", cu.cuDevicePrimaryCtxRetain(&again, 0));
    say("same handle %d\n", again == context);
    SAY("retained: alloc", cu.cuMemAlloc_v2(&pointer, 16));
    SAY("release", cu.cuDevicePrimaryCtxRelease_v2(0));
    SAY("release again", cu.cuDevicePrimaryCtxRelease_v2(0));
    SAY("released: alloc", cu.cuMemAlloc_v2(&pointer, 16));
    SAY("released: set current", cu.cuCtxSetCurrent(context));
}

static void calls(void)
{
    load();
    CUdeviceptr a = 0, b = 0;
    size_t bytes = 0, pitch = 0;
    void *host = NULL;
    unsigned flags = 0;
    char local[64];
    SAY("init flags", cu.cuInit(1));
    SAY("version NULL", cu.cuDriverGetVersion(NULL));
    SAY("alloc 0", cu.cuMemAlloc_v2(&a, 0));
    SAY("alloc NULL", cu.cuMemAlloc_v2(NULL, 4));
    SAY("alloc huge", cu.cuMemAlloc_v2(&a, (size_t)1 << 46));
    SAY("alloc", cu.cuMemAlloc_v2(&a, 1000));
    say("alignment %d\n", (int)(a % 512));
    SAY("free inner", cu.cuMemFree_v2(a + 8));
    SAY("free 0", cu.cuMemFree_v2(0));
    SAY("free host", cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)local));
    SAY("range", cu.cuMemGetAddressRange_v2(&b, &bytes, a + 10));
    say("range is %d %zu\n", b == a, bytes);
    SAY("range of host", cu.cuMemGetAddressRange_v2(&b, &bytes, (CUdeviceptr)(uintptr_t)local));
    SAY("pitch", cu.cuMemAllocPitch_v2(&b, &pitch, 100, 3, 4));
    say("pitch is %zu\n", pitch);
    SAY("pitch element 3", cu.cuMemAllocPitch_v2(&b, &pitch, 100, 3, 3));
    SAY("htod beyond", cu.cuMemcpyHtoD_v2(a, local, 2000));
    SAY("htod host destination", cu.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)local, local, 4));
    SAY("htod NULL", cu.cuMemcpyHtoD_v2(a, NULL, 4));
    SAY("htod 0 bytes", cu.cuMemcpyHtoD_v2(a, local, 0));
    SAY("dtoh NULL", cu.cuMemcpyDtoH_v2(NULL, a, 4));
    SAY("set misaligned", cu.cuMemsetD32_v2(a + 2, 1, 4));
    SAY("set beyond", cu.cuMemsetD32_v2(a, 1, 1000));
    SAY("set 0", cu.cuMemsetD32_v2(a, 1, 0));
    SAY("set host", cu.cuMemsetD8_v2((CUdeviceptr)(uintptr_t)local, 1, 4));
    SAY("host alloc", cu.cuMemHostAlloc(&host, 100, 0));
    SAY("host flags", cu.cuMemHostGetFlags(&flags, host));
    say("host flags are %u\n", flags);
    SAY("host alloc 0", cu.cuMemHostAlloc(&host, 0, 0));
    SAY("host alloc flags", cu.cuMemHostAlloc(&host, 4, 0x100));
    SAY("host free of stack", cu.cuMemFreeHost(local));
    SAY("host device pointer of stack", cu.cuMemHostGetDevicePointer_v2(&b, local, 0));
    SAY("register", cu.cuMemHostRegister_v2(local, 64, 0));
    SAY("register again", cu.cuMemHostRegister_v2(local, 64, 0));
    SAY("unregister", cu.cuMemHostUnregister(local));
    SAY("unregister again", cu.cuMemHostUnregister(local));
    SAY("managed flags", cu.cuMemAllocManaged(&b, 64, 9));
    CUstream stream = NULL, gone = NULL;
    SAY("stream flags", cu.cuStreamCreate(&stream, 4));
    SAY("stream NULL", cu.cuStreamCreate(NULL, 0));
    SAY("stream", cu.cuStreamCreateWithPriority(&stream, 0, -100));
    int priority = 9;
    SAY("stream priority", cu.cuStreamGetPriority(stream, &priority));
    say("priority is %d\n", priority);
    SAY("destroy stream 0", cu.cuStreamDestroy_v2(NULL));
    SAY("destroy legacy stream", cu.cuStreamDestroy_v2(CU_STREAM_LEGACY));
    gone = stream;
    SAY("destroy stream", cu.cuStreamDestroy_v2(gone));
    CUevent one = NULL, two = NULL;
    float ms = 0;
    SAY("event flags", cu.cuEventCreate(&one, 0x80));
    SAY("event", cu.cuEventCreate(&one, 0));
    SAY("event without timing", cu.cuEventCreate(&two, CU_EVENT_DISABLE_TIMING));
    SAY("query unrecorded", cu.cuEventQuery(one));
    SAY("synchronize unrecorded", cu.cuEventSynchronize(one));
    SAY("elapsed unrecorded", cu.cuEventElapsedTime(&ms, one, one));
    SAY("record", cu.cuEventRecord(one, NULL));
    SAY("record two", cu.cuEventRecord(two, NULL));
    SAY("synchronize", cu.cuEventSynchronize(one));
    SAY("elapsed without timing", cu.cuEventElapsedTime(&ms, one, two));
    SAY("elapsed NULL", cu.cuEventElapsedTime(NULL, one, one));
    SAY("wait flags", cu.cuStreamWaitEvent(NULL, one, 2));
    SAY("record NULL", cu.cuEventRecord(NULL, NULL));
    CUfunction function = NULL;
    SAY("function missing", cu.cuModuleGetFunction(&function, module, "nothing"));
    SAY("function NULL name", cu.cuModuleGetFunction(&function, module, NULL));
    SAY("global", cu.cuModuleGetGlobal_v2(&b, &bytes, module, "counter"));
    say("global is %zu\n", bytes);
    SAY("const", cu.cuModuleGetGlobal_v2(&b, &bytes, module, "table"));
    say("const is %zu\n", bytes);
    SAY("global missing", cu.cuModuleGetGlobal_v2(&b, &bytes, module, "nothing"));
    SAY("load NULL", cu.cuModuleLoadData(&module, NULL));
    CUmodule other = NULL;
    SAY("load garbage", cu.cuModuleLoadData(&other, "garbage, no image"));
    SAY("load empty", cu.cuModuleLoadData(&other, ""));
    SAY("load file missing", cu.cuModuleLoad(&other, "/nonexistent-of-clusterlab.ptx"));
    SAY("load sm_100", cu.cuModuleLoadData(&other, ".version 9.0\n.target sm_100\n.address_size 64\n"));
    SAY("load sm_90a", cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_90a\n.address_size 64\n"));
    SAY("load sm_100f", cu.cuModuleLoadData(&other, ".version 9.0\n.target sm_100f\n.address_size 64\n"));
    SAY("load sm_52", cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_52\n.address_size 64\n"));
    SAY("load sm_20", cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_20\n.address_size 64\n"));
    SAY("load sm_77", cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_77\n.address_size 64\n"));
    SAY("load version 9.1", cu.cuModuleLoadData(&other, ".version 9.1\n.target sm_90\n.address_size 64\n"));
    SAY("load version 10.0", cu.cuModuleLoadData(&other, ".version 10.0\n.target sm_90\n.address_size 64\n"));
    SAY("load version 7.0 with sm_90",
        cu.cuModuleLoadData(&other, ".version 7.0\n.target sm_90\n.address_size 64\n"));
    SAY("load extern",
        cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f();\n"
                                    ".visible .entry e() { call f; ret; }\n"));
    SAY("load unused extern",
        cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_90\n.address_size 64\n"
                                    ".extern .func f();\n.visible .entry e() { ret; }\n"));
    SAY("load 32 bit", cu.cuModuleLoadData(&other, ".version 8.0\n.target sm_90\n.address_size 32\n"));
    SAY("load bad option",
        cu.cuModuleLoadDataEx(&other, ptx, 1, (CUjit_option[]){(CUjit_option)99}, (void *[]){NULL}));
    void *entry = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    SAY("entry unknown", cu.cuGetProcAddress_v2("cuNothing", &entry, 12000, 0, &status));
    say("entry unknown status %d %d\n", (int)status, entry != NULL);
    SAY("entry too new", cu.cuGetProcAddress_v2("cuStreamGetDevice", &entry, 11000, 0, &status));
    say("entry too new status %d %d\n", (int)status, entry != NULL);
    SAY("entry", cu.cuGetProcAddress_v2("cuMemAlloc", &entry, 13000, 0, &status));
    say("entry status %d %d\n", (int)status, entry != NULL);
    SAY("entry version 99999", cu.cuGetProcAddress_v2("cuMemAlloc", &entry, 99999, 0, &status));
    say("entry version 99999 status %d %d\n", (int)status, entry != NULL);
    SAY("entry by symbol name", cu.cuGetProcAddress_v2("cuMemAlloc_v2", &entry, 13000, 0, &status));
    say("entry by symbol name status %d %d\n", (int)status, entry != NULL);
    SAY("entry v1 unknown", cu.cuGetProcAddress("cuNothing", &entry, 12000, 0));
    SAY("entry v1 too new", cu.cuGetProcAddress("cuStreamGetDevice", &entry, 11000, 0));
    SAY("entry flags", cu.cuGetProcAddress_v2("cuMemAlloc", &entry, 13000, 8, &status));
    SAY("entry both flags", cu.cuGetProcAddress_v2("cuMemAlloc", &entry, 13000, 3, &status));
    unsigned type = 99;
    SAY("pointer type of stack",
        cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)local));
    SAY("pointer type", cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    say("pointer type is %u\n", type);
    for (int attribute = 0; attribute < 22; attribute++) {
        unsigned char value[64];
        memset(value, 0xee, sizeof value);
        CUresult result = cu.cuPointerGetAttribute(value, (CUpointer_attribute)attribute, a + 4);
        say("pointer attribute %d %d", attribute, (int)result);
        if (attribute != 1 && attribute != 3 && attribute != 5 && attribute != 7 && attribute != 11 &&
            attribute != 17 && attribute != 19 && attribute != 20)
            say(" %02x%02x%02x%02x", value[3], value[2], value[1], value[0]);
        say("\n");
    }
    SAY("attribute of NULL function", cu.cuFuncGetAttribute((int *)&type, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    SAY("launch NULL function", cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    SAY("unload NULL", cu.cuModuleUnload(NULL));
    SAY("destroy event NULL", cu.cuEventDestroy_v2(NULL));
    SAY("host function NULL", cu.cuLaunchHostFunc(NULL, NULL, NULL));
    SAY("prefetch of device memory",
        cu.cuMemPrefetchAsync_v2(a, 4, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}, 0, NULL));
    SAY("2D pitch too small", cu.cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                                                .srcDevice = a,
                                                                .srcPitch = 8,
                                                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                                .dstDevice = a + 512,
                                                                .dstPitch = 16,
                                                                .WidthInBytes = 16,
                                                                .Height = 2}));
    SAY("2D pitch 0", cu.cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                                        .srcDevice = a,
                                                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                        .dstDevice = a + 512,
                                                        .dstPitch = 16,
                                                        .WidthInBytes = 16,
                                                        .Height = 2}));
    SAY("2D pitch 0, one row", cu.cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                                                 .srcDevice = a,
                                                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                                 .dstDevice = a + 512,
                                                                 .WidthInBytes = 16,
                                                                 .Height = 1}));
    SAY("2D memory type 0", cu.cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcDevice = a,
                                                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                              .dstDevice = a + 512,
                                                              .WidthInBytes = 16,
                                                              .Height = 1}));
    SAY("2D of height 0", cu.cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                                            .srcDevice = a,
                                                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                            .dstDevice = a + 512,
                                                            .WidthInBytes = 16,
                                                            .Height = 0}));
    SAY("2D set pitch too small", cu.cuMemsetD2D8_v2(a, 8, 1, 16, 2));
    SAY("2D set", cu.cuMemsetD2D8_v2(a, 16, 1, 16, 2));
    CUmemoryPool pool = NULL;
    SAY("allocate async 0", cu.cuMemAllocAsync(&b, 0, NULL));
    SAY("allocate async", cu.cuMemAllocAsync(&b, 100, NULL));
    SAY("free async inner", cu.cuMemFreeAsync(b + 8, NULL));
    SAY("free async", cu.cuMemFreeAsync(b, NULL));
    SAY("free async twice", cu.cuMemFreeAsync(b, NULL));
    SAY("free async of cuMemAlloc", cu.cuMemFreeAsync(a, NULL));
    SAY("pool", cu.cuDeviceGetDefaultMemPool(&pool, 0));
    for (int attribute = 1; attribute < 9; attribute++) {
        uint64_t value = 0;
        CUresult result = cu.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, &value);
        say("pool attribute %d %d %llu\n", attribute, (int)result, (unsigned long long)value);
    }
    SAY("destroy default pool", cu.cuMemPoolDestroy(pool));
}

/* Linking, and which flaws of a text are found when. */
static void linking(void)
{
    static char good[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }\n";
    static char unknown[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { frob.u32 %r1; ret; }\n";
    static char unused[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }\n"
                           ".func f() { frob.u32 %r1; ret; }\n";
    static char calls_f[] = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f();\n"
                            ".visible .entry e2() { call f; ret; }\n";
    static char has_f[] = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .func f() { ret; }\n";
    static char newer[] = ".version 8.7\n.target sm_100\n.address_size 64\n.visible .entry e3() { ret; }\n";
    static char undeclared[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { mov.u32 r9, 1; ret; }\n";
    static char extern_global[] = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .global .u32 g;\n"
                                  ".visible .entry e() { .reg .u32 r; ld.global.u32 r, [g]; ret; }\n";
    static char twice[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }\n"
                          ".visible .entry e() { ret; }\n";
    static char sm_100_only[] =
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry e(.param .u32 p) {\n"
        ".reg .b32 a; .shared .align 16 .b8 s[16]; mov.u32 a, s;\n"
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [a], [a];"
        " ret; }\n";
    CUlinkState state = NULL;
    void *image = NULL;
    size_t bytes = 0;
    CUmodule other = NULL;
    CUfunction function = NULL;
    load();
    SAY("load unknown", cu.cuModuleLoadData(&other, unknown));
    SAY("load unknown, unused", cu.cuModuleLoadData(&other, unused));
    SAY("load undeclared register", cu.cuModuleLoadData(&other, undeclared));
    SAY("load extern variable", cu.cuModuleLoadData(&other, extern_global));
    SAY("load entry twice", cu.cuModuleLoadData(&other, twice));
    SAY("load form of sm_100 for sm_90", cu.cuModuleLoadData(&other, sm_100_only));
    SAY("link create", cu.cuLinkCreate_v2(0, NULL, NULL, &state));
    SAY("link complete empty", cu.cuLinkComplete(state, &image, &bytes));
    SAY("link destroy", cu.cuLinkDestroy(state));
    SAY("link create", cu.cuLinkCreate_v2(0, NULL, NULL, &state));
    SAY("link add unknown",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, unknown, sizeof unknown, "a", 0, NULL, NULL));
    SAY("link add newer",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, newer, sizeof newer, "a", 0, NULL, NULL));
    SAY("link destroy", cu.cuLinkDestroy(state));
    SAY("link create", cu.cuLinkCreate_v2(0, NULL, NULL, &state));
    SAY("link add caller",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, calls_f, sizeof calls_f, "b", 0, NULL, NULL));
    SAY("link complete without callee", cu.cuLinkComplete(state, &image, &bytes));
    SAY("link destroy", cu.cuLinkDestroy(state));
    SAY("link create", cu.cuLinkCreate_v2(0, NULL, NULL, &state));
    SAY("link add caller",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, calls_f, sizeof calls_f, "b", 0, NULL, NULL));
    SAY("link add callee",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, has_f, sizeof has_f, "c", 0, NULL, NULL));
    SAY("link add good",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, good, sizeof good, NULL, 0, NULL, NULL));
    SAY("link complete", cu.cuLinkComplete(state, &image, &bytes));
    SAY("link load", cu.cuModuleLoadData(&other, image));
    SAY("link get", cu.cuModuleGetFunction(&function, other, "e2"));
    SAY("link launch", cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    SAY("link add after complete",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, good, sizeof good, NULL, 0, NULL, NULL));
    SAY("link destroy", cu.cuLinkDestroy(state));
    SAY("link finish", cu.cuCtxSynchronize());
    static char duplicate[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }\n";
    SAY("link create", cu.cuLinkCreate_v2(0, NULL, NULL, &state));
    SAY("link add good",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, good, sizeof good, NULL, 0, NULL, NULL));
    SAY("link add the same",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, duplicate, sizeof duplicate, "d", 0, NULL, NULL));
    SAY("link complete twice defined", cu.cuLinkComplete(state, &image, &bytes));
    SAY("link add garbage cubin",
        cu.cuLinkAddData_v2(state, CU_JIT_INPUT_CUBIN, good, sizeof good, "d", 0, NULL, NULL));
    SAY("link add missing file",
        cu.cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, "/nonexistent-of-clusterlab", 0, NULL, NULL));
}

static CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = y;
    attribute.value.clusterDim.z = z;
    return attribute;
}

/* Launches and asks for active clusters; x = 0 and `bare`: no attribute at all. */
static void try_launch(const char *label, const char *name, CUlaunchConfig config, bool bare, unsigned x,
                       unsigned y, unsigned z, bool nonportable, int dynamic)
{
    CUlaunchAttribute attributes[2] = {cluster(x, y, z)};
    CUfunction function = get(name);
    uint64_t arguments[2] = {0};
    void *params[] = {&arguments[0], &arguments[1]};
    int clusters = -1, potential = -1;
    config.attrs = bare ? NULL : attributes;
    config.numAttrs = bare ? 0 : 1;
    cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, nonportable);
    CUresult opted = CUDA_SUCCESS;
    if (dynamic > 0)
        opted = cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic);
    CUresult launched = cu.cuLaunchKernelEx(&config, function, params, NULL);
    CUresult finished = cu.cuCtxSynchronize();
    CUresult asked = cu.cuOccupancyMaxActiveClusters(&clusters, function, &config);
    CUresult most = cu.cuOccupancyMaxPotentialClusterSize(&potential, function, &config);
    say("launch %s: %d %d, clusters %d %d, potential %d %d, opt-in %d\n", label, (int)launched, (int)finished,
        (int)asked, clusters, (int)most, potential, (int)opted);
}

static CUlaunchConfig shape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned bytes)
{
    return (CUlaunchConfig){.gridDimX = gx,
                            .gridDimY = gy,
                            .gridDimZ = gz,
                            .blockDimX = bx,
                            .blockDimY = by,
                            .blockDimZ = bz,
                            .sharedMemBytes = bytes};
}

static void launch(void)
{
    load();
    try_launch("no attribute", "plain", shape(4, 1, 1, 1024, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("grid 7 cluster 2", "plain", shape(7, 1, 1, 1024, 1, 1, 0), false, 2, 1, 1, false, 0);
    try_launch("grid 6 cluster 3", "plain", shape(6, 1, 1, 1024, 1, 1, 0), false, 3, 1, 1, false, 0);
    try_launch("grid 9 cluster 9", "plain", shape(9, 1, 1, 1024, 1, 1, 0), false, 9, 1, 1, false, 0);
    try_launch("grid 9 cluster 9 non-portable", "plain", shape(9, 1, 1, 1024, 1, 1, 0), false, 9, 1, 1, true,
               0);
    try_launch("grid 16 cluster 16 non-portable", "plain", shape(16, 1, 1, 1024, 1, 1, 0), false, 16, 1, 1,
               true, 0);
    try_launch("grid 17 cluster 17 non-portable", "plain", shape(17, 1, 1, 1024, 1, 1, 0), false, 17, 1, 1,
               true, 0);
    try_launch("cluster 16, 227 KiB", "shared", shape(16, 1, 1, 1024, 1, 1, 223 * 1024), false, 16, 1, 1,
               true, 223 * 1024);
    try_launch("cluster x = 0", "plain", shape(4, 1, 1, 1024, 1, 1, 0), false, 0, 1, 1, false, 0);
    try_launch("cluster 0 0 0", "plain", shape(4, 1, 1, 1024, 1, 1, 0), false, 0, 0, 0, false, 0);
    try_launch("cluster y = 0", "plain", shape(4, 1, 1, 1024, 1, 1, 0), false, 2, 0, 1, false, 0);
    try_launch("cluster z = 0", "plain", shape(4, 1, 1, 1024, 1, 1, 0), false, 2, 1, 0, false, 0);
    try_launch("cluster 2x2x2", "plain", shape(4, 4, 4, 64, 1, 1, 0), false, 2, 2, 2, false, 0);
    try_launch("cluster 1x4", "plain", shape(1, 2, 4, 64, 1, 1, 0), false, 1, 4, 1, false, 0);
    try_launch("required 2, grid 4", "two", shape(4, 1, 1, 1024, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("required 2, grid 3", "two", shape(3, 1, 1, 1024, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("required 2, attribute 4", "two", shape(4, 1, 1, 1024, 1, 1, 0), false, 4, 1, 1, false, 0);
    try_launch("required 2, attribute 2", "two", shape(4, 1, 1, 1024, 1, 1, 0), false, 2, 1, 1, false, 0);
    try_launch("required 2, attribute x = 0", "two", shape(4, 1, 1, 1024, 1, 1, 0), false, 0, 1, 1, false, 0);
    try_launch("explicit without", "explicit_", shape(4, 1, 1, 1024, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("explicit with 2", "explicit_", shape(4, 1, 1, 1024, 1, 1, 0), false, 2, 1, 1, false, 0);
    try_launch("maximum rank 4 with 8", "rank4", shape(8, 1, 1, 1024, 1, 1, 0), false, 8, 1, 1, false, 0);
    try_launch("maximum rank 4 with 4", "rank4", shape(8, 1, 1, 1024, 1, 1, 0), false, 4, 1, 1, false, 0);
    try_launch("228 KiB", "plain", shape(4, 1, 1, 1024, 1, 1, 228 * 1024), false, 2, 1, 1, false, 0);
    try_launch("100 KiB not opted in", "plain", shape(4, 1, 1, 1024, 1, 1, 100 * 1024), false, 2, 1, 1, false,
               0);
    try_launch("48 KiB", "plain", shape(4, 1, 1, 32, 1, 1, 48 * 1024), true, 0, 0, 0, false, 0);
    try_launch("48 KiB + 1", "plain", shape(4, 1, 1, 32, 1, 1, 48 * 1024 + 1), true, 0, 0, 0, false, 0);
    try_launch("44 KiB beside 4 KiB", "shared", shape(4, 1, 1, 32, 1, 1, 44 * 1024), true, 0, 0, 0, false,
               44 * 1024);
    try_launch("opt-in 227 KiB beside 4 KiB", "shared", shape(4, 1, 1, 32, 1, 1, 0), true, 0, 0, 0, false,
               227 * 1024);
    try_launch("block 1025", "plain", shape(1, 1, 1, 1025, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("block z 65", "plain", shape(1, 1, 1, 1, 1, 65, 0), true, 0, 0, 0, false, 0);
    try_launch("block 0", "plain", shape(1, 1, 1, 0, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("grid 0", "plain", shape(0, 1, 1, 32, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("grid y 65536", "plain", shape(1, 65536, 1, 32, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("maxntid 64 with 128", "small", shape(1, 1, 1, 128, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("maxntid 64 with 8x8", "small", shape(1, 1, 1, 8, 8, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("reqntid 32x2 with 64", "exact", shape(1, 1, 1, 64, 1, 1, 0), true, 0, 0, 0, false, 0);
    try_launch("reqntid 32x2 with 32x2", "exact", shape(1, 1, 1, 32, 2, 1, 0), true, 0, 0, 0, false, 0);
    for (unsigned size = 1; size <= 32; size++) {
        char label[64];
        snprintf(label, sizeof label, "200 KiB, cluster %u", size);
        try_launch(label, "plain", shape(size, 1, 1, 256, 1, 1, 200 * 1024), false, size, 1, 1, true,
                   200 * 1024);
    }
    uint64_t arguments[2] = {0};
    void *params[] = {&arguments[0], &arguments[1]};
    CUfunction plain = get("plain");
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    SAY("launch extra 12", cu.cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    size = 16;
    SAY("launch extra 16", cu.cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    size = 8;
    SAY("launch extra 8", cu.cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    size = 24;
    SAY("launch extra 24", cu.cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    size = 12;
    SAY("launch extra and params", cu.cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    SAY("launch no params", cu.cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    SAY("launch cooperative", cu.cuLaunchCooperativeKernel(plain, 264, 1, 1, 1024, 1, 1, 0, NULL, params));
    SAY("launch cooperative too large",
        cu.cuLaunchCooperativeKernel(plain, 265, 1, 1, 1024, 1, 1, 0, NULL, params));
    CUlaunchAttribute both[2] = {cluster(2, 1, 1),
                                 {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1}};
    CUlaunchConfig config = shape(264, 1, 1, 1024, 1, 1, 0);
    config.attrs = both;
    config.numAttrs = 2;
    SAY("launch cooperative clusters", cu.cuLaunchKernelEx(&config, plain, params, NULL));
    config.gridDimX = 266;
    SAY("launch cooperative clusters too large", cu.cuLaunchKernelEx(&config, plain, params, NULL));
    for (unsigned block = 64; block <= 256; block *= 2)
        for (unsigned grid = 1056; grid <= 4226; grid *= 2)
            for (unsigned more = 0; more <= 2; more += 2) {
                char label[64];
                config = shape(grid + more, 1, 1, block, 1, 1, 0);
                config.attrs = both;
                config.numAttrs = 2;
                snprintf(label, sizeof label, "launch cooperative clusters of 2, block %u, grid %u", block,
                         grid + more);
                SAY(label, cu.cuLaunchKernelEx(&config, plain, params, NULL));
            }
    config = shape(2, 1, 1, 32, 1, 1, 0);
    config.attrs = both;
    both[0].id = (CUlaunchAttributeID)99;
    config.numAttrs = 1;
    SAY("launch attribute 99", cu.cuLaunchKernelEx(&config, plain, params, NULL));
    both[0].id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    SAY("launch attribute 3", cu.cuLaunchKernelEx(&config, plain, params, NULL));
    SAY("launch finish", cu.cuCtxSynchronize());
}

static void encode(const char *label, CUtensorMapDataType type, unsigned rank, uint64_t address,
                   const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                   int interleave, int swizzle, int promotion, int fill)
{
    _Alignas(128) CUtensorMap map;
    memset(&map, 0xee, sizeof map);
    CUresult result =
        cu.cuTensorMapEncodeTiled(&map, type, rank, (void *)(uintptr_t)address, dims, strides, box, steps,
                                  (CUtensorMapInterleave)interleave, (CUtensorMapSwizzle)swizzle,
                                  (CUtensorMapL2promotion)promotion, (CUtensorMapFloatOOBfill)fill);
    say("map %s: %d", label, (int)result);
    if (result == CUDA_SUCCESS)
        for (int i = 0; i < 16; i++)
            say(" %llx", (unsigned long long)map.opaque[i]);
    say("\n");
}

static void im2col(const char *label, CUtensorMapDataType type, unsigned rank, const uint64_t *dims,
                   const uint64_t *strides, const int *lower, const int *upper, unsigned channels,
                   unsigned pixels, const uint32_t *steps, int interleave, int swizzle)
{
    _Alignas(128) CUtensorMap map;
    CUresult result = cu.cuTensorMapEncodeIm2col(
        &map, type, rank, (void *)(uintptr_t)0x7fa28bf01000, dims, strides, lower, upper, channels, pixels,
        steps, (CUtensorMapInterleave)interleave, (CUtensorMapSwizzle)swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    say("im2col %s: %d", label, (int)result);
    if (result == CUDA_SUCCESS)
        for (int i = 0; i < 16; i++)
            say(" %llx", (unsigned long long)map.opaque[i]);
    say("\n");
}

static void tensormap(void)
{
    start();
    const uint64_t base = 0x7fa28bf01000, d2[] = {60, 50}, s2[] = {256};
    const uint32_t b2[] = {16, 16}, one[] = {1, 1, 1, 1, 1};
    char label[64];
    encode("known", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, one, 0, 0, 0, 0);
    for (int type = 0; type < 17; type++) {
        const uint64_t wide[] = {256, 50}, far_[] = {4096};
        const uint32_t box[] = {type == 14 || type == 15 ? 128u : 32u, 8};
        snprintf(label, sizeof label, "type %d", type);
        encode(label, (CUtensorMapDataType)type, 2, base, wide, far_, box, one, 0, 0, 0, 0);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(label, sizeof label, "promotion %d", i);
        encode(label, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, one, 0, 0, i, 0);
    }
    for (int i = 0; i < 8; i++) {
        const uint32_t narrow[] = {8, 4};
        snprintf(label, sizeof label, "swizzle %d", i);
        encode(label, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, narrow, one, 0, i, 0, 0);
        snprintf(label, sizeof label, "swizzle %d wide", i);
        encode(label, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, one, 0, i, 0, 0);
        snprintf(label, sizeof label, "swizzle %d box of 64", i);
        encode(label, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, (uint32_t[]){64, 4}, one, 0, i, 0, 0);
    }
    encode("fill NaN", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, one, 0, 0, 0, 1);
    encode("fill NaN for s32", CU_TENSOR_MAP_DATA_TYPE_INT32, 2, base, d2, s2, b2, one, 0, 0, 0, 1);
    encode("fill 2", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, one, 0, 0, 0, 2);
    const uint64_t d5[] = {64, 33, 17, 9, 5},
                   s5[] = {256, 256 * 40, 256 * 40 * 20, (uint64_t)256 * 40 * 20 * 10};
    const uint32_t b5[] = {32, 4, 3, 2, 1}, e5[] = {1, 2, 3, 4, 8};
    for (unsigned rank = 0; rank < 7; rank++) {
        snprintf(label, sizeof label, "rank %u", rank);
        if (rank < 6)
            encode(label, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, base, d5, s5, b5, e5, 0, 0, 0, 0);
        for (int interleave = 1; interleave < 3 && rank >= 2 && rank < 6; interleave++) {
            snprintf(label, sizeof label, "rank %u interleave %d", rank, interleave);
            encode(label, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, base, d5, s5,
                   (uint32_t[]){interleave == 1 ? 8 : 16, 4, 3, 2, 1}, e5, interleave,
                   interleave == 2 ? 1 : 0, 0, 0);
        }
    }
    encode("step 2 in dimension 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, (uint32_t[]){2, 2},
           0, 0, 0, 0);
    encode("step 9", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, (uint32_t[]){1, 9}, 0, 0, 0, 0);
    encode("step 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, (uint32_t[]){1, 0}, 0, 0, 0, 0);
    encode("box 256", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, (uint32_t[]){256, 256}, one, 0, 0, 0,
           0);
    encode("box 257", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, (uint32_t[]){16, 257}, one, 0, 0, 0,
           0);
    encode("box 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, (uint32_t[]){16, 0}, one, 0, 0, 0, 0);
    encode("box row of 12 bytes", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, (uint32_t[]){3, 4}, one,
           0, 0, 0, 0);
    encode("box larger than tensor", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, (uint64_t[]){4, 4}, s2, b2,
           one, 0, 0, 0, 0);
    encode("dimension 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, (uint64_t[]){0, 50}, s2, b2, one, 0, 0, 0,
           0);
    encode("dimension 2^32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, (uint64_t[]){60, (uint64_t)1 << 32},
           s2, b2, one, 0, 0, 0, 0);
    encode("dimension 2^32 + 1", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base,
           (uint64_t[]){60, ((uint64_t)1 << 32) + 1}, s2, b2, one, 0, 0, 0, 0);
    encode("stride 8", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, (uint64_t[]){248}, b2, one, 0, 0, 0, 0);
    encode("stride 16, overlapping", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, (uint64_t[]){16}, b2, one,
           0, 0, 0, 0);
    encode("stride 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, (uint64_t[]){0}, b2, one, 0, 0, 0, 0);
    encode("stride 2^40 - 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2,
           (uint64_t[]){((uint64_t)1 << 40) - 16}, b2, one, 0, 0, 0, 0);
    encode("stride 2^40", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, (uint64_t[]){(uint64_t)1 << 40}, b2,
           one, 0, 0, 0, 0);
    encode("address 8", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base + 8, d2, s2, b2, one, 0, 0, 0, 0);
    encode("address 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, 0, d2, s2, b2, one, 0, 0, 0, 0);
    encode("address 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base + 16, d2, s2, b2, one, 0, 3, 0, 0);
    const uint64_t far_[] = {((uint64_t)0x123456789 << 4), ((uint64_t)0x23456789a << 4),
                             ((uint64_t)0x3456789ab << 4), ((uint64_t)0x456789abc << 4)};
    encode("far strides", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 5, base, d5, far_, b5, one, 0, 0, 0, 0);
    const uint64_t d3[] = {64, 33, 17}, s3[] = {256, 256 * 40};
    const uint32_t b3[] = {16, 4, 3};
    encode("interleave 2 without swizzle", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, b3, one, 2, 0, 0,
           0);
    encode("interleave 2 swizzle 2", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, b3, one, 2, 2, 0, 0);
    encode("interleave 2 address 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base + 16, d3, s3, b3, one, 2, 1, 0,
           0);
    encode("interleave 2 stride 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3,
           (uint64_t[]){272, 272 * 40}, b3, one, 2, 1, 0, 0);
    encode("interleave 1 swizzle 1", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, (uint32_t[]){8, 4, 3},
           one, 1, 1, 0, 0);
    encode("interleave 1 box 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, b3, one, 1, 0, 0, 0);
    encode("interleave 1 box 4", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, (uint32_t[]){4, 4, 3}, one,
           1, 0, 0, 0);
    encode("interleave 1 step in 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, (uint32_t[]){8, 4, 3},
           (uint32_t[]){2, 1, 1}, 1, 0, 0, 0);
    encode("interleave 3", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base, d3, s3, b3, one, 3, 0, 0, 0);
    encode("swizzle 1, f16 row of 32", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, base, d2, s2, b2, one, 0, 1, 0, 0);
    encode("swizzle 1, u8 row of 16", CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, base, d2, s2, b2, one, 0, 1, 0, 0);
    encode("promotion 4", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, one, 0, 0, 4, 0);
    encode("step 3 of box 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, b2, (uint32_t[]){1, 3}, 0, 0,
           0, 0);
    encode("box 4 step 8", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, d2, s2, (uint32_t[]){16, 4},
           (uint32_t[]){1, 8}, 0, 0, 0, 0);
    encode("box 256 x 256", CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, base, (uint64_t[]){512, 512}, (uint64_t[]){512},
           (uint32_t[]){256, 256}, one, 0, 0, 0, 0);
    encode("box 256 x 256 x 256", CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, base, (uint64_t[]){512, 512, 512},
           (uint64_t[]){512, 512 * 512}, (uint32_t[]){256, 256, 256}, one, 0, 0, 0, 0);
    encode("box 64 x 256 f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, (uint64_t[]){512, 512},
           (uint64_t[]){2048}, (uint32_t[]){64, 256}, one, 0, 0, 0, 0);
    encode("box 256 x 128 f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, (uint64_t[]){512, 512},
           (uint64_t[]){2048}, (uint32_t[]){256, 128}, one, 0, 0, 0, 0);
    encode("box 256 x 256 f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, (uint64_t[]){512, 512},
           (uint64_t[]){2048}, (uint32_t[]){256, 256}, one, 0, 0, 0, 0);
    encode("address 2^57", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (uint64_t)1 << 57, d2, s2, b2, one, 0, 0, 0,
           0);
    const uint64_t d4[] = {64, 33, 17, 9}, s4[] = {256, 256 * 40, 256 * 40 * 20};
    im2col("4", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 64, 128, one, 0,
           0);
    im2col("4 swizzled", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 64, 128,
           one, 0, 3);
    im2col("3", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, d4, s4, (int[]){-3}, (int[]){2}, 32, 64, one, 0, 0);
    im2col("5", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, d5, s5, (int[]){-1, -2, -3}, (int[]){1, 2, 3}, 32, 1024,
           e5, 0, 0);
    im2col("lower above upper", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){5, 5}, (int[]){1, 3}, 64,
           128, one, 0, 0);
    im2col("corner -129", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-129, -2}, (int[]){1, 3}, 64,
           128, one, 0, 0);
    im2col("5, corner 16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, d5, s5, (int[]){-1, -2, -3}, (int[]){1, 2, 16},
           32, 64, one, 0, 0);
    im2col("5, corner -16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, d5, s5, (int[]){-16, -2, -3},
           (int[]){15, 2, 3}, 32, 64, one, 0, 0);
    im2col("3, corner 32767", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, d4, s4, (int[]){-32768}, (int[]){32767}, 32,
           64, one, 0, 0);
    im2col("3, corner 32768", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, d4, s4, (int[]){-3}, (int[]){32768}, 32, 64,
           one, 0, 0);
    im2col("channels 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 0, 128,
           one, 0, 0);
    im2col("pixels 0", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 64, 0, one,
           0, 0);
    im2col("channels 4", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 4, 128,
           one, 0, 0);
    im2col("interleave 1", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, d5, s5, (int[]){-1, -2, -3}, (int[]){1, 2, 3},
           8, 64, one, 1, 0);
    im2col("steps", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 64, 128,
           (uint32_t[]){2, 2, 3, 1}, 0, 0);
    im2col("2", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, d4, s4, (int[]){0}, (int[]){0}, 32, 64, one, 0, 0);
    im2col("channels 257", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 257,
           128, one, 0, 0);
    im2col("pixels 1025", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){1, 3}, 64,
           1025, one, 0, 0);
    im2col("corner 128", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-1, -2}, (int[]){128, 3}, 64,
           128, one, 0, 0);
    im2col("corner 127", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, d4, s4, (int[]){-128, -2}, (int[]){127, 3}, 64,
           128, one, 0, 0);
}

/* Active clusters by block size and cluster shape. */
static void clusters(void)
{
    load();
    CUfunction function = get("plain");
    cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024);
    static const unsigned shapes[][3] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1},  {2, 2, 1}, {8, 1, 1},
                                         {2, 2, 2}, {1, 1, 8}, {1, 8, 1}, {16, 1, 1}, {4, 4, 1}, {2, 2, 4}};
    for (unsigned block = 32; block <= 1024; block *= 2)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const unsigned *s = shapes[i];
            CUlaunchAttribute attribute = cluster(s[0], s[1], s[2]);
            CUlaunchConfig config = shape(s[0] * 64, s[1] * 4, s[2], block, 1, 1, 0);
            config.attrs = &attribute;
            config.numAttrs = 1;
            int count = -1, blocks = -1;
            CUresult result = cu.cuOccupancyMaxActiveClusters(&count, function, &config);
            cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, (int)block, 0);
            say("block %u cluster %ux%ux%u: %d %d, blocks per SM %d\n", block, s[0], s[1], s[2], (int)result,
                count, blocks);
        }
    for (unsigned kib = 1; kib < 228; kib += 13)
        for (unsigned size = 1; size <= 16; size *= 4) {
            CUlaunchAttribute attribute = cluster(size, 1, 1);
            CUlaunchConfig config = shape(size * 64, 1, 1, 128, 1, 1, kib * 1024);
            config.attrs = &attribute;
            config.numAttrs = 1;
            int count = -1, blocks = -1;
            CUresult result = cu.cuOccupancyMaxActiveClusters(&count, function, &config);
            cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, kib * 1024);
            say("%u KiB cluster %u: %d %d, blocks per SM %d\n", kib, size, (int)result, count, blocks);
        }
}

/* ---- graphs and capture ---- */

static void CUDA_CB nothing(void *data)
{
    (void)data;
}

static void CUDA_CB no_callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
}

static void graph(void)
{
    load();
    CUstream one = NULL, two = NULL;
    CUevent event = NULL, outside = NULL;
    CUdeviceptr a = 0, b = 0;
    CUgraph made = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode nodes[16];
    size_t count = 16;
    char local[16] = "";
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id;
    uint64_t arguments[2] = {0};
    void *params[] = {&arguments[0], &arguments[1]};
    cu.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING);
    cu.cuStreamCreate(&two, 0);
    cu.cuEventCreate(&event, 0);
    cu.cuEventCreate(&outside, 0);
    cu.cuEventRecord(outside, one);
    cu.cuMemAlloc_v2(&a, 64);
    SAY("end without begin", cu.cuStreamEndCapture(one, &made));
    SAY("begin on legacy", cu.cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("begin bad mode", cu.cuStreamBeginCapture_v2(one, (CUstreamCaptureMode)7));
    SAY("begin", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("begin again", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("is capturing", cu.cuStreamIsCapturing(one, &status));
    say("status %d\n", (int)status);
    SAY("launch", cu.cuLaunchKernel(get("plain"), 1, 1, 1, 1, 1, 1, 0, one, params, NULL));
    SAY("copy from the stack", cu.cuMemcpyHtoDAsync_v2(a, local, 16, one));
    SAY("copy to the stack", cu.cuMemcpyDtoHAsync_v2(local, a, 16, one));
    SAY("set", cu.cuMemsetD32Async(a, 1, 4, one));
    SAY("host function", cu.cuLaunchHostFunc(one, nothing, NULL));
    SAY("record", cu.cuEventRecord(event, one));
    SAY("query captured event", cu.cuEventQuery(event));
    SAY("synchronize captured event", cu.cuEventSynchronize(event));
    SAY("join", cu.cuStreamWaitEvent(two, event, 0));
    SAY("set in the joined", cu.cuMemsetD32Async(a + 32, 2, 4, two));
    SAY("end in the joined", cu.cuStreamEndCapture(two, &made));
    SAY("begin third", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("launch third", cu.cuLaunchKernel(get("plain"), 1, 1, 1, 1, 1, 1, 0, one, params, NULL));
    SAY("record third", cu.cuEventRecord(event, one));
    SAY("join third", cu.cuStreamWaitEvent(two, event, 0));
    SAY("set third", cu.cuMemsetD32Async(a + 32, 2, 4, two));
    SAY("end unjoined", cu.cuStreamEndCapture(one, &made));
    say("graph %d\n", made != NULL);
    SAY("joined is capturing", cu.cuStreamIsCapturing(two, &status));
    say("status %d\n", (int)status);
    SAY("begin fourth", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("launch fourth", cu.cuLaunchKernel(get("plain"), 1, 1, 1, 1, 1, 1, 0, one, params, NULL));
    SAY("alloc relaxed", cu.cuMemAlloc_v2(&b, 64));
    SAY("legacy set, non-blocking captured", cu.cuMemsetD8_v2(b, 1, 4));
    SAY("legacy copy, non-blocking captured", cu.cuMemcpyHtoD_v2(b, local, 4));
    SAY("record fourth", cu.cuEventRecord(event, one));
    SAY("join fourth", cu.cuStreamWaitEvent(two, event, 0));
    SAY("set fourth", cu.cuMemsetD32Async(a + 32, 2, 4, two));
    SAY("record back", cu.cuEventRecord(event, two));
    SAY("join back", cu.cuStreamWaitEvent(one, event, 0));
    SAY("info", cu.cuStreamGetCaptureInfo_v2(one, &status, &id, NULL, NULL, &count));
    say("dependencies %zu\n", count);
    SAY("end fourth", cu.cuStreamEndCapture(one, &made));
    count = 16;
    SAY("nodes", cu.cuGraphGetNodes(made, nodes, &count));
    say("nodes are %zu\n", count);
    SAY("instantiate", cu.cuGraphInstantiateWithFlags(&exec, made, 0));
    SAY("launch graph", cu.cuGraphLaunch(exec, one));
    SAY("upload", cu.cuGraphUpload(exec, one));
    SAY("finish", cu.cuStreamSynchronize(one));
    SAY("destroy graph", cu.cuGraphDestroy(made));
    SAY("launch after destroy", cu.cuGraphLaunch(exec, one));
    SAY("destroy exec", cu.cuGraphExecDestroy(exec));
    SAY("begin fifth", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("alloc in global mode", cu.cuMemAlloc_v2(&b, 64));
    SAY("end fifth", cu.cuStreamEndCapture(one, &made));
    SAY("begin sixth", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("wait for outside", cu.cuStreamWaitEvent(one, outside, 0));
    SAY("end sixth", cu.cuStreamEndCapture(one, &made));
    SAY("begin seventh", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("synchronize capturing", cu.cuStreamSynchronize(one));
    SAY("launch after it", cu.cuLaunchKernel(get("plain"), 1, 1, 1, 1, 1, 1, 0, one, params, NULL));
    SAY("end seventh", cu.cuStreamEndCapture(one, &made));
    say("graph %d\n", made != NULL);
    SAY("begin eighth", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("query capturing", cu.cuStreamQuery(one));
    SAY("end eighth", cu.cuStreamEndCapture(one, &made));
    SAY("begin ninth", cu.cuStreamBeginCapture_v2(two, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY("legacy use, blocking captured", cu.cuMemsetD8Async(a, 1, 4, NULL));
    SAY("end ninth", cu.cuStreamEndCapture(two, &made));
    SAY("begin tenth", cu.cuStreamBeginCapture_v2(two, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("synchronize context", cu.cuCtxSynchronize());
    SAY("end tenth", cu.cuStreamEndCapture(two, &made));
    SAY("empty graph instantiate", cu.cuGraphInstantiateWithFlags(&exec, made, 0));
    SAY("empty graph launch", cu.cuGraphLaunch(exec, one));
    SAY("begin joined", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("record joined", cu.cuEventRecord(event, one));
    SAY("wait joined", cu.cuStreamWaitEvent(two, event, 0));
    SAY("set joined", cu.cuMemsetD32Async(a, 1, 4, two));
    SAY("end of another's", cu.cuStreamEndCapture(two, &made));
    SAY("end after that", cu.cuStreamEndCapture(one, &made));
    SAY("begin unjoined", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("record unjoined", cu.cuEventRecord(event, one));
    SAY("wait unjoined", cu.cuStreamWaitEvent(two, event, 0));
    SAY("set unjoined", cu.cuMemsetD32Async(a, 1, 4, two));
    SAY("end unjoined too", cu.cuStreamEndCapture(one, &made));
    SAY("begin for event", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("record for event", cu.cuEventRecord(event, one));
    SAY("end for event", cu.cuStreamEndCapture(one, &made));
    SAY("query after the end", cu.cuEventQuery(event));
    SAY("synchronize after the end", cu.cuEventSynchronize(event));
    SAY("wait after the end", cu.cuStreamWaitEvent(two, event, 0));
    SAY("empty graph", cu.cuGraphInstantiateWithFlags(&exec, made, 0));
    SAY("empty graph launched", cu.cuGraphLaunch(exec, one));
    SAY("begin external", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("external record", cu.cuEventRecordWithFlags(event, one, CU_EVENT_RECORD_EXTERNAL));
    SAY("external wait", cu.cuStreamWaitEvent(one, outside, CU_EVENT_WAIT_EXTERNAL));
    SAY("query external", cu.cuEventQuery(event));
    SAY("synchronous copy while relaxed", cu.cuMemcpyHtoD_v2(a, local, 4));
    SAY("graph launch while capturing", cu.cuGraphLaunch(exec, one));
    SAY("stream callback while capturing", cu.cuStreamAddCallback(one, no_callback, NULL, 0));
    SAY("end external", cu.cuStreamEndCapture(one, &made));
    SAY("begin eleventh", cu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("allocate async", cu.cuMemAllocAsync(&b, 64, one));
    SAY("free async", cu.cuMemFreeAsync(b, one));
    SAY("destroy capturing stream", cu.cuStreamDestroy_v2(one));
    SAY("new graph", cu.cuGraphCreate(&made, 0));
    SAY("new graph flags", cu.cuGraphCreate(&made, 1));
    SAY("empty node", cu.cuGraphAddEmptyNode(&nodes[0], made, NULL, 0));
    SAY("second node", cu.cuGraphAddEmptyNode(&nodes[1], made, nodes, 1));
    SAY("third node, same dependency twice",
        cu.cuGraphAddEmptyNode(&nodes[2], made, (CUgraphNode[]){nodes[0], nodes[0]}, 2));
    SAY("cycle", cu.cuGraphAddDependencies(made, &nodes[1], &nodes[0], 1));
    SAY("instantiate cycle", cu.cuGraphInstantiateWithFlags(&exec, made, 0));
    SAY("add existing", cu.cuGraphAddDependencies(made, &nodes[0], &nodes[1], 1));
    SAY("remove missing", cu.cuGraphRemoveDependencies(made, &nodes[1], &nodes[0], 1));
    SAY("destroy node", cu.cuGraphDestroyNode(nodes[0]));
    SAY("finish all", cu.cuCtxSynchronize());
}

static void functions(void)
{
    load();
    static const char *const names[] = {"plain", "small", "exact", "two", "explicit_", "rank4", "shared"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CUfunction function = get(names[i]);
        for (int attribute = 0; attribute < 17; attribute++) {
            int value = -99;
            CUresult result = cu.cuFuncGetAttribute(&value, (CUfunction_attribute)attribute, function);
            say("function %s %d %d %d\n", names[i], attribute, (int)result, value);
        }
        size_t offset = 0, size = 0;
        for (size_t index = 0; index < 3; index++) {
            CUresult result = cu.cuFuncGetParamInfo(function, index, &offset, &size);
            say("function %s parameter %zu %d %zu %zu\n", names[i], index, (int)result, offset, size);
        }
    }
    CUfunction plain = get("plain"), two = get("two");
    for (int attribute = 0; attribute < 17; attribute++)
        say("function set %d to 1: %d\n", attribute,
            (int)cu.cuFuncSetAttribute(plain, (CUfunction_attribute)attribute, 1));
    say("function set required width: %d\n",
        (int)cu.cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
    say("function set carveout 101: %d\n",
        (int)cu.cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    say("function set policy 3: %d\n",
        (int)cu.cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 3));
    int blocks = -1, least = -1, size = -1;
    size_t dynamic = 0;
    say("occupancy %d", (int)cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
    say(" %d\n", blocks);
    say("occupancy 200 KiB %d",
        (int)cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 200 * 1024));
    say(" %d\n", blocks);
    say("occupancy block 0 %d\n", (int)cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0));
    say("occupancy block 2000 %d",
        (int)cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 2000, 0));
    say(" %d\n", blocks);
    say("potential %d", (int)cu.cuOccupancyMaxPotentialBlockSize(&least, &size, plain, NULL, 0, 0));
    say(" %d %d\n", least, size);
    say("available %d", (int)cu.cuOccupancyAvailableDynamicSMemPerBlock(&dynamic, plain, 2, 256));
    say(" %zu\n", dynamic);
    say("available 8 %d", (int)cu.cuOccupancyAvailableDynamicSMemPerBlock(&dynamic, get("shared"), 8, 256));
    say(" %zu\n", dynamic);
}

/* What cuCtxSynchronize returns after the kernel, what the next calls return, what a second context says. */
static void fault(const char *name, uint64_t argument)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        load();
        void *params[] = {&argument};
        CUdeviceptr pointer = 0;
        CUresult launched = cu.cuLaunchKernel(get(name), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        CUresult synchronized = cu.cuCtxSynchronize();
        /* The last call of a line comes first here and below: h200.txt was recorded in that order. */
        const CUresult freed = cu.cuMemFree_v2(pointer), allocated = cu.cuMemAlloc_v2(&pointer, 4);
        say("fault %s %llx: %d %d, then alloc %d free %d", name, (unsigned long long)argument, (int)launched,
            (int)synchronized, (int)allocated, (int)freed);
        CUevent event = NULL;
        say(" event %d", (int)cu.cuEventCreate(&event, 0));
        CUcontext other = NULL;
        say(" device %d\n", (int)cu.cuDeviceGetCount(&(int){0}));
        fflush(stdout);
        CUresult made = cu.cuCtxCreate_v2(&other, 0, 0);
        const CUresult reset = cu.cuDevicePrimaryCtxReset_v2(0), again = cu.cuMemAlloc_v2(&pointer, 4);
        say("fault %s %llx: new context %d alloc in it %d reset %d\n", name, (unsigned long long)argument,
            (int)made, (int)again, (int)reset);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0)
        say("fault %s: child status %d\n", name, status);
}

/* How far behind a CTA's own 16 bytes a shared access may reach, and what .blocksareclusters counts. */
static void reach(void)
{
    static const unsigned offsets[] = {0,   12,  16,  60,   64,   124,  128,  252,
                                       256, 508, 512, 1020, 1024, 2044, 2048, 4092};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++)
        fault("load_small", 0x400 + offsets[i]);
    fault("load_shared", 0);
    fault("load_shared", 0x3fc);
}

static void in_clusters(void)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry e(.param .u64 p) .reqntid 32, 1, 1 .reqnctapercluster 2, 1, 1 "
        ".blocksareclusters\n{\n"
        "  .reg .b64 a; .reg .b32 v, w; .reg .pred q; ld.param.u64 a, [p]; mov.u32 v, %tid.x; setp.ne.u32 q, "
        "v, 0;\n"
        "  @q bra D; red.global.add.u32 [a], 1; mov.u32 v, %nctaid.x; st.global.u32 [a+4], v;\n"
        "  mov.u32 v, %nclusterid.x; st.global.u32 [a+8], v; mov.u32 v, %cluster_nctaid.x; st.global.u32 "
        "[a+12], v;\n"
        "D: ret;\n}\n";
    CUmodule other = NULL;
    CUfunction function = NULL;
    CUdeviceptr memory = 0;
    start();
    SAY("blocks are clusters: load", cu.cuModuleLoadData(&other, text));
    SAY("blocks are clusters: get", cu.cuModuleGetFunction(&function, other, "e"));
    SAY("blocks are clusters: alloc", cu.cuMemAlloc_v2(&memory, 16));
    void *params[] = {&memory};
    for (unsigned grid = 2; grid < 5; grid++)
        for (unsigned x = 0; x < 3; x++) {
            uint32_t values[4] = {0};
            CUlaunchAttribute attribute = cluster(x, 1, 1);
            CUlaunchConfig config = shape(grid, 1, 1, 32, 1, 1, 0);
            config.attrs = &attribute;
            config.numAttrs = x != 0;
            cu.cuMemsetD32_v2(memory, 0, 4);
            CUresult launched = cu.cuLaunchKernelEx(&config, function, params, NULL);
            CUresult copied = cu.cuMemcpyDtoH_v2(values, memory, 16);
            int clusters = -1;
            CUresult asked = cu.cuOccupancyMaxActiveClusters(&clusters, function, &config);
            say("blocks are clusters: grid %u attribute %u: %d %d, %u CTAs, nctaid %u, clusters %u of %u, "
                "active %d %d\n",
                grid, x, (int)launched, (int)copied, values[0], values[1], values[2], values[3], (int)asked,
                clusters);
        }
}

static void faults(void)
{
    fault("store", 0);
    fault("store", 2);
    fault("store", 0x10000);
    fault("store", 0x7ffffffffff0);
    fault("load_shared", 2);
    fault("load_shared", 0x400);
    fault("load_shared", 0x40000);
    fault("load_shared", 0x5000000);
    fault("trap_", 0);
    fault("brk", 0);
    fault("write_const", 0);
    fault("atom_shared_misaligned", 0);
}

int main(int argc, char **argv)
{
    static const struct section sections[] = {
        {"calls", calls},        {"clusters", clusters}, {"context", contexts},
        {"device", device},      {"errors", errors},     {"faults", faults},
        {"function", functions}, {"graph", graph},       {"in_clusters", in_clusters},
        {"launch", launch},      {"linking", linking},   {"reach", reach},
        {"tensormap", tensormap}};
    return run_sections(argc, argv, sections, sizeof sections / sizeof sections[0]);
}
