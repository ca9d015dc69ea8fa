/* Driver calls in random order with random arguments: live handles, stale ones, handles of another kind,
   invented numbers, NULL; sizes at and beyond limits. One input is the choices. Host buffers are always real:
   a wrong one is the program's crash on a GPU too. The library must answer every call; nothing else is
   checked here but that it lives, and that what it accounts for is gone in the end (its free memory). */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>
#include <cudaProfiler.h>

#include "check/hazard.h"
#include "driver/channel.h"
#include "fuzz_calls.h"
#include "generate.h"
#include "surface.h"
#include "target.h"

static struct fuzz_source source;

static uint64_t next(void)
{
    return fuzz_word(&source);
}

static unsigned below(unsigned limit)
{
    return fuzz_below(&source, limit);
}

static bool chance(unsigned one_in)
{
    return below(one_in) == 0;
}

#define SLOTS       12
#define STEP        ((uint64_t)2 << 20) /* granularity of virtual memory management */
#define RANGE_STEPS 3u
static uintptr_t slots[KINDS][SLOTS];

/* One that holds something, if there is one: most calls want a valid handle. */
static uintptr_t held(enum kind kind)
{
    unsigned first = below(SLOTS);
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[kind][(first + i) % SLOTS] != 0)
            return slots[kind][(first + i) % SLOTS];
    return 0;
}

static uintptr_t any(enum kind kind)
{
    switch (below(24)) {
    case 0:
        return 0;
    case 1:
        return (uintptr_t)next();
    case 2:
        return below(8);
    case 3:
        return slots[below(FIRST_KINDS)][below(SLOTS)];
    case 4:
        return slots[kind][below(SLOTS)] ^ ((uintptr_t)1 << below(48));
    default:
        return held(kind);
    }
}

/* What a slot held before is let go, so that nothing is lost. */
static void forget(enum kind kind, uintptr_t value)
{
    switch (kind) {
    case CONTEXT:
        cuCtxDestroy((CUcontext)value);
        break;
    case MODULE:
        cuModuleUnload((CUmodule)value);
        break;
    case STREAM:
        cuStreamDestroy((CUstream)value);
        break;
    case EVENT:
        cuEventDestroy((CUevent)value);
        break;
    case GRAPH:
        cuGraphDestroy((CUgraph)value);
        break;
    case EXEC:
        cuGraphExecDestroy((CUgraphExec)value);
        break;
    case LIBRARY:
        cuLibraryUnload((CUlibrary)value);
        break;
    case LINK:
        cuLinkDestroy((CUlinkState)value);
        break;
    case POOL:
        cuMemPoolDestroy((CUmemoryPool)value);
        break;
    case MEMORY:
        cuMemFree(value);
        break;
    case HOST:
        cuMemFreeHost((void *)value);
        break;
    case RESERVED:
        for (unsigned i = 0; i <= RANGE_STEPS; i++)
            for (unsigned n = 1; n <= RANGE_STEPS; n++)
                cuMemUnmap(value + i * STEP, n * STEP);
        cuMemAddressFree(value, RANGE_STEPS * STEP);
        break;
    case PHYSICAL:
        cuMemRelease(value);
        break;
    case GREEN:
        cuGreenCtxDestroy((CUgreenCtx)value);
        break;
    default:
        fuzz_more_forget(kind, value);
        break;
    }
}

static void keep(enum kind kind, uintptr_t value)
{
    uintptr_t *slot = &slots[kind][below(SLOTS)];
    for (unsigned i = 0; i < SLOTS && *slot != 0; i++)
        if (slots[kind][i] == 0)
            slot = &slots[kind][i];
    if (*slot != 0 && *slot != value)
        forget(kind, *slot);
    *slot = value;
}

uint64_t fuzz_next(void)
{
    return next();
}

unsigned fuzz_pick(unsigned limit)
{
    return below(limit);
}

uintptr_t fuzz_any(enum kind kind)
{
    return any(kind);
}

uintptr_t fuzz_held_handle(enum kind kind)
{
    return held(kind);
}

void fuzz_keep(enum kind kind, uintptr_t value)
{
    keep(kind, value);
}

/* Large allocations go back at once: sets and copies would make all of them real. */
static void keep_memory(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes = 0;
    if (cuMemGetAddressRange(&base, &bytes, address) == CUDA_SUCCESS && base == address && bytes > 16u << 20)
        cuMemFree(address);
    else
        keep(MEMORY, address);
}

static uint64_t size(void)
{
    switch (below(10)) {
    case 0:
        return 0;
    case 1:
        return chance(8) ? UINT64_MAX >> below(64)
                         : UINT64_MAX >> (40 + below(24)); /* large ones only take time */
    case 2:
        return (uint64_t)1 << below(chance(8) ? 44 : 20);
    default:
        return below(5000);
    }
}

static unsigned small(void)
{
    return chance(6) ? (unsigned)next() : below(10);
}

uint64_t fuzz_size(void)
{
    return size();
}

unsigned fuzz_small(void)
{
    return small();
}

/* ---- what calls write to and read from ---- */

unsigned char fuzz_scratch[1 << 16];
#define scratch fuzz_scratch
static uint64_t out[512], record[64];
static uintptr_t user_object; /* one at a time */
static void *nullable(void *pointer)
{
    return chance(20) ? NULL : pointer;
}

/* A host buffer's length, for a pointer into scratch. */
static size_t length(void)
{
    return chance(10) ? 0 : below(sizeof scratch);
}

#define STREAM_ARG (chance(4) ? (CUstream)(uintptr_t)below(3) : (CUstream)any(STREAM))

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 g = 1;\n"
    ".visible .entry touch(.param .u64 p, .param .u32 n) { .reg .pred q; .reg .b64 a, b; .reg .b32 v, w, t;\n"
    "  ld.param.u64 a, [p]; ld.param.u32 w, [n]; mov.u32 t, %tid.x; mul.wide.u32 b, t, 4; add.s64 a, a, b;\n"
    "  ld.global.u32 v, [a]; add.u32 v, v, w; st.global.u32 [a], v; ret; }\n"
    ".visible .entry loop(.param .u64 p) { .reg .pred q; .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p];\n"
    "L: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 12345; @q bra L; ret; }\n"
    ".visible .entry cluster() .reqnctapercluster 2 { barrier.cluster.arrive; barrier.cluster.wait; ret; }\n"
    ".visible .entry empty() { ret; }\n";
static const char *const names[] = {"touch", "loop", "cluster", "empty", "nothing", "g", ""};

static void CUDA_CB host_function(void *data)
{
    (void)data;
}

static void launch_some(void)
{
    uint64_t address = any(MEMORY);
    uint32_t n = small();
    void *params[] = {&address, &n};
    CUlaunchAttribute attributes[2] = {{.id = (CUlaunchAttributeID)below(18)},
                                       {.id = (CUlaunchAttributeID)below(18)}};
    for (int i = 0; i < 2; i++) {
        uint32_t values[] = {small(), small(), small()};
        memcpy(&attributes[i].value, values, sizeof values);
    }
    CUlaunchConfig config = {.gridDimX = small(),
                             .gridDimY = chance(4) ? small() : 1,
                             .gridDimZ = chance(8) ? small() : 1,
                             .blockDimX = chance(4) ? small() : 1 + below(64),
                             .blockDimY = chance(8) ? small() : 1,
                             .blockDimZ = chance(8) ? small() : 1,
                             .sharedMemBytes = chance(4) ? (unsigned)size() : 0,
                             .hStream = STREAM_ARG,
                             .attrs = nullable(attributes),
                             .numAttrs = below(3)};
    if (config.gridDimX > 4096)
        config.gridDimX %= 4096; /* a large grid is only slow */
    if (config.gridDimY > 64)
        config.gridDimY = 70000;
    if (config.gridDimZ > 64)
        config.gridDimZ = 70000;
    CUfunction function = (CUfunction)any(chance(4) ? KERNEL : FUNCTION);
    if (chance(8))
        cuLaunchCooperativeKernel(function, config.gridDimX, config.gridDimY, config.gridDimZ,
                                  config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes,
                                  config.hStream, nullable(params));
    else
        cuLaunchKernelEx(nullable(&config), function, nullable(params), NULL);
}

static void modules(void)
{
    char *name = nullable((char *)(uintptr_t)names[below(7)]);
    switch (below(10)) {
    case 0:
        if (cuModuleLoadData((CUmodule *)out, ptx) == CUDA_SUCCESS)
            keep(MODULE, out[0]);
        break;
    case 1:
        cuModuleUnload((CUmodule)any(MODULE));
        break;
    case 2:
        if (cuModuleGetGlobal((CUdeviceptr *)out, (size_t *)(out + 1), (CUmodule)any(MODULE), name) ==
            CUDA_SUCCESS)
            keep_memory(out[0]);
        break;
    case 3:
        if (cuLibraryLoadData((CUlibrary *)out, ptx, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS)
            keep(LIBRARY, out[0]);
        break;
    case 4:
        if (cuLibraryGetKernel((CUkernel *)out, (CUlibrary)any(LIBRARY), name) == CUDA_SUCCESS)
            keep(KERNEL, out[0]);
        break;
    case 5:
        if (cuKernelGetFunction((CUfunction *)out, (CUkernel)any(KERNEL)) == CUDA_SUCCESS)
            keep(FUNCTION, out[0]);
        break;
    case 6:
        if (chance(4))
            cuLibraryUnload((CUlibrary)any(LIBRARY));
        break;
    case 7:
        cuFuncSetAttribute((CUfunction)any(FUNCTION), (CUfunction_attribute)below(18),
                           (int)(chance(2) ? small() : size()));
        cuFuncGetAttribute(nullable(out), (CUfunction_attribute)below(18), (CUfunction)any(FUNCTION));
        break;
    case 8:
        cuOccupancyMaxActiveBlocksPerMultiprocessor(nullable(out), (CUfunction)any(FUNCTION), (int)size(),
                                                    size());
        cuOccupancyMaxPotentialBlockSize(nullable(out), nullable(out + 1), (CUfunction)any(FUNCTION), NULL,
                                         size(), (int)small());
        break;
    default:
        if (cuModuleGetFunction((CUfunction *)out, (CUmodule)any(MODULE), name) == CUDA_SUCCESS)
            keep(FUNCTION, out[0]);
        break;
    }
}

static void linker(void)
{
    switch (below(4)) {
    case 0:
        if (cuLinkCreate(0, NULL, NULL, (CUlinkState *)out) == CUDA_SUCCESS)
            keep(LINK, out[0]);
        break;
    case 1:
        cuLinkAddData((CUlinkState)any(LINK), (CUjitInputType)below(8), (void *)(uintptr_t)ptx, sizeof ptx,
                      NULL, 0, NULL, NULL);
        break;
    case 2:
        cuLinkComplete((CUlinkState)any(LINK), nullable(out), nullable(out + 1));
        break;
    default:
        cuLinkDestroy((CUlinkState)any(LINK));
        break;
    }
}

static void memory(void)
{
    CUdeviceptr a = any(MEMORY) + (chance(3) ? below(64) : 0), b = any(MEMORY);
    switch (below(18)) {
    case 0:
    case 1:
        if (cuMemAlloc(nullable(out), size()) == CUDA_SUCCESS)
            keep_memory(out[0]);
        break;
    case 2:
        cuMemFree(b);
        break;
    case 3:
        cuMemcpyHtoD(a, nullable(scratch), length());
        break;
    case 4:
        cuMemcpyDtoH(nullable(scratch), a, length());
        break;
    case 5:
        cuMemcpyDtoDAsync(a, b, size(), STREAM_ARG);
        break;
    case 6:
        cuMemsetD32Async(a, small(), size(), STREAM_ARG);
        break;
    case 7:
        cuMemsetD2D8(a, size(), (unsigned char)small(), size(), size());
        break;
    case 8:
        if (cuMemHostAlloc((void **)out, below(1 << 16), small()) == CUDA_SUCCESS)
            keep(HOST, out[0]);
        break;
    case 9:
        cuMemFreeHost((void *)any(HOST));
        break;
    case 10:
        if (cuMemAllocAsync(nullable(out), size(), STREAM_ARG) == CUDA_SUCCESS)
            keep_memory(out[0]);
        break;
    case 11:
        cuMemFreeAsync(b, STREAM_ARG);
        break;
    case 12: {
        CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .srcDevice = a,
                             .srcPitch = size(),
                             .srcHeight = size(),
                             .srcXInBytes = size(),
                             .srcY = size(),
                             .srcZ = size(),
                             .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                             .dstDevice = b,
                             .dstPitch = size(),
                             .dstHeight = size(),
                             .dstXInBytes = size(),
                             .WidthInBytes = size(),
                             .Height = size(),
                             .Depth = size()};
        cuMemcpy3DAsync(nullable(&box), STREAM_ARG);
        break;
    }
    case 13:
        cuPointerGetAttribute(nullable(out), (CUpointer_attribute)below(24), chance(2) ? a : any(HOST));
        break;
    case 14:
        cuMemHostRegister(nullable(scratch + below(4096)), below(60000), small());
        break;
    case 15:
        cuMemHostUnregister(scratch + below(4096));
        break;
    case 16:
        cuStreamWriteValue32(STREAM_ARG, a, small(), small());
        break;
    default:
        cuMemGetAddressRange(nullable(out), nullable(out + 1), a);
        cuMemHostGetDevicePointer(nullable(out), (void *)any(HOST), 0);
        break;
    }
}

/* Virtual memory management, memory of other processes. */
static void virtual_memory(void)
{
    CUmemAllocationProp props = {
        .type = chance(8) ? (CUmemAllocationType)small() : CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = chance(8) ? (CUmemLocationType)small() : CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = chance(12) ? (int)small() : 0},
        .requestedHandleTypes = chance(2) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : small()};
    CUmemAccessDesc access[3];
    for (unsigned i = 0; i < 3; i++)
        access[i] = (CUmemAccessDesc){.location = props.location,
                                      .flags = chance(8) ? (CUmemAccess_flags)small()
                                                         : (CUmemAccess_flags)(2 * below(2) + 1)};
    uint64_t range = any(RESERVED) + (chance(4) ? below(4) * STEP : 0), steps = 1 + below(RANGE_STEPS),
             bytes = chance(10) ? size() : steps * STEP;
    switch (below(14)) {
    case 0:
        if (cuMemAddressReserve(nullable(out), chance(8) ? bytes : RANGE_STEPS * STEP, chance(6) ? size() : 0,
                                chance(4) ? range : 0, chance(8) ? small() : 0) == CUDA_SUCCESS)
            keep(RESERVED, out[0]);
        break;
    case 1:
        cuMemAddressFree(range, bytes);
        break;
    case 2:
    case 3:
        if (cuMemCreate(nullable(out), bytes > RANGE_STEPS * STEP ? STEP + 1 : bytes, nullable(&props),
                        chance(8) ? small() : 0) == CUDA_SUCCESS)
            keep(PHYSICAL, out[0]);
        break;
    case 4:
        if (chance(3))
            cuMemRelease(any(PHYSICAL));
        break;
    case 5:
    case 6:
        cuMemMap(range, bytes, chance(6) ? size() : 0, any(PHYSICAL), chance(8) ? small() : 0);
        break;
    case 7:
        cuMemUnmap(range, bytes);
        break;
    case 8:
    case 9:
        cuMemSetAccess(range, bytes, nullable(access), chance(6) ? small() & 3 : 1);
        cuMemsetD8(range, 1, bytes);
        break;
    case 10:
        cuMemGetAccess(nullable(out), nullable(&props.location), range);
        if (cuMemRetainAllocationHandle(nullable(out), (void *)(uintptr_t)range) == CUDA_SUCCESS)
            cuMemRelease(out[0]);
        break;
    case 11:
        cuMemGetAllocationGranularity(nullable(out), nullable(&props),
                                      (CUmemAllocationGranularity_flags)below(3));
        cuMemGetAllocationPropertiesFromHandle(nullable(&props), any(PHYSICAL));
        break;
    case 12: {
        int file = -1;
        if (cuMemExportToShareableHandle(&file, any(PHYSICAL), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
                CUDA_SUCCESS &&
            file >= 0) {
            if (cuMemImportFromShareableHandle(nullable(out), (void *)(intptr_t)file,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS)
                keep(PHYSICAL, out[0]);
            close(file);
        }
        break;
    }
    default: {
        CUipcMemHandle handle;
        if (cuIpcGetMemHandle(&handle, any(MEMORY)) == CUDA_SUCCESS &&
            cuIpcOpenMemHandle((CUdeviceptr *)out, handle, 1) == CUDA_SUCCESS)
            cuIpcCloseMemHandle(out[0]);
        break;
    }
    }
}

static void streams(void)
{
    switch (below(14)) {
    case 0:
        if (cuStreamCreateWithPriority(nullable(out), small() & 3, (int)small()) == CUDA_SUCCESS)
            keep(STREAM, out[0]);
        break;
    case 1:
        cuStreamDestroy((CUstream)any(STREAM));
        break;
    case 2:
        cuStreamSynchronize(STREAM_ARG);
        break;
    case 3:
        cuStreamQuery(STREAM_ARG);
        break;
    case 4:
        if (cuEventCreate(nullable(out), small()) == CUDA_SUCCESS)
            keep(EVENT, out[0]);
        break;
    case 5:
        cuEventDestroy((CUevent)any(EVENT));
        break;
    case 6:
    case 7:
        cuEventRecordWithFlags((CUevent)any(EVENT), STREAM_ARG, below(3));
        break;
    case 8:
    case 9:
        cuStreamWaitEvent(STREAM_ARG, (CUevent)any(EVENT), below(3));
        break;
    case 10:
        cuEventSynchronize((CUevent)any(EVENT));
        break;
    case 11:
        cuEventElapsedTime(nullable(out), (CUevent)any(EVENT), (CUevent)any(EVENT));
        break;
    case 12:
        cuLaunchHostFunc(STREAM_ARG, host_function, NULL);
        break;
    default:
        cuStreamGetAttribute(STREAM_ARG, (CUstreamAttrID)below(18), nullable(out));
        cuStreamGetCtx(STREAM_ARG, nullable(out));
        break;
    }
}

static void graphs(void)
{
    CUgraphNode from[4] = {(CUgraphNode)any(NODE), (CUgraphNode)any(NODE), (CUgraphNode)any(NODE),
                           (CUgraphNode)any(NODE)};
    CUgraph graph = (CUgraph)any(GRAPH);
    uint64_t address = any(MEMORY);
    uint32_t n = 1;
    void *params[] = {&address, &n};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = (CUfunction)any(FUNCTION),
                                      .gridDimX = small() & 7,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = small() & 63,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = params};
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = address,
                                    .pitch = size(),
                                    .value = 1,
                                    .elementSize = 1u << below(4),
                                    .width = size(),
                                    .height = below(4)};
    CUresult added = CUDA_ERROR_UNKNOWN;
    size_t count = below(64);
    switch (below(20)) {
    case 0:
        if (cuGraphCreate(nullable(out), chance(8)) == CUDA_SUCCESS)
            keep(GRAPH, out[0]);
        break;
    case 1:
        cuGraphDestroy(graph);
        break;
    case 2:
    case 3:
        added = cuGraphAddKernelNode(nullable(out), graph, nullable(from), below(5), nullable(&kernel));
        break;
    case 4:
        added = cuGraphAddMemsetNode(nullable(out), graph, nullable(from), below(5), nullable(&fill),
                                     (CUcontext)any(CONTEXT));
        break;
    case 5:
        added = cuGraphAddEmptyNode(nullable(out), graph, nullable(from), below(5));
        break;
    case 6:
        added = cuGraphAddChildGraphNode(nullable(out), graph, nullable(from), below(3), (CUgraph)any(GRAPH));
        break;
    case 7:
        added = chance(2)
                    ? cuGraphAddEventRecordNode(nullable(out), graph, from, below(2), (CUevent)any(EVENT))
                    : cuGraphAddEventWaitNode(nullable(out), graph, from, below(2), (CUevent)any(EVENT));
        break;
    case 8:
        cuGraphAddDependencies(graph, from, from + 2, NULL, below(3));
        break;
    case 9:
        cuGraphRemoveDependencies(graph, from, from + 2, NULL, below(3));
        break;
    case 10:
        cuGraphDestroyNode(from[0]);
        break;
    case 11:
        if (cuGraphInstantiate(nullable(out), graph, small()) == CUDA_SUCCESS)
            keep(EXEC, out[0]);
        break;
    case 12:
        cuGraphLaunch((CUgraphExec)any(EXEC), STREAM_ARG);
        break;
    case 13:
        cuGraphExecDestroy((CUgraphExec)any(EXEC));
        break;
    case 14:
        if (cuGraphClone(nullable(out), graph) == CUDA_SUCCESS)
            keep(GRAPH, out[0]);
        break;
    case 15:
        cuGraphGetNodes(graph, nullable(out), nullable(&count));
        cuGraphNodeGetDependentNodes(from[0], nullable(out), NULL, nullable(&count));
        cuGraphKernelNodeGetParams(from[0], nullable(&kernel));
        break;
    case 16:
        cuGraphExecKernelNodeSetParams((CUgraphExec)any(EXEC), from[0], nullable(&kernel));
        break;
    case 17: {
        CUgraphExecUpdateResultInfo info;
        cuGraphExecUpdate((CUgraphExec)any(EXEC), graph, nullable(&info));
        break;
    }
    case 18:
        cuStreamBeginCapture(STREAM_ARG, (CUstreamCaptureMode)below(4));
        break;
    default:
        if (cuStreamEndCapture(STREAM_ARG, nullable(out)) == CUDA_SUCCESS)
            keep(GRAPH, out[0]);
        break;
    }
    if (added == CUDA_SUCCESS)
        keep(NODE, out[0]);
}

/* A legal map but for one of its numbers. */
static void tensor_maps(void)
{
    static CUtensorMap map;
    static const unsigned bytes_of[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    CUtensorMapDataType type = (CUtensorMapDataType)below(13);
    CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)below(4);
    CUtensorMapInterleave interleave = chance(4) ? (CUtensorMapInterleave)below(3) : 0;
    cuuint32_t rank = chance(3) ? 1 + below(5) : 3 + below(3), channels = 16 / bytes_of[type],
               pixels = 1 + below(64);
    cuuint64_t dims[] = {64, 32, 16, 8, 4}, strides[] = {512, 1 << 14, 1 << 18, 1 << 21};
    cuuint32_t box[] = {16 / bytes_of[type], 4, 2, 2, 1}, steps[] = {1, 1, 1, 1, 1};
    int lower[] = {-1, -1, -1}, upper[] = {(int)below(2), -1, 0};
    CUdeviceptr address = held(MEMORY);
    unsigned spoilt = below(16), k = below(5);
    switch (spoilt) {
    case 0:
        type = (CUtensorMapDataType)small();
        break;
    case 1:
        rank = small();
        break;
    case 2:
        address = chance(2) ? address + below(32) : any(MEMORY);
        break;
    case 3:
        dims[k] = size();
        break;
    case 4:
        strides[k & 3] = size();
        break;
    case 5:
        box[k] = small();
        break;
    case 6:
        steps[k] = small();
        break;
    case 7:
        swizzle = (CUtensorMapSwizzle)small();
        interleave = (CUtensorMapInterleave)small();
        break;
    case 8:
        channels = small();
        break;
    case 9:
        pixels = small();
        break;
    case 10:
        lower[k % 3] = (int)small();
        break;
    case 11:
        upper[k % 3] = (int)small();
        break;
    default:
        break;
    }
    CUtensorMapL2promotion promotion = (CUtensorMapL2promotion)below(spoilt == 12 ? 7 : 4);
    CUtensorMapFloatOOBfill fill = (CUtensorMapFloatOOBfill)below(spoilt == 13 ? 4 : 2);
    if (below(2))
        cuTensorMapEncodeTiled(nullable(&map), type, rank, (void *)(uintptr_t)address, nullable(dims),
                               nullable(strides), nullable(box), nullable(steps), interleave, swizzle,
                               promotion, fill);
    else if (below(2))
        cuTensorMapEncodeIm2col(nullable(&map), type, rank, (void *)(uintptr_t)address, nullable(dims),
                                nullable(strides), nullable(lower), nullable(upper), channels, pixels,
                                nullable(steps), interleave, swizzle, promotion, fill);
    else
        cuTensorMapEncodeIm2colWide(nullable(&map), type, rank, (void *)(uintptr_t)address, nullable(dims),
                                    nullable(strides), lower[0], upper[0], channels, pixels, nullable(steps),
                                    interleave, (CUtensorMapIm2ColWideMode)below(3), swizzle, promotion,
                                    fill);
    cuTensorMapReplaceAddress(nullable(&map), (void *)any(MEMORY));
}

/* What clusterlab itself asks of the library. */
static void channel(void)
{
    static const char *const options[] = {"schedule", "seed",    "isa",    "initial_clusters",
                                          "decline",  "driver",  "trace",  "trace_file",
                                          "source",   "threads", "nothing"};
    static const char *const values[] = {"fast", "fair", "12.8",      "13.0", "3", "base",
                                         "auto", "0,0",  "/dev/null", "/",    ""};
    const struct clab_channel *own = NULL;
    struct clab_error error = {0};
    struct clab_counters counters;
    if (cuGetExportTable((const void **)&own, (const CUuuid *)CLAB_CHANNEL_UUID) != CUDA_SUCCESS)
        return;
    switch (below(4)) {
    case 0:
        own->last_counters(&counters);
        break;
    case 1:
        own->last_error(&error);
        break;
    case 2:
        own->set_option(options[below(10)], nullable((char *)(uintptr_t)values[below(11)]), &error);
        break;
    default: {
        struct clab_hazard *hazards = NULL;
        size_t n = 0;
        own->hazards->enable((int)below(2));
        own->hazards->enable_kind(small(), (int)below(2));
        own->hazards->take(&hazards, &n);
        free(hazards);
        break;
    }
    }
    clab_error_clear(&error);
}

/* As it was before the first call. */
static void channel_reset(void)
{
    static const char *const options[] = {
        "schedule", "seed", "isa", "initial_clusters", "decline", "driver", "trace_file", "source", "trace"};
    const struct clab_channel *own = NULL;
    if (cuGetExportTable((const void **)&own, (const CUuuid *)CLAB_CHANNEL_UUID) != CUDA_SUCCESS)
        abort();
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        own->set_option(options[i], NULL, NULL);
    own->set_option("threads", "1", NULL);
    own->set_option("trace_file", "/dev/null", NULL);
    own->hazards->enable(0);
    for (unsigned kind = 0; kind < CLAB_HAZARD_KINDS; kind++)
        own->hazards->enable_kind(kind, 1);
}

static void contexts(void)
{
    switch (below(12)) {
    case 0:
        if (chance(3) && cuCtxCreate(nullable(out), NULL, small(), 0) == CUDA_SUCCESS)
            keep(CONTEXT, out[0]);
        break;
    case 1:
        cuCtxDestroy((CUcontext)any(CONTEXT));
        break;
    case 2:
        cuCtxSetCurrent((CUcontext)any(CONTEXT));
        break;
    case 3:
        cuCtxPushCurrent((CUcontext)any(CONTEXT));
        break;
    case 4:
        cuCtxPopCurrent(nullable(out));
        break;
    case 5:
        if (chance(4))
            cuDevicePrimaryCtxReset(chance(4) ? (int)small() : 0);
        break;
    case 6:
        cuCtxSynchronize();
        break;
    case 7:
        cuCtxGetLimit(nullable(out), (CUlimit)below(12));
        cuCtxSetLimit((CUlimit)below(12), size());
        break;
    case 8:
        cuDeviceGetAttribute(nullable(out), (CUdevice_attribute)below(160), chance(6) ? (int)small() : 0);
        break;
    case 9:
        tensor_maps();
        break;
    case 10: {
        CUmemPoolProps props = {.allocType = (CUmemAllocationType)below(3),
                                .location = {.type = (CUmemLocationType)below(4), .id = (int)below(2)}};
        if (cuMemPoolCreate(nullable(out), nullable(&props)) == CUDA_SUCCESS)
            keep(POOL, out[0]);
        cuMemAllocFromPoolAsync(nullable(out), size(), (CUmemoryPool)any(POOL), STREAM_ARG);
        cuMemPoolGetAttribute((CUmemoryPool)any(POOL), (CUmemPool_attribute)below(10), nullable(out));
        if (chance(3))
            cuMemPoolDestroy((CUmemoryPool)any(POOL));
        break;
    }
    default: {
        CUdriverProcAddressQueryResult found;
        cuGetProcAddress(names[below(7)], nullable(out), (int)small(), small(), nullable(&found));
        break;
    }
    }
}

/* ---- parts of the device, conditions of graphs, events and pools of other processes ---- */

static void green_contexts(void)
{
    static CUdevResource groups[8];
    CUdevResource all, rest;
    CUdevResourceDesc desc = NULL;
    CUcontext context = NULL;
    unsigned n = below(9);
    if (chance(2))
        cuDeviceGetDevResource(0, nullable(&all),
                               chance(8) ? (CUdevResourceType)small() : CU_DEV_RESOURCE_TYPE_SM);
    if (cuGreenCtxGetDevResource((CUgreenCtx)any(GREEN), &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
        cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (chance(16))
        memset(&all, (int)small(), below(sizeof all));
    cuDevSmResourceSplitByCount(chance(8) ? NULL : groups, nullable(&n), nullable(&all), nullable(&rest),
                                below(4), chance(8) ? small() : below(70));
    if (cuDevResourceGenerateDesc(&desc, groups + below(4), 1 + below(3)) == CUDA_SUCCESS &&
        cuGreenCtxCreate(nullable(out), chance(8) ? NULL : desc, 0, chance(8) ? small() : 1) == CUDA_SUCCESS)
        keep(GREEN, out[0]);
    if (cuGreenCtxStreamCreate(nullable(out), (CUgreenCtx)any(GREEN), chance(8) ? small() : 1,
                               (int)small()) == CUDA_SUCCESS)
        keep(STREAM, out[0]);
    if (chance(3) && cuCtxFromGreenCtx(&context, (CUgreenCtx)any(GREEN)) == CUDA_SUCCESS)
        cuCtxSetCurrent(context);
    cuGreenCtxRecordEvent((CUgreenCtx)any(GREEN), (CUevent)any(EVENT));
    cuGreenCtxWaitEvent((CUgreenCtx)any(GREEN), (CUevent)any(EVENT));
    if (chance(4))
        cuGreenCtxDestroy((CUgreenCtx)any(GREEN));
}

/* Loops start with a condition of zero: one that nobody ends would not end here either. */
static void conditions(void)
{
    CUgraphConditionalHandle handle = 0;
    CUcontext current = NULL;
    CUgraphNode node = NULL, from = (CUgraphNode)any(NODE);
    cuCtxGetCurrent(&current);
    cuGraphConditionalHandleCreate(nullable(&handle), (CUgraph)any(GRAPH), chance(8) ? NULL : current, 0,
                                   below(2));
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.handle = chance(8) ? next() : handle;
    params.conditional.type = (CUgraphConditionalNodeType)below(4);
    params.conditional.size = chance(8) ? small() : 1 + below(2);
    params.conditional.ctx = current;
    CUgraphEdgeData data = {.from_port = (unsigned char)below(4), .type = (unsigned char)below(3)};
    if (cuGraphAddNode(&node, (CUgraph)any(GRAPH), &from, chance(2) ? NULL : &data, below(2),
                       nullable(&params)) == CUDA_SUCCESS) {
        keep(NODE, (uintptr_t)node);
        if (params.conditional.phGraph_out != NULL)
            keep(GRAPH, (uintptr_t)params.conditional.phGraph_out[0]);
    }
    CUgraphNode to = (CUgraphNode)any(NODE);
    cuGraphAddDependencies((CUgraph)any(GRAPH), &from, &to, chance(2) ? NULL : &data, 1);
    CUgraphExecUpdateResultInfo info;
    cuGraphExecUpdate((CUgraphExec)any(EXEC), (CUgraph)any(GRAPH), nullable(&info));
}

static void other_processes(void)
{
    CUipcEventHandle event_handle;
    CUmemPoolPtrExportData pointer;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    int fd = -1;
    if (cuEventCreate((CUevent *)out, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
        keep(EVENT, out[0]);
    memset(&event_handle, (int)small(), sizeof event_handle);
    cuIpcGetEventHandle(nullable(&event_handle), (CUevent)any(EVENT));
    if (chance(4))
        ((unsigned char *)&event_handle)[below(sizeof event_handle)] ^= 1;
    cuIpcOpenEventHandle(nullable(out), event_handle);
    if (cuMemPoolCreate((CUmemoryPool *)out, &props) == CUDA_SUCCESS)
        keep(POOL, out[0]);
    if (cuMemAllocFromPoolAsync((CUdeviceptr *)out, below(10000), (CUmemoryPool)any(POOL), STREAM_ARG) ==
        CUDA_SUCCESS)
        keep_memory(out[0]);
    if (cuMemPoolExportToShareableHandle(&fd, (CUmemoryPool)any(POOL),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS) {
        if (cuMemPoolImportFromShareableHandle((CUmemoryPool *)out, (void *)(intptr_t)fd,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS)
            keep(POOL, out[0]);
        close(fd);
    }
    memset(&pointer, 0, sizeof pointer);
    cuMemPoolExportPointer(&pointer, any(MEMORY));
    if (chance(4))
        ((unsigned char *)&pointer)[below(sizeof pointer)] ^= 1;
    if (cuMemPoolImportPointer((CUdeviceptr *)out, (CUmemoryPool)any(POOL), &pointer) == CUDA_SUCCESS)
        keep_memory(out[0]);
}

/* ---- calls that need no arranging, by a table (waits for a value that may never come are not among them)
 * ---- */

/* Each argument is a letter: i a small number, z a size, c a count, n none, d a device, t a name, f a file's,
   o where something is written, O the same but never NULL, b a host buffer, h a host function, a a device
   address, r a structure of zeros with a random first word; handles: C context, M module, F function, S
   stream, E event, G graph, N node, X instance, L library, K kernel, J linker, P pool, U user object. All are
   of integer class, so that one type of function can stand for all of them: a call with more arguments than
   parameters is what the calling conventions of x86-64 and arm64 allow. */
typedef CUresult any_call(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                          uintptr_t);
#define CALL(name, arguments)                  \
    {                                          \
        (any_call *)(uintptr_t)name, arguments \
    }
static const struct {
    any_call *call;
    const char *arguments;
} calls[] = {
    CALL(cuCtxAttach, "oi"),
    CALL(cuCtxGetApiVersion, "Co"),
    CALL(cuCtxGetCacheConfig, "o"),
    CALL(cuCtxGetDevice, "o"),
    CALL(cuCtxGetExecAffinity, "oi"),
    CALL(cuCtxGetFlags, "o"),
    CALL(cuCtxGetId, "Co"),
    CALL(cuCtxGetSharedMemConfig, "o"),
    CALL(cuCtxGetStreamPriorityRange, "oo"),
    CALL(cuCtxResetPersistingL2Cache, ""),
    CALL(cuCtxSetCacheConfig, "i"),
    CALL(cuCtxSetFlags, "i"),
    CALL(cuCtxSetSharedMemConfig, "i"),
    CALL(cuCtxEnablePeerAccess, "Ci"),
    CALL(cuCtxDisablePeerAccess, "C"),
    CALL(cuDeviceCanAccessPeer, "odd"),
    CALL(cuDeviceComputeCapability, "ood"),
    CALL(cuDeviceGet, "od"),
    CALL(cuDeviceGetByPCIBusId, "ot"),
    CALL(cuDeviceGetCount, "o"),
    CALL(cuDeviceGetDefaultMemPool, "od"),
    CALL(cuDeviceGetExecAffinitySupport, "oid"),
    CALL(cuDeviceGetMemPool, "od"),
    CALL(cuDeviceGetName, "bid"),
    CALL(cuDeviceGetP2PAttribute, "oidd"),
    CALL(cuDeviceGetPCIBusId, "bid"),
    CALL(cuDeviceGetProperties, "od"),
    CALL(cuDeviceGetTexture1DLinearMaxWidth, "oiid"),
    CALL(cuDeviceGetUuid, "od"),
    CALL(cuDevicePrimaryCtxGetState, "doo"),
    CALL(cuDevicePrimaryCtxSetFlags, "di"),
    CALL(cuDeviceSetMemPool, "dP"),
    CALL(cuDeviceTotalMem, "od"),
    CALL(cuDriverGetVersion, "o"),
    CALL(cuEventQuery, "E"),
    CALL(cuEventRecord, "ES"),
    CALL(cuFuncGetModule, "oF"),
    CALL(cuFuncGetName, "oF"),
    CALL(cuFuncIsLoaded, "oF"),
    CALL(cuFuncLoad, "F"),
    CALL(cuFuncGetParamInfo, "Fioo"),
    CALL(cuFuncSetCacheConfig, "Fi"),
    CALL(cuFuncSetSharedMemConfig, "Fi"),
    CALL(cuGetErrorName, "io"),
    CALL(cuGetErrorString, "io"),
    CALL(cuGetExportTable, "ob"),
    CALL(cuGraphChildGraphNodeGetGraph, "No"),
    CALL(cuGraphEventRecordNodeGetEvent, "No"),
    CALL(cuGraphEventWaitNodeGetEvent, "No"),
    CALL(cuGraphEventRecordNodeSetEvent, "NE"),
    CALL(cuGraphEventWaitNodeSetEvent, "NE"),
    CALL(cuGraphExecEventRecordNodeSetEvent, "XNE"),
    CALL(cuGraphExecEventWaitNodeSetEvent, "XNE"),
    CALL(cuGraphExecChildGraphNodeSetParams, "XNG"),
    CALL(cuGraphExecGetFlags, "Xo"),
    CALL(cuGraphInstantiateWithFlags, "oGi"),
    CALL(cuGraphKernelNodeCopyAttributes, "NN"),
    CALL(cuGraphKernelNodeGetAttribute, "NiO"),
    CALL(cuGraphKernelNodeSetAttribute, "Nir"),
    CALL(cuGraphMemcpyNodeGetParams, "No"),
    CALL(cuGraphMemsetNodeGetParams, "No"),
    CALL(cuGraphHostNodeGetParams, "No"),
    CALL(cuGraphNodeFindInClone, "oNG"),
    CALL(cuGraphNodeGetType, "No"),
    CALL(cuGraphNodeGetEnabled, "XNo"),
    CALL(cuGraphNodeSetEnabled, "XNi"),
    CALL(cuGraphMemcpyNodeSetParams, "Nr"),
    CALL(cuGraphMemsetNodeSetParams, "Nr"),
    CALL(cuGraphExecMemsetNodeSetParams, "XNrC"),
    CALL(cuGraphExecMemcpyNodeSetParams, "XNrC"),
    CALL(cuGraphUpload, "XS"),
    CALL(cuGraphDebugDotPrint, "Gfi"),
    CALL(cuGraphRetainUserObject, "GUii"),
    CALL(cuGraphReleaseUserObject, "GUi"),
    CALL(cuUserObjectRetain, "Ui"),
    CALL(cuUserObjectRelease, "Ui"),
    CALL(cuKernelGetAttribute, "oiKd"),
    CALL(cuKernelSetAttribute, "iiKd"),
    CALL(cuKernelGetLibrary, "oK"),
    CALL(cuKernelGetName, "oK"),
    CALL(cuKernelGetParamInfo, "Kioo"),
    CALL(cuKernelSetCacheConfig, "Kid"),
    CALL(cuLibraryGetGlobal, "ooLt"),
    CALL(cuLibraryGetManaged, "ooLt"),
    CALL(cuLibraryGetKernelCount, "oL"),
    CALL(cuLibraryGetModule, "oL"),
    CALL(cuModuleGetFunctionCount, "oM"),
    CALL(cuMemAdvise, "azir"),
    CALL(cuMemHostGetFlags, "ob"),
    CALL(cuMemPoolGetAccess, "oPr"),
    CALL(cuMemPoolSetAccess, "Prc"),
    CALL(cuMemPoolSetAttribute, "PiO"),
    CALL(cuMemPoolTrimTo, "Pz"),
    CALL(cuMemPrefetchAsync, "azriS"),
    CALL(cuMemcpyDtoD, "aaz"),
    CALL(cuMemsetD8Async, "aizS"),
    CALL(cuMemsetD16Async, "aizS"),
    CALL(cuMemsetD2D32Async, "aziziS"),
    CALL(cuMemsetD2D16, "azizi"),
    CALL(cuMemsetD16, "aiz"),
    CALL(cuModuleGetLoadingMode, "o"),
    CALL(cuModuleGetSurfRef, "oMt"),
    CALL(cuModuleGetTexRef, "oMt"),
    CALL(cuModuleLoad, "ot"),
    CALL(cuOccupancyAvailableDynamicSMemPerBlock, "oFii"),
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "oFizi"),
    CALL(cuOccupancyMaxActiveClusters, "oFr"),
    CALL(cuOccupancyMaxPotentialClusterSize, "oFr"),
    CALL(cuPointerSetAttribute, "Oia"),
    CALL(cuProfilerStart, ""),
    CALL(cuProfilerStop, ""),
    CALL(cuStreamAddCallback, "Shoi"),
    CALL(cuStreamAttachMemAsync, "Sazi"),
    CALL(cuStreamBeginCaptureToGraph, "SGooci"),
    CALL(cuStreamCopyAttributes, "SS"),
    CALL(cuStreamCreate, "oi"),
    CALL(cuStreamGetDevice, "So"),
    CALL(cuStreamGetFlags, "So"),
    CALL(cuStreamGetId, "So"),
    CALL(cuStreamGetPriority, "So"),
    CALL(cuStreamGetCaptureInfo, "Soooooo"),
    CALL(cuStreamIsCapturing, "So"),
    CALL(cuStreamSetAttribute, "Sir"),
    CALL(cuStreamWriteValue64, "Saii"),
    CALL(cuStreamUpdateCaptureDependencies, "Sooci"),
    CALL(cuThreadExchangeStreamCaptureMode, "O"),
    CALL(cuTensorMapReplaceAddress, "oa"),
    CALL(cuLinkAddFile, "Jitnoo"),
    CALL(cuLogsCurrent, "oi"),
    CALL(cuLogsDumpToFile, "nni"),
    CALL(cuLogsUnregisterCallback, "X"),
    CALL(cuCheckpointProcessGetState, "io"),
    CALL(cuDeviceGetHostAtomicCapabilities, "oocd"),
    CALL(cuMulticastCreate, "oo"),
    CALL(cuGraphicsMapResources, "ioS"),
    CALL(cuGraphicsUnregisterResource, "X"),
    CALL(cuImportExternalMemory, "or"),
    CALL(cuImportExternalSemaphore, "or"),
    CALL(cuExternalMemoryGetMappedBuffer, "oXr"),
    CALL(cuDestroyExternalMemory, "X"),
    CALL(cuGraphBatchMemOpNodeGetParams, "No"),
    CALL(cuGraphExternalSemaphoresWaitNodeGetParams, "No"),
    CALL(cuCtxGetDevResource, "Coi"),
    CALL(cuStreamGetGreenCtx, "So"),
    CALL(cuFlushGPUDirectRDMAWrites, "ii"),
    CALL(cuMemGetHandleForAddressRange, "oazii"),
    CALL(cuArrayGetMemoryRequirements, "oXd"),
    CALL(cuCoredumpGetAttributeGlobal, "inO"),
};

static uintptr_t argument(char letter)
{
    static const char kinds[] = "CMFSEGNXLKJPaHvp"; /* as enum kind */
    switch (letter) {
    case 'i':
        return small();
    case 'z':
        return size();
    case 'n':
        return 0;
    case 'c':
        return below(40);
    case 'd':
        return chance(6) ? small() : 0;
    case 't':
        return (uintptr_t)names[below(7)];
    case 'o':
        return (uintptr_t)nullable(out);
    case 'O':
        return (uintptr_t)out;
    case 'f': { /* a file that may be written */
        static const char *const files[] = {"/dev/null", "/dev/full", "/nonexistent/file", "",
                                            "/",         "/dev/null", "/dev/null"};
        return (uintptr_t)files[below(7)];
    }
    case 'b':
        return (uintptr_t)scratch;
    case 'h':
        return (uintptr_t)host_function;
    case 'U':
        return user_object;
    case 'S':
        return (uintptr_t)STREAM_ARG;
    case 'r':
        memset(record, 0, sizeof record);
        record[0] = chance(2) ? small() : any((enum kind)below(FIRST_KINDS));
        return (uintptr_t)record;
    default:
        return any((enum kind)(strchr(kinds, letter) - kinds));
    }
}

static void questions(void)
{
    unsigned which = below(sizeof calls / sizeof calls[0]);
    uintptr_t arguments[8] = {0};
    for (unsigned i = 0; calls[which].arguments[i] != '\0'; i++)
        arguments[i] = argument(calls[which].arguments[i]);
    CUresult result = calls[which].call(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                                        arguments[5], arguments[6], arguments[7]);
    /* What the program has made it must let go: an instance holds its kernels' modules. */
    if (result == CUDA_SUCCESS && calls[which].call == (any_call *)(uintptr_t)cuGraphInstantiateWithFlags)
        keep(EXEC, out[0]);
    if (result == CUDA_SUCCESS && calls[which].call == (any_call *)(uintptr_t)cuStreamCreate)
        keep(STREAM, out[0]);
}

/* ---- calls whose structures hold host pointers, which are real ones here ---- */

static void copies(void)
{
    CUdeviceptr a = slots[MEMORY][below(SLOTS)], b = slots[MEMORY][below(SLOTS)];
    bool from_host = chance(2), to_host = chance(2);
    CUDA_MEMCPY2D box = {.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                         .srcHost = scratch,
                         .srcDevice = a,
                         .srcPitch = chance(8) ? size() : below(256),
                         .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                         .dstHost = scratch,
                         .dstDevice = b,
                         .dstPitch = chance(8) && !to_host ? size() : below(256),
                         .srcXInBytes = below(64),
                         .dstXInBytes = below(64),
                         .srcY = below(16),
                         .dstY = below(16),
                         .WidthInBytes = below(128),
                         .Height = below(64)};
    if (from_host && box.srcPitch > 256)
        box.srcPitch = 256;
    void *unified[] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, scratch};
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)unified[below(3)],
                from = (CUdeviceptr)(uintptr_t)unified[below(3)];
    switch (below(9)) {
    case 0:
        cuMemcpy2D(&box);
        break;
    case 1:
        cuMemcpy2DAsync(&box, STREAM_ARG);
        break;
    case 2:
        cuMemcpy2DUnaligned(&box);
        break;
    case 3:
        if (to != 0 && from != 0)
            cuMemcpy(to, from, below(4096));
        break;
    case 4:
        if (to != 0 && from != 0)
            cuMemcpyAsync(to, from, below(4096), STREAM_ARG);
        break;
    case 5:
        cuMemcpyHtoDAsync(a, scratch, length(), STREAM_ARG);
        break;
    case 6:
        cuMemcpyDtoHAsync(scratch, b, length(), STREAM_ARG);
        break;
    case 7: {
        CUpointer_attribute attributes[] = {(CUpointer_attribute)below(24), (CUpointer_attribute)below(24)};
        void *results[] = {out, out + 8};
        cuPointerGetAttributes(below(3), attributes, results, a);
        break;
    }
    default: {
        CUgraphNode from_nodes[2] = {(CUgraphNode)any(NODE), (CUgraphNode)any(NODE)};
        CUDA_HOST_NODE_PARAMS host = {.fn = host_function, .userData = scratch};
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = a,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = b,
                              .WidthInBytes = size(),
                              .Height = below(4),
                              .Depth = below(3)};
        CUresult added =
            chance(2) ? cuGraphAddHostNode(nullable(out), (CUgraph)any(GRAPH), from_nodes, below(3), &host)
                      : cuGraphAddMemcpyNode(nullable(out), (CUgraph)any(GRAPH), from_nodes, below(3), &copy,
                                             (CUcontext)any(CONTEXT));
        if (added == CUDA_SUCCESS)
            keep(NODE, out[0]);
        break;
    }
    }
    if (chance(8) && user_object == 0 &&
        cuUserObjectCreate((CUuserObject *)out, scratch, host_function, 1,
                           CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) == CUDA_SUCCESS)
        user_object = out[0];
    if (chance(4) && cuMemAllocManaged(nullable(out), below(1 << 16), small()) == CUDA_SUCCESS)
        keep_memory(out[0]);
    if (chance(4) && cuMemAllocPitch(nullable(out), (size_t *)(out + 1), below(5000), below(64),
                                     chance(4) ? small() : 4) == CUDA_SUCCESS)
        keep_memory(out[0]);
}

/* A usable context again: a fault ends most of the fun. */
static void fresh(void)
{
    CUcontext context = NULL;
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxReset(0);
    while (cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS)
        continue;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
}

/* Everything goes: what hangs on contexts, contexts, then what belongs to none. */
static void clear(void)
{
    static const enum kind order[] = {EXEC,    GRAPH,   LINK,    HOST,     MEMORY,    MODULE,  EVENT,
                                      STREAM,  GREEN,   TEXTURE, SURFACE,  REFERENCE, MIPMAPS, ARRAY,
                                      CONTEXT, LIBRARY, POOL,    RESERVED, PHYSICAL};
    fresh();
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (unsigned i = 0; i < SLOTS; i++)
            if (slots[order[k]][i] != 0)
                forget(order[k], slots[order[k]][i]);
    if (user_object != 0)
        cuUserObjectRelease((CUuserObject)user_object, 1);
    user_object = 0;
    memset(slots, 0, sizeof slots);
    fresh();
}

/* Something of each kind, so that most calls have what they need. */
static void arrange(void)
{
    CUmodule module;
    CUlibrary library;
    CUkernel kernel;
    CUlinkState link;
    CUdeviceptr address = 0;
    uint32_t n = 3;
    void *params[] = {&address, &n};
    CUgraphNode first = NULL;
    CUgraph graph = NULL;
    CUstream stream = NULL;
    if (cuModuleLoadData(&module, ptx) == CUDA_SUCCESS) {
        keep(MODULE, (uintptr_t)module);
        for (unsigned i = 0; i < 4; i++)
            if (cuModuleGetFunction((CUfunction *)out, module, names[i]) == CUDA_SUCCESS)
                keep(FUNCTION, out[0]);
    }
    if (cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS) {
        keep(LIBRARY, (uintptr_t)library);
        if (cuLibraryGetKernel(&kernel, library, "touch") == CUDA_SUCCESS)
            keep(KERNEL, (uintptr_t)kernel);
    }
    if (cuLinkCreate(0, NULL, NULL, &link) == CUDA_SUCCESS)
        keep(LINK, (uintptr_t)link);
    for (unsigned i = 0; i < 3; i++)
        if (cuMemAlloc(&address, 65536) == CUDA_SUCCESS)
            keep(MEMORY, address);
    if (cuMemHostAlloc((void **)out, 65536, 0) == CUDA_SUCCESS)
        keep(HOST, out[0]);
    for (unsigned i = 0; i < 2; i++) {
        if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
            keep(STREAM, (uintptr_t)stream);
        if (cuEventCreate((CUevent *)out, 0) == CUDA_SUCCESS)
            keep(EVENT, out[0]);
    }
    if (cuGraphCreate(&graph, 0) != CUDA_SUCCESS)
        return;
    keep(GRAPH, (uintptr_t)graph);
    CUDA_KERNEL_NODE_PARAMS node = {.func = (CUfunction)slots[FUNCTION][0],
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 32,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = params};
    CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = address, .value = 1, .elementSize = 4, .width = 64, .height = 1, .pitch = 256};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = address,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = slots[MEMORY][0],
                          .WidthInBytes = 256,
                          .Height = 1,
                          .Depth = 1};
    if (cuGraphAddKernelNode(&first, graph, NULL, 0, &node) == CUDA_SUCCESS)
        keep(NODE, (uintptr_t)first);
    if (cuGraphAddMemsetNode((CUgraphNode *)out, graph, &first, 1, &fill, NULL) == CUDA_SUCCESS)
        keep(NODE, out[0]);
    if (cuGraphAddMemcpyNode((CUgraphNode *)out, graph, NULL, 0, &copy, NULL) == CUDA_SUCCESS)
        keep(NODE, out[0]);
    if (cuGraphInstantiate((CUgraphExec *)out, graph, 0) == CUDA_SUCCESS)
        keep(EXEC, out[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const groups[])(void) = {launch_some,
                                           launch_some,
                                           modules,
                                           linker,
                                           memory,
                                           memory,
                                           memory,
                                           memory,
                                           streams,
                                           streams,
                                           streams,
                                           graphs,
                                           graphs,
                                           graphs,
                                           contexts,
                                           contexts,
                                           questions,
                                           questions,
                                           questions,
                                           fuzz_arrays,
                                           fuzz_textures,
                                           fuzz_references,
                                           fuzz_graph_memory,
                                           fuzz_old_and_managed,
                                           copies,
                                           copies,
                                           channel,
                                           virtual_memory,
                                           virtual_memory,
                                           green_contexts,
                                           conditions,
                                           other_processes};
    if (cuInit(0) != CUDA_SUCCESS)
        abort();
    channel_reset();
    fresh();
    const struct fuzz_held before = fuzz_held();
    source = (struct fuzz_source){.data = data, .bytes = bytes};
    if (!chance(8))
        arrange();
    while (source.at < source.bytes) {
        groups[below(sizeof groups / sizeof groups[0])]();
        CUcontext current = NULL;
        CUresult health = chance(24) ? cuCtxSynchronize() : CUDA_SUCCESS; /* it would end every capture */
        if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL || chance(200) ||
            (health != CUDA_SUCCESS && health != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED))
            fresh();
    }
    clear();
    fuzz_compare("fuzz_calls", before, fuzz_held());
    return 0;
}
