/* The device, contexts and their stack, the primary context, entry points, error names. */
#include "ask.h"

#include <cudaProfiler.h>

void section_device(void)
{
    cuInit(0);
    ASK("cuDriverGetVersion NULL", cuDriverGetVersion(NULL));
    ASKF("cuDriverGetVersion", cuDriverGetVersion(&t.i), " %d", t.i);
    ASK("cuDeviceGet NULL", cuDeviceGet(NULL, 0));
    ASK("cuDeviceGet -1", cuDeviceGet(&t.device, -1));
    ASK("cuDeviceGet 1", cuDeviceGet(&t.device, 1));
    ASKF("cuDeviceGet", cuDeviceGet(&t.device, 0), " %d", t.device);
    ASK("cuDeviceGetCount NULL", cuDeviceGetCount(NULL));
    ASK("cuDeviceGetName NULL", cuDeviceGetName(NULL, 10, 0));
    ASK("cuDeviceGetName device 1", cuDeviceGetName(t.text, 64, 1));
    ASK("cuDeviceGetName device -1", cuDeviceGetName(t.text, 64, -1));
    for (int length = -1; length < 7; length++) {
        memset(t.text, 'x', sizeof t.text);
        ASKF(ask_name("cuDeviceGetName length %d", length), cuDeviceGetName(t.text, length, 0), " %.4s %d",
             t.text, length > 0 ? t.text[length - 1] : -1);
    }
    ASK("cuDeviceGetUuid NULL", cuDeviceGetUuid(NULL, 0));
    ASK("cuDeviceGetUuid device 1", cuDeviceGetUuid(&t.uuid, 1));
    ASK("cuDeviceGetLuid", cuDeviceGetLuid(t.text, &t.u, 0));
    ASK("cuDeviceGetLuid NULL", cuDeviceGetLuid(NULL, NULL, 0));
    ASK("cuDeviceTotalMem NULL", cuDeviceTotalMem(NULL, 0));
    ASK("cuDeviceTotalMem device 1", cuDeviceTotalMem(&t.size, 1));
    ASK("cuDeviceGetAttribute NULL", cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ASK("cuDeviceGetAttribute device 1", cuDeviceGetAttribute(&t.i, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
    ASK("cuDeviceGetAttribute device -1", cuDeviceGetAttribute(&t.i, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
    ASK("cuDeviceGetAttribute attribute -1", cuDeviceGetAttribute(&t.i, (CUdevice_attribute)-1, 0));
    ASK("cuDeviceGetAttribute attribute 1000", cuDeviceGetAttribute(&t.i, (CUdevice_attribute)1000, 0));
    ASK("cuDeviceGetAttribute attribute 1000, device 1",
        cuDeviceGetAttribute(&t.i, (CUdevice_attribute)1000, 1));
    static const int formats[] = {0, 1, 2, 3, 8, 9, 10, 0x10, 0x20, 0xb0, 0xc0, 0x91};
    for (size_t i = 0; i < COUNT(formats); i++)
        for (unsigned channels = 0; channels < 6; channels++) {
            t.size = 0;
            ASKF(ask_name("cuDeviceGetTexture1DLinearMaxWidth %#x x %u", (unsigned)formats[i], channels),
                 cuDeviceGetTexture1DLinearMaxWidth(&t.size, (CUarray_format)formats[i], channels, 0), " %zu",
                 t.size);
        }
    ASK("cuDeviceGetTexture1DLinearMaxWidth NULL",
        cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_FLOAT, 1, 0));
    ASK("cuDeviceGetTexture1DLinearMaxWidth device 1",
        cuDeviceGetTexture1DLinearMaxWidth(&t.size, CU_AD_FORMAT_FLOAT, 1, 1));
    ASK("cuDeviceGetProperties NULL", cuDeviceGetProperties(NULL, 0));
    ASK("cuDeviceGetProperties device 1", cuDeviceGetProperties((CUdevprop *)t.bytes, 1));
    ASK("cuDeviceComputeCapability NULL", cuDeviceComputeCapability(NULL, NULL, 0));
    ASK("cuDeviceComputeCapability device 1", cuDeviceComputeCapability(&t.i, &t.j, 1));
    ASK("cuDeviceGetPCIBusId NULL", cuDeviceGetPCIBusId(NULL, 13, 0));
    ASK("cuDeviceGetPCIBusId device 1", cuDeviceGetPCIBusId(t.text, 13, 1));
    for (int length = -1; length < 16; length += 3) {
        memset(t.text, 'x', sizeof t.text);
        ASKF(ask_name("cuDeviceGetPCIBusId length %d", length), cuDeviceGetPCIBusId(t.text, length, 0),
             " %d %.5s", (int)strnlen(t.text, 20), t.text);
    }
    ASK("cuDeviceGetByPCIBusId NULL", cuDeviceGetByPCIBusId(NULL, t.text));
    ASK("cuDeviceGetByPCIBusId NULL text", cuDeviceGetByPCIBusId(&t.device, NULL));
    ASK("cuDeviceGetByPCIBusId empty", cuDeviceGetByPCIBusId(&t.device, ""));
    ASK("cuDeviceGetByPCIBusId garbage", cuDeviceGetByPCIBusId(&t.device, "garbage"));
    ASK("cuDeviceGetByPCIBusId absent", cuDeviceGetByPCIBusId(&t.device, "0000:7f:1f.0"));
    cuDeviceGetPCIBusId(t.text, 64, 0);
    ASKF("cuDeviceGetByPCIBusId", cuDeviceGetByPCIBusId(&t.device, t.text), " %d", t.device);
    ASKF("cuDeviceGetByPCIBusId without domain", cuDeviceGetByPCIBusId(&t.device, t.text + 5), " %d",
         t.device);
    t.text[strlen(t.text) - 2] = '\0';
    ASKF("cuDeviceGetByPCIBusId without function", cuDeviceGetByPCIBusId(&t.device, t.text), " %d", t.device);
    ASK("cuDeviceCanAccessPeer NULL", cuDeviceCanAccessPeer(NULL, 0, 0));
    ASK("cuDeviceCanAccessPeer 0 1", cuDeviceCanAccessPeer(&t.i, 0, 1));
    ASK("cuDeviceCanAccessPeer 1 0", cuDeviceCanAccessPeer(&t.i, 1, 0));
    ASK("cuDeviceGetP2PAttribute 0 1",
        cuDeviceGetP2PAttribute(&t.i, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1));
    ASK("cuDeviceGetP2PAttribute NULL",
        cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 0));
    ASK("cuDeviceGetExecAffinitySupport NULL",
        cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    ASK("cuDeviceGetExecAffinitySupport 9", cuDeviceGetExecAffinitySupport(&t.i, (CUexecAffinityType)9, 0));
    ASK("cuDeviceGetExecAffinitySupport device 1",
        cuDeviceGetExecAffinitySupport(&t.i, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 1));
    ASK("cuDeviceGetDefaultMemPool NULL", cuDeviceGetDefaultMemPool(NULL, 0));
    ASK("cuDeviceGetDefaultMemPool device 1", cuDeviceGetDefaultMemPool(&t.pool, 1));
    ASK("cuDeviceGetMemPool NULL", cuDeviceGetMemPool(NULL, 0));
    ASK("cuDeviceGetMemPool device 1", cuDeviceGetMemPool(&t.pool, 1));
    ASK("cuDeviceSetMemPool NULL", cuDeviceSetMemPool(0, NULL));
    for (int i = -1; i < 6; i++) {
        memset(t.bytes, 0xee, 8);
        ASKF(ask_name("cuDeviceGetGraphMemAttribute %d", i),
             cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)i, t.bytes), " %02x%02x", t.bytes[0],
             t.bytes[7]);
        memset(t.bytes, 0, 8);
        ASK(ask_name("cuDeviceSetGraphMemAttribute %d to 0", i),
            cuDeviceSetGraphMemAttribute(0, (CUgraphMem_attribute)i, t.bytes));
        t.bytes[0] = 1;
        ASK(ask_name("cuDeviceSetGraphMemAttribute %d to 1", i),
            cuDeviceSetGraphMemAttribute(0, (CUgraphMem_attribute)i, t.bytes));
    }
    ASK("cuDeviceGetGraphMemAttribute NULL",
        cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, NULL));
    ASK("cuDeviceGetGraphMemAttribute device 1",
        cuDeviceGetGraphMemAttribute(1, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, t.bytes));
    ASK("cuDeviceGraphMemTrim device 1", cuDeviceGraphMemTrim(1));
}

static void flags(const char *name, unsigned value)
{
    CUcontext made = NULL;
    unsigned got = 0;
    const CUresult result = cuCtxCreate_v2(&made, value, 0);
    if (result == CUDA_SUCCESS)
        cuCtxGetFlags(&got);
    ASKF(ask_name("cuCtxCreate flags %s", name), result, " %#x", got);
    if (made != NULL)
        cuCtxDestroy(made);
}

void section_context(void)
{
    CUcontext a = NULL, b = NULL, got = NULL;
    if (!ask_context())
        return;
    for (unsigned i = 0; i < 13; i++) {
        const unsigned value = i == 0 ? 0 : 1u << (i - 1);
        flags(ask_name("%#x", value), value);
    }
    flags("3", 3);
    flags("5", 5);
    flags("7", 7);
    flags("0xff", 0xff);
    flags("~0", ~0u);
    for (unsigned i = 0; i < 11; i++) {
        const unsigned value = i == 0 ? 0 : 1u << (i - 1);
        ASK(ask_name("cuCtxSetFlags %#x", value), cuCtxSetFlags(value));
        ASKF(ask_name("cuCtxGetFlags after %#x", value), cuCtxGetFlags(&t.u), " %#x", t.u);
    }
    ASK("cuCtxSetFlags 7", cuCtxSetFlags(7));
    ASK("cuCtxGetFlags NULL", cuCtxGetFlags(NULL));
    ASK("cuCtxCreate NULL", cuCtxCreate(NULL, NULL, 0, 0));
    ASK("cuCtxCreate device -1", cuCtxCreate(&a, NULL, 0, -1));
    ASK("cuCtxCreate device 1", cuCtxCreate(&a, NULL, 0, 1));
    CUexecAffinityParam affinity = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT, .param.smCount.val = 8};
    CUctxCreateParams params = {.execAffinityParams = &affinity, .numExecAffinityParams = 1};
    ASK("cuCtxCreate affinity", cuCtxCreate(&a, &params, 0, 0));
    params.numExecAffinityParams = 0;
    ASK("cuCtxCreate no affinity", cuCtxCreate(&a, &params, 0, 0));
    if (a != NULL)
        cuCtxDestroy(a);
    a = NULL;
    affinity.type = (CUexecAffinityType)5;
    params.numExecAffinityParams = 1;
    ASK("cuCtxCreate affinity of type 5", cuCtxCreate(&a, &params, 0, 0));
    params = (CUctxCreateParams){.execAffinityParams = NULL, .numExecAffinityParams = 1};
    ASK("cuCtxCreate affinity NULL", cuCtxCreate(&a, &params, 0, 0));
    cuCtxSetCurrent(o.context);
    MUST(cuCtxCreate(&a, NULL, 0, 0));
    ASKF("cuCtxGetCurrent after cuCtxCreate", cuCtxGetCurrent(&got), " %d", got == a);
    ASK("cuCtxGetCurrent NULL", cuCtxGetCurrent(NULL));
    ASKF("cuCtxPopCurrent NULL", cuCtxPopCurrent(NULL), "%s", "");
    ASKF("cuCtxGetCurrent after it", cuCtxGetCurrent(&got), " %d %d", got == a, got == o.context);
    ASK("cuCtxPushCurrent NULL", cuCtxPushCurrent(NULL));
    ASKF("cuCtxGetCurrent after pushing NULL", cuCtxGetCurrent(&got), " %d %d", got == NULL,
         got == o.context);
    ASK("cuCtxPushCurrent twice 1", cuCtxPushCurrent(a));
    ASK("cuCtxPushCurrent twice 2", cuCtxPushCurrent(a));
    ASKF("cuCtxPopCurrent 1", cuCtxPopCurrent(&got), " %d", got == a);
    ASKF("cuCtxPopCurrent 2", cuCtxPopCurrent(&got), " %d", got == a);
    ASKF("cuCtxGetCurrent below", cuCtxGetCurrent(&got), " %d", got == o.context);
    ASKF("cuCtxPopCurrent 3", cuCtxPopCurrent(&got), " %d", got == o.context);
    ASKF("cuCtxGetCurrent of none", cuCtxGetCurrent(&got), " %d", got == NULL);
    got = a;
    ASKF("cuCtxPopCurrent of none", cuCtxPopCurrent(&got), " %d", got == a);
    ASK("cuCtxSetCurrent NULL of none", cuCtxSetCurrent(NULL));
    ASK("cuCtxPushCurrent a", cuCtxPushCurrent(a));
    ASK("cuCtxSetCurrent NULL pops", cuCtxSetCurrent(NULL));
    ASKF("cuCtxGetCurrent after it was set to NULL", cuCtxGetCurrent(&got), " %d", got == NULL);
    ASK("cuCtxPushCurrent a again", cuCtxPushCurrent(a));
    MUST(cuCtxCreate(&b, NULL, 0, 0));
    ASK("cuCtxDestroy below the top", cuCtxDestroy(a));
    ASKF("cuCtxGetCurrent at the top", cuCtxGetCurrent(&got), " %d", got == b);
    ASK("cuCtxSynchronize at the top", cuCtxSynchronize());
    ASK("cuCtxDestroy at the top", cuCtxDestroy(b));
    ASKF("cuCtxGetCurrent of the destroyed one", cuCtxGetCurrent(&got), " %d %d", got == NULL, got == a);
    ASK("cuCtxSynchronize of the destroyed one", cuCtxSynchronize());
    ASK("cuMemAlloc in the destroyed one", cuMemAlloc(&t.pointer, 4));
    ASKF("cuCtxPopCurrent of the destroyed one", cuCtxPopCurrent(&got), " %d", got == a);
    ASKF("cuCtxGetCurrent then", cuCtxGetCurrent(&got), " %d", got == NULL);
    cuCtxSetCurrent(o.context);
    MUST(cuCtxCreate(&a, NULL, 0, 0));
    unsigned long long one = 0, two = 0;
    cuCtxGetId(a, &one);
    cuCtxGetId(o.context, &two);
    ASKF("cuCtxGetId order", CUDA_SUCCESS, " %d", one > two);
    for (int config = -1; config < 6; config++) {
        ASK(ask_name("cuCtxSetCacheConfig %d", config), cuCtxSetCacheConfig((CUfunc_cache)config));
        ASKF(ask_name("cuCtxGetCacheConfig after %d", config), cuCtxGetCacheConfig((CUfunc_cache *)&t.i),
             " %d", t.i);
        ASK(ask_name("cuCtxSetSharedMemConfig %d", config), cuCtxSetSharedMemConfig((CUsharedconfig)config));
        ASKF(ask_name("cuCtxGetSharedMemConfig after %d", config),
             cuCtxGetSharedMemConfig((CUsharedconfig *)&t.i), " %d", t.i);
    }
    ASK("cuCtxGetCacheConfig NULL", cuCtxGetCacheConfig(NULL));
    ASK("cuCtxGetSharedMemConfig NULL", cuCtxGetSharedMemConfig(NULL));
    ASK("cuCtxGetLimit NULL", cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    ASK("cuCtxGetLimit -1", cuCtxGetLimit(&t.size, (CUlimit)-1));
    ASK("cuCtxSetLimit -1", cuCtxSetLimit((CUlimit)-1, 1));
    static const size_t values[] = {0, 1, 100, 1024, 1 << 20, (size_t)1 << 32, (size_t)1 << 40, ~(size_t)0};
    for (int limit = 0; limit < 9; limit++)
        for (size_t i = 0; i < COUNT(values); i++) {
            if (limit == 1 && values[i] > ((size_t)1 << 32))
                continue;
            ASK(ask_name("cuCtxSetLimit %d to %#zx", limit, values[i]),
                cuCtxSetLimit((CUlimit)limit, values[i]));
            t.size = 0;
            ASKF(ask_name("cuCtxGetLimit %d after %#zx", limit, values[i]),
                 cuCtxGetLimit(&t.size, (CUlimit)limit), " %zu", t.size);
        }
    ASK("cuCtxGetStreamPriorityRange NULL", cuCtxGetStreamPriorityRange(NULL, NULL));
    ASKF("cuCtxGetStreamPriorityRange least only", cuCtxGetStreamPriorityRange(&t.i, NULL), " %d", t.i);
    ASKF("cuCtxGetApiVersion", cuCtxGetApiVersion(a, &t.u), " %u", t.u);
    CUcontext third = NULL;
    MUST(cuCtxCreate_v3(&third, NULL, 0, 0, 0));
    ASKF("cuCtxGetApiVersion of _v3", cuCtxGetApiVersion(third, &t.u), " %u", t.u);
    MUST(cuCtxDestroy(third));
    ASKF("cuCtxGetExecAffinity", cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), " %d %u",
         affinity.type == CU_EXEC_AFFINITY_TYPE_SM_COUNT, affinity.param.smCount.val);
    ASK("cuCtxGetExecAffinity NULL", cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    ASK("cuCtxGetExecAffinity 7", cuCtxGetExecAffinity(&affinity, (CUexecAffinityType)7));
    ASK("cuCtxEnablePeerAccess of itself", cuCtxEnablePeerAccess(a, 0));
    ASK("cuCtxEnablePeerAccess of another on the device", cuCtxEnablePeerAccess(o.context, 0));
    ASK("cuCtxEnablePeerAccess NULL", cuCtxEnablePeerAccess(NULL, 0));
    ASK("cuCtxEnablePeerAccess flags", cuCtxEnablePeerAccess(o.context, 1));
    ASK("cuCtxDisablePeerAccess", cuCtxDisablePeerAccess(o.context));
    ASK("cuCtxDisablePeerAccess NULL", cuCtxDisablePeerAccess(NULL));
    ASK("cuCtxGetDevice NULL", cuCtxGetDevice(NULL));
    ASK("cuCtxSynchronize_v2", cuCtxSynchronize_v2(a));
    ASK("cuCtxSynchronize_v2 NULL", cuCtxSynchronize_v2(NULL));
    ASK("cuCtxGetDevice_v2", cuCtxGetDevice_v2(&t.device, a));
    ASK("cuCtxGetDevice_v2 NULL", cuCtxGetDevice_v2(&t.device, NULL));
    ASK("cuCtxAttach NULL", cuCtxAttach(NULL, 0));
    ASK("cuCtxAttach flags", cuCtxAttach(&got, 1));
    ASKF("cuCtxAttach", cuCtxAttach(&got, 0), " %d", got == a);
    ASK("cuCtxDetach", cuCtxDetach(a));
    ASK("cuCtxDetach NULL", cuCtxDetach(NULL));
    cuCtxSetCurrent(o.context);
    ASK("cuCtxDetach of one that is not current", cuCtxDetach(a));
    ASK("cuCtxDestroy NULL", cuCtxDestroy(NULL));
    ASK("cuCtxRecordEvent NULL", cuCtxRecordEvent(NULL, NULL));
    ASK("cuCtxWaitEvent NULL", cuCtxWaitEvent(NULL, NULL));
    MUST(cuEventCreate(&t.event, 0));
    ASK("cuCtxRecordEvent", cuCtxRecordEvent(o.context, t.event));
    ASK("cuCtxWaitEvent", cuCtxWaitEvent(o.context, t.event));
}

void section_primary(void)
{
    CUcontext a = NULL, b = NULL;
    int active = -1;
    unsigned value = 99;
    cuInit(0);
    ASKF("state", cuDevicePrimaryCtxGetState(0, &value, &active), " %u %d", value, active);
    ASK("state NULL flags", cuDevicePrimaryCtxGetState(0, NULL, &active));
    ASK("state NULL active", cuDevicePrimaryCtxGetState(0, &value, NULL));
    ASK("state device 1", cuDevicePrimaryCtxGetState(1, &value, &active));
    ASK("release before", cuDevicePrimaryCtxRelease(0));
    ASK("reset before", cuDevicePrimaryCtxReset(0));
    ASK("release device 1", cuDevicePrimaryCtxRelease(1));
    ASK("reset device 1", cuDevicePrimaryCtxReset(1));
    ASK("retain NULL", cuDevicePrimaryCtxRetain(NULL, 0));
    ASK("retain device 1", cuDevicePrimaryCtxRetain(&a, 1));
    for (unsigned i = 0; i < 11; i++) {
        const unsigned wanted = i == 0 ? 0 : 1u << (i - 1);
        ASK(ask_name("flags %#x", wanted), cuDevicePrimaryCtxSetFlags(0, wanted));
        ASKF(ask_name("state after flags %#x", wanted), cuDevicePrimaryCtxGetState(0, &value, &active),
             " %#x %d", value, active);
    }
    ASK("flags 7", cuDevicePrimaryCtxSetFlags(0, 7));
    ASK("flags device 1", cuDevicePrimaryCtxSetFlags(1, 0));
    ASK("flags 4", cuDevicePrimaryCtxSetFlags(0, 4));
    ASK("retain", cuDevicePrimaryCtxRetain(&a, 0));
    ASKF("state active", cuDevicePrimaryCtxGetState(0, &value, &active), " %#x %d", value, active);
    ASKF("not current by that", cuCtxGetCurrent(&b), " %d", b == NULL);
    ASK("flags while active", cuDevicePrimaryCtxSetFlags(0, 1));
    ASKF("state then", cuDevicePrimaryCtxGetState(0, &value, &active), " %#x %d", value, active);
    cuCtxSetCurrent(a);
    ASKF("its flags", cuCtxGetFlags(&value), " %#x", value);
    ASKF("its version", cuCtxGetApiVersion(a, &value), " %u", value);
    ASK("destroyed", cuCtxDestroy(a));
    ASK("detached", cuCtxDetach(a));
    ASKF("retain again", cuDevicePrimaryCtxRetain(&b, 0), " %d", a == b);
    ASK("alloc", cuMemAlloc(&t.pointer, 4096));
    ASK("stream", cuStreamCreate(&t.stream, 0));
    ASK("release 1", cuDevicePrimaryCtxRelease(0));
    ASK("use", cuMemsetD8(t.pointer, 0, 4096));
    ASK("reset", cuDevicePrimaryCtxReset(0));
    ASKF("state after the reset", cuDevicePrimaryCtxGetState(0, &value, &active), " %#x %d", value, active);
    ASKF("current after the reset", cuCtxGetCurrent(&b), " %d", a == b);
    ASK("use after the reset", cuMemsetD8(t.pointer, 0, 4096));
    ASK("free after the reset", cuMemFree(t.pointer));
    ASK("synchronize after the reset", cuCtxSynchronize());
    ASK("release after the reset", cuDevicePrimaryCtxRelease(0));
    ASK("release once more", cuDevicePrimaryCtxRelease(0));
    ASKF("state released", cuDevicePrimaryCtxGetState(0, &value, &active), " %#x %d", value, active);
    ASKF("retain for a third life", cuDevicePrimaryCtxRetain(&b, 0), " %d", a == b);
    ASK("set current", cuCtxSetCurrent(b));
    ASK("alloc in the third life", cuMemAlloc(&t.pointer2, 4096));
    ASK("reset twice 1", cuDevicePrimaryCtxReset(0));
    ASK("reset twice 2", cuDevicePrimaryCtxReset(0));
    ASKF("retain after two resets", cuDevicePrimaryCtxRetain(&b, 0), " %d", a == b);
    ASK("alloc after two resets", cuMemAlloc(&t.pointer2, 4096));
    ASK("release after two resets 1", cuDevicePrimaryCtxRelease(0));
    ASK("release after two resets 2", cuDevicePrimaryCtxRelease(0));
    ASK("release after two resets 3", cuDevicePrimaryCtxRelease(0));
    CUcontext other = NULL;
    ASK("another context", cuCtxCreate(&other, NULL, 0, 0));
    ASK("alloc in another context", cuMemAlloc(&t.pointer2, 4096));
    MUST(cuDevicePrimaryCtxRetain(&b, 0));
    ASK("reset beside another context", cuDevicePrimaryCtxReset(0));
    ASK("use in another context", cuMemsetD8(t.pointer2, 0, 4096));
    ASKF("current is another", cuCtxGetCurrent(&b), " %d", b == other);
}

/* ---- entry points ---- */

static void entry(const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
    void *address = &t;
    ASKF(ask_name("%s %d %llu", name == NULL ? "NULL" : name, version, (unsigned long long)flags),
         cuGetProcAddress(name, &address, version, flags, &status), " status %d, %s", (int)status,
         address == NULL ? "NULL"
         : address == &t ? "unchanged"
                         : "address");
}

void section_entry(void)
{
    static const char *const names[] = {"cuMemAlloc",
                                        "cuMemAlloc_v2",
                                        "cuCtxCreate",
                                        "cuCtxCreate_v4",
                                        "cuStreamGetDevice",
                                        "cuNothing",
                                        "",
                                        "cuGetProcAddress",
                                        "cuGetProcAddress_v2",
                                        "cuInit",
                                        "cuLaunchKernelEx",
                                        "cuLaunchKernelEx_ptsz",
                                        "cuMemcpyHtoD",
                                        "cuMemcpyHtoD_ptds",
                                        "cuMemcpyHtoD_v2_ptds",
                                        "cuStreamBeginCapture",
                                        "cuGraphInstantiate",
                                        "cuGraphInstantiateWithFlags",
                                        "cuEventElapsedTime",
                                        "cuDeviceGetUuid",
                                        "cuProfilerStart",
                                        "cuMemPrefetchAsync",
                                        "cuMemAdvise",
                                        "cuTexRefSetAddress2D",
                                        "cuGetExportTable",
                                        "cudaMalloc",
                                        "main",
                                        "cuDeviceTotalMem",
                                        "cuCtxPushCurrent",
                                        "cuStreamGetCaptureInfo",
                                        "cuLinkAddData",
                                        "cuGetErrorName",
                                        "cuGreenCtxCreate",
                                        "cuGLGetDevices",
                                        "cuEGLStreamConsumerConnect",
                                        "cuVDPAUGetDevice",
                                        "cuD3D9GetDevice",
                                        "cuGraphicsMapResources",
                                        "CUmemAlloc",
                                        "cumemalloc",
                                        "cuMemAlloc "};
    static const int versions[] = {-1,    0,     1000,  2000,  3020,  4000,  7000,  8000,  10000,
                                   11000, 11040, 12000, 12030, 12050, 12080, 13000, 13010, 14000};
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t v = 0; v < COUNT(versions); v++)
            entry(names[i], versions[v], 0);
    for (size_t i = 0; i < COUNT(names); i++)
        for (cuuint64_t f = 1; f < 4; f++)
            entry(names[i], 13000, f);
    for (unsigned bit = 2; bit < 64; bit += 9)
        entry("cuMemAlloc", 13000, (cuuint64_t)1 << bit);
    entry(NULL, 13000, 0);
    entry(NULL, 13000, 8);
    ASK("NULL address", cuGetProcAddress("cuMemAlloc", NULL, 13000, 0, NULL));
    ASKF("NULL status", cuGetProcAddress("cuMemAlloc", &t.host, 13000, 0, NULL), " %d", t.host != NULL);
    ASKF("NULL status, unknown", cuGetProcAddress("cuNothing", &t.host, 13000, 0, NULL), " %d",
         t.host != NULL);
    ASKF("NULL status, too new", cuGetProcAddress("cuGreenCtxCreate", &t.host, 3000, 0, NULL), " %d",
         t.host != NULL);
    void *plain = NULL, *thread = NULL, *old = NULL;
    cuGetProcAddress("cuMemcpyHtoD", &plain, 13000, 1, NULL);
    cuGetProcAddress("cuMemcpyHtoD", &thread, 13000, 2, NULL);
    cuGetProcAddress("cuMemcpyHtoD", &old, 2000, 0, NULL);
    ASKF("forms", CUDA_SUCCESS, " %d %d %d", plain == thread, plain == old,
         plain == (void *)(uintptr_t)cuMemcpyHtoD);
    CUuuid id = {{1, 2, 3}};
    const void *table = NULL;
    ASKF("cuGetExportTable of nobody", cuGetExportTable(&table, &id), " %d", table != NULL);
    ASK("cuGetExportTable NULL", cuGetExportTable(NULL, &id));
    ASK("cuGetExportTable NULL id", cuGetExportTable(&table, NULL));
}

void section_miscellany(void)
{
    const char *text = "x";
    ASKF("cuGetErrorName -1", cuGetErrorName((CUresult)-1, &text), " %d", text == NULL);
    text = "x";
    ASKF("cuGetErrorString -1", cuGetErrorString((CUresult)-1, &text), " %d", text == NULL);
    ASK("cuGetErrorName NULL", cuGetErrorName(CUDA_SUCCESS, NULL));
    ASK("cuGetErrorString NULL", cuGetErrorString(CUDA_SUCCESS, NULL));
    for (int code = 0; code < 1100; code++) {
        const char *name = NULL, *told = NULL;
        if (cuGetErrorName((CUresult)code, &name) != CUDA_SUCCESS)
            continue;
        cuGetErrorString((CUresult)code, &told);
        ASKF(ask_name("error %d", code), CUDA_SUCCESS, " %s: %s", name, told == NULL ? "NULL" : told);
    }
    if (!ask_context())
        return;
    ASK("cuProfilerInitialize", cuProfilerInitialize("a", "b", CU_OUT_CSV));
    ASK("cuProfilerStop before", cuProfilerStop());
    ASK("cuProfilerStart", cuProfilerStart());
    ASK("cuProfilerStart again", cuProfilerStart());
    ASK("cuProfilerStop", cuProfilerStop());
    ASK("cuProfilerStop again", cuProfilerStop());
    t.mode = (CUstreamCaptureMode)9;
    ASKF("cuThreadExchangeStreamCaptureMode 9", cuThreadExchangeStreamCaptureMode(&t.mode), " %d",
         (int)t.mode);
    for (int i = 0; i < 4; i++) {
        t.mode = (CUstreamCaptureMode)(i % 3);
        ASKF(ask_name("cuThreadExchangeStreamCaptureMode %d", i % 3),
             cuThreadExchangeStreamCaptureMode(&t.mode), " %d", (int)t.mode);
    }
    ASK("cuThreadExchangeStreamCaptureMode NULL", cuThreadExchangeStreamCaptureMode(NULL));
    ASK("cuModuleGetLoadingMode NULL", cuModuleGetLoadingMode(NULL));
    ASKF("cuModuleGetLoadingMode", cuModuleGetLoadingMode((CUmoduleLoadingMode *)&t.i), " %d", t.i);
}
