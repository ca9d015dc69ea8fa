/* More groups of calls for fuzz_calls.c: arrays, textures, surfaces and their references, memory of graphs,
   the launches of CUDA 3, managed memory, settings of core dumps. Structures are legal but for a number or
   two. */
#include "fuzz_calls.h"

#include <string.h>

#define below    fuzz_pick
#define any      fuzz_any
#define small    fuzz_small
#define SOME(x)  (below(20) ? (x) : NULL)
#define AN_ARRAY ((CUarray)any(ARRAY))
#define A_STREAM (below(4) ? (CUstream)(uintptr_t)below(3) : (CUstream)any(STREAM))

static uint64_t out[512];

/* Everything that instructions can ask of a texture and of a surface, by handle and by reference. */
static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .texref image;\n.global .surfref target;\n"
    ".visible .entry sample(.param .u64 t, .param .u64 s, .param .u64 o)\n{\n"
    ".reg .b64 h, w, o; .reg .f32 f<4>, x, y; .reg .b32 r<4>, c, d; .reg .pred p;\n"
    "ld.param.u64 h, [t]; ld.param.u64 w, [s]; ld.param.u64 o, [o]; mov.u32 c, %tid.x; cvt.rn.f32.u32 x, c;\n"
    "mov.f32 y, 0f3E99999A; mov.u32 d, 1; mul.f32 x, x, y;\n"
    "txq.width.b32 r0, [h]; txq.height.b32 r1, [h]; txq.depth.b32 r2, [h]; txq.normalized_coords.b32 r3, "
    "[h];\n"
    "setp.eq.u32 p, r1, 0; @p bra ONE; setp.ne.u32 p, r2, 0; @p bra THREE;\n"
    "tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [h, {x, y}]; tex.level.2d.v4.f32.f32 {f0, f1, f2, f3}, [h, {x, y}], "
    "x;\n"
    "tex.grad.2d.v4.f32.f32 {f0, f1, f2, f3}, [h, {x, y}], {x, y}, {y, y};\n"
    "tld4.g.2d.v4.f32.f32 {f0, f1, f2, f3}, [h, {x, y}]; tex.2d.v4.s32.s32 {r0, r1, r2, r3}, [h, {c, d}]; "
    "bra NEXT;\n"
    "ONE: tex.1d.v4.f32.f32 {f0, f1, f2, f3}, [h, {x}]; tex.1d.v4.u32.s32 {r0, r1, r2, r3}, [h, {c}]; bra "
    "NEXT;\n"
    "THREE: tex.3d.v4.f32.f32 {f0, f1, f2, f3}, [h, {x, y, y, y}]; tex.3d.v4.f32.s32 {f0, f1, f2, f3}, [h, "
    "{c, d, d, d}];\n"
    "NEXT: setp.eq.u64 p, w, 0; @p bra END; suq.width.b32 r0, [w]; suq.height.b32 r1, [w];\n"
    "suld.b.2d.b32.zero r2, [w, {c, d}]; sust.b.2d.b32.zero [w, {c, d}], r0; sust.p.2d.b32.clamp [w, {c, "
    "d}], r1;\n"
    "sured.b.add.2d.u32.zero [w, {c, d}], r0; suld.b.1d.v2.b32.clamp {r0, r1}, [w, {c}]; suld.b.a2d.b32.zero "
    "r0, [w, {0, c, d, d}];\n"
    "END: st.global.f32 [o], f0; ret;\n}\n"
    ".visible .entry other(.param .u64 t)\n{\n"
    ".reg .b64 h; .reg .f32 f<4>, x, y; .reg .b32 c; ld.param.u64 h, [t]; mov.u32 c, %tid.x; cvt.rn.f32.u32 "
    "x, c; mov.f32 y, 0f3F000000;\n"
    "tex.a1d.v4.f32.f32 {f0, f1, f2, f3}, [h, {c, x}]; tex.a2d.v4.f32.f32 {f0, f1, f2, f3}, [h, {c, x, y, "
    "y}];\n"
    "tex.cube.v4.f32.f32 {f0, f1, f2, f3}, [h, {x, y, x, x}]; tex.acube.v4.f32.f32 {f0, f1, f2, f3}, [h, {c, "
    "x, y, x}]; ret;\n}\n"
    ".visible .entry refs(.param .f32 x, .param .f32 y)\n{\n"
    ".reg .f32 f<4>, x, y; ld.param.f32 x, [x]; ld.param.f32 y, [y]; tex.2d.v4.f32.f32 {f0, f1, f2, f3}, "
    "[image, {x, y}];\n"
    "tex.1d.v4.f32.f32 {f0, f1, f2, f3}, [image, {x}]; sust.b.2d.b32.zero [target, {4, 1}], f0; ret;\n}\n";

static CUmodule module(void)
{
    CUmodule loaded = NULL;
    if (cuModuleLoadData(&loaded, ptx) == CUDA_SUCCESS)
        fuzz_keep(MODULE, (uintptr_t)loaded);
    return loaded;
}

static CUarray_format format(void)
{
    static const CUarray_format formats[] = {CU_AD_FORMAT_FLOAT,          CU_AD_FORMAT_UNSIGNED_INT8,
                                             CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32,
                                             CU_AD_FORMAT_SIGNED_INT8,    CU_AD_FORMAT_SIGNED_INT16,
                                             CU_AD_FORMAT_SIGNED_INT32,   CU_AD_FORMAT_HALF};
    return below(16) ? formats[below(8)] : (CUarray_format)small();
}

static size_t edge(unsigned most)
{
    return below(24) ? below(most) : fuzz_size();
}

void fuzz_arrays(void)
{
    static const unsigned flags[] = {0,
                                     CUDA_ARRAY3D_SURFACE_LDST,
                                     CUDA_ARRAY3D_LAYERED,
                                     CUDA_ARRAY3D_CUBEMAP,
                                     CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED,
                                     CUDA_ARRAY3D_TEXTURE_GATHER};
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 1 + edge(40),
                                     .Height = edge(16),
                                     .Depth = below(3) ? 0 : edge(14),
                                     .Format = format(),
                                     .NumChannels = below(12) ? 1u << below(3) : small(),
                                     .Flags = flags[below(6)] | (below(12) ? 0 : small())};
    CUDA_ARRAY_DESCRIPTOR flat = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
    if ((shape.Flags & CUDA_ARRAY3D_CUBEMAP) != 0 && below(8))
        shape.Height = shape.Width, shape.Depth = 6 * (shape.Flags & CUDA_ARRAY3D_LAYERED ? 2 : 1);
    if (shape.Width > 1u << 16 || shape.Height > 1u << 16 || shape.Depth > 1u << 12)
        shape.Width |= (size_t)1 << 40; /* large ones are refused, not filled */
    CUarray made = NULL;
    switch (below(8)) {
    case 0:
        if (cuArrayCreate((CUarray *)out, SOME(&flat)) == CUDA_SUCCESS)
            fuzz_keep(ARRAY, out[0]);
        break;
    case 1:
    case 2:
        if (cuArray3DCreate(&made, &shape) == CUDA_SUCCESS)
            fuzz_keep(ARRAY, (uintptr_t)made);
        break;
    case 3:
        if (cuMipmappedArrayCreate((CUmipmappedArray *)out, &shape, below(8)) == CUDA_SUCCESS)
            fuzz_keep(MIPMAPS, out[0]);
        cuMipmappedArrayGetLevel(SOME((CUarray *)out), (CUmipmappedArray)any(MIPMAPS), below(6));
        break;
    case 4:
        cuArrayGetDescriptor(SOME(&flat), AN_ARRAY);
        cuArray3DGetDescriptor(SOME(&shape), AN_ARRAY);
        cuArrayGetPlane(SOME((CUarray *)out), AN_ARRAY, small());
        cuArrayGetSparseProperties(SOME((CUDA_ARRAY_SPARSE_PROPERTIES *)out), AN_ARRAY);
        break;
    case 5:
        if (below(3) == 0)
            cuArrayDestroy(AN_ARRAY);
        else if (below(8) == 0)
            cuMipmappedArrayDestroy((CUmipmappedArray)any(MIPMAPS));
        break;
    case 6:
        cuMemcpyHtoA(AN_ARRAY, below(64), fuzz_scratch, below(4096));
        cuMemcpyAtoH(fuzz_scratch, AN_ARRAY, below(64), below(4096));
        cuMemcpyHtoAAsync(AN_ARRAY, below(64), fuzz_scratch, below(4096), A_STREAM);
        cuMemcpyAtoHAsync(fuzz_scratch, AN_ARRAY, below(64), below(4096), A_STREAM);
        cuMemcpyDtoA(AN_ARRAY, below(64), any(MEMORY), below(4096));
        cuMemcpyAtoD(any(MEMORY), AN_ARRAY, below(64), below(4096));
        cuMemcpyAtoA(AN_ARRAY, below(64), AN_ARRAY, below(64), below(4096));
        break;
    default: {
        CUDA_MEMCPY3D copy = {.srcMemoryType = below(2) ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
                              .srcArray = AN_ARRAY,
                              .srcDevice = any(MEMORY),
                              .srcPitch = below(256),
                              .srcHeight = below(16),
                              .srcXInBytes = below(32),
                              .srcZ = below(3),
                              .dstMemoryType = below(2) ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
                              .dstArray = AN_ARRAY,
                              .dstDevice = any(MEMORY),
                              .dstPitch = below(256),
                              .dstHeight = below(16),
                              .dstY = below(4),
                              .WidthInBytes = below(128),
                              .Height = below(8),
                              .Depth = below(4)};
        if (below(2))
            cuMemcpy3D(&copy);
        else
            cuMemcpy3DAsync(&copy, A_STREAM);
        break;
    }
    }
}

static CUDA_RESOURCE_DESC resource(void)
{
    CUDA_RESOURCE_DESC what = {.resType = (CUresourcetype)below(below(12) ? 4 : 8)};
    switch (what.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        what.res.array.hArray = AN_ARRAY;
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        what.res.mipmap.hMipmappedArray = (CUmipmappedArray)any(MIPMAPS);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        what.res.linear.devPtr = any(MEMORY);
        what.res.linear.format = format();
        what.res.linear.numChannels = 1u << below(3);
        what.res.linear.sizeInBytes = edge(4096);
        break;
    default:
        what.res.pitch2D.devPtr = any(MEMORY);
        what.res.pitch2D.format = format();
        what.res.pitch2D.numChannels = 1u << below(3);
        what.res.pitch2D.width = edge(32);
        what.res.pitch2D.height = edge(16);
        what.res.pitch2D.pitchInBytes = below(8) ? 512 : edge(2048);
    }
    what.flags = below(24) ? 0 : small();
    return what;
}

static void sample(void)
{
    const CUmodule loaded = module();
    CUfunction function;
    uint64_t texture = any(TEXTURE), surface = below(2) ? 0 : any(SURFACE), to = fuzz_held_handle(MEMORY);
    float x = (float)below(40) / 3, y = (float)below(16) / 4;
    void *by_handle[] = {&texture, &surface, &to}, *by_reference[] = {&x, &y};
    const unsigned which = below(3);
    static const char *const names[] = {"sample", "other", "refs"};
    if (cuModuleGetFunction(&function, loaded, names[which]) == CUDA_SUCCESS)
        cuLaunchKernel(function, 1 + below(3), 1, 1, 1 + below(32), 1, 1, 0, A_STREAM,
                       which == 2 ? by_reference : by_handle, NULL);
}

void fuzz_textures(void)
{
    CUDA_RESOURCE_DESC what = resource();
    CUDA_TEXTURE_DESC how = {
        .addressMode = {(CUaddress_mode)below(4), (CUaddress_mode)below(4), (CUaddress_mode)below(4)},
        .filterMode = (CUfilter_mode)below(below(12) ? 2 : 5),
        .flags = below(8) ? below(4) : small(),
        .maxAnisotropy = below(18),
        .mipmapFilterMode = (CUfilter_mode)below(2),
        .mipmapLevelBias = (float)below(5) - 2,
        .minMipmapLevelClamp = (float)below(4),
        .maxMipmapLevelClamp = (float)below(8),
        .borderColor = {1, 2, 3, 4}};
    CUDA_RESOURCE_VIEW_DESC view = {.format = (CUresourceViewFormat)below(35),
                                    .width = edge(40),
                                    .height = edge(16),
                                    .lastMipmapLevel = below(4)};
    switch (below(8)) {
    case 0:
    case 1:
    case 2:
        if (cuTexObjectCreate((CUtexObject *)out, SOME(&what), SOME(&how), below(6) ? NULL : &view) ==
            CUDA_SUCCESS)
            fuzz_keep(TEXTURE, out[0]);
        break;
    case 3:
        if (cuSurfObjectCreate((CUsurfObject *)out, SOME(&what)) == CUDA_SUCCESS)
            fuzz_keep(SURFACE, out[0]);
        break;
    case 4:
        cuTexObjectGetResourceDesc(SOME(&what), any(TEXTURE));
        cuTexObjectGetTextureDesc(SOME(&how), any(TEXTURE));
        cuTexObjectGetResourceViewDesc(SOME(&view), any(TEXTURE));
        cuSurfObjectGetResourceDesc(SOME(&what), any(SURFACE));
        break;
    case 5:
        if (below(4) == 0)
            cuTexObjectDestroy(any(TEXTURE));
        if (below(4) == 0)
            cuSurfObjectDestroy(any(SURFACE));
        break;
    default:
        sample();
        break;
    }
}

void fuzz_references(void)
{
    CUtexref reference = (CUtexref)any(REFERENCE);
    CUsurfref surface = NULL;
    CUDA_ARRAY_DESCRIPTOR flat = {edge(32), edge(16), format(), 1u << below(3)};
    float border[4] = {1, 2, 3, 4};
    if (below(2)) {
        const CUmodule loaded = module();
        if (cuModuleGetTexRef(&reference, loaded, "image") != CUDA_SUCCESS ||
            cuModuleGetSurfRef(&surface, loaded, "target") != CUDA_SUCCESS)
            return;
    }
    for (unsigned n = 1 + below(4); n > 0; n--) {
        switch (below(10)) {
        case 0:
            if (cuTexRefCreate((CUtexref *)out) == CUDA_SUCCESS)
                fuzz_keep(REFERENCE, out[0]);
            break;
        case 1:
            cuTexRefSetArray(reference, AN_ARRAY, below(8) ? CU_TRSA_OVERRIDE_FORMAT : small());
            cuTexRefGetArray(SOME((CUarray *)out), reference);
            break;
        case 2:
            cuTexRefSetMipmappedArray(reference, (CUmipmappedArray)any(MIPMAPS),
                                      below(8) ? CU_TRSA_OVERRIDE_FORMAT : small());
            cuTexRefGetMipmappedArray(SOME((CUmipmappedArray *)out), reference);
            break;
        case 3:
            cuTexRefSetAddress(SOME((size_t *)out), reference, any(MEMORY) + below(3), edge(4096));
            cuTexRefGetAddress(SOME((CUdeviceptr *)out), reference);
            break;
        case 4:
            cuTexRefSetAddress2D(reference, SOME(&flat), any(MEMORY), below(8) ? 512 : edge(1024));
            break;
        case 5:
            cuTexRefSetFormat(reference, format(), (int)below(6));
            cuTexRefGetFormat(SOME((CUarray_format *)out), SOME((int *)(out + 1)), reference);
            break;
        case 6:
            cuTexRefSetAddressMode(reference, (int)below(4), (CUaddress_mode)below(6));
            cuTexRefGetAddressMode(SOME((CUaddress_mode *)out), reference, (int)below(4));
            cuTexRefSetFilterMode(reference, (CUfilter_mode)below(3));
            cuTexRefGetFilterMode(SOME((CUfilter_mode *)out), reference);
            break;
        case 7:
            cuTexRefSetMipmapFilterMode(reference, (CUfilter_mode)below(3));
            cuTexRefSetMipmapLevelBias(reference, 1.5f);
            cuTexRefSetMipmapLevelClamp(reference, 0, 4);
            cuTexRefSetMaxAnisotropy(reference, below(20));
            cuTexRefSetBorderColor(reference, SOME(border));
            cuTexRefSetFlags(reference, below(8) ? below(4) : small());
            break;
        case 8:
            cuTexRefGetMipmapFilterMode(SOME((CUfilter_mode *)out), reference);
            cuTexRefGetMipmapLevelBias(SOME((float *)out), reference);
            cuTexRefGetMipmapLevelClamp(SOME((float *)out), SOME((float *)(out + 1)), reference);
            cuTexRefGetMaxAnisotropy(SOME((int *)out), reference);
            cuTexRefGetBorderColor(SOME(border), reference);
            cuTexRefGetFlags(SOME((unsigned *)out), reference);
            break;
        default:
            cuSurfRefSetArray(surface, AN_ARRAY, below(8) ? 0 : small());
            cuSurfRefGetArray(SOME((CUarray *)out), surface);
            if (below(6) == 0)
                cuTexRefDestroy((CUtexref)any(REFERENCE));
        }
    }
    if (below(3) == 0)
        sample();
}

void fuzz_graph_memory(void)
{
    const CUgraph graph = (CUgraph)any(GRAPH);
    CUgraphNode before[2] = {(CUgraphNode)any(NODE), (CUgraphNode)any(NODE)}, node = (CUgraphNode)any(NODE);
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                         .bytesize = edge(1 << 16)};
    CUstreamBatchMemOpParams operations[2];
    memset(operations, 0, sizeof operations);
    for (unsigned i = 0; i < 2; i++) { /* waits for a value that may never come are not among them */
        operations[i].operation =
            below(4) ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
        operations[i].writeValue.address = any(MEMORY);
        operations[i].writeValue.value = small();
    }
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {
        .ctx = below(8) ? NULL : (CUcontext)any(CONTEXT), .count = below(3), .paramArray = operations};
    if (batch.ctx == NULL)
        cuCtxGetCurrent(&batch.ctx);
    CUresult added = CUDA_ERROR_UNKNOWN;
    switch (below(9)) {
    case 0:
    case 1:
        added = cuGraphAddMemAllocNode((CUgraphNode *)out, graph, before, below(3), SOME(&memory));
        if (added == CUDA_SUCCESS && below(2))
            cuGraphAddMemFreeNode((CUgraphNode *)(out + 1), graph, (CUgraphNode *)out, 1, memory.dptr);
        break;
    case 2:
        added = cuGraphAddMemFreeNode((CUgraphNode *)out, graph, before, below(3), any(MEMORY));
        break;
    case 3:
        added = cuGraphAddBatchMemOpNode((CUgraphNode *)out, graph, before, below(3), SOME(&batch));
        break;
    case 4:
        cuGraphMemAllocNodeGetParams(node, SOME(&memory));
        cuGraphMemFreeNodeGetParams(node, SOME((CUdeviceptr *)out));
        cuGraphBatchMemOpNodeGetParams(node, SOME(&batch));
        break;
    case 5:
        batch.paramArray = operations;
        cuGraphBatchMemOpNodeSetParams(node, SOME(&batch));
        cuGraphExecBatchMemOpNodeSetParams((CUgraphExec)any(EXEC), node, SOME(&batch));
        break;
    case 6:
        cuDeviceGetGraphMemAttribute(below(8) ? 0 : (int)small(), (CUgraphMem_attribute)below(6), SOME(out));
        out[0] = below(3) ? 0 : small();
        cuDeviceSetGraphMemAttribute(below(8) ? 0 : (int)small(), (CUgraphMem_attribute)below(6), SOME(out));
        cuDeviceGraphMemTrim(below(8) ? 0 : (int)small());
        break;
    case 7:
        cuStreamBatchMemOp(A_STREAM, below(3), SOME(operations), below(8) ? 0 : small());
        break;
    default: {
        /* A whole life: memory in a graph, launched twice. */
        CUgraph own = NULL;
        CUgraphExec exec = NULL;
        CUgraphNode alloc = NULL, set = NULL;
        memory.bytesize = 1 + below(1 << 16);
        if (cuGraphCreate(&own, 0) != CUDA_SUCCESS)
            break;
        if (cuGraphAddMemAllocNode(&alloc, own, NULL, 0, &memory) == CUDA_SUCCESS) {
            CUDA_MEMSET_NODE_PARAMS fill = {
                .dst = memory.dptr, .value = 7, .elementSize = 1, .width = memory.bytesize, .height = 1};
            if (cuGraphAddMemsetNode(&set, own, &alloc, 1, &fill, batch.ctx) == CUDA_SUCCESS && below(4))
                cuGraphAddMemFreeNode((CUgraphNode *)out, own, &set, 1, memory.dptr);
        }
        if (cuGraphInstantiate(&exec, own, below(2) ? 0 : CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) ==
            CUDA_SUCCESS) {
            cuGraphLaunch(exec, A_STREAM);
            cuGraphLaunch(exec, A_STREAM);
            fuzz_keep(EXEC, (uintptr_t)exec);
        }
        fuzz_keep(GRAPH, (uintptr_t)own);
    }
    }
    if (added == CUDA_SUCCESS)
        fuzz_keep(NODE, out[0]);
}

void fuzz_old_and_managed(void)
{
    CUfunction function = (CUfunction)any(FUNCTION);
    CUmemLocation place = {.type = (CUmemLocationType)below(5), .id = below(8) ? 0 : (int)small()};
    uint64_t value = any(MEMORY);
    size_t bytes = below(64);
    switch (below(6)) {
    case 0:
        cuFuncSetBlockShape(function, (int)below(40), 1, below(8) ? 1 : (int)small());
        cuFuncSetSharedSize(function, below(8) ? below(2048) : small());
        cuParamSetSize(function, below(8) ? 12 : small());
        cuParamSetv(function, below(8) ? 0 : (int)small(), &value, below(8) ? 8 : below(8));
        cuParamSeti(function, below(8) ? 8 : (int)small(), small());
        cuParamSetf(function, below(8) ? 8 : (int)small(), 1.5f);
        cuParamSetTexRef(function, (int)below(3) - 1, (CUtexref)any(REFERENCE));
        break;
    case 1:
        if (below(2))
            cuLaunch(function);
        else if (below(2))
            cuLaunchGrid(function, (int)below(6), (int)below(3));
        else
            cuLaunchGridAsync(function, (int)below(6), (int)below(3), A_STREAM);
        break;
    case 2:
        if (cuMemAllocManaged((CUdeviceptr *)out, 1 + below(1 << 16),
                              below(8) ? CU_MEM_ATTACH_GLOBAL : small()) == CUDA_SUCCESS)
            fuzz_keep(MEMORY, out[0]);
        cuMemAdvise_v2(any(MEMORY), edge(4096), (CUmem_advise)below(9), place);
        cuMemPrefetchAsync_v2(any(MEMORY), edge(4096), place, below(8) ? 0 : small(), A_STREAM);
        break;
    case 3: {
        CUmem_range_attribute attributes[2] = {(CUmem_range_attribute)below(10),
                                               (CUmem_range_attribute)below(10)};
        void *to[2] = {out, out + 32};
        size_t sizes[2] = {4 * below(5), 4 * below(5)};
        cuMemRangeGetAttribute(SOME(out), 4 * below(5), attributes[0], any(MEMORY), edge(4096));
        cuMemRangeGetAttributes(SOME(to), SOME(sizes), SOME(attributes), below(3), any(MEMORY), edge(4096));
        break;
    }
    case 4: {
        const CUcoredumpSettings which = (CUcoredumpSettings)(below(8) ? 1 + below(10) : small());
        memset(out, 0, sizeof out);
        if (below(2))
            cuCoredumpGetAttribute(which, SOME(out), SOME(&bytes));
        else
            cuCoredumpGetAttributeGlobal(which, SOME(out), SOME(&bytes));
        out[0] = below(3);
        bytes = below(24);
        if (below(2))
            cuCoredumpSetAttribute(which, SOME(out), SOME(&bytes));
        else
            cuCoredumpSetAttributeGlobal(which, SOME(out), SOME(&bytes));
        break;
    }
    default: {
        CUmemoryPool pool = (CUmemoryPool)any(POOL);
        CUmemAllocationType type = (CUmemAllocationType)below(4);
        cuMemGetDefaultMemPool((CUmemoryPool *)out, SOME(&place), type);
        cuMemGetMemPool((CUmemoryPool *)out, SOME(&place), type);
        cuMemSetMemPool(SOME(&place), type, pool);
        out[0] = below(3) ? 0 : fuzz_size();
        cuMemPoolSetAttribute(pool, (CUmemPool_attribute)(1 + below(10)), out);
        cuMemPoolGetAttribute(pool, (CUmemPool_attribute)(1 + below(10)), out);
    }
    }
}

void fuzz_more_forget(enum kind kind, uintptr_t value)
{
    switch (kind) {
    case ARRAY:
        cuArrayDestroy((CUarray)value);
        break;
    case MIPMAPS:
        cuMipmappedArrayDestroy((CUmipmappedArray)value);
        break;
    case TEXTURE:
        cuTexObjectDestroy(value);
        break;
    case SURFACE:
        cuSurfObjectDestroy(value);
        break;
    case REFERENCE:
        cuTexRefDestroy((CUtexref)value);
        break;
    default:
        break; /* belongs to another */
    }
}
