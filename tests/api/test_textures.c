/* Arrays, mipmapped arrays, texture and surface objects, references; what kernels read and write through
 * them. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "api_test.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* references */

/* ---- one fetch: a kernel around one instruction ---- */

union word {
    float f;
    int32_t i;
    uint32_t u;
};
#define F(x)            \
    (union word)        \
    {                   \
        .f = (float)(x) \
    }
#define I(x)     \
    (union word) \
    {            \
        .i = (x) \
    }

static CUdeviceptr results; /* four words */

/* Runs `instruction` with %h the handle, %c0 to %c3 the words of `at`, results in %r0 to %r3. */
static CUresult run(const char *before, const char *instruction, CUtexObject handle, const union word at[4])
{
    char ptx[2048];
    CUmodule module;
    CUfunction function;
    snprintf(ptx, sizeof ptx,
             HEADER
             "%s\n.visible .entry fetch(.param .u64 h, .param .u64 out, .param .b32 c0, .param .b32 c1, "
             ".param .b32 c2, .param .b32 c3)\n{\n"
             ".reg .b64 %%h, %%o;\n.reg .b32 %%c<4>;\n.reg .f32 %%f<4>;\n.reg .b32 %%r<4>;\n.reg .pred %%p;\n"
             "ld.param.u64 %%h, [h];\nld.param.u64 %%o, [out];\nld.param.b32 %%c0, [c0];\n"
             "ld.param.b32 %%c1, [c1];\nld.param.b32 %%c2, [c2];\nld.param.b32 %%c3, [c3];\n"
             "mov.b32 %%f0, %%c0;\nmov.b32 %%f1, %%c1;\nmov.b32 %%f2, %%c2;\nmov.b32 %%f3, %%c3;\n"
             "mov.b32 %%r0, 0;\nmov.b32 %%r1, 0;\nmov.b32 %%r2, 0;\nmov.b32 %%r3, 0;\n"
             "%s\nst.global.v4.b32 [%%o], {%%r0, %%r1, %%r2, %%r3};\nret;\n}\n",
             before, instruction);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "fetch"));
    union word c[4] = {{0}, {0}, {0}, {0}};
    if (at != NULL)
        memcpy(c, at, sizeof c);
    void *params[] = {&handle, &results, &c[0], &c[1], &c[2], &c[3]};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CUresult result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS)
        OK(cuModuleUnload(module));
    return result;
}

#define AT(...) ((const union word[4]){__VA_ARGS__})

static void fetch(const char *instruction, CUtexObject handle, const union word at[4], union word out[4])
{
    OK(run("", instruction, handle, at));
    OK(cuMemcpyDtoH(out, results, 16));
}

static void want_f(const char *instruction, CUtexObject handle, const union word at[4], float wanted)
{
    union word out[4];
    fetch(instruction, handle, at, out);
    if (!(fabsf(out[0].f - wanted) < 1e-6f))
        fail_msg("%s: wanted %g, got %g", instruction, (double)wanted, (double)out[0].f);
}

static int setup(void **state)
{
    with_context(state);
    OK(cuMemAlloc(&results, 16));
    return 0;
}

/* ---- arrays ---- */

static CUarray array_new(size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
                         unsigned flags)
{
    CUarray array = NULL;
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = w, .Height = h, .Depth = d, .Format = format, .NumChannels = channels, .Flags = flags};
    OK(cuArray3DCreate(&array, &desc));
    return array;
}

/* Whole array from tightly packed host memory. */
static void fill(CUarray array, const void *from, size_t row_bytes, size_t h, size_t d)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = from,
                                .srcPitch = row_bytes,
                                .srcHeight = h,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes = row_bytes,
                                .Height = h,
                                .Depth = d};
    OK(cuMemcpy3D(&copy));
}

static CUtexObject texture_of(CUarray array, CUaddress_mode mode, CUfilter_mode filter, unsigned flags)
{
    CUtexObject texture = 0;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_TEXTURE_DESC desc = {
        .addressMode = {mode, mode, mode}, .filterMode = filter, .flags = flags, .borderColor = {9, 9, 9, 9}};
    resource.res.array.hArray = array;
    OK(cuTexObjectCreate(&texture, &resource, &desc, NULL));
    return texture;
}

static void test_arrays(void **state)
{
    (void)state;
    CUarray plane, line, volume, other;
    CUDA_ARRAY_DESCRIPTOR small = {
        .Width = 5, .Height = 3, .Format = CU_AD_FORMAT_SIGNED_INT16, .NumChannels = 2};
    CUDA_ARRAY_DESCRIPTOR small_back;
    CUDA_ARRAY3D_DESCRIPTOR back;
    uint32_t in[3][5], out[3][5];
    for (unsigned i = 0; i < 15; i++)
        in[i / 5][i % 5] = i * 17 + 1;
    memset(out, 0, sizeof out);
    OK(cuArrayCreate(&plane, &small));
    OK(cuArrayGetDescriptor(&small_back, plane));
    assert_int_equal(small_back.Width, 5);
    assert_int_equal(small_back.Height, 3);
    assert_int_equal(small_back.NumChannels, 2);
    CUDA_MEMCPY2D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 20,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = plane,
                        .WidthInBytes = 20,
                        .Height = 3};
    OK(cuMemcpy2D(&to));
    /* Columns 1 to 3 of rows 1 and 2, through device memory. */
    CUdeviceptr device;
    OK(cuMemAlloc(&device, 64));
    CUDA_MEMCPY2D from = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = plane,
                          .srcXInBytes = 4,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = device,
                          .dstPitch = 20,
                          .WidthInBytes = 12,
                          .Height = 2};
    OK(cuMemcpy2DUnaligned(&from));
    OK(cuMemcpyDtoH(out, device, 32));
    assert_memory_equal(out[0], &in[1][1], 12);
    assert_memory_equal(out[1], &in[2][1], 12);
    from.WidthInBytes = 20; /* leaves the array */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&from));
    from.WidthInBytes = 12;
    from.Height = 3;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&from));
    OK(cuMemcpyAtoH(out, plane, 4, 12)); /* not one-dimensional: its first row */
    assert_memory_equal(out[0], &in[0][1], 12);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(out, plane, 20, 4)); /* beyond it */

    line = array_new(16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    other = array_new(16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    OK(cuMemcpyHtoA(line, 4, in, 60));
    OK(cuMemcpyAtoA(other, 0, line, 4, 60));
    OK(cuMemcpyAtoD(device, other, 0, 60));
    OK(cuMemcpyDtoA(line, 0, device, 60));
    memset(out, 0, sizeof out);
    OK(cuMemcpyAtoH(out, line, 0, 60));
    assert_memory_equal(in, out, 60);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(out, line, 8, 60));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(out, NULL, 0, 4));

    volume = array_new(2, 2, 3, CU_AD_FORMAT_FLOAT, 1, 0);
    OK(cuArray3DGetDescriptor(&back, volume));
    assert_int_equal(back.Depth, 3);
    fill(volume, in, 8, 2, 3);
    CUDA_MEMCPY3D one = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = volume,
                         .srcY = 1,
                         .srcZ = 2,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = out,
                         .WidthInBytes = 8,
                         .Height = 1,
                         .Depth = 1};
    OK(cuMemcpy3D(&one));
    assert_memory_equal(out, &in[2][0], 8);
    OK(cuArrayDestroy(plane));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(plane));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuMemcpy2D(&to));
    OK(cuArrayDestroy(line)); /* the others go with the context */
    OK(cuMemFree(device));
}

static void refused(CUresult code, size_t w, size_t h, size_t d, int format, unsigned channels,
                    unsigned flags)
{
    CUarray array;
    const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = w,
                                          .Height = h,
                                          .Depth = d,
                                          .Format = (CUarray_format)format,
                                          .NumChannels = channels,
                                          .Flags = flags};
    WANT(code, cuArray3DCreate(&array, &desc));
}

static void test_refused(void **state)
{
    (void)state;
    CUtexObject texture;
    CUsurfObject surface;
    CUdeviceptr device;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT};
    refused(CUDA_ERROR_INVALID_VALUE, 0, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    refused(CUDA_ERROR_INVALID_VALUE, 4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0);
    refused(CUDA_ERROR_INVALID_VALUE, 4, 4, 0, 0x7, 1, 0);
    refused(CUDA_ERROR_NOT_SUPPORTED, 4, 4, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0);
    refused(CUDA_ERROR_INVALID_VALUE, 4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0);
    refused(CUDA_ERROR_INVALID_VALUE, 4, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
    refused(CUDA_ERROR_INVALID_VALUE, 4, 4, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
    refused(CUDA_ERROR_INVALID_VALUE, 131073, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    refused(CUDA_ERROR_INVALID_VALUE, 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0x8000);
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &desc, NULL));
    resource.res.array.hArray = array_new(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    OK(cuSurfObjectCreate(&surface, &resource)); /* SURFACE_LDST is not looked for, on the H200 */
    desc.addressMode[1] = (CUaddress_mode)4;
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &desc, NULL));
    desc.addressMode[1] = CU_TR_ADDRESS_MODE_WRAP;
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(NULL, &resource, &desc, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, NULL, NULL));
    OK(cuTexObjectDestroy(12345)); /* no error, on the H200 */
    OK(cuMemAlloc(&device, 4096));
    CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
    linear.res.linear.devPtr = device + 4;
    linear.res.linear.format = CU_AD_FORMAT_FLOAT;
    linear.res.linear.numChannels = 1;
    linear.res.linear.sizeInBytes = 64;
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &linear, &desc, NULL));
    linear.res.linear.devPtr = device;
    linear.res.linear.sizeInBytes = 8192;
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &linear, &desc, NULL));
}

/* ---- sampling ---- */

static const char tex_2d[] = "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1}];\n"
                             "mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.b32 %r2, %f2; mov.b32 %r3, %f3;";
static const char tex_1d[] = "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0}];\n"
                             "mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.b32 %r2, %f2; mov.b32 %r3, %f3;";
static const char tex_3d[] = "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1, %f2, %f2}];\n"
                             "mov.b32 %r0, %f0;";
static const char fetch_1d[] = "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%c0}];\n"
                               "mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.b32 %r2, %f2; mov.b32 %r3, %f3;";

static void test_point(void **state)
{
    (void)state;
    const float texels[2][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}};
    const unsigned normalized = CU_TRSF_NORMALIZED_COORDINATES;
    CUarray array = array_new(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    fill(array, texels, 16, 2, 1);
    CUtexObject clamp = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    CUtexObject wrap = texture_of(array, CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, normalized);
    CUtexObject mirror = texture_of(array, CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_POINT, normalized);
    CUtexObject border = texture_of(array, CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_POINT, normalized);
    want_f(tex_2d, clamp, AT(F(2.9), F(1.0)), 12);
    want_f(tex_2d, clamp, AT(F(-3), F(9)), 10);
    want_f(tex_2d, clamp, AT(F(1e30), F(-1e30)), 3);
    want_f(tex_2d, clamp, AT(F(NAN), F(0)), 0);
    want_f(tex_2d, wrap, AT(F(1.3), F(0.5)), 11);   /* 0.3 * 4 */
    want_f(tex_2d, wrap, AT(F(-0.1), F(-0.1)), 13); /* 0.9 * 4, 0.9 * 2 */
    want_f(tex_2d, mirror, AT(F(1.1), F(0)), 3);
    want_f(tex_2d, mirror, AT(F(-0.3), F(1.9)), 1); /* 0.3 * 4; 0.1 * 2 */
    want_f(tex_2d, border, AT(F(1.1), F(0)), 9);
    want_f(tex_2d, border, AT(F(0.9), F(0.9)), 13);
    /* Absent channels, the resident predicate, the level-0 forms, an offset, integer coordinates. */
    union word out[4];
    fetch(tex_2d, clamp, AT(F(1), F(0)), out);
    assert_true(out[0].f == 1 && out[1].f == 0 && out[2].f == 0 && out[3].f == 0);
    fetch("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}|%p, [%h, {%f0, %f1}], {1, 1};\n"
          "mov.b32 %r0, %f0;\nselp.b32 %r1, 1, 0, %p;",
          clamp, AT(F(1), F(0)), out);
    assert_true(out[0].f == 12 && out[1].u == 1);
    want_f("tex.base.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1}];\nmov.b32 %r0, %f0;", clamp,
           AT(F(3), F(0)), 3);
    want_f("tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1}], 0f40000000;\nmov.b32 %r0, %f0;",
           clamp, AT(F(3), F(1)), 13);
    want_f("tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%c0, %c1}];\nmov.b32 %r0, %f0;", clamp,
           AT(I(2), I(1)), 12);
    fetch("txq.width.b32 %r0, [%h];\ntxq.height.b32 %r1, [%h];\ntxq.depth.b32 %r2, [%h];\n"
          "txq.normalized_coords.b32 %r3, [%h];",
          wrap, NULL, out);
    assert_true(out[0].u == 4 && out[1].u == 2 && out[2].u == 0 && out[3].u == 1);
    OK(cuTexObjectDestroy(clamp));
    OK(cuTexObjectDestroy(clamp)); /* no error, on the H200 */
    CUDA_TEXTURE_DESC desc;
    CUDA_RESOURCE_DESC resource;
    CUDA_RESOURCE_VIEW_DESC view;
    OK(cuTexObjectGetTextureDesc(&desc, wrap));
    assert_int_equal(desc.flags, normalized);
    OK(cuTexObjectGetResourceDesc(&resource, wrap));
    assert_ptr_equal(resource.res.array.hArray, array);
    OK(cuTexObjectGetResourceViewDesc(&view, wrap)); /* all zero */
}

static void test_linear_filter(void **state)
{
    (void)state;
    const float texels[2][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}}, line[4] = {0, 256, 512, 1024};
    float cube[8];
    CUarray plane = array_new(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUarray row = array_new(4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUarray volume = array_new(2, 2, 2, CU_AD_FORMAT_FLOAT, 1, 0);
    fill(plane, texels, 16, 2, 1);
    OK(cuMemcpyHtoA(row, 0, line, sizeof line));
    for (int i = 0; i < 8; i++)
        cube[i] = (float)i;
    fill(volume, cube, 8, 2, 2);
    CUtexObject texture = texture_of(plane, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    want_f(tex_2d, texture, AT(F(1.5), F(0.5)), 1);
    want_f(tex_2d, texture, AT(F(2.0), F(1.0)), 6.5f);
    want_f(tex_2d, texture, AT(F(0.0), F(0.0)), 0);
    texture = texture_of(row, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    want_f(tex_1d, texture, AT(F(0.5 + 1.0 / 256)), 1);  /* eight bits of fraction … */
    want_f(tex_1d, texture, AT(F(0.5 + 1.0 / 1024)), 0); /* … and no more */
    texture = texture_of(volume, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    want_f(tex_3d, texture, AT(F(1), F(1), F(1)), 3.5f);
    /* The four texels around, one component of each. */
    texture = texture_of(plane, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    union word out[4];
    fetch("tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1}];\n"
          "mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.b32 %r2, %f2; mov.b32 %r3, %f3;",
          texture, AT(F(2), F(1)), out);
    assert_true(out[0].f == 11 && out[1].f == 12 && out[2].f == 2 && out[3].f == 1);
}

static void test_formats(void **state)
{
    (void)state;
    const uint8_t bytes[4] = {255, 51, 0, 128};
    const int16_t shorts[2] = {-32767, 16384};
    const uint16_t halves[1] = {0x3e00};
    union word out[4];
    CUarray array = array_new(1, 1, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    fill(array, bytes, 4, 1, 1);
    CUtexObject texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    fetch(tex_2d, texture, AT(F(0), F(0)), out);
    assert_true(out[0].f == 1 && fabsf(out[1].f - 0.2f) < 1e-6f && out[2].f == 0);
    texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
    fetch("tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%h, {%f0, %f1}];", texture, AT(F(0), F(0)), out);
    assert_true(out[0].u == 255 && out[1].u == 51 && out[2].u == 0 && out[3].u == 128);
    array = array_new(1, 1, 0, CU_AD_FORMAT_SIGNED_INT16, 2, 0);
    fill(array, shorts, 4, 1, 1);
    texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    want_f(tex_2d, texture, AT(F(0), F(0)), -1);
    texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
    fetch("tex.2d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%h, {%f0, %f1}];", texture, AT(F(0), F(0)), out);
    assert_true(out[0].i == -32767 && out[1].i == 16384 && out[2].u == 0 && out[3].u == 0);
    array = array_new(1, 1, 0, CU_AD_FORMAT_HALF, 1, 0);
    fill(array, halves, 2, 1, 1);
    texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    want_f(tex_2d, texture, AT(F(0), F(0)), 1.5f);
    fetch("{ .reg .b32 %x, %y; tex.2d.v2.f16x2.f32 {%x, %y}, [%h, {%f0, %f1}];\nmov.b32 %r0, %x; mov.b32 "
          "%r1, %y; }",
          texture, AT(F(0), F(0)), out);
    assert_true(out[0].u == 0x00003e00 && out[1].u == 0);
}

static void test_layers(void **state)
{
    (void)state;
    float faces[2][6][4];
    for (int i = 0; i < 48; i++)
        ((float *)faces)[i] = (float)(i / 4);
    CUarray array = array_new(2, 2, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    fill(array, faces, 8, 2, 12);
    CUtexObject texture = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    static const char a2d[] =
        "tex.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%c0, %f1, %f2, %f2}];\nmov.b32 %r0, %f0;";
    want_f(a2d, texture, AT(I(7), F(1), F(1)), 7);
    want_f(a2d, texture, AT(I(99), F(1), F(1)), 11); /* the last layer */
    static const char cube[] = "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1, %f2, %f2}];\n"
                               "mov.b32 %r0, %f0;";
    array = array_new(2, 2, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
    fill(array, faces, 8, 2, 6);
    texture =
        texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
    want_f(cube, texture, AT(F(2), F(0.1), F(0)), 0);
    want_f(cube, texture, AT(F(-2), F(0.1), F(0)), 1);
    want_f(cube, texture, AT(F(0), F(3), F(1)), 2);
    want_f(cube, texture, AT(F(0), F(-3), F(1)), 3);
    want_f(cube, texture, AT(F(0), F(0), F(1)), 4);
    want_f(cube, texture, AT(F(0), F(0), F(-1)), 5);
    array = array_new(2, 2, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
    fill(array, faces, 8, 2, 12);
    texture =
        texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
    want_f("tex.acube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%c0, %f1, %f2, %f3}];\nmov.b32 %r0, %f0;",
           texture, AT(I(1), F(-1), F(0), F(0)), 7);
}

static void test_mipmaps(void **state)
{
    (void)state;
    CUmipmappedArray mipmap;
    CUarray level;
    CUtexObject texture;
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 4, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1},
                            back;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUDA_TEXTURE_DESC sampler = {.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR,
                                 .flags = CU_TRSF_NORMALIZED_COORDINATES,
                                 .maxMipmapLevelClamp = 8};
    OK(cuMipmappedArrayCreate(&mipmap, &desc, 99)); /* as many as there can be: 4, 2, 1 */
    for (unsigned i = 0; i < 3; i++) {
        float texels[16];
        OK(cuMipmappedArrayGetLevel(&level, mipmap, i));
        OK(cuArray3DGetDescriptor(&back, level));
        assert_int_equal(back.Width, 4 >> i);
        for (unsigned k = 0; k < 16; k++)
            texels[k] = (float)(100 * i);
        fill(level, texels, back.Width * 4, back.Height, 1);
        OK(cuArrayDestroy(level)); /* the level stays, as on an H200 */
    }
    WANT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mipmap, 3));
    resource.res.mipmap.hMipmappedArray = mipmap;
    OK(cuTexObjectCreate(&texture, &resource, &sampler, NULL));
    static const char at_level[] =
        "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1}], %f2;\nmov.b32 %r0, %f0;";
    want_f(at_level, texture, AT(F(0.5), F(0.5), F(0)), 0);
    want_f(at_level, texture, AT(F(0.5), F(0.5), F(1)), 100);
    want_f(at_level, texture, AT(F(0.5), F(0.5), F(1.5)), 150);
    want_f(at_level, texture, AT(F(0.5), F(0.5), F(7)), 200);
    want_f("tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f0, %f1}], {%f2, %f3}, {%f3, %f3};\n"
           "mov.b32 %r0, %f0;",
           texture, AT(F(0.5), F(0.5), F(0.5), F(0)), 100); /* two texels a step */
    CUDA_RESOURCE_VIEW_DESC view = {.width = 4, .height = 4, .firstMipmapLevel = 1, .lastMipmapLevel = 2};
    WANT(CUDA_ERROR_INVALID_VALUE, /* without a format, whatever the manual says: so an H200 */
         cuTexObjectCreate(&texture, &resource, &sampler, &view));
    view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
    OK(cuTexObjectCreate(&texture, &resource, &sampler, &view));
    want_f(tex_2d, texture, AT(F(0.5), F(0.5)), 100);
    view.lastMipmapLevel = 3;
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &sampler, &view));
    OK(cuMipmappedArrayDestroy(mipmap));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(mipmap));
}

/* Textures over plain memory. */
static void test_memory(void **state)
{
    (void)state;
    CUdeviceptr device;
    CUtexObject texture;
    float texels[64];
    for (int i = 0; i < 64; i++)
        texels[i] = (float)i;
    OK(cuMemAlloc(&device, sizeof texels));
    OK(cuMemcpyHtoD(device, texels, sizeof texels));
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT};
    resource.res.linear.devPtr = device;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 2;
    resource.res.linear.sizeInBytes = 80;
    OK(cuTexObjectCreate(&texture, &resource, &desc, NULL));
    union word out[4];
    fetch(fetch_1d, texture, AT(I(9)), out);
    assert_true(out[0].f == 18 && out[1].f == 19);
    want_f(fetch_1d, texture, AT(I(10)), 0);
    want_f(fetch_1d, texture, AT(I(-1)), 0);
    resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = device;
    resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    resource.res.pitch2D.numChannels = 1;
    resource.res.pitch2D.width = 7;
    resource.res.pitch2D.height = 3;
    resource.res.pitch2D.pitchInBytes = 64;
    desc.addressMode[0] = desc.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
    OK(cuTexObjectCreate(&texture, &resource, &desc, NULL));
    want_f(tex_2d, texture, AT(F(6), F(2)), 38);
    want_f(tex_2d, texture, AT(F(9), F(2)), 38);
    /* Memory that is gone. */
    OK(cuMemFree(device));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("", tex_2d, texture, AT(F(6), F(2))));
}

/* ---- surfaces ---- */

static void test_surfaces(void **state)
{
    (void)state;
    const uint32_t texels[2][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}};
    uint32_t back[2][4];
    union word out[4];
    CUsurfObject surface;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY}, described;
    CUarray array = array_new(4, 2, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    fill(array, texels, 16, 2, 1);
    resource.res.array.hArray = array;
    OK(cuSurfObjectCreate(&surface, &resource));
    OK(cuSurfObjectGetResourceDesc(&described, surface));
    assert_ptr_equal(described.res.array.hArray, array);
    fetch("suld.b.2d.b32.trap %r0, [%h, {%c0, %c1}];\nsuld.b.2d.v2.b32.clamp {%r1, %r2}, [%h, {%c0, %c1}];",
          surface, AT(I(8), I(1)), out); /* bytes */
    assert_true(out[0].u == 12 && out[1].u == 12 && out[2].u == 13);
    fetch("suld.b.2d.b32.clamp %r0, [%h, {%c0, %c1}];\nsuld.b.2d.b32.zero %r1, [%h, {%c0, %c1}];", surface,
          AT(I(400), I(-1)), out);
    assert_true(out[0].u == 3 && out[1].u == 0);
    fetch("sust.b.2d.b32.trap [%h, {4, 0}], %c0;\nsust.b.2d.v2.b16.clamp [%h, {0, 9}], {7, 8};\n"
          "sust.b.2d.b32.zero [%h, {16, 0}], %c0;\nsust.p.2d.b32.trap [%h, {3, 1}], %c1;\n"
          "sured.b.add.2d.u32.trap [%h, {8, 0}], %c1;\nsured.p.max.2d.b32.trap [%h, {2, 1}], 99;\n"
          "suq.width.b32 %r0, [%h];\nsuq.height.b32 %r1, [%h];",
          surface, AT(I(77), I(66)), out);
    assert_true(out[0].u == 4 && out[1].u == 2);
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = array,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = back,
                                .dstPitch = 16,
                                .WidthInBytes = 16,
                                .Height = 2};
    OK(cuMemcpy2D(&copy));
    const uint32_t wanted[2][4] = {{0, 77, 68, 3}, {0x80007, 11, 99, 66}};
    assert_memory_equal(back, wanted, sizeof back);
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS,
         run("", "suld.b.2d.b32.trap %r0, [%h, {%c0, %c1}];", surface, AT(I(16), I(0))));
}

/* The whole of an access is aligned, even where it will be clamped. */
static void test_surface_alignment(void **state)
{
    (void)state;
    CUsurfObject surface;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = array_new(4, 2, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    OK(cuSurfObjectCreate(&surface, &resource));
    OK(run("", "suld.b.2d.v2.b32.clamp {%r0, %r1}, [%h, {%c0, %c1}];", surface, AT(I(16), I(0))));
    WANT(CUDA_ERROR_MISALIGNED_ADDRESS,
         run("", "suld.b.2d.v2.b32.clamp {%r0, %r1}, [%h, {%c0, %c1}];", surface, AT(I(12), I(0))));
}

/* sust.p converts; faces and layers are slices. */
static void test_surface_formats(void **state)
{
    (void)state;
    CUsurfObject surface;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    uint16_t halves[2] = {0, 0};
    union word out[4];
    CUarray array =
        array_new(1, 1, 2, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_LAYERED);
    resource.res.array.hArray = array;
    OK(cuSurfObjectCreate(&surface, &resource));
    fetch("sust.p.a2d.v2.b32.trap [%h, {1, 0, 0, 0}], {%c0, %c1};\nsuld.b.a2d.b32.trap %r0, [%h, {1, 0, 0, "
          "0}];",
          surface, AT(F(1.5), F(-2)), out);
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = array,
                                .srcZ = 1,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = halves,
                                .WidthInBytes = 4,
                                .Height = 1,
                                .Depth = 1};
    OK(cuMemcpy3D(&copy));
    assert_int_equal(halves[0], 0x3e00);
    assert_int_equal(halves[1], 0xc000);
    assert_int_equal(out[0].u, 0xc0003e00);
    OK(cuSurfObjectDestroy(surface));
    OK(cuSurfObjectDestroy(surface)); /* no error, on the H200 */
    WANT(CUDA_ERROR_LAUNCH_FAILED,
         run("", "suld.b.a2d.b32.trap %r0, [%h, {1, 0, 0, 0}];", surface, AT(I(0), I(0)))); /* destroyed */
}

/* ---- references ---- */

static void test_references(void **state)
{
    (void)state;
    static const char ptx[] =
        HEADER ".global .texref image;\n.global .surfref target;\n"
               ".visible .entry fetch(.param .u64 out, .param .f32 x, .param .f32 y)\n{\n"
               ".reg .b64 %o, %h;\n.reg .f32 %f<4>, %g<4>, %x, %y;\n"
               "ld.param.u64 %o, [out];\nld.param.f32 %x, [x];\nld.param.f32 %y, [y];\n"
               "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%x, %y}];\n"
               "mov.u64 %h, image;\n"
               "tex.2d.v4.f32.f32 {%g0, %g1, %g2, %g3}, [%h, {%x, %y}];\n"
               "st.global.f32 [%o], %f0;\nst.global.f32 [%o+4], %g0;\n"
               "sust.b.2d.b32.trap [target, {4, 1}], %f0;\nret;\n}\n";
    const float texels[2][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}};
    CUmodule module;
    CUfunction function;
    CUtexref image, again;
    CUsurfref target;
    CUarray array = array_new(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST), back;
    CUarray written = array_new(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
    fill(array, texels, 16, 2, 1);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "fetch"));
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuModuleGetTexRef(&again, module, "image"));
    assert_ptr_equal(image, again);
    WANT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "target"));
    OK(cuModuleGetSurfRef(&target, module, "target"));
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&back, image));
    OK(cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
    OK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
    OK(cuTexRefSetAddressMode(image, 0, CU_TR_ADDRESS_MODE_WRAP));
    OK(cuTexRefSetAddressMode(image, 1, CU_TR_ADDRESS_MODE_WRAP));
    OK(cuTexRefSetFlags(image, CU_TRSF_NORMALIZED_COORDINATES));
    OK(cuSurfRefSetArray(target, written, 0));
    OK(cuTexRefGetArray(&back, image));
    assert_ptr_equal(back, array);
    float x = 0.5f, y = 0.25f, out[2], line[4];
    void *params[] = {&results, &x, &y};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(out, results, 8));
    assert_true(out[0] == 1.5f && out[1] == 1.5f);
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = written,
                                .srcY = 1,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = line,
                                .WidthInBytes = 16,
                                .Height = 1};
    OK(cuMemcpy2D(&copy));
    assert_true(line[1] == 1.5f);
    /* Plain memory in place of the array. */
    CUdeviceptr device, bound;
    const CUDA_ARRAY_DESCRIPTOR desc = {
        .Width = 4, .Height = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    OK(cuMemAlloc(&device, 1024));
    OK(cuMemsetD32(device, 0x40a00000, 256)); /* 5.0 */
    OK(cuTexRefSetAddress2D(image, &desc, device, 512));
    OK(cuTexRefGetAddress(&bound, image));
    assert_int_equal(bound, device);
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(out, results, 8));
    assert_true(out[0] == 5.0f);
    CUfilter_mode filter;
    unsigned flags;
    OK(cuTexRefGetFilterMode(&filter, image));
    OK(cuTexRefGetFlags(&flags, image));
    assert_int_equal(filter, CU_TR_FILTER_MODE_LINEAR);
    assert_int_equal(flags, CU_TRSF_NORMALIZED_COORDINATES);
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(image, 3, CU_TR_ADDRESS_MODE_WRAP));
    WANT(CUDA_ERROR_INVALID_VALUE, cuTexRefDestroy(image));
    OK(cuModuleUnload(module));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&flags, image));
}

/* A reference that nothing is bound to, and a texture of another geometry, end the kernel. */
static void test_unbound(void **state)
{
    (void)state;
    WANT(CUDA_ERROR_LAUNCH_FAILED,
         run(".global .texref image;",
             "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%f0, %f1}];\nmov.b32 %r0, %f0;", 0, NULL));
}

static void test_geometry(void **state)
{
    (void)state;
    CUtexObject texture = texture_of(array_new(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, 0), CU_TR_ADDRESS_MODE_CLAMP,
                                     CU_TR_FILTER_MODE_POINT, 0);
    WANT(CUDA_ERROR_LAUNCH_FAILED, run("", tex_3d, texture, NULL));
}

/* One dimension of an array of two is its first row, one or two of layers the first layer's; fewer than three
   of three end the kernel. */
static void test_rows(void **state)
{
    (void)state;
    const CUarray rows = array_new(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, 0),
                  layers = array_new(4, 2, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED),
                  volume = array_new(4, 2, 3, CU_AD_FORMAT_FLOAT, 1, 0);
    float values[24];
    for (unsigned i = 0; i < 24; i++)
        values[i] = (float)i;
    fill(rows, values, 16, 2, 1);
    fill(layers, values, 16, 2, 3);
    want_f(tex_1d, texture_of(rows, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0), AT(F(2.5)), 2);
    want_f(tex_1d, texture_of(layers, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0), AT(F(2.5)), 2);
    want_f(tex_2d, texture_of(layers, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0),
           AT(F(2.5), F(1.5)), 6);
    WANT(CUDA_ERROR_LAUNCH_FAILED,
         run("", tex_2d, texture_of(volume, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0), NULL));
}

static void want_sizes(const char *query, size_t height, size_t depth, unsigned flags, bool is_surface,
                       const int wanted[3])
{
    union word out[4];
    CUsurfObject object = 0;
    const CUarray array =
        array_new(4, height, depth, CU_AD_FORMAT_FLOAT, 1, flags | CUDA_ARRAY3D_SURFACE_LDST);
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    if (is_surface)
        OK(cuSurfObjectCreate(&object, &resource));
    else
        object = texture_of(array, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    fetch(query, object, NULL, out);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(out[i].i, wanted[i]);
}

/* Sizes of surfaces by txq, a texture's width by suq; .depth of layers is their number. */
static void test_sizes(void **state)
{
    (void)state;
    static const char txq[] = "txq.width.b32 %r0, [%h];\ntxq.height.b32 %r1, [%h];\ntxq.depth.b32 %r2, [%h];";
    want_sizes(txq, 0, 0, 0, true, (const int[]){4, 0, 0});
    want_sizes(txq, 2, 0, 0, true, (const int[]){4, 2, 0});
    want_sizes(txq, 2, 3, 0, true, (const int[]){4, 2, 3});
    want_sizes(txq, 2, 3, CUDA_ARRAY3D_LAYERED, true, (const int[]){4, 2, 3});
    want_sizes("suq.width.b32 %r0, [%h];\nmov.b32 %r1, 0;\nmov.b32 %r2, 0;", 2, 3, CUDA_ARRAY3D_LAYERED,
               false, (const int[]){4, 0, 0});
}

/* An array of height 1 read as one of one dimension (Dr.Jit), and a surface whose sizes txq asks for (Slang).
 */
static void test_row(void **state)
{
    (void)state;
    union word out[4];
    CUsurfObject surface = 0;
    const CUarray row = array_new(4, 1, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = row};
    fill(row, (const float[]){0, 1, 2, 3}, 16, 1, 1);
    want_f(tex_1d, texture_of(row, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0), AT(F(2.5)), 2);
    OK(cuSurfObjectCreate(&surface, &resource));
    fetch("txq.width.b32 %r0, [%h];\ntxq.height.b32 %r1, [%h];", surface, NULL, out);
    assert_int_equal(out[0].i, 4);
    assert_int_equal(out[1].i, 1);
    WANT(CUDA_ERROR_LAUNCH_FAILED, run("", "txq.filter_mode.b32 %r0, [%h];", surface, NULL));
}

/* Registers wider than the element, as nvcc writes every sust and suld of 8 bits; a sum at a place in texels.
 */
static void test_surface_registers(void **state)
{
    (void)state;
    union word out[4];
    CUsurfObject surface = 0;
    const CUDA_RESOURCE_DESC resource = {
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = array_new(4, 2, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST)};
    OK(cuSurfObjectCreate(&surface, &resource));
    fetch("mov.b32 %r0, 0x12345680;\nsust.b.2d.b32.trap [%h, {%c0, %c1}], %r0;\nmov.b32 %r0, -1;\n"
          "sust.b.2d.b8.trap [%h, {%c0, %c1}], {%r0};\nsuld.b.2d.b32.trap %r1, [%h, {%c0, %c1}];\n"
          "suld.b.2d.b8.trap {%r2}, [%h, {%c0, %c1}];\nmov.b32 %r3, 1;\n"
          "sured.p.add.2d.b32.trap [%h, {%c1, %c1}], %r3;\nsuld.b.2d.b32.trap %r3, [%h, {%c0, %c1}];",
          surface, AT(I(4), I(1)), out);
    assert_int_equal(out[1].i, 0x123456ff);
    assert_int_equal(out[2].i, 0xff);
    assert_int_equal(out[3].i, 0x12345700);
}

/* Two dimensions of three are the first slice; one of two ends the kernel. */
static void test_surface_geometry(void **state)
{
    (void)state;
    union word out[4];
    CUsurfObject surface = 0;
    const CUDA_RESOURCE_DESC resource = {
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = array_new(4, 2, 3, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST)};
    OK(cuSurfObjectCreate(&surface, &resource));
    fetch("mov.b32 %r1, 7;\nsust.b.2d.b32.trap [%h, {%c0, %c1}], %r1;\n"
          "suld.b.3d.b32.trap %r0, [%h, {%c0, %c1, %c2, %c2}];",
          surface, AT(I(4), I(1), I(0)), out);
    assert_int_equal(out[0].i, 7);
    WANT(CUDA_ERROR_LAUNCH_FAILED, run("", "suld.b.1d.b32.trap %r0, [%h, {%c0}];", surface, NULL));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, without_context)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_arrays),
        TEST(test_refused),
        TEST(test_point),
        TEST(test_linear_filter),
        TEST(test_formats),
        TEST(test_layers),
        TEST(test_mipmaps),
        TEST(test_memory),
        TEST(test_surfaces),
        TEST(test_surface_alignment),
        TEST(test_surface_formats),
        TEST(test_references),
        TEST(test_unbound),
        TEST(test_geometry),
        TEST(test_rows),
        TEST(test_sizes),
        TEST(test_row),
        TEST(test_surface_registers),
        TEST(test_surface_geometry),
    };
    return RUN_ALONE(tests);
}
