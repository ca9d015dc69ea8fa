/* Programs around launches: vector addition, matrix product with dynamic shared memory, a rotated texture, a
   grid that synchronises, occupancy. */
#include "sample.h"

#include <math.h>

/* ---- vectorAddDrv: by pointers to parameters, by a buffer, by cuLaunchKernelEx ---- */

static const char add_ptx[] = HEAD
    ".visible .entry add(.param .u64 p_a, .param .u64 p_b, .param .u64 p_c, .param .u32 p_n)\n{\n"
    ".reg .pred p;\n.reg .b32 i, j, k, n;\n.reg .b64 o, pa, pb, pc;\n.reg .f32 x, y;\n"
    "mov.u32 i, %ctaid.x;\nmov.u32 j, %ntid.x;\nmov.u32 k, %tid.x;\nmad.lo.u32 i, i, j, k;\n"
    "ld.param.u32 n, [p_n];\nsetp.ge.u32 p, i, n;\n@p ret;\n"
    "ld.param.u64 pa, [p_a];\nld.param.u64 pb, [p_b];\nld.param.u64 pc, [p_c];\nmul.wide.u32 o, i, 4;\n"
    "add.u64 pa, pa, o;\nadd.u64 pb, pb, o;\nadd.u64 pc, pc, o;\n"
    "ld.global.f32 x, [pa];\nld.global.f32 y, [pb];\nadd.f32 x, x, y;\nst.global.f32 [pc], x;\nret;\n}\n";

void sample_vector_add(void)
{
    enum { N = 50000 };
    static float a[N], b[N], c[N];
    CUdeviceptr da, db, dc;
    uint32_t n = N;
    sample_start();
    CUfunction add = sample_load(add_ptx, "add");
    for (int i = 0; i < N; i++)
        a[i] = (float)i, b[i] = (float)(2 * i);
    OK(cuMemAlloc(&da, sizeof a));
    OK(cuMemAlloc(&db, sizeof b));
    OK(cuMemAlloc(&dc, sizeof c));
    OK(cuMemcpyHtoD(da, a, sizeof a));
    OK(cuMemcpyHtoD(db, b, sizeof b));
    for (int way = 0; way < 4; way++) {
        void *params[] = {&da, &db, &dc, &n};
        struct {
            CUdeviceptr a, b, c;
            uint32_t n;
        } block = {da, db, dc, n};
        size_t bytes = 28;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                         CU_LAUNCH_PARAM_END};
        CUlaunchConfig config = {.gridDimX = (N + 255) / 256,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 256,
                                 .blockDimY = 1,
                                 .blockDimZ = 1};
        OK(cuMemsetD32(dc, 0xdead, N));
        memset(c, 0, sizeof c);
        if (way == 0)
            OK(sample_launch(add, (N + 255) / 256, 256, NULL, params));
        else if (way == 1)
            OK(cuLaunchKernel(add, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
        else if (way == 2)
            OK(cuLaunchKernelEx(&config, add, params, NULL));
        else
            OK(cuLaunchKernelEx(&config, add, NULL, extra));
        OK(cuMemcpyDtoH(c, dc, sizeof c));
        int wrong = 0;
        for (int i = 0; i < N; i++)
            wrong += c[i] != 3 * (float)i;
        SAME(0, wrong);
    }
    /* what is refused: both, a block that is too short, no parameters, NULL among them is the program's own
     * fault */
    void *params[] = {&da, &db, &dc, &n};
    size_t bytes = 8;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &da, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemFree(da));
    OK(cuMemFree(db));
    OK(cuMemFree(dc));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(dc));
}

/* ---- matrixMulDrv: tiles of 32 x 32 in dynamic shared memory, more than 48 KiB of it in the end ---- */

static const char mul_ptx[] =
    HEAD ".extern .shared .align 16 .b8 tile[];\n"
         ".visible .entry mul(.param .u64 p_a, .param .u64 p_b, .param .u64 p_c, .param .u32 p_n)\n{\n"
         ".reg .pred p;\n.reg .b32 tx, ty, row, col, n, k, t, sa, sb, x, y, off;\n.reg .b64 pa, pb, pc, "
         "o;\n.reg .f32 sum, u, v;\n"
         "ld.param.u64 pa, [p_a];\nld.param.u64 pb, [p_b];\nld.param.u64 pc, [p_c];\nld.param.u32 n, [p_n];\n"
         "mov.u32 tx, %tid.x;\nmov.u32 ty, %tid.y;\nmov.u32 x, %ctaid.x;\nmov.u32 y, %ctaid.y;\n"
         "mad.lo.u32 row, y, 32, ty;\nmad.lo.u32 col, x, 32, tx;\nmov.f32 sum, 0f00000000;\nmov.u32 t, 0;\n"
         "mov.u32 sa, tile;\nadd.u32 sb, sa, 4096;\n"
         "TILE:\n"
         "add.u32 x, t, tx;\nmad.lo.u32 x, row, n, x;\nmul.wide.u32 o, x, 4;\nadd.u64 o, o, "
         "pa;\nld.global.f32 u, [o];\n"
         "mad.lo.u32 off, ty, 32, tx;\nshl.b32 off, off, 2;\nadd.u32 x, sa, off;\nst.shared.f32 [x], u;\n"
         "add.u32 x, t, ty;\nmad.lo.u32 x, x, n, col;\nmul.wide.u32 o, x, 4;\nadd.u64 o, o, "
         "pb;\nld.global.f32 u, [o];\n"
         "add.u32 x, sb, off;\nst.shared.f32 [x], u;\nbar.sync 0;\nmov.u32 k, 0;\n"
         "INNER:\n"
         "mad.lo.u32 x, ty, 32, k;\nshl.b32 x, x, 2;\nadd.u32 x, x, sa;\nld.shared.f32 u, [x];\n"
         "mad.lo.u32 x, k, 32, tx;\nshl.b32 x, x, 2;\nadd.u32 x, x, sb;\nld.shared.f32 v, [x];\n"
         "fma.rn.f32 sum, u, v, sum;\nadd.u32 k, k, 1;\nsetp.lt.u32 p, k, 32;\n@p bra INNER;\n"
         "bar.sync 0;\nadd.u32 t, t, 32;\nsetp.lt.u32 p, t, n;\n@p bra TILE;\n"
         "mad.lo.u32 x, row, n, col;\nmul.wide.u32 o, x, 4;\nadd.u64 o, o, pc;\nst.global.f32 [o], "
         "sum;\nret;\n}\n";

void sample_matrix_mul(void)
{
    enum { N = 128 };
    static float a[N][N], b[N][N], c[N][N];
    CUdeviceptr da, db, dc;
    uint32_t n = N;
    int most = 0, value = 0;
    sample_start();
    CUfunction mul = sample_load(mul_ptx, "mul");
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = (float)((i * 7 + j) % 5), b[i][j] = (float)((i + 3 * j) % 7);
    OK(cuMemAlloc(&da, sizeof a));
    OK(cuMemAlloc(&db, sizeof b));
    OK(cuMemAlloc(&dc, sizeof c));
    OK(cuMemcpyHtoD(da, a, sizeof a));
    OK(cuMemcpyHtoD(db, b, sizeof b));
    void *params[] = {&da, &db, &dc, &n};
    OK(cuLaunchKernel(mul, N / 32, N / 32, 1, 32, 32, 1, 8192, NULL, params, NULL));
    OK(cuMemcpyDtoH(c, dc, sizeof c));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            wrong += sum != c[i][j];
        }
    SAME(0, wrong);
    /* more than 48 KiB has to be asked for */
    OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, mul));
    SAME(49152, value);
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuLaunchKernel(mul, N / 32, N / 32, 1, 32, 32, 1, (unsigned)most, NULL, params, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuFuncSetAttribute(mul, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1));
    OK(cuFuncSetAttribute(mul, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    OK(cuMemsetD8(dc, 0, sizeof c));
    OK(cuLaunchKernel(mul, N / 32, N / 32, 1, 32, 32, 1, (unsigned)most, NULL, params, NULL));
    float corner = 0;
    OK(cuMemcpyDtoH(&corner, dc + sizeof c - 4, 4));
    EXPECT(corner == c[N - 1][N - 1]);
    OK(cuFuncSetAttribute(mul, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                          CU_SHAREDMEM_CARVEOUT_MAX_SHARED));
    OK(cuFuncSetCacheConfig(mul, CU_FUNC_CACHE_PREFER_SHARED));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, mul));
    EXPECT(value == 1024);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, mul));
    SAME(0, value);
}

/* ---- simpleTextureDrv: a picture through a texture, by normalised coordinates ---- */

static const char rotate_ptx[] = HEAD
    ".visible .entry rotate(.param .u64 p_out, .param .u64 p_image, .param .u32 p_w, .param .u32 p_h, .param "
    ".f32 angle)\n{\n"
    ".reg .b32 x, y, w, h, i;\n.reg .b64 o, t;\n.reg .f32 u, v, fw, fh, s, c, a, tu, tv, e, g;\n"
    "ld.param.u64 o, [p_out];\nld.param.u64 t, [p_image];\nld.param.u32 w, [p_w];\nld.param.u32 h, [p_h];\n"
    "mov.u32 x, %tid.x;\nmov.u32 y, %tid.y;\n"
    "cvt.rn.f32.u32 u, x;\ncvt.rn.f32.u32 v, y;\ncvt.rn.f32.u32 fw, w;\ncvt.rn.f32.u32 fh, h;\n"
    "add.f32 u, u, 0f3f000000;\nadd.f32 v, v, 0f3f000000;\ndiv.rn.f32 u, u, fw;\ndiv.rn.f32 v, v, fh;\n"
    "tex.2d.v4.f32.f32 {tu, tv, e, g}, [t, {u, v}];\n"
    "mad.lo.u32 i, y, w, x;\nmul.wide.u32 t, i, 4;\nadd.u64 o, o, t;\nst.global.f32 [o], tu;\nret;\n}\n";

void sample_texture_rotate(void)
{
    enum { W = 16, H = 8 };
    float image[H][W], back[H][W];
    CUarray array;
    CUtexObject texture;
    CUdeviceptr out;
    uint32_t w = W, h = H;
    float angle = 0;
    sample_start();
    CUfunction rotate = sample_load(rotate_ptx, "rotate");
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            image[y][x] = (float)(100 * y + x);
    const CUDA_ARRAY_DESCRIPTOR desc = {
        .Width = W, .Height = H, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    OK(cuArrayCreate(&array, &desc));
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = image,
                                .srcPitch = sizeof image[0],
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes = sizeof image[0],
                                .Height = H};
    OK(cuMemcpy2D(&copy));
    OK(cuMemAlloc(&out, sizeof image));
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    for (int mode = 0; mode < 2; mode++) {
        const CUDA_TEXTURE_DESC sampler = {.addressMode = {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_WRAP},
                                           .filterMode =
                                               mode == 0 ? CU_TR_FILTER_MODE_POINT : CU_TR_FILTER_MODE_LINEAR,
                                           .flags = CU_TRSF_NORMALIZED_COORDINATES};
        OK(cuTexObjectCreate(&texture, &resource, &sampler, NULL));
        void *params[] = {&out, &texture, &w, &h, &angle};
        OK(cuLaunchKernel(rotate, 1, 1, 1, W, H, 1, 0, NULL, params, NULL));
        OK(cuMemcpyDtoH(back, out, sizeof back));
        int wrong = 0; /* at the texels' centres both filters give the texels */
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                wrong += fabsf(back[y][x] - image[y][x]) > 1e-3f;
        SAME(0, wrong);
        OK(cuTexObjectDestroy(texture));
    }
    OK(cuArrayDestroy(array));
}

/* ---- a grid that waits for all of its CTAs ---- */

static const char sync_ptx[] = HEAD
    ".visible .entry both(.param .u64 p_count, .param .u64 p_out)\n{\n"
    ".reg .pred p;\n.reg .b32 me, n, v, x;\n.reg .b64 c, o, at;\n"
    "ld.param.u64 c, [p_count];\nld.param.u64 o, [p_out];\nmov.u32 me, %ctaid.x;\nmov.u32 n, %nctaid.x;\n"
    "mul.wide.u32 at, me, 4;\nadd.u64 at, at, o;\nadd.u32 v, me, 1;\nst.global.u32 [at], v;\n"
    "fence.acq_rel.gpu;\natom.global.add.u32 v, [c], 1;\n"
    "WAIT:\nld.acquire.gpu.global.u32 v, [c];\nsetp.lt.u32 p, v, n;\n@p bra WAIT;\n"
    /* the neighbour's word is there now */
    "add.u32 x, me, 1;\nrem.u32 x, x, n;\nmul.wide.u32 at, x, 4;\nadd.u64 at, at, o;\nld.global.u32 v, "
    "[at];\n"
    "mul.wide.u32 at, n, 4;\nadd.u64 o, o, at;\nmul.wide.u32 at, me, 4;\nadd.u64 o, o, "
    "at;\nst.global.u32 [o], v;\n"
    "ret;\n}\n";

void sample_grid_sync(void)
{
    int sms = 0, each = 0, supported = 0;
    CUdeviceptr count, out;
    sample_start();
    CUfunction both = sample_load(sync_ptx, "both");
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    SAME(1, supported);
    OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, both, 32, 0));
    EXPECT(each > 0);
    const unsigned grid = (unsigned)(sms * each);
    OK(cuMemAlloc(&count, 4));
    OK(cuMemAlloc(&out, (size_t)grid * 8));
    OK(cuMemsetD32(count, 0, 1));
    void *params[] = {&count, &out};
    OK(cuLaunchCooperativeKernel(both, grid, 1, 1, 1, 1, 1, 0, NULL, params));
    OK(cuCtxSynchronize());
    uint32_t *words = malloc((size_t)grid * 8);
    OK(cuMemcpyDtoH(words, out, (size_t)grid * 8));
    unsigned wrong = 0;
    for (unsigned i = 0; i < grid; i++)
        wrong += words[grid + i] != (i + 1) % grid + 1;
    SAME(0, wrong);
    free(words);
    const unsigned more = grid * 2; /* one thread a CTA: the number of CTAs an SM holds counts */
    WANT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
         cuLaunchCooperativeKernel(both, more, 1, 1, 1, 1, 1, 0, NULL, params));
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig config = {.gridDimX = more,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};
    WANT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchKernelEx(&config, both, params, NULL));
    config.gridDimX = 8;
    OK(cuMemsetD32(count, 0, 1));
    OK(cuLaunchKernelEx(&config, both, params, NULL));
    OK(cuCtxSynchronize());
}

/* ---- occupancy ---- */

static size_t CUDA_CB bytes_of(int threads)
{
    return (size_t)threads * 64;
}

void sample_occupancy(void)
{
    static const char ptx[] =
        HEAD ".visible .entry plain() { ret; }\n"
             ".visible .entry fixed() .reqntid 128, 1, 1 { ret; }\n.visible .entry small() .maxntid 64, 1, 1 "
             "{ ret; }\n"
             ".extern .shared .align 16 .b8 s[];\n"
             ".visible .entry shared() { .reg .b32 a; mov.u32 a, s; st.shared.u32 [a], a; ret; }\n";
    int threads_per_sm = 0, blocks_per_sm = 0, shared_per_sm = 0, reserved = 0, got = 0, grid = 0, block = 0,
        sms = 0;
    sample_start();
    CUfunction plain = sample_load(ptx, "plain"), fixed = sample_load(ptx, "fixed"),
               small = sample_load(ptx, "small"), shared = sample_load(ptx, "shared");
    OK(cuDeviceGetAttribute(&threads_per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    OK(cuDeviceGetAttribute(&blocks_per_sm, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0));
    OK(cuDeviceGetAttribute(&shared_per_sm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0));
    OK(cuDeviceGetAttribute(&reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0));
    OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    for (int threads = 1; threads <= 1024; threads += 31) {
        const int rounded = (threads + 31) / 32 * 32;
        const int by_threads = threads_per_sm / rounded;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, plain, threads, 0));
        SAME(by_threads < blocks_per_sm ? by_threads : blocks_per_sm, got);
    }
    WANT(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, plain, 0, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, plain, 1025, 0));
    SAME(0, got);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, shared, 32, 40000));
    SAME(shared_per_sm / (40000 + reserved), got);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, small, NULL, 0, 0));
    SAME(64, block);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, fixed, NULL, 0, 0));
    SAME(1024, block); /* .reqntid does not count, on an H200 */
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, shared, bytes_of, 0, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, shared, block, bytes_of(block)));
    SAME(got * sms, grid);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, plain, NULL, 0, 200));
    EXPECT(block <= 200);
    /* what a function was not given more of by cuFuncSetAttribute counts as all there is */
    size_t room = 0;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&room, shared, 2, 128));
    EXPECT(room > 0 && room <= 48 * 1024);
}
