/* The objects that questions use. */
#include "ask.h"

struct ask_objects o;
struct ask_scratch t;

const char ask_ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n.visible .const .align 4 .b8 table[12];\n"
    ".visible .entry plain()\n{ ret; }\n"
    ".visible .entry two_params(.param .u64 p, .param .u32 n)\n{ ret; }\n"
    ".visible .entry store(.param .u64 p)\n{ .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p]; mov.u32 v, 1;\n"
    "  st.global.u32 [a], v; ret; }\n"
    ".visible .entry cluster() .reqnctapercluster 2 { ret; }\n"
    ".visible .entry small() .maxntid 64, 1, 1 { ret; }\n"
    ".visible .entry exact() .reqntid 32, 2, 1 { ret; }\n"
    /* Waits until *p is not zero. */
    ".visible .entry spin(.param .u64 p)\n{ .reg .b64 a; .reg .b32 v; .reg .pred q;\n"
    "  ld.param.u64 a, [p];\nL: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 0; @q bra L; ret; }\n";

static uint64_t no_pointer, no_number;
void *ask_params[] = {&no_pointer, &no_number};

void CUDA_CB ask_nothing(void *data)
{
    (void)data;
}

void CUDA_CB ask_no_callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
}

bool ask_context(void)
{
    if (cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&o.context, 0) == CUDA_SUCCESS &&
        cuCtxSetCurrent(o.context) == CUDA_SUCCESS)
        return true;
    ask_say("no device\n");
    return false;
}

static void make_graph(void)
{
    const CUDA_KERNEL_NODE_PARAMS kernel = {.func = o.plain,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 1,
                                            .blockDimY = 1,
                                            .blockDimZ = 1};
    const CUDA_MEMSET_NODE_PARAMS set = {.dst = o.device, .elementSize = 4, .width = 16, .height = 1};
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = o.device,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = o.pinned,
                                .WidthInBytes = 64,
                                .Height = 1,
                                .Depth = 1};
    const CUDA_HOST_NODE_PARAMS host = {.fn = ask_nothing};
    MUST(cuGraphCreate(&o.graph, 0));
    MUST(cuGraphAddKernelNode(&o.kernel_node, o.graph, NULL, 0, &kernel));
    MUST(cuGraphAddMemsetNode(&o.set_node, o.graph, &o.kernel_node, 1, &set, o.context));
    MUST(cuGraphAddMemcpyNode(&o.copy_node, o.graph, &o.set_node, 1, &copy, o.context));
    MUST(cuGraphAddHostNode(&o.host_node, o.graph, &o.copy_node, 1, &host));
    MUST(cuGraphInstantiate(&o.exec, o.graph, 0));
}

bool ask_setup(void)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {64, 32, CU_AD_FORMAT_FLOAT, 1};
    const CUDA_ARRAY3D_DESCRIPTOR levels = {
        .Width = 64, .Height = 32, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    if (!ask_context())
        return false;
    MUST(cuModuleLoadData(&o.module, ask_ptx));
    MUST(cuModuleGetFunction(&o.plain, o.module, "plain"));
    MUST(cuModuleGetFunction(&o.two_params, o.module, "two_params"));
    MUST(cuModuleGetFunction(&o.store, o.module, "store"));
    MUST(cuModuleGetFunction(&o.cluster, o.module, "cluster"));
    MUST(cuModuleGetFunction(&o.small, o.module, "small"));
    MUST(cuModuleGetFunction(&o.exact, o.module, "exact"));
    MUST(cuModuleGetFunction(&o.spin, o.module, "spin"));
    MUST(cuLibraryLoadData(&o.library, ask_ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&o.kernel, o.library, "two_params"));
    MUST(cuStreamCreate(&o.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&o.other, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&o.blocking, 0));
    o.s = o.stream;
    MUST(cuEventCreate(&o.event, 0));
    MUST(cuEventCreate(&o.second, 0));
    MUST(cuEventCreate(&o.untimed, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&o.device, DEVICE_BYTES));
    MUST(cuMemAllocManaged(&o.managed, DEVICE_BYTES, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemAllocHost(&o.pinned, DEVICE_BYTES));
    MUST(cuMemAllocAsync(&o.pooled, DEVICE_BYTES, o.stream));
    MUST(cuDeviceGetDefaultMemPool(&o.pool, 0));
    MUST(cuArrayCreate(&o.array, &flat));
    MUST(cuMipmappedArrayCreate(&o.mipmap, &levels, 3));
    MUST(cuLinkCreate(0, NULL, NULL, &o.link));
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = o.array};
    const CUDA_TEXTURE_DESC sampler = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
    MUST(cuTexObjectCreate(&o.texture, &resource, &sampler, NULL));
    MUST(cuUserObjectCreate(&o.object, &o, ask_nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    make_graph();
    MUST(cuMemsetD8(o.device, 0, DEVICE_BYTES));
    MUST(cuEventRecord(o.event, o.stream));
    MUST(cuEventRecord(o.second, o.stream));
    MUST(cuEventRecord(o.untimed, o.stream));
    MUST(cuStreamSynchronize(o.stream));
    MUST(cuCtxSynchronize());
    return true;
}
