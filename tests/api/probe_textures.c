/* As probe.c, for virtual memory management, arrays, textures and surfaces: what a libcuda answers, one line
   per answer. usage: probe_textures LIBCUDA. Each section runs in a child; so does each kernel that may
   fault. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/cuda_names.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* references are asked about too */

static struct {
#define CU(symbol, base, since, required) __typeof__(symbol) *symbol;
#include "driver/cuda.def"
} cu;

#define SAY(text, call) printf("%s %d\n", text, (int)(call))
#define STEP            ((size_t)2 << 20)

static CUcontext context;

static void start(void)
{
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cu.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        printf("no device\n");
        exit(77);
    }
}

/* ---- virtual memory management ---- */

static void virtual_memory(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle one = 0, two = 0, three = 0;
    CUdeviceptr base = 0, other = 0, plain = 0;
    unsigned long long flags = 99;
    size_t step = 0, total = 0, before = 0, after = 0;
    uint32_t word = 0;
    start();
    SAY("granularity", cu.cuMemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    printf("granularity bytes %zu\n", step);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    SAY("granularity host", cu.cuMemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    SAY("reserve odd size", cu.cuMemAddressReserve(&base, STEP - 1, 0, 0, 0));
    SAY("reserve odd alignment", cu.cuMemAddressReserve(&base, STEP, 3, 0, 0));
    SAY("reserve 0", cu.cuMemAddressReserve(&base, 0, 0, 0, 0));
    SAY("reserve", cu.cuMemAddressReserve(&base, 4 * STEP, 0, 0, 0));
    SAY("create odd size", cu.cuMemCreate(&one, 4096, &prop, 0));
    SAY("create flags", cu.cuMemCreate(&one, STEP, &prop, 1));
    prop.location.id = 77;
    SAY("create device 77", cu.cuMemCreate(&one, STEP, &prop, 0));
    prop.location.id = 0;
    SAY("info", cu.cuMemGetInfo_v2(&before, &total));
    SAY("create", cu.cuMemCreate(&one, STEP, &prop, 0));
    SAY("create two", cu.cuMemCreate(&two, 2 * STEP, &prop, 0));
    SAY("export not asked for",
        cu.cuMemExportToShareableHandle(&word, one, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SAY("map outside", cu.cuMemMap(base + 3 * STEP, 2 * STEP, 0, two, 0));
    SAY("map longer", cu.cuMemMap(base, 2 * STEP, 0, one, 0));
    SAY("map part", cu.cuMemMap(base + 3 * STEP, STEP, 0, two, 0));
    SAY("unmap part", cu.cuMemUnmap(base + 3 * STEP, STEP));
    SAY("map offset", cu.cuMemMap(base + 3 * STEP, STEP, STEP, two, 0));
    SAY("unmap offset", cu.cuMemUnmap(base + 3 * STEP, STEP));
    SAY("map", cu.cuMemMap(base, STEP, 0, one, 0));
    SAY("map again", cu.cuMemMap(base, STEP, 0, one, 0));
    SAY("map second", cu.cuMemMap(base + STEP, 2 * STEP, 0, two, 0));
    SAY("set without access", cu.cuMemsetD8_v2(base, 0, 1));
    SAY("get access before", cu.cuMemGetAccess(&flags, &access.location, base));
    printf("access before %llu\n", flags);
    SAY("access beyond", cu.cuMemSetAccess(base, 4 * STEP, &access, 1));
    SAY("access half a mapping", cu.cuMemSetAccess(base + STEP, STEP, &access, 1));
    SAY("access", cu.cuMemSetAccess(base, 3 * STEP, &access, 1));
    SAY("get access", cu.cuMemGetAccess(&flags, &access.location, base));
    printf("access %llu\n", flags);
    SAY("get access unmapped", cu.cuMemGetAccess(&flags, &access.location, base + 3 * STEP));
    SAY("set across", cu.cuMemsetD8_v2(base, 1, 3 * STEP));
    SAY("alias reserve", cu.cuMemAddressReserve(&other, STEP, 0, 0, 0));
    SAY("alias map", cu.cuMemMap(other, STEP, 0, one, 0));
    SAY("alias access", cu.cuMemSetAccess(other, STEP, &access, 1));
    SAY("alias read", cu.cuMemcpyDtoH_v2(&word, other, 4));
    printf("alias word %x\n", word);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    SAY("read only", cu.cuMemSetAccess(other, STEP, &access, 1));
    SAY("free mapped", cu.cuMemFree_v2(base));
    SAY("release", cu.cuMemRelease(one));
    SAY("release again", cu.cuMemRelease(one));
    SAY("retain", cu.cuMemRetainAllocationHandle(&three, (void *)(uintptr_t)(base + 8)));
    SAY("retain release", cu.cuMemRelease(three));
    SAY("unmap half", cu.cuMemUnmap(base, 2 * STEP));
    SAY("address free mapped", cu.cuMemAddressFree(other, STEP));
    SAY("unmap", cu.cuMemUnmap(base, 3 * STEP));
    SAY("unmap again", cu.cuMemUnmap(base, STEP));
    SAY("address free half", cu.cuMemAddressFree(base, STEP));
    SAY("address free", cu.cuMemAddressFree(base, 4 * STEP));
    SAY("address free again", cu.cuMemAddressFree(base, 4 * STEP));
    SAY("release two", cu.cuMemRelease(two));
    SAY("alias unmap", cu.cuMemUnmap(other, STEP));
    SAY("alias free", cu.cuMemAddressFree(other, STEP));
    SAY("info after", cu.cuMemGetInfo_v2(&after, &total));
    CUipcMemHandle handle;
    SAY("ipc alloc", cu.cuMemAlloc_v2(&plain, 1000));
    SAY("ipc get inner", cu.cuIpcGetMemHandle(&handle, plain + 8));
    SAY("ipc open own", cu.cuIpcOpenMemHandle_v2(&other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    SAY("ipc open flags 0", cu.cuIpcOpenMemHandle_v2(&other, handle, 0));
    SAY("ipc close plain", cu.cuIpcCloseMemHandle(plain));
    CUmemoryPool pool;
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    SAY("pool of host", cu.cuMemGetMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
}

/* ---- arrays ---- */

static CUarray array_of(const char *text, size_t w, size_t h, size_t d, int format, unsigned channels,
                        unsigned flags)
{
    CUarray array = NULL;
    const CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, (CUarray_format)format, channels, flags};
    const CUresult result = cu.cuArray3DCreate_v2(&array, &desc);
    if (text != NULL)
        printf("%s %d\n", text, (int)result);
    return array;
}

static void arrays(void)
{
    start();
    array_of("array width 0", 0, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    array_of("array 3 channels", 4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0);
    array_of("array format 7", 4, 4, 0, 7, 1, 0);
    array_of("array depth without height", 4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0);
    array_of("array cube not square", 4, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
    array_of("array cube of 5", 4, 4, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
    array_of("array too wide", 131073, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    array_of("array flag 8000", 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0x8000);
    array_of("array 1d layered", 4, 0, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    array_of("array unorm8x4", 4, 4, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0);
    CUarray plane = array_of("array", 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    uint32_t words[32] = {0};
    CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = words,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = plane,
                         .WidthInBytes = 20,
                         .Height = 1};
    SAY("copy too wide", cu.cuMemcpy2D_v2(&box));
    box.WidthInBytes = 16;
    box.Height = 5;
    SAY("copy too high", cu.cuMemcpy2D_v2(&box));
    box.Height = 4;
    SAY("copy", cu.cuMemcpy2D_v2(&box));
    SAY("copy 2d as 1d", cu.cuMemcpyAtoH_v2(words, plane, 0, 4));
    SAY("copy across rows as 1d", cu.cuMemcpyAtoH_v2(words, plane, 0, 20));
    SAY("copy NULL array", cu.cuMemcpyAtoH_v2(words, NULL, 0, 4));
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT};
    CUtexObject texture;
    CUsurfObject surface;
    SAY("texture NULL array", cu.cuTexObjectCreate(&texture, &resource, &desc, NULL));
    resource.res.array.hArray = plane;
    SAY("surface without flag", cu.cuSurfObjectCreate(&surface, &resource));
    SAY("texture", cu.cuTexObjectCreate(&texture, &resource, &desc, NULL));
    desc.addressMode[1] = (CUaddress_mode)4;
    SAY("texture address mode 4", cu.cuTexObjectCreate(&texture, &resource, &desc, NULL));
    desc.addressMode[1] = CU_TR_ADDRESS_MODE_WRAP;
    SAY("texture destroy 12345", cu.cuTexObjectDestroy(12345));
    CUdeviceptr device;
    SAY("linear memory", cu.cuMemAlloc_v2(&device, 4096));
    CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
    linear.res.linear.devPtr = device + 4;
    linear.res.linear.format = CU_AD_FORMAT_FLOAT;
    linear.res.linear.numChannels = 1;
    linear.res.linear.sizeInBytes = 64;
    SAY("linear misaligned", cu.cuTexObjectCreate(&texture, &linear, &desc, NULL));
    desc.filterMode = CU_TR_FILTER_MODE_LINEAR;
    desc.flags = CU_TRSF_READ_AS_INTEGER;
    resource.res.array.hArray = array_of(NULL, 4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
    SAY("linear filter of integers", cu.cuTexObjectCreate(&texture, &resource, &desc, NULL));
    CUmipmappedArray mipmap;
    CUarray level;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    SAY("mipmap 99 levels", cu.cuMipmappedArrayCreate(&mipmap, &shape, 99));
    SAY("mipmap level 2", cu.cuMipmappedArrayGetLevel(&level, mipmap, 2));
    SAY("mipmap level destroy", cu.cuArrayDestroy(level));
    SAY("mipmap level 3", cu.cuMipmappedArrayGetLevel(&level, mipmap, 3));
    CUtexref reference;
    CUaddress_mode mode = (CUaddress_mode)9;
    CUfilter_mode filter = (CUfilter_mode)9;
    CUarray_format format = (CUarray_format)9;
    unsigned flags = 99;
    int channels = 99;
    SAY("reference", cu.cuTexRefCreate(&reference));
    SAY("reference mode", cu.cuTexRefGetAddressMode(&mode, reference, 0));
    SAY("reference filter", cu.cuTexRefGetFilterMode(&filter, reference));
    SAY("reference format", cu.cuTexRefGetFormat(&format, &channels, reference));
    SAY("reference flags", cu.cuTexRefGetFlags(&flags, reference));
    printf("reference state %d %d %d %d %u\n", (int)mode, (int)filter, (int)format, channels, flags);
}

/* ---- kernels ---- */

static CUdeviceptr results;

static CUresult run(const char *before, const char *instruction, CUtexObject handle, float x, float y)
{
    char ptx[2048];
    CUmodule module;
    CUfunction function;
    snprintf(
        ptx, sizeof ptx,
        ".version 8.0\n.target sm_90\n.address_size 64\n%s\n.visible .entry fetch(.param .u64 h, .param .u64 "
        "out, "
        ".param .f32 x, .param .f32 y)\n{\n.reg .b64 %%h, %%o;\n.reg .f32 %%x, %%y, %%f<4>;\n.reg .b32 "
        "%%r<4>;\n"
        "ld.param.u64 %%h, [h];\nld.param.u64 %%o, [out];\nld.param.f32 %%x, [x];\nld.param.f32 %%y, [y];\n"
        "mov.f32 %%f0, 0f00000000; mov.f32 %%f1, %%f0; mov.f32 %%f2, %%f0; mov.f32 %%f3, %%f0;\n"
        "mov.b32 %%r0, 0; mov.b32 %%r1, 0; mov.b32 %%r2, 0; mov.b32 %%r3, 0;\n"
        "%s\nst.global.v4.f32 [%%o], {%%f0, %%f1, %%f2, %%f3};\nst.global.v4.b32 [%%o+16], {%%r0, %%r1, "
        "%%r2, %%r3};\n"
        "ret;\n}\n",
        before, instruction);
    CUresult result = cu.cuModuleLoadData(&module, ptx);
    if (result != CUDA_SUCCESS)
        return result;
    result = cu.cuModuleGetFunction(&function, module, "fetch");
    if (result != CUDA_SUCCESS)
        return result;
    void *params[] = {&handle, &results, &x, &y};
    result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    return result == CUDA_SUCCESS ? cu.cuCtxSynchronize() : result;
}

static void show(const char *text, const char *instruction, CUtexObject handle, float x, float y)
{
    float f[4] = {0};
    uint32_t r[4] = {0};
    const CUresult result = run("", instruction, handle, x, y);
    cu.cuMemcpyDtoH_v2(f, results, 16);
    cu.cuMemcpyDtoH_v2(r, results + 16, 16);
    printf("%s %g %g: %d, %.9g %.9g %.9g %.9g, %x %x %x %x\n", text, (double)x, (double)y, (int)result,
           (double)f[0], (double)f[1], (double)f[2], (double)f[3], r[0], r[1], r[2], r[3]);
}

static CUtexObject texture_of(CUarray array, CUaddress_mode mode, CUfilter_mode filter, unsigned flags)
{
    CUtexObject texture = 0;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_TEXTURE_DESC desc = {
        .addressMode = {mode, mode, mode}, .filterMode = filter, .flags = flags, .borderColor = {9, 8, 7, 6}};
    resource.res.array.hArray = array;
    const CUresult result = cu.cuTexObjectCreate(&texture, &resource, &desc, NULL);
    if (result != CUDA_SUCCESS)
        printf("texture: %d\n", (int)result);
    return texture;
}

static CUarray filled(size_t w, size_t h, int format, unsigned channels, unsigned flags, const void *data,
                      size_t row)
{
    CUarray array = array_of(NULL, w, h, 0, format, channels, flags);
    const CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = data,
                               .srcPitch = row,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = array,
                               .WidthInBytes = row,
                               .Height = h > 0 ? h : 1};
    const CUresult result = cu.cuMemcpy2D_v2(&box);
    if (result != CUDA_SUCCESS)
        printf("fill: %d\n", (int)result);
    return array;
}

static const char tex_1d[] = "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x}];";
static const char tex_2d[] = "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y}];";
static const float texels[2][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}};

static void textures(void)
{
    static const float line[4] = {0, 1024, 3, 1e6f}, plane[2][2] = {{0, 1}, {3, 1000}};
    static const uint8_t bytes[4] = {255, 51, 0, 128};
    static const int16_t shorts[2] = {-32768, 16384};
    start();
    cu.cuMemAlloc_v2(&results, 64);
    const CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP, wrap = CU_TR_ADDRESS_MODE_WRAP,
                         mirror = CU_TR_ADDRESS_MODE_MIRROR, border = CU_TR_ADDRESS_MODE_BORDER;
    const CUfilter_mode point = CU_TR_FILTER_MODE_POINT, linear = CU_TR_FILTER_MODE_LINEAR;
    CUtexObject t = texture_of(filled(4, 0, CU_AD_FORMAT_FLOAT, 1, 0, line, 16), clamp, linear, 0);
    for (int k = 0; k <= 24; k++) /* how the weight is rounded to eight bits */
        show("weight", tex_1d, t, 0.5f + (float)k / 2048.0f, 0);
    for (int k = 1; k < 8; k++)
        show("weight", tex_1d, t, 1.5f - (float)k / 2048.0f, 0);
    show("between", tex_1d, t, 2.7f, 0);
    t = texture_of(filled(2, 2, CU_AD_FORMAT_FLOAT, 1, 0, plane, 8), clamp, linear, 0);
    for (int k = 0; k < 6; k++)
        show("bilinear", tex_2d, t, 0.5f + 0.17f * (float)k, 0.6f + 0.13f * (float)k);
    CUarray array = filled(4, 2, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER, texels, 16);
    t = texture_of(array, clamp, point, 0);
    show("point", tex_2d, t, 2.9f, 1.0f);
    show("point low", tex_2d, t, -3, 9);
    show("point huge", tex_2d, t, 1e30f, -1e30f);
    show("point nan", tex_2d, t, __builtin_nanf(""), 0);
    show("wrap unnormalized", tex_2d, texture_of(array, wrap, point, 0), 5.5f, 0);
    show("offset", "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y}], {1, 1};", t, 1, 0);
    show("integer",
         "cvt.rni.s32.f32 %r0, %x; cvt.rni.s32.f32 %r1, %y;\n"
         "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%r0, %r1}];",
         t, 2, 1);
    show("integer outside",
         "cvt.rni.s32.f32 %r0, %x; cvt.rni.s32.f32 %r1, %y;\n"
         "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%r0, %r1}];",
         t, 9, -1);
    show("gather", "tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y}];", t, 2, 1);
    show("gather absent", "tld4.g.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y}];", t, 2, 1);
    show("level 2", "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y}], 0f40000000;", t, 3, 1);
    show("txq sizes",
         "txq.width.b32 %r0, [%h]; txq.height.b32 %r1, [%h]; txq.depth.b32 %r2, [%h]; "
         "txq.array_size.b32 %r3, [%h];",
         t, 0, 0);
    show("txq types",
         "txq.channel_data_type.b32 %r0, [%h]; txq.channel_order.b32 %r1, [%h]; "
         "txq.num_mipmap_levels.b32 %r2, [%h]; txq.num_samples.b32 %r3, [%h];",
         t, 0, 0);
    show("as integer bits", "tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%h, {%x, %y}];", t, 1, 0);
    t = texture_of(array, wrap, point, CU_TRSF_NORMALIZED_COORDINATES);
    show("wrap", tex_2d, t, -0.1f, 1.3f);
    t = texture_of(array, mirror, point, CU_TRSF_NORMALIZED_COORDINATES);
    show("mirror", tex_2d, t, -0.3f, 1.9f);
    show("mirror far", tex_2d, t, 1.1f, 0);
    t = texture_of(array, border, point, CU_TRSF_NORMALIZED_COORDINATES);
    show("border", tex_2d, t, 1.1f, 0);
    t = texture_of(array, border, linear, CU_TRSF_NORMALIZED_COORDINATES);
    show("border linear", tex_2d, t, 1.0f, 0.25f);
    array = filled(1, 1, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0, bytes, 4);
    show("unorm", tex_2d, texture_of(array, clamp, point, 0), 0, 0);
    show("srgb", tex_2d, texture_of(array, clamp, point, CU_TRSF_SRGB), 0, 0);
    show("bytes", "tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%h, {%x, %y}];",
         texture_of(array, clamp, point, CU_TRSF_READ_AS_INTEGER), 0, 0);
    array = filled(1, 1, CU_AD_FORMAT_SIGNED_INT16, 2, 0, shorts, 4);
    show("snorm", tex_2d, texture_of(array, clamp, point, 0), 0, 0);
    show("shorts", "tex.2d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%h, {%x, %y}];",
         texture_of(array, clamp, point, CU_TRSF_READ_AS_INTEGER), 0, 0);
}

/* A texture whose one texel is 1, the others 0: what comes out is that texel's weight. */
static CUtexObject one_hot(unsigned dims, unsigned texel)
{
    float data[8] = {0};
    data[texel] = 1;
    if (dims < 3)
        return texture_of(filled(2, dims == 2 ? 2 : 0, CU_AD_FORMAT_FLOAT, 1, 0, data, 8),
                          CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    const CUarray array = array_of(NULL, 2, 2, 2, CU_AD_FORMAT_FLOAT, 1, 0);
    const CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = data,
                               .srcPitch = 8,
                               .srcHeight = 2,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = array,
                               .WidthInBytes = 8,
                               .Height = 2,
                               .Depth = 2};
    const CUresult result = cu.cuMemcpy3D_v2(&box);
    if (result != CUDA_SUCCESS)
        printf("fill: %d\n", (int)result);
    return texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
}

static void weights(void)
{
    static const char tex_3d[] = "mul.f32 %f3, %x, 0f3F266666; add.f32 %f3, %f3, 0f3DCCCCCD; mov.f32 %f2, "
                                 "%y;\ntex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y, %f3, %f3}];";
    CUtexObject hot[8];
    uint32_t state = 12345;
    start();
    cu.cuMemAlloc_v2(&results, 64);
    for (unsigned dims = 1; dims <= 3; dims++) {
        for (unsigned i = 0; i < 1u << dims; i++)
            hot[i] = one_hot(dims, i);
        for (unsigned k = 0; k < 16; k++) {
            const float x = 0.5f + (float)((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f,
                        y = 0.5f + (float)((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
            for (unsigned i = 0; i < 1u << dims; i++)
                show(dims == 1   ? "weight1"
                     : dims == 2 ? "weight2"
                                 : "weight3",
                     dims == 1   ? tex_1d
                     : dims == 2 ? tex_2d
                                 : tex_3d,
                     hot[i], x, y);
        }
    }
}

/* What bytes become: alone, and half-way between two. */
static void conversions(void)
{
    uint8_t bytes[256];
    start();
    cu.cuMemAlloc_v2(&results, 64);
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    const CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP;
    const CUarray array = filled(256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, bytes, 256);
    CUtexObject t = texture_of(array, clamp, CU_TR_FILTER_MODE_POINT, CU_TRSF_SRGB);
    for (unsigned i = 0; i < 256; i++)
        show("srgb", tex_1d, t, (float)i, 0);
    t = texture_of(array, clamp, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_SRGB);
    for (unsigned i = 0; i < 16; i++)
        show("srgb linear", tex_1d, t, 16.0f * (float)i + 0.8f, 0);
    t = texture_of(array, clamp, CU_TR_FILTER_MODE_LINEAR, 0);
    for (unsigned i = 0; i < 16; i++)
        show("unorm linear", tex_1d, t, 16.0f * (float)i + 0.8f, 0);
    static const uint16_t halves[4] = {0x3c00, 0x3555, 0x0001, 0xfbff}, shorts[4] = {65535, 1, 2, 4369};
    t = texture_of(filled(4, 0, CU_AD_FORMAT_HALF, 1, 0, halves, 8), clamp, CU_TR_FILTER_MODE_LINEAR, 0);
    for (unsigned i = 0; i < 8; i++)
        show("half linear", tex_1d, t, 0.5f + 0.45f * (float)i, 0);
    t = texture_of(filled(4, 0, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0, shorts, 8), clamp,
                   CU_TR_FILTER_MODE_LINEAR, 0);
    for (unsigned i = 0; i < 8; i++)
        show("unorm16 linear", tex_1d, t, 0.5f + 0.45f * (float)i, 0);
}

static void outside(void)
{
    static const CUaddress_mode modes[] = {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_CLAMP,
                                           CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_BORDER};
    static const char *const queries[] = {"width",
                                          "height",
                                          "depth",
                                          "array_size",
                                          "channel_data_type",
                                          "channel_order",
                                          "num_mipmap_levels",
                                          "num_samples"};
    static const float pixels[4][2] = {{0, 0}, {-1, 0}, {4, 1}, {1, 2}};
    start();
    cu.cuMemAlloc_v2(&results, 64);
    const CUarray array = filled(4, 2, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST, texels, 16);
    for (unsigned m = 0; m < 4; m++)
        for (unsigned k = 0; k < 8; k++)
            show("integer",
                 "cvt.rni.s32.f32 %r0, %x; cvt.rni.s32.f32 %r1, %y;\n"
                 "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%r0, %r1}];",
                 texture_of(array, modes[m], CU_TR_FILTER_MODE_POINT,
                            k < 4 ? 0 : CU_TRSF_NORMALIZED_COORDINATES),
                 pixels[k & 3][0], pixels[k & 3][1]);
    for (unsigned i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "txq.%s.b32 %%r0, [%%h];", queries[i]);
        show(text, text, texture_of(array, modes[1], CU_TR_FILTER_MODE_POINT, 0), 0, 0);
    }
}

static const char *surface_text;

static void surface_case(void)
{
    static const uint32_t words[2][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}};
    CUsurfObject surface = 0;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    start();
    cu.cuMemAlloc_v2(&results, 64);
    resource.res.array.hArray =
        filled(4, 2, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST, words, 16);
    SAY("surface", cu.cuSurfObjectCreate(&surface, &resource));
    show(surface_text, surface_text, surface, 0, 0);
}

/* ---- faults ---- */

static int which;

static void fault(void)
{
    static const char *const names[] = {"trap outside",      "handle 12345", "unbound reference",
                                        "other geometry",    "freed memory", "destroyed texture",
                                        "surface as texture"};
    CUsurfObject surface = 0;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUresult result = CUDA_SUCCESS;
    start();
    cu.cuMemAlloc_v2(&results, 64);
    CUarray array = filled(4, 2, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST, texels, 16);
    CUtexObject texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    resource.res.array.hArray = array;
    cu.cuSurfObjectCreate(&surface, &resource);
    if (which == 0) {
        result = run("", "suld.b.2d.b32.trap %r0, [%h, {16, 0}];", surface, 0, 0);
    } else if (which == 1) {
        result = run("", tex_2d, 12345, 0, 0);
    } else if (which == 2) {
        result = run(".global .texref image;", "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%x, %y}];",
                     0, 0, 0);
    } else if (which == 3) {
        result = run("", "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y, %y, %y}];", texture, 0, 0);
    } else if (which == 4) {
        CUdeviceptr device = 0;
        CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT};
        CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
        cu.cuMemAlloc_v2(&device, (size_t)64 << 20);
        linear.res.linear.devPtr = device;
        linear.res.linear.format = CU_AD_FORMAT_FLOAT;
        linear.res.linear.numChannels = 1;
        linear.res.linear.sizeInBytes = (size_t)64 << 20;
        cu.cuTexObjectCreate(&texture, &linear, &desc, NULL);
        cu.cuMemFree_v2(device);
        result = run("", "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%r0}];", texture, 0, 0);
    } else if (which == 5) {
        cu.cuTexObjectDestroy(texture);
        result = run("", tex_2d, texture, 0, 0);
    } else {
        result = run("", tex_2d, surface, 0, 0);
    }
    printf("fault %s %d\n", names[which], (int)result);
}

static void in_child(void (*section)(void))
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        section();
        fflush(stdout);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        printf("the section ended with status %x\n", (unsigned)status);
}

static const char *const surface_cases[] = {
    "suld.b.2d.v2.b32.trap {%r0, %r1}, [%h, {8, 1}];",
    "suld.b.2d.v2.b32.trap {%r0, %r1}, [%h, {4, 1}];",
    "suld.b.2d.b32.trap %r0, [%h, {2, 1}];",
    "suld.b.2d.b32.clamp %r0, [%h, {400, -1}];",
    "suld.b.2d.b32.clamp %r0, [%h, {-4, 7}];",
    "suld.b.2d.v2.b32.clamp {%r0, %r1}, [%h, {16, 0}];",
    "suld.b.2d.v2.b32.clamp {%r0, %r1}, [%h, {12, 0}];",
    "suld.b.2d.b32.zero %r0, [%h, {16, 0}];",
    "suld.b.2d.v2.b32.zero {%r0, %r1}, [%h, {16, 0}];",
    "suld.b.2d.b32.trap %r0, [%h, {0, 2}];",
    "sust.b.2d.b32.clamp [%h, {16, 9}], 66; suld.b.2d.b32.trap %r0, [%h, {12, 1}];",
    "sust.b.2d.b32.zero [%h, {16, 9}], 66; suld.b.2d.b32.trap %r0, [%h, {12, 1}];",
    "sust.b.2d.b32.trap [%h, {2, 0}], 66;",
    "sust.p.2d.b32.trap [%h, {3, 1}], 66; suld.b.2d.b32.trap %r0, [%h, {12, 1}];",
    "sust.p.2d.b32.clamp [%h, {9, 1}], 66; suld.b.2d.b32.trap %r0, [%h, {12, 1}];",
    "sured.b.add.2d.u32.trap [%h, {8, 0}], 5; suld.b.2d.b32.trap %r0, [%h, {8, 0}];",
    "sured.p.max.2d.b32.trap [%h, {2, 1}], 99; suld.b.2d.b32.trap %r0, [%h, {8, 1}];",
    "sured.b.add.2d.u32.clamp [%h, {40, 0}], 5; suld.b.2d.b32.trap %r0, [%h, {12, 0}];",
    "suq.width.b32 %r0, [%h];",
    "suq.height.b32 %r0, [%h];",
    "suq.depth.b32 %r0, [%h];",
    "suq.array_size.b32 %r0, [%h];",
    "suq.channel_data_type.b32 %r0, [%h];",
    "suq.channel_order.b32 %r0, [%h];",
};

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "usage: probe_textures LIBCUDA\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
#define CU(symbol, base, since, required) *(void **)&cu.symbol = dlsym(library, #symbol);
#include "driver/cuda.def"
    in_child(virtual_memory);
    in_child(arrays);
    in_child(textures);
    in_child(weights);
    in_child(conversions);
    in_child(outside);
    for (size_t i = 0; i < sizeof surface_cases / sizeof surface_cases[0]; i++) {
        surface_text = surface_cases[i];
        in_child(surface_case);
    }
    for (which = 0; which < 7; which++)
        in_child(fault);
    return 0;
}
