/* Streams, their attributes and memory operations, events, and the order of the default streams. */
#include "ask.h"

#include <pthread.h>
#include <unistd.h>

void section_stream(void)
{
    CUstream made = NULL, odd = NULL;
    if (!ask_setup())
        return;
    for (unsigned flags = 0; flags < 9; flags++) {
        made = NULL;
        ASK(ask_name("create flags %u", flags), cuStreamCreate(&made, flags));
        if (made == NULL)
            continue;
        ASKF(ask_name("flags of %u", flags), cuStreamGetFlags(made, &t.u), " %u", t.u);
        MUST(cuStreamDestroy(made));
    }
    for (int priority = -8; priority < 4; priority++) {
        made = NULL;
        ASK(ask_name("create priority %d", priority),
            cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, priority));
        ASKF(ask_name("priority of %d", priority), cuStreamGetPriority(made, &t.i), " %d", t.i);
    }
    ASK("create NULL", cuStreamCreate(NULL, 0));
    ASK("create priority NULL", cuStreamCreateWithPriority(NULL, 0, 0));
    ASK("create priority flags 4", cuStreamCreateWithPriority(&made, 4, 0));
    const struct {
        const char *name;
        CUstream stream;
    } streams[] = {{"NULL", NULL},
                   {"legacy", CU_STREAM_LEGACY},
                   {"per thread", CU_STREAM_PER_THREAD},
                   {"blocking", o.blocking},
                   {"non-blocking", o.stream}};
    for (size_t i = 0; i < COUNT(streams); i++) {
        const CUstream s = streams[i].stream;
        t.u = 99, t.i = 99, t.status = (CUstreamCaptureStatus)9, t.context = NULL, t.device = 9;
        ASKF(ask_name("%s flags", streams[i].name), cuStreamGetFlags(s, &t.u), " %u", t.u);
        ASKF(ask_name("%s priority", streams[i].name), cuStreamGetPriority(s, &t.i), " %d", t.i);
        ASKF(ask_name("%s context", streams[i].name), cuStreamGetCtx(s, &t.context), " %d",
             t.context == o.context);
        ASKF(ask_name("%s device", streams[i].name), cuStreamGetDevice(s, &t.device), " %d", t.device);
        ASKF(ask_name("%s capturing", streams[i].name), cuStreamIsCapturing(s, &t.status), " %d",
             (int)t.status);
        ASKF(ask_name("%s capture info", streams[i].name),
             cuStreamGetCaptureInfo(s, &t.status, NULL, NULL, NULL, NULL, NULL), " %d", (int)t.status);
        ASK(ask_name("%s query", streams[i].name), cuStreamQuery(s));
        ASK(ask_name("%s synchronize", streams[i].name), cuStreamSynchronize(s));
        unsigned long long id = 0, again = 1;
        ASK(ask_name("%s id", streams[i].name), cuStreamGetId(s, &id));
        cuStreamGetId(s, &again);
        ASKF(ask_name("%s id twice", streams[i].name), CUDA_SUCCESS, " %d", id == again);
        for (int attribute = 0; attribute < 20; attribute++) {
            memset(t.bytes, 0xee, 128);
            ASKF(ask_name("%s attribute %d", streams[i].name, attribute),
                 cuStreamGetAttribute(s, (CUstreamAttrID)attribute, (CUstreamAttrValue *)t.bytes),
                 " %02x%02x%02x%02x", t.bytes[0], t.bytes[1], t.bytes[2], t.bytes[3]);
        }
        for (int attribute = 0; attribute < 20; attribute++)
            for (int value = 0; value < 5; value++) {
                memset(t.bytes, 0, 128);
                t.bytes[0] = (unsigned char)value;
                ASK(ask_name("%s attribute %d set to %d", streams[i].name, attribute, value),
                    cuStreamSetAttribute(s, (CUstreamAttrID)attribute, (CUstreamAttrValue *)t.bytes));
            }
        ASK(ask_name("%s attributes copied", streams[i].name), cuStreamCopyAttributes(o.other, s));
        ASK(ask_name("%s begin capture", streams[i].name),
            cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        ASK(ask_name("%s end capture", streams[i].name), cuStreamEndCapture(s, &t.graph));
    }
    unsigned long long first = 0, second = 0;
    cuStreamGetId(NULL, &first);
    cuStreamGetId(CU_STREAM_LEGACY, &second);
    ASKF("ids of NULL and legacy", CUDA_SUCCESS, " %d", first == second);
    MUST(cuStreamCreate(&odd, 0));
    CUaccessPolicyWindow window = {.base_ptr = (void *)(uintptr_t)o.device,
                                   .num_bytes = 4096,
                                   .hitRatio = 0.5f,
                                   .hitProp = CU_ACCESS_PROPERTY_PERSISTING,
                                   .missProp = CU_ACCESS_PROPERTY_STREAMING};
    CUstreamAttrValue value = {.accessPolicyWindow = window};
    ASK("window", cuStreamSetAttribute(odd, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    CUstreamAttrValue got;
    memset(&got, 0, sizeof got);
    ASKF("window read", cuStreamGetAttribute(odd, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &got),
         " %zu %.2f %d %d", got.accessPolicyWindow.num_bytes, (double)got.accessPolicyWindow.hitRatio,
         (int)got.accessPolicyWindow.hitProp, (int)got.accessPolicyWindow.missProp);
    value.accessPolicyWindow.hitRatio = 1.5f;
    ASK("window ratio 1.5", cuStreamSetAttribute(odd, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    value.accessPolicyWindow = window, value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
    ASK("window miss persisting",
        cuStreamSetAttribute(odd, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    value.accessPolicyWindow = window, value.accessPolicyWindow.num_bytes = (size_t)1 << 40;
    ASK("window too large", cuStreamSetAttribute(odd, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    ASK("attribute NULL", cuStreamGetAttribute(odd, CU_STREAM_ATTRIBUTE_PRIORITY, NULL));
    ASK("attribute set NULL", cuStreamSetAttribute(odd, CU_STREAM_ATTRIBUTE_PRIORITY, NULL));
    ASK("flags NULL", cuStreamGetFlags(odd, NULL));
    ASK("priority NULL", cuStreamGetPriority(odd, NULL));
    ASK("context NULL", cuStreamGetCtx(odd, NULL));
    ASK("id NULL", cuStreamGetId(odd, NULL));
    ASK("device NULL", cuStreamGetDevice(odd, NULL));
    ASK("capturing NULL", cuStreamIsCapturing(odd, NULL));
    ASK("capture info NULL", cuStreamGetCaptureInfo(odd, NULL, NULL, NULL, NULL, NULL, NULL));
    ASK("wait NULL event", cuStreamWaitEvent(odd, NULL, 0));
    ASK("wait unrecorded event", (cuEventCreate(&t.event, 0), cuStreamWaitEvent(odd, t.event, 0)));
    for (unsigned flags = 1; flags < 5; flags++)
        ASK(ask_name("wait flags %u", flags), cuStreamWaitEvent(odd, o.event, flags));
    ASK("callback NULL", cuStreamAddCallback(odd, NULL, NULL, 0));
    ASK("callback flags", cuStreamAddCallback(odd, ask_no_callback, NULL, 1));
    ASK("host function NULL", cuLaunchHostFunc(odd, NULL, NULL));
    ASK("host function", cuLaunchHostFunc(odd, ask_nothing, NULL));
    ASK("synchronize", cuStreamSynchronize(odd));
    ASK("destroy NULL", cuStreamDestroy(NULL));
    ASK("destroy legacy", cuStreamDestroy(CU_STREAM_LEGACY));
    ASK("destroy per thread", cuStreamDestroy(CU_STREAM_PER_THREAD));
    ASK("destroy", cuStreamDestroy(odd));
    CUcontext context = NULL;
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    ASKF("context of a stream of another", cuStreamGetCtx(o.stream, &t.context), " %d",
         t.context == o.context);
    ASK("launch in a stream of another context",
        cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    ASK("launch of a function of another context",
        cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK("record in a stream of another context", cuEventRecord(o.event, o.stream));
    ASK("record of an event of another context", cuEventRecord(o.event, NULL));
    ASK("wait for an event of another context", cuStreamWaitEvent(NULL, o.event, 0));
    ASK("set in a stream of another context", cuMemsetD8Async(o.device, 0, 4, o.stream));
    ASK("set of memory of another context", cuMemsetD8(o.device, 0, 4));
    ASK("synchronize a stream of another context", cuStreamSynchronize(o.stream));
    ASK("query a stream of another context", cuStreamQuery(o.stream));
    ASK("free memory of another context", cuMemFree(o.device));
    ASK("destroy a stream of another context", cuStreamDestroy(o.stream));
    ASK("destroy an event of another context", cuEventDestroy(o.untimed));
    ASK("unload a module of another context", cuModuleUnload(o.module));
}

/* ---- values in memory ---- */

void section_stream_memory(void)
{
    if (!ask_setup())
        return;
    const struct {
        const char *name;
        CUdeviceptr address;
    } places[] = {{"device", o.device},
                  {"device + 4", o.device + 4},
                  {"device + 2", o.device + 2},
                  {"device + 1", o.device + 1},
                  {"pinned", (CUdeviceptr)(uintptr_t)o.pinned},
                  {"managed", o.managed},
                  {"pooled", o.pooled},
                  {"stack", (CUdeviceptr)(uintptr_t)&t.id},
                  {"NULL", 0},
                  {"the end", o.device + DEVICE_BYTES},
                  {"the last word", o.device + DEVICE_BYTES - 4}};
    for (size_t i = 0; i < COUNT(places); i++) {
        const CUdeviceptr at = places[i].address;
        ASK(ask_name("write 32 at %s", places[i].name), cuStreamWriteValue32(o.stream, at, 5, 0));
        ASK(ask_name("write 64 at %s", places[i].name), cuStreamWriteValue64(o.stream, at, 5, 0));
        ASK(ask_name("wait 32 at %s", places[i].name),
            cuStreamWaitValue32(o.stream, at, 0, CU_STREAM_WAIT_VALUE_GEQ));
        ASK(ask_name("wait 64 at %s", places[i].name),
            cuStreamWaitValue64(o.stream, at, 0, CU_STREAM_WAIT_VALUE_GEQ));
        ASK(ask_name("finish at %s", places[i].name), cuStreamSynchronize(o.stream));
    }
    MUST(cuMemsetD8(o.device, 0, 64));
    for (unsigned flags = 0; flags < 8; flags++)
        ASK(ask_name("write flags %u", flags), cuStreamWriteValue32(o.stream, o.device, 5, flags));
    /* value 5 is there: each of these holds, or is refused */
    static const struct {
        unsigned flags, value;
    } waits[] = {{0, 5}, {0, 4}, {1, 5},        {2, 4},        {3, 0xfffffffd},
                 {4, 5}, {8, 5}, {1u << 30, 5}, {1u << 31, 5}, {(1u << 30) | 1, 5}};
    for (size_t i = 0; i < COUNT(waits); i++) {
        ASK(ask_name("wait flags %#x", waits[i].flags),
            cuStreamWaitValue32(o.stream, o.device, waits[i].value, waits[i].flags));
        ASK(ask_name("finish wait flags %#x", waits[i].flags), cuStreamSynchronize(o.stream));
    }
    ASK("write on legacy", cuStreamWriteValue32(NULL, o.device, 5, 0));
    ASK("wait on legacy", cuStreamWaitValue32(NULL, o.device, 5, CU_STREAM_WAIT_VALUE_EQ));
    ASK("finish on legacy", cuStreamSynchronize(NULL));
    for (int operation = 0; operation < 9; operation++) {
        CUstreamBatchMemOpParams one;
        memset(&one, 0, sizeof one);
        one.operation = (CUstreamBatchMemOpType)operation;
        one.writeValue.address = o.device;
        ASK(ask_name("batch operation %d", operation), cuStreamBatchMemOp(o.stream, 1, &one, 0));
        ASK(ask_name("finish batch operation %d", operation), cuStreamSynchronize(o.stream));
    }
    CUstreamBatchMemOpParams write = {
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = o.device, .value = 5}};
    ASK("batch of none", cuStreamBatchMemOp(o.stream, 0, &write, 0));
    ASK("batch NULL", cuStreamBatchMemOp(o.stream, 1, NULL, 0));
    ASK("batch flags", cuStreamBatchMemOp(o.stream, 1, &write, 1));
    static CUstreamBatchMemOpParams many[300];
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = write;
    ASK("batch of 256", cuStreamBatchMemOp(o.stream, 256, many, 0));
    ASK("batch of 257", cuStreamBatchMemOp(o.stream, 257, many, 0));
    ASK("batch finish", cuStreamSynchronize(o.stream));
    uint32_t value = 0;
    MUST(cuMemcpyDtoH(&value, o.device, 4));
    ASKF("value", CUDA_SUCCESS, " %u", value);
}

/* ---- events ---- */

void section_event(void)
{
    CUevent made = NULL, early = NULL, late = NULL;
    float ms = -1;
    if (!ask_setup())
        return;
    for (unsigned flags = 0; flags < 17; flags++) {
        made = NULL;
        ASK(ask_name("create flags %u", flags), cuEventCreate(&made, flags));
    }
    ASK("create NULL", cuEventCreate(NULL, 0));
    MUST(cuEventCreate(&early, 0));
    MUST(cuEventCreate(&late, CU_EVENT_BLOCKING_SYNC));
    ASK("query unrecorded", cuEventQuery(early));
    ASK("synchronize unrecorded", cuEventSynchronize(early));
    ASKF("elapsed unrecorded", cuEventElapsedTime(&ms, early, late), " %.0f", (double)ms);
    ASK("elapsed start unrecorded", cuEventElapsedTime(&ms, early, o.event));
    ASK("elapsed end unrecorded", cuEventElapsedTime(&ms, o.event, early));
    ASK("elapsed start untimed", cuEventElapsedTime(&ms, o.untimed, o.event));
    ASK("elapsed end untimed", cuEventElapsedTime(&ms, o.event, o.untimed));
    ASKF("elapsed with itself", cuEventElapsedTime(&ms, o.event, o.event), " %.0f", (double)ms);
    ASK("elapsed NULL", cuEventElapsedTime(NULL, o.event, o.second));
    ASK("elapsed NULL start", cuEventElapsedTime(&ms, NULL, o.second));
    ASK("elapsed NULL end", cuEventElapsedTime(&ms, o.event, NULL));
    ASKF("elapsed", cuEventElapsedTime(&ms, o.event, o.second), " %d", ms >= 0);
    ASKF("elapsed backwards", cuEventElapsedTime(&ms, o.second, o.event), " %d", ms <= 0);
    ASK("query NULL", cuEventQuery(NULL));
    ASK("synchronize NULL", cuEventSynchronize(NULL));
    ASK("record NULL", cuEventRecord(NULL, o.stream));
    ASK("destroy NULL", cuEventDestroy(NULL));
    for (unsigned flags = 0; flags < 5; flags++)
        ASK(ask_name("record flags %u", flags), cuEventRecordWithFlags(early, o.stream, flags));
    /* A kernel that waits for the host: what is behind it is not ready. */
    MUST(cuMemsetD8((CUdeviceptr)(uintptr_t)o.pinned, 0, 64));
    CUdeviceptr flag = (CUdeviceptr)(uintptr_t)o.pinned;
    void *params[] = {&flag};
    MUST(cuCtxSynchronize());
    ASK("record before", cuEventRecord(early, o.stream));
    ASK("spin", cuLaunchKernel(o.spin, 1, 1, 1, 1, 1, 1, 0, o.stream, params, NULL));
    ASK("record behind", cuEventRecord(late, o.stream));
    usleep(20000);
    ASK("query before", cuEventQuery(early));
    ASK("query behind", cuEventQuery(late));
    ASK("stream query", cuStreamQuery(o.stream));
    ASK("other stream query", cuStreamQuery(o.other));
    ASK("elapsed not ready", cuEventElapsedTime(&ms, early, late));
    ASK("elapsed start not ready", cuEventElapsedTime(&ms, late, early));
    ASK("wait in the other", cuStreamWaitEvent(o.other, late, 0));
    ASK("other stream query then", cuStreamQuery(o.other));
    ASK("legacy query", cuStreamQuery(NULL));
    ASK("record again", cuEventRecord(early, o.stream));
    ASK("query recorded again", cuEventQuery(early));
    ASK("destroy behind", cuEventDestroy(late));
    ASK("alloc meanwhile", cuMemAlloc(&t.pointer, 64));
    ASK("attribute meanwhile", cuFuncGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, o.spin));
    *(volatile uint32_t *)o.pinned = 1;
    ASK("synchronize recorded again", cuEventSynchronize(early));
    ASK("stream synchronize", cuStreamSynchronize(o.stream));
    ASK("other synchronize", cuStreamSynchronize(o.other));
    ASK("query at last", cuEventQuery(early));
    ASKF("_v2 elapsed", cuEventElapsedTime(&ms, o.event, early), " %d", ms > 0);
}

/* ---- what waits for what ---- */

/* With a kernel under way in one stream, the state of a stream that was given a small job after it. */
static void behind(const char *name, CUstream busy, CUstream then)
{
    volatile uint32_t *const flag = o.pinned;
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)o.pinned;
    void *params[] = {&address};
    if (!ask_begin(name))
        return;
    *flag = 0;
    const CUresult launched = cuLaunchKernel(o.spin, 1, 1, 1, 1, 1, 1, 0, busy, params, NULL);
    const CUresult job = cuMemsetD8Async(o.device, 1, 16, then);
    /* What does not wait for the kernel is soon done. */
    CUresult state = CUDA_ERROR_NOT_READY;
    for (int i = 0; i < 30 && state == CUDA_ERROR_NOT_READY; i++) {
        usleep(5000);
        state = cuStreamQuery(then);
    }
    const CUresult first = cuStreamQuery(busy);
    *flag = 1;
    const CUresult finished = cuCtxSynchronize();
    ask_answer((int)launched);
    ask_say(" %d, state %d, busy %d, end %d\n", (int)job, (int)state, (int)first, (int)finished);
}

void section_order(void)
{
    if (!ask_setup())
        return;
    const struct {
        const char *name;
        CUstream stream;
    } all[] = {{"NULL", NULL},           {"legacy", CU_STREAM_LEGACY}, {"per thread", CU_STREAM_PER_THREAD},
               {"blocking", o.blocking}, {"non-blocking", o.stream},   {"another", o.other}};
    for (size_t i = 0; i < COUNT(all); i++) /* once, for what is loaded at the first use */
        MUST(cuMemsetD8Async(o.device, 1, 16, all[i].stream));
    MUST(cuCtxSynchronize());
    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t j = 0; j < COUNT(all); j++)
            behind(ask_name("%s then %s", all[i].name, all[j].name), all[i].stream, all[j].stream);
}
