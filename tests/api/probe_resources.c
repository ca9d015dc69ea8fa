/* As probe.c, for what a device can be divided into and what processes share: green contexts, events and
   pools of other processes, the driver's logs, and the calls that only few devices have. usage:
   probe_resources LIBCUDA [SECTION…] */
#include "probing.h"

#include <fcntl.h>
#include <sys/socket.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of the API's wide unions */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"    /* deprecated calls are asked about too */

/* ---- green contexts ---- */

static void say_resource(const char *label, CUresult result, const CUdevResource *resource)
{
    say("%s %d", label, (int)result);
    if (result == CUDA_SUCCESS)
        say(": type %d, %u SMs, least %u, together %u", (int)resource->type, resource->sm.smCount,
            resource->sm.minSmPartitionSize, resource->sm.smCoscheduledAlignment);
    say("\n");
}

static void split(const CUdevResource *input, unsigned groups, unsigned flags, unsigned least)
{
    CUdevResource made[64], rest;
    unsigned simulated = groups, count = groups;
    memset(made, 0, sizeof made);
    memset(&rest, 0, sizeof rest);
    CUresult asked = cu.cuDevSmResourceSplitByCount(NULL, &simulated, input, NULL, flags, least);
    CUresult result = cu.cuDevSmResourceSplitByCount(made, &count, input, &rest, flags, least);
    say("split of %u into %u, flags %u, at least %u: ask %d %u, make %d %u", input->sm.smCount, groups, flags,
        least, (int)asked, simulated, (int)result, count);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count && i < 64; i++)
        if (i == 0 || made[i].sm.smCount != made[i - 1].sm.smCount)
            say(", %u SMs (%u, %u)", made[i].sm.smCount, made[i].sm.minSmPartitionSize,
                made[i].sm.smCoscheduledAlignment);
    if (result == CUDA_SUCCESS)
        say(", rest type %d %u (%u, %u)", (int)rest.type, rest.sm.smCount, rest.sm.minSmPartitionSize,
            rest.sm.smCoscheduledAlignment);
    say("\n");
}

static void splits(void)
{
    static const unsigned counts[] = {0,  1,  2,  7,  8,  9,  15,  16,  17,  24,  32,  44,  48,  60,
                                      64, 65, 66, 67, 72, 96, 100, 120, 128, 129, 131, 132, 133, 1000};
    CUdevResource all, rest, made[4];
    start();
    say_resource("device resource", cu.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), &all);
    say_resource("context resource", cu.cuCtxGetDevResource(context, &all, CU_DEV_RESOURCE_TYPE_SM), &all);
    SAY("resource of device 77", cu.cuDeviceGetDevResource(77, &all, CU_DEV_RESOURCE_TYPE_SM));
    SAY("resource NULL", cu.cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM));
    SAY("resource type 0", cu.cuDeviceGetDevResource(0, &rest, CU_DEV_RESOURCE_TYPE_INVALID));
    SAY("resource type 2", cu.cuDeviceGetDevResource(0, &rest, (CUdevResourceType)2));
    SAY("resource type 1000", cu.cuDeviceGetDevResource(0, &rest, (CUdevResourceType)1000));
    SAY("resource of context NULL", cu.cuCtxGetDevResource(NULL, &rest, CU_DEV_RESOURCE_TYPE_SM));
    SAY("resource of green context NULL", cu.cuGreenCtxGetDevResource(NULL, &rest, CU_DEV_RESOURCE_TYPE_SM));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (unsigned flags = 0; flags < 5; flags++) {
            split(&all, 64, flags, counts[i]);
            if (flags < 3) {
                split(&all, 1, flags, counts[i]);
                split(&all, 3, flags, counts[i]);
            }
        }
    unsigned n = 2;
    SAY("groups NULL", cu.cuDevSmResourceSplitByCount(made, NULL, &all, &rest, 0, 8));
    SAY("input NULL", cu.cuDevSmResourceSplitByCount(made, &n, NULL, &rest, 0, 8));
    n = 0;
    SAY("zero groups", cu.cuDevSmResourceSplitByCount(made, &n, &all, &rest, 0, 8));
    say("groups %u\n", n);
    n = 0;
    SAY("ask with zero groups", cu.cuDevSmResourceSplitByCount(NULL, &n, &all, &rest, 0, 8));
    say("groups %u\n", n);
    n = 2;
    SAY("without a rest", cu.cuDevSmResourceSplitByCount(made, &n, &all, NULL, 0, 16));
    CUdevResource zero = {0};
    SAY("of an invalid resource", cu.cuDevSmResourceSplitByCount(made, &n, &zero, &rest, 0, 8));
    n = 2;
    SAY("make", cu.cuDevSmResourceSplitByCount(made, &n, &all, &rest, 0, 16));
    split(&made[0], 2, 0, 8);
    split(&rest, 2, 0, 8);
}

static void green(void)
{
    CUdevResource all, made[4], rest, other[4], other_rest, got;
    CUdevResourceDesc desc = NULL, second = NULL;
    CUgreenCtx one = NULL, two = NULL, asked = (CUgreenCtx)1;
    CUcontext primary = NULL, converted = NULL, now = NULL;
    CUstream stream = NULL, plain = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    unsigned n = 4, flags = 0;
    unsigned long long id = 0, context_id = 0;
    int active = 0, value = 0;
    if (cu.cuInit(0) != CUDA_SUCCESS)
        exit(77);
    SAY("device resource", cu.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    SAY("split", cu.cuDevSmResourceSplitByCount(made, &n, &all, &rest, 0, 16));
    n = 2;
    SAY("another split", cu.cuDevSmResourceSplitByCount(other, &n, &all, &other_rest, 0, 32));
    SAY("descriptor NULL", cu.cuDevResourceGenerateDesc(NULL, made, 1));
    SAY("descriptor of NULL", cu.cuDevResourceGenerateDesc(&desc, NULL, 1));
    CUdevResource zero = {0};
    SAY("descriptor of an invalid resource", cu.cuDevResourceGenerateDesc(&desc, &zero, 1));
    SAY("descriptor of the same twice",
        cu.cuDevResourceGenerateDesc(&desc, (CUdevResource[]){made[0], made[0]}, 2));
    SAY("descriptor of two splits",
        cu.cuDevResourceGenerateDesc(&desc, (CUdevResource[]){made[0], other[1]}, 2));
    SAY("descriptor of all", cu.cuDevResourceGenerateDesc(&second, &all, 1));
    SAY("descriptor of a rest", cu.cuDevResourceGenerateDesc(&second, &rest, 1));
    SAY("descriptor of a group and the rest",
        cu.cuDevResourceGenerateDesc(&second, (CUdevResource[]){made[0], rest}, 2));
    SAY("descriptor of two", cu.cuDevResourceGenerateDesc(&second, made + 1, 2));
    SAY("descriptor", cu.cuDevResourceGenerateDesc(&desc, made, 1));
    SAY("create NULL", cu.cuGreenCtxCreate(NULL, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    SAY("create without a descriptor", cu.cuGreenCtxCreate(&one, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    SAY("create on device 77", cu.cuGreenCtxCreate(&one, desc, 77, CU_GREEN_CTX_DEFAULT_STREAM));
    SAY("create flags 0", cu.cuGreenCtxCreate(&one, desc, 0, 0));
    SAY("create flags 3", cu.cuGreenCtxCreate(&one, desc, 0, 3));
    SAY("create", cu.cuGreenCtxCreate(&one, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    SAY("primary state", cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    say("active %d\n", active);
    SAY("create second", cu.cuGreenCtxCreate(&two, second, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CUgreenCtx again = NULL;
    SAY("create again of a used descriptor",
        cu.cuGreenCtxCreate(&again, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    say_resource("resource of the first", cu.cuGreenCtxGetDevResource(one, &got, CU_DEV_RESOURCE_TYPE_SM),
                 &got);
    split(&got, 4, 0, 8);
    say_resource("resource of the second", cu.cuGreenCtxGetDevResource(two, &got, CU_DEV_RESOURCE_TYPE_SM),
                 &got);
    SAY("resource type 2", cu.cuGreenCtxGetDevResource(one, &got, (CUdevResourceType)2));
    SAY("current", cu.cuCtxGetCurrent(&now));
    say("current %d\n", now != NULL);
    SAY("convert NULL", cu.cuCtxFromGreenCtx(NULL, one));
    SAY("convert nothing", cu.cuCtxFromGreenCtx(&converted, NULL));
    SAY("convert", cu.cuCtxFromGreenCtx(&converted, one));
    SAY("retain primary", cu.cuDevicePrimaryCtxRetain(&primary, 0));
    say("converted is the primary %d, the handle %d\n", converted == primary,
        (void *)converted == (void *)one);
    SAY("id without a current context", cu.cuGreenCtxGetId(NULL, &id));
    SAY("set current", cu.cuCtxSetCurrent(converted));
    SAY("get current", cu.cuCtxGetCurrent(&now));
    say("current is the converted %d\n", now == converted);
    say_resource("resource of the converted",
                 cu.cuCtxGetDevResource(converted, &got, CU_DEV_RESOURCE_TYPE_SM), &got);
    say_resource("resource of the primary", cu.cuCtxGetDevResource(primary, &got, CU_DEV_RESOURCE_TYPE_SM),
                 &got);
    SAY("device", cu.cuCtxGetDevice(&value));
    SAY("id", cu.cuGreenCtxGetId(one, &id));
    SAY("id of the current", cu.cuGreenCtxGetId(NULL, &context_id));
    say("the same %d\n", id == context_id);
    SAY("id nowhere", cu.cuGreenCtxGetId(one, NULL));
    SAY("context id", cu.cuCtxGetId(converted, &context_id));
    say("the same %d\n", id == context_id);
    SAY("context id of the primary", cu.cuCtxGetId(primary, &context_id));
    say("the same %d\n", id == context_id);
    SAY("api version", cu.cuCtxGetApiVersion(converted, &flags));
    SAY("flags", cu.cuCtxGetFlags(&flags));
    say("flags %u\n", flags);
    SAY("attribute SMs", cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    say("SMs %d\n", value);
    CUexecAffinityParam affinity;
    memset(&affinity, 0, sizeof affinity);
    SAY("exec affinity", cu.cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    say("affinity %d %u\n", (int)affinity.type, affinity.param.smCount.val);
    SAY("stream flags 0", cu.cuGreenCtxStreamCreate(&stream, one, 0, 0));
    SAY("stream flags 3", cu.cuGreenCtxStreamCreate(&stream, one, 3, 0));
    SAY("stream of NULL", cu.cuGreenCtxStreamCreate(&stream, NULL, CU_STREAM_NON_BLOCKING, 0));
    SAY("stream NULL", cu.cuGreenCtxStreamCreate(NULL, one, CU_STREAM_NON_BLOCKING, 0));
    SAY("stream", cu.cuGreenCtxStreamCreate(&stream, one, CU_STREAM_NON_BLOCKING, -100));
    SAY("stream priority", cu.cuStreamGetPriority(stream, &value));
    say("priority %d\n", value);
    SAY("green context of the stream", cu.cuStreamGetGreenCtx(stream, &asked));
    say("is the first %d\n", asked == one);
    SAY("green context of NULL", cu.cuStreamGetGreenCtx(NULL, &asked));
    say("is the first %d\n", asked == one);
    SAY("green context nowhere", cu.cuStreamGetGreenCtx(stream, NULL));
    SAY("context of the stream", cu.cuStreamGetCtx(stream, &now));
    say("is the converted %d, the primary %d\n", now == converted, now == primary);
    now = NULL;
    asked = NULL;
    SAY("context of the stream, v2", cu.cuStreamGetCtx_v2(stream, &now, &asked));
    say("context %d green %d\n",
        now == NULL        ? 0
        : now == converted ? 1
        : now == primary   ? 2
                           : 3,
        asked == NULL  ? 0
        : asked == one ? 1
                       : 2);
    now = NULL;
    asked = NULL;
    SAY("plain stream while green", cu.cuStreamCreate(&plain, 0));
    SAY("plain non-blocking stream while green", cu.cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    SAY("its green context", cu.cuStreamGetGreenCtx(plain, &asked));
    say("is the first %d\n", asked == one);
    SAY("alloc", cu.cuMemAlloc_v2(&memory, 64));
    SAY("set", cu.cuMemsetD8Async(memory, 1, 64, stream));
    SAY("set in the default stream", cu.cuMemsetD8_v2(memory, 1, 64));
    SAY("event", cu.cuEventCreate(&event, 0));
    SAY("record", cu.cuEventRecord(event, stream));
    SAY("record green", cu.cuGreenCtxRecordEvent(one, event));
    SAY("record in the other green", cu.cuGreenCtxRecordEvent(two, event));
    SAY("record green NULL", cu.cuGreenCtxRecordEvent(NULL, event));
    SAY("record green no event", cu.cuGreenCtxRecordEvent(one, NULL));
    SAY("wait green", cu.cuGreenCtxWaitEvent(two, event));
    SAY("wait green NULL", cu.cuGreenCtxWaitEvent(NULL, event));
    SAY("wait green no event", cu.cuGreenCtxWaitEvent(one, NULL));
    SAY("context record", cu.cuCtxRecordEvent(converted, event));
    SAY("context wait", cu.cuCtxWaitEvent(primary, event));
    SAY("capture", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("record green while capturing", cu.cuGreenCtxRecordEvent(one, event));
    CUgraph graph = NULL;
    SAY("end capture", cu.cuStreamEndCapture(stream, &graph));
    SAY("synchronize", cu.cuCtxSynchronize());
    SAY("set primary current", cu.cuCtxSetCurrent(primary));
    SAY("free in the primary", cu.cuMemFree_v2(memory));
    SAY("green context of a NULL stream", cu.cuStreamGetGreenCtx(NULL, &asked));
    say("none %d\n", asked == NULL);
    SAY("use the green stream from the primary", cu.cuStreamSynchronize(stream));
    SAY("destroy converted", cu.cuCtxDestroy_v2(converted));
    SAY("destroy NULL", cu.cuGreenCtxDestroy(NULL));
    SAY("destroy stream", cu.cuStreamDestroy_v2(stream));
    SAY("destroy", cu.cuGreenCtxDestroy(one));
    SAY("destroy again", cu.cuGreenCtxDestroy(one));
    SAY("resource of a destroyed", cu.cuGreenCtxGetDevResource(one, &got, CU_DEV_RESOURCE_TYPE_SM));
    SAY("stream of a destroyed", cu.cuStreamSynchronize(plain));
    SAY("set the destroyed current", cu.cuCtxSetCurrent(converted));
    SAY("destroy second", cu.cuGreenCtxDestroy(two));
}

/* What a green context lets kernels use. */
static void green_kernels(void)
{
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry where(.param .u64 p)\n{ .reg .b64 a; .reg .b32 s, n; .reg .pred q;\n"
        "  ld.param.u64 a, [p]; mov.u32 s, %tid.x; setp.ne.u32 q, s, 0; @q ret;\n"
        "  mov.u32 s, %smid; mov.u32 n, %nsmid; st.global.u32 [a], n; mul.wide.u32 a, s, 4; .reg .b64 b;\n"
        "  ld.param.u64 b, [p]; add.u64 a, a, b; red.global.add.u32 [a+4], 1; ret; }\n";
    CUdevResource all, made[8], rest;
    CUdevResourceDesc desc;
    CUgreenCtx one = NULL;
    CUcontext converted = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    start();
    cu.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
    SAY("load in the primary", cu.cuModuleLoadData(&module, text));
    SAY("get", cu.cuModuleGetFunction(&function, module, "where"));
    SAY("alloc", cu.cuMemAlloc_v2(&memory, 1024));
    for (unsigned size = 8; size <= 64; size *= 2) {
        unsigned n = 1;
        int blocks = -1, clusters = -1, largest = -1;
        uint32_t words[256];
        void *params[] = {&memory};
        if (cu.cuDevSmResourceSplitByCount(made, &n, &all, &rest, size == 64 ? 2 : 0, size) != CUDA_SUCCESS ||
            cu.cuDevResourceGenerateDesc(&desc, made, 1) != CUDA_SUCCESS ||
            cu.cuGreenCtxCreate(&one, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS ||
            cu.cuCtxFromGreenCtx(&converted, one) != CUDA_SUCCESS)
            continue;
        cu.cuCtxSetCurrent(converted);
        cu.cuGreenCtxStreamCreate(&stream, one, CU_STREAM_NON_BLOCKING, 0);
        for (unsigned which = 0; which < 3; which++) {
            CUresult cleared = cu.cuMemsetD8_v2(memory, 0, 1024);
            cu.cuCtxSynchronize();
            CUstream in = which == 0 ? stream : NULL;
            if (which == 2)
                cu.cuCtxSetCurrent(context);
            CUresult launched = cu.cuLaunchKernel(function, 4096, 1, 1, 1024, 1, 1, 0,
                                                  which == 2 ? stream : in, params, NULL);
            CUresult done = cu.cuCtxSynchronize();
            cu.cuStreamSynchronize(stream);
            memset(words, 0, sizeof words);
            cu.cuMemcpyDtoH_v2(words, memory, 1024);
            cu.cuCtxSetCurrent(converted);
            unsigned used = 0, ctas = 0;
            for (unsigned i = 1; i < 200; i++) {
                used += words[i] != 0;
                ctas += words[i];
            }
            say("group of %u (%u SMs), %s: %d %d %d, %u CTAs on %u SMs, nsmid %u\n", size, made[0].sm.smCount,
                which == 0   ? "its stream"
                : which == 1 ? "its default stream"
                             : "its stream from the primary",
                (int)cleared, (int)launched, (int)done, ctas, used, words[0]);
        }
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        CUlaunchConfig config = {.gridDimX = 4096,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1024,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = stream,
                                 .attrs = &attribute,
                                 .numAttrs = 1};
        CUresult asked = cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 1024, 0);
        say("occupancy %d %d, clusters of", (int)asked, blocks);
        cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
        for (unsigned x = 1; x <= 16; x *= 2) {
            attribute.value.clusterDim.x = x;
            attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
            asked = cu.cuOccupancyMaxActiveClusters(&clusters, function, &config);
            say(" %u: %d %d,", x, (int)asked, clusters);
        }
        config.numAttrs = 0;
        asked = cu.cuOccupancyMaxPotentialClusterSize(&largest, function, &config);
        say(" largest %d %d\n", (int)asked, largest);
        for (unsigned ctas = made[0].sm.smCount; ctas <= 3 * made[0].sm.smCount; ctas += made[0].sm.smCount) {
            CUresult launched =
                cu.cuLaunchCooperativeKernel(function, ctas, 1, 1, 1024, 1, 1, 0, stream, params);
            say("cooperative %u: %d %d\n", ctas, (int)launched, (int)cu.cuStreamSynchronize(stream));
        }
        cu.cuStreamDestroy_v2(stream);
        cu.cuCtxSetCurrent(context);
        cu.cuGreenCtxDestroy(one);
    }
}

/* ---- other processes ---- */

static void give(int to, const void *data, size_t bytes)
{
    if (write(to, data, bytes) != (ssize_t)bytes)
        _exit(3);
}

static void take(int from, void *data, size_t bytes)
{
    if (read(from, data, bytes) != (ssize_t)bytes)
        _exit(4);
}

static void give_descriptor(int to, int descriptor)
{
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    if (sendmsg(to, &message, 0) != 1)
        _exit(3);
}

static int take_descriptor(int from)
{
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int descriptor = -1;
    if (recvmsg(from, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL)
        _exit(4);
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

/* The importing process says its lines first: it ends before the exporter goes on. */
static void events_importer(int channel)
{
    CUipcEventHandle handle, spoilt;
    CUevent event = NULL, other = NULL;
    CUstream stream;
    float time = 0;
    CUdeviceptr memory = 0;
    take(channel, &handle, sizeof handle);
    start();
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cu.cuMemAlloc_v2(&memory, 64);
    spoilt = handle;
    memset(&spoilt, 0x11, sizeof spoilt);
    SAY("importer: open NULL", cu.cuIpcOpenEventHandle(NULL, handle));
    SAY("importer: open garbage", cu.cuIpcOpenEventHandle(&event, spoilt));
    SAY("importer: open", cu.cuIpcOpenEventHandle(&event, handle));
    SAY("importer: open again", cu.cuIpcOpenEventHandle(&other, handle));
    say("importer: the same %d\n", event == other);
    SAY("importer: query", cu.cuEventQuery(event));
    SAY("importer: wait", cu.cuStreamWaitEvent(stream, event, 0));
    SAY("importer: set", cu.cuMemsetD8Async(memory, 1, 64, stream));
    SAY("importer: synchronize", cu.cuEventSynchronize(event));
    SAY("importer: stream", cu.cuStreamSynchronize(stream));
    SAY("importer: elapsed", cu.cuEventElapsedTime(&time, event, event));
    CUipcEventHandle second;
    SAY("importer: export the imported", cu.cuIpcGetEventHandle(&second, event));
    SAY("importer: record", cu.cuEventRecord(event, stream));
    SAY("importer: synchronize after recording", cu.cuEventSynchronize(event));
    SAY("importer: destroy", cu.cuEventDestroy_v2(event));
    SAY("importer: query the second", cu.cuEventQuery(other));
    SAY("importer: destroy the second", cu.cuEventDestroy_v2(other));
    fflush(stdout);
    give(channel, "x", 1);
}

static void ipc_events(void)
{
    int channel[2];
    char byte = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, channel) != 0)
        exit(3);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(50);
        events_importer(channel[1]);
        _exit(0);
    }
    CUevent event = NULL, plain = NULL, other = NULL;
    CUipcEventHandle handle;
    CUstream stream;
    start();
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    SAY("create interprocess", cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    SAY("create interprocess without timing",
        cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    SAY("create plain", cu.cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    SAY("get of plain", cu.cuIpcGetEventHandle(&handle, plain));
    SAY("get NULL", cu.cuIpcGetEventHandle(NULL, event));
    SAY("get of NULL", cu.cuIpcGetEventHandle(&handle, NULL));
    SAY("record", cu.cuEventRecord(event, stream));
    SAY("get", cu.cuIpcGetEventHandle(&handle, event));
    CUipcEventHandle twice;
    SAY("get again", cu.cuIpcGetEventHandle(&twice, event));
    say("the same %d\n", memcmp(&handle, &twice, sizeof handle) == 0);
    SAY("open own", cu.cuIpcOpenEventHandle(&other, handle));
    SAY("begin capture", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("record in a capture", cu.cuEventRecord(event, stream));
    CUgraph graph = NULL;
    SAY("end capture", cu.cuStreamEndCapture(stream, &graph));
    SAY("query", cu.cuEventQuery(event));
    SAY("record once more", cu.cuEventRecord(event, stream));
    fflush(stdout);
    give(channel[0], &handle, sizeof handle);
    take(channel[0], &byte, 1);
    waitpid(child, NULL, 0);
    SAY("query after the importer", cu.cuEventQuery(event));
    SAY("wait after the importer", cu.cuEventSynchronize(event));
    SAY("destroy", cu.cuEventDestroy_v2(event));
}

struct offer {
    CUmemPoolPtrExportData pointer, second;
};

static void pool_importer(int channel)
{
    struct offer offer;
    CUmemoryPool pool = NULL, again = NULL;
    CUstream stream;
    CUdeviceptr address = 0, second = 0, mine = 0;
    uint32_t word = 0;
    int fd = take_descriptor(channel);
    take(channel, &offer, sizeof offer);
    start();
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    void *handle = (void *)(intptr_t)fd;
    SAY("importer: pool NULL",
        cu.cuMemPoolImportFromShareableHandle(NULL, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("importer: flags 1",
        cu.cuMemPoolImportFromShareableHandle(&pool, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    SAY("importer: type none",
        cu.cuMemPoolImportFromShareableHandle(&pool, handle, CU_MEM_HANDLE_TYPE_NONE, 0));
    SAY("importer: descriptor 1000", cu.cuMemPoolImportFromShareableHandle(
                                         &pool, (void *)1000, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("importer: import",
        cu.cuMemPoolImportFromShareableHandle(&pool, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("importer: import again",
        cu.cuMemPoolImportFromShareableHandle(&again, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    say("importer: the same %d\n", pool == again);
    close(fd);
    SAY("importer: allocate from it", cu.cuMemAllocFromPoolAsync(&mine, 64, pool, stream));
    CUdevice device = 0;
    SAY("importer: make it current", cu.cuDeviceSetMemPool(device, pool));
    for (int i = 1; i < 9; i++) {
        uint64_t value = 99;
        CUresult result = cu.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)i, &value);
        say("importer: attribute %d %d\n", i, (int)result);
    }
    uint64_t threshold = 1 << 20;
    SAY("importer: set attribute",
        cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    SAY("importer: trim", cu.cuMemPoolTrimTo(pool, 0));
    CUmemAccess_flags flags = (CUmemAccess_flags)99;
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    SAY("importer: access", cu.cuMemPoolGetAccess(&flags, pool, &here));
    say("importer: access %d\n", (int)flags);
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    SAY("importer: set access", cu.cuMemPoolSetAccess(pool, &access, 1));
    SAY("importer: export it",
        cu.cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("importer: pointer NULL", cu.cuMemPoolImportPointer(NULL, pool, &offer.pointer));
    SAY("importer: data NULL", cu.cuMemPoolImportPointer(&address, pool, NULL));
    SAY("importer: pool NULL", cu.cuMemPoolImportPointer(&address, NULL, &offer.pointer));
    CUmemPoolPtrExportData spoilt;
    memset(&spoilt, 0x11, sizeof spoilt);
    SAY("importer: garbage", cu.cuMemPoolImportPointer(&address, pool, &spoilt));
    SAY("importer: pointer", cu.cuMemPoolImportPointer(&address, pool, &offer.pointer));
    SAY("importer: pointer again", cu.cuMemPoolImportPointer(&second, pool, &offer.pointer));
    say("importer: the same %d\n", address == second);
    CUresult read = cu.cuMemcpyDtoH_v2(&word, address, 4);
    say("importer: read %d %x\n", (int)read, word);
    SAY("importer: write", cu.cuMemsetD32_v2(address, 0x5678, 4));
    CUdeviceptr base = 0;
    size_t size = 0;
    CUresult range = cu.cuMemGetAddressRange_v2(&base, &size, address + 4);
    say("importer: range %d %d %zu\n", (int)range, base == address, size);
    SAY("importer: export the pointer", cu.cuMemPoolExportPointer(&spoilt, address));
    SAY("importer: inner pointer", cu.cuMemPoolImportPointer(&second, pool, &offer.second));
    range = cu.cuMemGetAddressRange_v2(&base, &size, second);
    say("importer: range %d %d %zu\n", (int)range, (int)(second - base), size);
    SAY("importer: destroy the pool", cu.cuMemPoolDestroy(pool));
    SAY("importer: read after it", cu.cuMemcpyDtoH_v2(&word, address, 4));
    SAY("importer: free async", cu.cuMemFreeAsync(address, stream));
    SAY("importer: synchronize", cu.cuStreamSynchronize(stream));
    SAY("importer: read after the free", cu.cuMemcpyDtoH_v2(&word, address, 4));
    SAY("importer: free", cu.cuMemFree_v2(second));
    SAY("importer: destroy the pool then", cu.cuMemPoolDestroy(pool));
    SAY("importer: import after that", cu.cuMemPoolImportPointer(&address, pool, &offer.pointer));
    fflush(stdout);
    give(channel, "x", 1);
}

static void pools(void)
{
    int channel[2], fd = -1, second_fd = -1;
    char byte = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, channel) != 0)
        exit(3);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(50);
        pool_importer(channel[1]);
        _exit(0);
    }
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool plain = NULL, shared = NULL, twice = NULL, standard = NULL;
    CUdeviceptr from_plain = 0, memory = 0, ordinary = 0, own = 0;
    CUstream stream;
    struct offer offer;
    uint32_t word = 0;
    start();
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    int types = -1;
    SAY("handle types",
        cu.cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
    say("handle types %d\n", types);
    for (int type = 0; type < 17; type = type == 0 ? 1 : type * 2) {
        props.handleTypes = (CUmemAllocationHandleType)type;
        CUmemoryPool made = NULL;
        say("create with handle type %d: %d\n", type, (int)cu.cuMemPoolCreate(&made, &props));
    }
    props.handleTypes = (CUmemAllocationHandleType)(1 | 8);
    SAY("create with handle types 9", cu.cuMemPoolCreate(&twice, &props));
    props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    SAY("create plain", cu.cuMemPoolCreate(&plain, &props));
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    SAY("create shared", cu.cuMemPoolCreate(&shared, &props));
    SAY("default", cu.cuDeviceGetDefaultMemPool(&standard, 0));
    SAY("export plain",
        cu.cuMemPoolExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("export default",
        cu.cuMemPoolExportToShareableHandle(&fd, standard, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("export nowhere",
        cu.cuMemPoolExportToShareableHandle(NULL, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("export flags 1",
        cu.cuMemPoolExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    SAY("export type none", cu.cuMemPoolExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_NONE, 0));
    SAY("export fabric", cu.cuMemPoolExportToShareableHandle(&offer, shared, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    SAY("export NULL",
        cu.cuMemPoolExportToShareableHandle(&fd, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("export",
        cu.cuMemPoolExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("export again",
        cu.cuMemPoolExportToShareableHandle(&second_fd, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    say("descriptors differ %d\n", fd != second_fd);
    SAY("allocate plain", cu.cuMemAllocFromPoolAsync(&from_plain, 1000, plain, stream));
    SAY("allocate shared", cu.cuMemAllocFromPoolAsync(&memory, 1000, shared, stream));
    SAY("ordinary", cu.cuMemAlloc_v2(&ordinary, 64));
    SAY("set", cu.cuMemsetD32Async(memory, 0x1234, 250, stream));
    SAY("finish", cu.cuStreamSynchronize(stream));
    SAY("pointer of plain", cu.cuMemPoolExportPointer(&offer.pointer, from_plain));
    SAY("pointer of ordinary", cu.cuMemPoolExportPointer(&offer.pointer, ordinary));
    SAY("pointer of 0", cu.cuMemPoolExportPointer(&offer.pointer, 0));
    SAY("pointer nowhere", cu.cuMemPoolExportPointer(NULL, memory));
    SAY("inner pointer", cu.cuMemPoolExportPointer(&offer.second, memory + 16));
    SAY("pointer", cu.cuMemPoolExportPointer(&offer.pointer, memory));
    CUipcMemHandle handle;
    SAY("memory handle of the pool's", cu.cuIpcGetMemHandle(&handle, memory));
    CUmemoryPool imported = NULL;
    SAY("import own", cu.cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("import own pointer", cu.cuMemPoolImportPointer(&own, imported, &offer.pointer));
    say("the same address %d\n", own == memory);
    SAY("import own pointer into the exporting pool",
        cu.cuMemPoolImportPointer(&own, shared, &offer.pointer));
    fflush(stdout);
    give_descriptor(channel[0], fd);
    give(channel[0], &offer, sizeof offer);
    take(channel[0], &byte, 1);
    waitpid(child, NULL, 0);
    CUresult read = cu.cuMemcpyDtoH_v2(&word, memory, 4);
    say("after the importer: %d %x\n", (int)read, word);
    SAY("free", cu.cuMemFreeAsync(memory, stream));
    SAY("destroy", cu.cuMemPoolDestroy(shared));
    SAY("finish", cu.cuStreamSynchronize(stream));
}

/* ---- logs ---- */

static int heard;
static char last[512];

static void CUDA_CB hear(void *data, CUlogLevel level, char *message, size_t length)
{
    heard++;
    snprintf(last, sizeof last, "data %d level %d length %d: %.*s", data != NULL, (int)level,
             length == strlen(message), 400, message);
}

static size_t lines_of(const char *text)
{
    size_t lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static void logs(void)
{
    CUlogsCallbackHandle handle = NULL, second = NULL;
    CUlogIterator iterator = 77, before = 0;
    char buffer[25600];
    size_t size = sizeof buffer;
    CUdeviceptr memory = 0;
    SAY("register before cuInit", cu.cuLogsRegisterCallback(hear, buffer, &handle));
    SAY("current before cuInit", cu.cuLogsCurrent(&iterator, 0));
    start();
    SAY("register NULL", cu.cuLogsRegisterCallback(NULL, NULL, &second));
    SAY("register", cu.cuLogsRegisterCallback(hear, NULL, &second));
    SAY("register without a handle", cu.cuLogsRegisterCallback(hear, NULL, NULL));
    say("heard something %d\n", heard > 0);
    SAY("current nowhere", cu.cuLogsCurrent(NULL, 0));
    SAY("current flags 1", cu.cuLogsCurrent(&iterator, 1));
    SAY("current", cu.cuLogsCurrent(&iterator, 0));
    before = iterator;
    SAY("failing call", cu.cuMemAlloc_v2(&memory, 0));
    say("last \"%s\", iterator moved %d\n", last, iterator != before);
    SAY("current after it", cu.cuLogsCurrent(&before, 0));
    say("advanced by %u\n", before - iterator);
    SAY("dump", cu.cuLogsDumpToMemory(&iterator, buffer, &size, 0));
    say("dumped %d, iterator at the end %d, lines %d, returning %d\n", size == strlen(buffer),
        iterator == before, (int)lines_of(buffer),
        strstr(buffer, "][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2\n") != NULL);
    size = sizeof buffer;
    SAY("dump again", cu.cuLogsDumpToMemory(&iterator, buffer, &size, 0));
    say("dumped %zu\n", size);
    size = sizeof buffer;
    SAY("dump all", cu.cuLogsDumpToMemory(NULL, buffer, &size, 0));
    say("dumped %d\n", size > 0);
    size = sizeof buffer;
    SAY("dump nowhere", cu.cuLogsDumpToMemory(NULL, NULL, &size, 0));
    say("size %d\n", size == sizeof buffer);
    SAY("dump without a size", cu.cuLogsDumpToMemory(NULL, buffer, NULL, 0));
    SAY("dump flags 1", cu.cuLogsDumpToMemory(NULL, buffer, &size, 1));
    SAY("another failing call", cu.cuMemFree_v2(12345));
    say("last \"%s\"\n", last);
    for (size = 0; size < 40; size += 13) {
        size_t given = size;
        CUresult result = cu.cuLogsDumpToMemory(NULL, buffer, &given, 0);
        say("dump into %zu: %d %zu\n", size, (int)result, given);
    }
    char path[] = "/tmp/clusterlab-logs-XXXXXX";
    int fd = mkstemp(path);
    SAY("dump to a file", cu.cuLogsDumpToFile(NULL, path, 0));
    ssize_t got = pread(fd, buffer, sizeof buffer, 0);
    say("file has text %d\n", got > 0);
    SAY("dump to no file", cu.cuLogsDumpToFile(NULL, NULL, 0));
    SAY("dump to a missing folder", cu.cuLogsDumpToFile(NULL, "/nonexistent-of-clusterlab/file", 0));
    SAY("dump to a file, flags 1", cu.cuLogsDumpToFile(NULL, path, 1));
    unlink(path);
    SAY("unregister", cu.cuLogsUnregisterCallback(second));
    SAY("unregister NULL", cu.cuLogsUnregisterCallback(NULL));
    int so_far = heard;
    cu.cuMemAlloc_v2(&memory, 0);
    say("heard %d more\n", heard - so_far);
    /* the texts of some frequent mistakes */
    CUmodule module = NULL;
    CUfunction function = NULL;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }\n";
    cu.cuModuleLoadData(&module, text);
    cu.cuModuleGetFunction(&function, module, "e");
    last[0] = '\0';
#define TEXT(label, call)                                    \
    do {                                                     \
        last[0] = '\0';                                      \
        int result = (int)(call);                            \
        say("text of %s: %d \"%s\"\n", label, result, last); \
    } while (0)
    TEXT("a missing function", cu.cuModuleGetFunction(&function, module, "missing"));
    TEXT("a block too large", cu.cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL));
    TEXT("a grid of none", cu.cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    TEXT("shared memory too large", cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, NULL, NULL));
    TEXT("bad PTX", cu.cuModuleLoadData(&module, ".version 8.0\n.target sm_90\nnonsense"));
    TEXT("a free of nonsense", cu.cuMemFree_v2(12345));
    TEXT("a device", cu.cuDeviceGet(&(CUdevice){0}, 99));
}

/* ---- calls that few devices have ---- */

static void CUDA_CB on_notification(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
    (void)info;
    (void)data;
    (void)handle;
}

static void rare(void)
{
    start();
    CUdeviceptr memory = 0;
    CUstream stream;
    cu.cuMemAlloc_v2(&memory, 4 << 20);
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    /* checkpoints, of this process and of none */
    CUprocessState state = (CUprocessState)77;
    int tid = -1;
    SAY("state of process 0", cu.cuCheckpointProcessGetState(0, &state));
    SAY("state of no process", cu.cuCheckpointProcessGetState(0x3fffffff, &state));
    SAY("state nowhere", cu.cuCheckpointProcessGetState(getpid(), NULL));
    SAY("own state", cu.cuCheckpointProcessGetState(getpid(), &state));
    say("state %d\n", (int)state);
    SAY("restore thread", cu.cuCheckpointProcessGetRestoreThreadId(getpid(), &tid));
    say("thread %d\n", tid > 0);
    SAY("restore thread of none", cu.cuCheckpointProcessGetRestoreThreadId(0x3fffffff, &tid));
    SAY("unlock while running", cu.cuCheckpointProcessUnlock(getpid(), NULL));
    SAY("checkpoint while running", cu.cuCheckpointProcessCheckpoint(getpid(), NULL));
    SAY("restore while running", cu.cuCheckpointProcessRestore(getpid(), NULL));
    SAY("lock no process", cu.cuCheckpointProcessLock(0x3fffffff, NULL));
    /* multicast */
    size_t granularity = 0;
    CUmemGenericAllocationHandle object = 0;
    int value = -1;
    SAY("multicast attribute", cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    say("multicast %d\n", value);
    for (unsigned devices = 0; devices < 3; devices++) {
        CUmulticastObjectProp prop = {.numDevices = devices, .size = (size_t)512 << 20};
        SAY("multicast granularity",
            cu.cuMulticastGetGranularity(&granularity, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
        say("granularity for %u devices %zu\n", devices, granularity);
        SAY("multicast create", cu.cuMulticastCreate(&object, &prop));
        if (object != 0) {
            SAY("multicast device", cu.cuMulticastAddDevice(object, 0));
            SAY("multicast device again", cu.cuMulticastAddDevice(object, 0));
            SAY("multicast release", cu.cuMemRelease(object));
        }
        object = 0;
    }
    CUmulticastObjectProp two = {.numDevices = 1, .size = 12345};
    SAY("multicast odd size", cu.cuMulticastCreate(&object, &two));
    SAY("multicast NULL", cu.cuMulticastCreate(NULL, &two));
    SAY("multicast of nothing", cu.cuMulticastCreate(&object, NULL));
    SAY("multicast device of nothing", cu.cuMulticastAddDevice(0, 0));
    SAY("multicast bind to nothing", cu.cuMulticastBindMem(0, 0, 0, 0, 0, 0));
    SAY("multicast bind address to nothing", cu.cuMulticastBindAddr(0, 0, memory, 0, 0));
    SAY("multicast unbind nothing", cu.cuMulticastUnbind(0, 0, 0, 0));
    /* affinity */
    CUcontext other = NULL;
    for (int type = -1; type < 3; type++) {
        value = 77;
        CUresult result = cu.cuDeviceGetExecAffinitySupport(&value, (CUexecAffinityType)type, 0);
        say("affinity support %d: %d %d\n", type, (int)result, value);
    }
    SAY("affinity support nowhere",
        cu.cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    SAY("affinity support of device 77",
        cu.cuDeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 77));
    CUexecAffinityParam affinity = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT, .param.smCount.val = 16};
    SAY("context with affinity", cu.cuCtxCreate_v3(&other, &affinity, 1, 0, 0));
    SAY("context with 2 equal affinities",
        cu.cuCtxCreate_v3(&other, (CUexecAffinityParam[]){affinity, affinity}, 2, 0, 0));
    affinity.type = (CUexecAffinityType)5;
    SAY("context with affinity 5", cu.cuCtxCreate_v3(&other, &affinity, 1, 0, 0));
    SAY("context with -1 affinities", cu.cuCtxCreate_v3(&other, &affinity, -1, 0, 0));
    SAY("context with affinities NULL", cu.cuCtxCreate_v3(&other, NULL, 1, 0, 0));
    SAY("context with no affinities", cu.cuCtxCreate_v3(&other, &affinity, 0, 0, 0));
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    CUctxCreateParams params = {.execAffinityParams = &affinity, .numExecAffinityParams = 1};
    SAY("context v4 with affinity", cu.cuCtxCreate_v4(&other, &params, 0, 0));
    CUctxCigParam cig = {.sharedDataType = CIG_DATA_TYPE_D3D12_COMMAND_QUEUE};
    params = (CUctxCreateParams){.cigParams = &cig};
    SAY("context v4 with CIG", cu.cuCtxCreate_v4(&other, &params, 0, 0));
    params =
        (CUctxCreateParams){.execAffinityParams = &affinity, .numExecAffinityParams = 1, .cigParams = &cig};
    SAY("context v4 with both", cu.cuCtxCreate_v4(&other, &params, 0, 0));
    params = (CUctxCreateParams){0};
    SAY("context v4 with neither", cu.cuCtxCreate_v4(&other, &params, 0, 0));
    cu.cuCtxSetCurrent(context);
    memset(&affinity, 0x5a, sizeof affinity);
    SAY("affinity of the context", cu.cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    say("affinity %x %u\n", (unsigned)affinity.type, affinity.param.smCount.val);
    SAY("affinity of type 5", cu.cuCtxGetExecAffinity(&affinity, (CUexecAffinityType)5));
    SAY("affinity nowhere", cu.cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    /* RDMA and ranges */
    SAY("flush", cu.cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                               CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    SAY("flush to all", cu.cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                                      CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
    SAY("flush scope 7", cu.cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                                       (CUflushGPUDirectRDMAWritesScope)7));
    SAY("flush target 7", cu.cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)7,
                                                        CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    int fd = -1;
    SAY("range handle",
        cu.cuMemGetHandleForAddressRange(&fd, memory, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    say("descriptor %d\n", fd >= 0);
    SAY("range handle of bytes",
        cu.cuMemGetHandleForAddressRange(&fd, memory, 100, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    SAY("range handle type 2",
        cu.cuMemGetHandleForAddressRange(&fd, memory, 2 << 20, (CUmemRangeHandleType)2, 0));
    SAY("range handle nowhere",
        cu.cuMemGetHandleForAddressRange(NULL, memory, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    SAY("range handle of 0",
        cu.cuMemGetHandleForAddressRange(&fd, 0, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    SAY("range handle of 0 bytes",
        cu.cuMemGetHandleForAddressRange(&fd, memory, 0, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    SAY("range handle flags 8",
        cu.cuMemGetHandleForAddressRange(&fd, memory, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 8));
    /* decompression */
    CUmemDecompressParams work = {.srcNumBytes = 16,
                                  .dstNumBytes = 16,
                                  .src = (void *)memory,
                                  .dst = (void *)(memory + 4096),
                                  .algo = CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY};
    size_t error = 99;
    SAY("decompression attribute",
        cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0));
    say("algorithms %d\n", value);
    SAY("decompress", cu.cuMemBatchDecompressAsync(&work, 1, 0, &error, stream));
    SAY("decompress nothing", cu.cuMemBatchDecompressAsync(&work, 0, 0, &error, stream));
    SAY("decompress NULL", cu.cuMemBatchDecompressAsync(NULL, 1, 0, &error, stream));
    SAY("decompress flags 1", cu.cuMemBatchDecompressAsync(&work, 1, 1, &error, stream));
    /* atomics of host and peers */
    CUatomicOperation operations[13];
    unsigned capabilities[13];
    memset(capabilities, 0x5a, sizeof capabilities);
    for (int i = 0; i < 13; i++)
        operations[i] = (CUatomicOperation)i;
    CUresult asked = cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 13, 0);
    say("host atomics %d:", (int)asked);
    for (int i = 0; i < 13; i++)
        say(" %x", capabilities[i]);
    say("\n");
    SAY("host atomics of none", cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 0, 0));
    SAY("host atomics nowhere", cu.cuDeviceGetHostAtomicCapabilities(NULL, operations, 1, 0));
    SAY("host atomics of NULL", cu.cuDeviceGetHostAtomicCapabilities(capabilities, NULL, 1, 0));
    SAY("host atomics of device 77", cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 1, 77));
    operations[0] = (CUatomicOperation)13;
    SAY("host atomics of operation 13", cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 1, 0));
    operations[0] = CU_ATOMIC_OPERATION_INTEGER_ADD;
    SAY("peer atomics of one device", cu.cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 0));
    SAY("peer atomics of device 77", cu.cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 77));
    /* notifications */
    CUasyncCallbackHandle callback = NULL;
    SAY("notify NULL", cu.cuDeviceRegisterAsyncNotification(0, NULL, NULL, &callback));
    SAY("notify device 77", cu.cuDeviceRegisterAsyncNotification(77, on_notification, NULL, &callback));
    SAY("notify", cu.cuDeviceRegisterAsyncNotification(0, on_notification, NULL, &callback));
    SAY("notify no more", cu.cuDeviceUnregisterAsyncNotification(0, callback));
    SAY("notify NULL no more", cu.cuDeviceUnregisterAsyncNotification(0, NULL));
    /* the rest */
    char luid[8];
    unsigned mask = 0;
    SAY("LUID", cu.cuDeviceGetLuid(luid, &mask, 0));
    SAY("NvSciSync", cu.cuDeviceGetNvSciSyncAttributes(luid, 0, 1));
    SAY("NvSciSync NULL", cu.cuDeviceGetNvSciSyncAttributes(NULL, 0, 1));
    SAY("multi-device launch NULL", cu.cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
    SAY("multi-device launch of none", cu.cuLaunchCooperativeKernelMultiDevice(NULL, 0, 0));
}

/* ---- external memory, semaphores, graphics ---- */

static void external(void)
{
    start();
    CUexternalMemory memory = NULL;
    CUexternalSemaphore semaphore = NULL;
    CUstream stream;
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    SAY("memory NULL", cu.cuImportExternalMemory(&memory, NULL));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = -1, .size = 2 << 20};
    SAY("memory nowhere", cu.cuImportExternalMemory(NULL, &desc));
    for (int type = 0; type < 11; type++) {
        desc = (CUDA_EXTERNAL_MEMORY_HANDLE_DESC){
            .type = (CUexternalMemoryHandleType)type, .handle.fd = -1, .size = 2 << 20};
        if (type == 8 || (type >= 2 && type <= 7))
            desc.handle.win32.handle = NULL;
        char label[64];
        snprintf(label, sizeof label, "memory type %d, descriptor -1", type);
        SAY(label, cu.cuImportExternalMemory(&memory, &desc));
    }
    desc = (CUDA_EXTERNAL_MEMORY_HANDLE_DESC){.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                              .handle.fd = open("/dev/null", O_RDWR),
                                              .size = 2 << 20};
    SAY("memory of /dev/null", cu.cuImportExternalMemory(&memory, &desc));
    desc.size = 0;
    SAY("memory of 0 bytes", cu.cuImportExternalMemory(&memory, &desc));
    desc.size = 2 << 20;
    desc.flags = 2;
    SAY("memory flags 2", cu.cuImportExternalMemory(&memory, &desc));
    desc.flags = 0;
    desc.reserved[0] = 1;
    SAY("memory reserved", cu.cuImportExternalMemory(&memory, &desc));
    /* memory that another library could have exported: here the driver's own */
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle physical = 0;
    int fd = -1;
    CUdeviceptr address = 0;
    SAY("create", cu.cuMemCreate(&physical, 2 << 20, &prop, 0));
    SAY("export",
        cu.cuMemExportToShareableHandle(&fd, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    for (unsigned long long size = 1 << 20; size <= 4 << 20; size *= 2)
        for (unsigned flags = 0; flags < 2; flags++) {
            desc = (CUDA_EXTERNAL_MEMORY_HANDLE_DESC){.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                      .handle.fd = dup(fd),
                                                      .size = size,
                                                      .flags = flags};
            memory = NULL;
            CUresult result = cu.cuImportExternalMemory(&memory, &desc);
            say("memory of an exported descriptor, %llu bytes, flags %u: %d\n", size, flags, (int)result);
            if (result != CUDA_SUCCESS)
                continue;
            CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 0, .size = size};
            SAY("buffer", cu.cuExternalMemoryGetMappedBuffer(&address, memory, &buffer));
            SAY("set", cu.cuMemsetD32_v2(address, 7, 4));
            buffer.offset = size / 2;
            SAY("buffer beyond", cu.cuExternalMemoryGetMappedBuffer(&address, memory, &buffer));
            SAY("free buffer", cu.cuMemFree_v2(address));
            SAY("destroy", cu.cuDestroyExternalMemory(memory));
        }
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD;
    desc.handle.fd = dup(fd);
    SAY("memory of an exported descriptor as a dma-buf", cu.cuImportExternalMemory(&memory, &desc));
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 0, .size = 4096};
    SAY("buffer of NULL", cu.cuExternalMemoryGetMappedBuffer(&address, NULL, &buffer));
    SAY("destroy NULL", cu.cuDestroyExternalMemory(NULL));
    SAY("semaphore NULL", cu.cuImportExternalSemaphore(&semaphore, NULL));
    for (int type = 0; type < 12; type++) {
        CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC semaphores = {.type = (CUexternalSemaphoreHandleType)type,
                                                          .handle.fd = -1};
        if (type >= 2 && type != 9)
            semaphores.handle.win32.handle = NULL;
        char label[64];
        snprintf(label, sizeof label, "semaphore type %d, descriptor -1", type);
        SAY(label, cu.cuImportExternalSemaphore(&semaphore, &semaphores));
    }
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC semaphores = {.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
                                                      .handle.fd = open("/dev/null", O_RDWR)};
    SAY("semaphore of /dev/null", cu.cuImportExternalSemaphore(&semaphore, &semaphores));
    semaphores.handle.fd = dup(fd);
    SAY("semaphore of exported memory", cu.cuImportExternalSemaphore(&semaphore, &semaphores));
    SAY("semaphore destroy NULL", cu.cuDestroyExternalSemaphore(NULL));
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {0};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait = {0};
    CUexternalSemaphore none = NULL;
    SAY("signal nothing", cu.cuSignalExternalSemaphoresAsync(NULL, NULL, 0, stream));
    SAY("wait for nothing", cu.cuWaitExternalSemaphoresAsync(NULL, NULL, 0, stream));
    SAY("signal NULL", cu.cuSignalExternalSemaphoresAsync(NULL, &signal, 1, stream));
    SAY("wait for no semaphore", cu.cuWaitExternalSemaphoresAsync(&none, &wait, 1, stream));
    /* graphics */
    CUgraphicsResource resource = NULL;
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    size_t size = 0;
    SAY("unregister NULL", cu.cuGraphicsUnregisterResource(NULL));
    SAY("map none", cu.cuGraphicsMapResources(0, NULL, stream));
    SAY("map NULL", cu.cuGraphicsMapResources(1, NULL, stream));
    SAY("map a NULL resource", cu.cuGraphicsMapResources(1, &resource, stream));
    SAY("unmap none", cu.cuGraphicsUnmapResources(0, NULL, stream));
    SAY("unmap a NULL resource", cu.cuGraphicsUnmapResources(1, &resource, stream));
    SAY("mapped pointer of NULL", cu.cuGraphicsResourceGetMappedPointer_v2(&address, &size, NULL));
    SAY("mapped mipmap of NULL", cu.cuGraphicsResourceGetMappedMipmappedArray(&mipmap, NULL));
    SAY("mapped array of NULL", cu.cuGraphicsSubResourceGetMappedArray(&array, NULL, 0, 0));
    SAY("map flags of NULL", cu.cuGraphicsResourceSetMapFlags_v2(NULL, 0));
    /* names that cuda.h does not declare */
    static const char *const names[] = {"cuGLCtxCreate",
                                        "cuGLInit",
                                        "cuGraphicsGLRegisterBuffer",
                                        "cuGLGetDevices",
                                        "cuGraphicsVDPAURegisterVideoSurface",
                                        "cuVDPAUGetDevice",
                                        "cuGraphicsEGLRegisterImage",
                                        "cuEGLStreamConsumerConnect",
                                        "cuD3D11GetDevice",
                                        "cudaGraphSetConditional"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *function = NULL;
        CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
        CUresult result = cu.cuGetProcAddress_v2(names[i], &function, 13000, 0, &status);
        say("entry point %s: %d status %d found %d\n", names[i], (int)result, (int)status, function != NULL);
    }
}

/* ---- settings of core dumps ---- */

static void coredump(void)
{
    start();
    for (int form = 0; form < 2; form++)
        for (int i = 0; i < 10; i++) {
            char value[2048];
            size_t size = 77, room = sizeof value;
            memset(value, 0, sizeof value);
            CUresult asked = form == 0 ? cu.cuCoredumpGetAttribute((CUcoredumpSettings)i, NULL, &size)
                                       : cu.cuCoredumpGetAttributeGlobal((CUcoredumpSettings)i, NULL, &size);
            CUresult got = form == 0 ? cu.cuCoredumpGetAttribute((CUcoredumpSettings)i, value, &room)
                                     : cu.cuCoredumpGetAttributeGlobal((CUcoredumpSettings)i, value, &room);
            say("%s %d: size %d %zu, value %d %zu", form == 0 ? "dump" : "dump global", i, (int)asked, size,
                (int)got, room);
            if (got == CUDA_SUCCESS && (i == 5 || i == 6))
                say(" \"%s\"", strncmp(value, "core", 4) == 0 ? "core…" : value[0] > ' ' ? value : "");
            else if (got == CUDA_SUCCESS)
                say(" %d", value[0]);
            size_t one = 1, four = 4;
            bool yes = true;
            int number = 1;
            CUresult set_one = form == 0 ? cu.cuCoredumpSetAttribute((CUcoredumpSettings)i, &yes, &one)
                                         : cu.cuCoredumpSetAttributeGlobal((CUcoredumpSettings)i, &yes, &one);
            CUresult set_four = form == 0
                                    ? cu.cuCoredumpSetAttribute((CUcoredumpSettings)i, &number, &four)
                                    : cu.cuCoredumpSetAttributeGlobal((CUcoredumpSettings)i, &number, &four);
            say(", set a byte %d, set four %d\n", (int)set_one, (int)set_four);
        }
}

/* ---- arrays ---- */

static void arrays(void)
{
    start();
    static const unsigned formats[] = {
        0,    4,    7,    0x0b, 0x10, 0x11, 0x20, 0x21, 0x50, 0x51, 0x90, 0x91, 0x92, 0x93, 0x95, 0x97,
        0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
        0xa8, 0xa9, 0xaa, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xc0, 0xc1, 0xc2, 0xcb, 0xcc, 0x1000};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        say("array format 0x%x:", formats[i]);
        for (unsigned channels = 1; channels <= 4; channels++) {
            CUDA_ARRAY3D_DESCRIPTOR desc = {
                .Width = 64, .Height = 64, .Format = (CUarray_format)formats[i], .NumChannels = channels};
            CUarray array = NULL, plane = NULL;
            CUresult result = cu.cuArray3DCreate_v2(&array, &desc);
            say(" %d", (int)result);
            if (result != CUDA_SUCCESS)
                continue;
            CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
            CUDA_TEXTURE_DESC texture = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP}, .filterMode = 0};
            CUtexObject object = 0;
            CUresult made = cu.cuTexObjectCreate(&object, &resource, &texture, NULL);
            texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
            CUresult linear = cu.cuTexObjectCreate(&object, &resource, &texture, NULL);
            say("(texture %d linear %d plane %d)", (int)made, (int)linear,
                (int)cu.cuArrayGetPlane(&plane, array, 0));
            cu.cuArrayDestroy(array);
        }
        say("\n");
    }
    CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    for (unsigned bit = 0; bit < 11; bit++) {
        CUarray array = NULL;
        CUDA_ARRAY3D_DESCRIPTOR flagged = desc;
        flagged.Flags = 1u << bit;
        if (bit == 0)
            flagged.Depth = 2;
        if (bit == 2)
            flagged.Depth = 6;
        CUresult result = cu.cuArray3DCreate_v2(&array, &flagged);
        say("array flag 0x%x: %d\n", flagged.Flags, (int)result);
    }
    CUarray array = NULL, level = NULL;
    CUmipmappedArray mipmap = NULL;
    SAY("array", cu.cuArray3DCreate_v2(&array, &desc));
    SAY("mipmap", cu.cuMipmappedArrayCreate(&mipmap, &desc, 3));
    SAY("level", cu.cuMipmappedArrayGetLevel(&level, mipmap, 1));
    SAY("destroy a level", cu.cuArrayDestroy(level));
    CUarray again = NULL;
    SAY("level again", cu.cuMipmappedArrayGetLevel(&again, mipmap, 1));
    say("the same %d\n", level == again);
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    SAY("requirements of an array", cu.cuArrayGetMemoryRequirements(&needs, array, 0));
    SAY("requirements of a mipmap", cu.cuMipmappedArrayGetMemoryRequirements(&needs, mipmap, 0));
    SAY("requirements nowhere", cu.cuArrayGetMemoryRequirements(NULL, array, 0));
    SAY("sparse properties of an array", cu.cuArrayGetSparseProperties(&sparse, array));
    SAY("sparse properties of a mipmap", cu.cuMipmappedArrayGetSparseProperties(&sparse, mipmap));
    SAY("destroy NULL", cu.cuArrayDestroy(NULL));
    SAY("destroy", cu.cuArrayDestroy(array));
    SAY("destroy the mipmap", cu.cuMipmappedArrayDestroy(mipmap));
    /* samplers */
    cu.cuArray3DCreate_v2(&array, &desc);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    CUtexObject object = 0;
    for (unsigned anisotropy = 0; anisotropy <= 64; anisotropy = anisotropy == 0 ? 1 : anisotropy * 2) {
        CUDA_TEXTURE_DESC texture = {.maxAnisotropy = anisotropy};
        CUresult result = cu.cuTexObjectCreate(&object, &resource, &texture, NULL);
        CUDA_TEXTURE_DESC got;
        memset(&got, 0, sizeof got);
        CUresult asked = cu.cuTexObjectGetTextureDesc(&got, object);
        say("anisotropy %u: %d %d %u\n", anisotropy, (int)result, (int)asked, got.maxAnisotropy);
    }
    for (unsigned bit = 0; bit < 8; bit++) {
        CUDA_TEXTURE_DESC texture = {.flags = 1u << bit};
        say("texture flag 0x%x: %d\n", 1u << bit,
            (int)cu.cuTexObjectCreate(&object, &resource, &texture, NULL));
    }
}

int main(int argc, char **argv)
{
    static const struct section sections[] = {{"splits", splits},
                                              {"green", green},
                                              {"green-kernels", green_kernels},
                                              {"ipc-events", ipc_events},
                                              {"pools", pools},
                                              {"logs", logs},
                                              {"rare", rare},
                                              {"external", external},
                                              {"coredump", coredump},
                                              {"arrays", arrays}};
    return run_sections(argc, argv, sections, sizeof sections / sizeof sections[0]);
}
