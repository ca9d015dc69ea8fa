/* Whole programs, as the CUDA C++ Programming Guide and the driver API manual write them: vector addition, a
   reduction through distributed shared memory, a cooperative launch, a kernel that waits for the host, a
   launch sized by occupancy. */
#include <pthread.h>
#include <time.h>

#include <stdio.h>

#include "api_test.h"

static const char vector_add[] = HEADER
    ".visible .entry vector_add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)\n{\n"
    "  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
    "  ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc]; ld.param.u32 %r1, [pn];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.u32 %p, %r5, %r1; @%p bra DONE;\n"
    "  mul.wide.u32 %rd4, %r5, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, "
    "%rd4;\n"
    "  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; st.global.f32 [%rd7], "
    "%f3;\n"
    "DONE: ret;\n}\n";

#define N 100003

static void test_vector_add(void **state)
{
    (void)state;
    CUfunction function = load(vector_add, "vector_add");
    float *host = malloc(3 * N * sizeof *host);
    assert_non_null(host);
    for (int i = 0; i < N; i++) {
        host[i] = (float)i;
        host[N + i] = (float)(2 * i + 1);
    }
    CUdeviceptr a, b, c;
    OK(cuMemAlloc(&a, N * 4));
    OK(cuMemAlloc(&b, N * 4));
    OK(cuMemAlloc(&c, N * 4));
    OK(cuMemcpyHtoD(a, host, N * 4));
    OK(cuMemcpyHtoD(b, host + N, N * 4));
    uint32_t n = N;
    void *params[] = {&a, &b, &c, &n};
    OK(cuLaunchKernel(function, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(host + 2 * N, c, N * 4));
    for (int i = 0; i < N; i++)
        assert_true(host[2 * N + i] == (float)(3 * i + 1));

    /* The same through a parameter buffer. */
    struct {
        CUdeviceptr a, b, c;
        uint32_t n;
    } block = {a, a, c, N};
    size_t bytes = 28;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    OK(cuMemsetD32(c, 0, N));
    OK(cuLaunchKernel(function, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH(host + 2 * N, c, N * 4));
    for (int i = 0; i < N; i++)
        assert_true(host[2 * N + i] == (float)(2 * i));
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuMemFree(c));
    free(host);
}

/* Each CTA puts its rank + 1 into its shared memory; rank 0 adds up what its cluster has and adds that to the
 * result. */
static const char cluster_sum[] =
    HEADER ".visible .entry cluster_sum(.param .u64 presult)\n{\n"
           "  .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<3>;\n"
           "  .shared .align 4 .u32 own;\n"
           "  mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, %tid.x;\n"
           "  setp.ne.u32 %p0, %r3, 0; @%p0 bra MEET; add.u32 %r4, %r1, 1; st.shared.u32 [own], %r4;\n"
           "MEET: barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
           "  or.b32 %r5, %r3, %r1; setp.ne.u32 %p1, %r5, 0; @%p1 bra LEAVE;\n"
           "  mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, own;\n"
           "NEXT: mapa.shared::cluster.u32 %r9, %r8, %r6; ld.shared::cluster.u32 %r10, [%r9]; add.u32 %r7, "
           "%r7, %r10;\n"
           "  add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, %r2; @%p2 bra NEXT;\n"
           "  ld.param.u64 %rd1, [presult]; red.global.add.u32 [%rd1], %r7;\n"
           "LEAVE: barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret;\n}\n";

static void test_clusters(void **state)
{
    (void)state;
    CUfunction function = load(cluster_sum, "cluster_sum");
    CUdeviceptr result;
    uint32_t sum = 0;
    OK(cuMemAlloc(&result, 4));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    for (unsigned size = 1; size <= 16; size++) {
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                       .value.clusterDim = {size, 1, 1}};
        CUlaunchConfig config = {.gridDimX = 10 * size,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 64,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .attrs = &attribute,
                                 .numAttrs = 1};
        void *params[] = {&result};
        OK(cuMemsetD32(result, 0, 1));
        OK(cuLaunchKernelEx(&config, function, params, NULL));
        OK(cuMemcpyDtoH(&sum, result, 4));
        assert_int_equal(sum, 10 * size * (size + 1) / 2);
    }
}

/* Waits until the host's word is not zero, then writes it plus one. */
static const char wait_host[] =
    HEADER ".visible .entry wait_host(.param .u64 pflag, .param .u64 pout)\n{\n"
           "  .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
           "  ld.param.u64 %rd1, [pflag]; ld.param.u64 %rd2, [pout];\n"
           "AGAIN: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra AGAIN;\n"
           "  add.u32 %r2, %r1, 1; st.global.u32 [%rd2], %r2; ret;\n}\n";

static void test_kernel_waits_for_host(void **state)
{
    (void)state;
    CUfunction function = load(wait_host, "wait_host");
    uint32_t *flag = NULL, *out = NULL;
    OK(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostAlloc((void **)&out, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = *out = 0;
    CUdeviceptr device_flag, device_out;
    OK(cuMemHostGetDevicePointer(&device_flag, flag, 0));
    OK(cuMemHostGetDevicePointer(&device_out, out, 0));
    void *params[] = {&device_flag, &device_out};
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    __atomic_store_n(flag, 41, __ATOMIC_SEQ_CST);
    OK(cuStreamSynchronize(stream));
    assert_int_equal(*out, 42);
    OK(cuStreamDestroy(stream));
    OK(cuMemFreeHost(flag));
    OK(cuMemFreeHost(out));
}

/* A grid barrier by hand: every CTA adds one and waits for all. Works only when all are resident. */
static const char grid_barrier[] =
    HEADER ".visible .entry grid_barrier(.param .u64 pcount)\n{\n"
           "  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<2>;\n"
           "  ld.param.u64 %rd1, [pcount]; mov.u32 %r1, %nctaid.x; red.global.add.u32 [%rd1], 1;\n"
           "AGAIN: ld.volatile.global.u32 %r2, [%rd1]; setp.lt.u32 %p, %r2, %r1; @%p bra AGAIN;\n"
           "  ret;\n}\n";

static void test_cooperative(void **state)
{
    (void)state;
    CUfunction function = load(grid_barrier, "grid_barrier");
    CUdeviceptr count;
    int blocks = 0, sms = 0;
    uint32_t total = 0;
    OK(cuMemAlloc(&count, 4));
    OK(cuMemsetD32(count, 0, 1));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 1024, 0));
    OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    unsigned all = (unsigned)(blocks * sms);
    void *params[] = {&count};
    OK(cuLaunchCooperativeKernel(function, 64, 1, 1, 1, 1, 1, 0, NULL, params));
    OK(cuMemcpyDtoH(&total, count, 4));
    assert_int_equal(total, 64);
    WANT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
         cuLaunchCooperativeKernel(function, all + 1, 1, 1, 1024, 1, 1, 0, NULL, params));
}

static size_t half_a_kib_per_warp(int threads)
{
    return (size_t)threads / 32 * 512;
}

static void test_occupancy_driven(void **state)
{
    (void)state;
    CUfunction function = load(vector_add, "vector_add");
    int grid = 0, block = 0, sms = 0, blocks = 0;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, half_a_kib_per_warp, 0, 0));
    OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block, half_a_kib_per_warp(block)));
    assert_int_equal(block % 32, 0);
    assert_int_equal(grid, blocks * sms);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 96));
    assert_true(block <= 96 && block > 0);
}

/* A kernel whose grid counts clusters. */
static void test_blocks_are_clusters(void **state)
{
    (void)state;
    CUfunction function =
        load(".version 9.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry count(.param .u64 p) .reqntid 1, 1, 1 .reqnctapercluster 2, 1, 1\n"
             ".blocksareclusters { .reg .b64 a; ld.param.u64 a, [p]; red.global.add.u32 [a], 1;\n"
             "  ret; }\n",
             "count");
    CUdeviceptr word;
    uint32_t ctas = 0;
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    void *params[] = {&word};
    OK(cuLaunchKernel(function, 3, 1, 1, 1, 1, 1, 0, NULL, params, NULL)); /* no multiple of the cluster */
    OK(cuMemcpyDtoH(&ctas, word, 4));
    assert_int_equal(ctas, 6);
}

/* Detail of a fault through the private channel is tested in tests/driver; here what any program sees. */
static void test_faults_stick(void **state)
{
    (void)state;
    CUfunction function = load(vector_add, "vector_add");
    CUdeviceptr nowhere = 16, a;
    uint32_t n = 4;
    void *params[] = {&nowhere, &nowhere, &nowhere, &n};
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&a, 4));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(NULL));
    int count = 0;
    OK(cuDeviceGetCount(&count)); /* needs no context */
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0)); /* it is there still */
    OK(cuDevicePrimaryCtxReset(0));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&a, 4));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuDevicePrimaryCtxRetain(&context, 0)); /* and there is no other */
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxCreate(&context, NULL, 0, 0));
    OK(cuDeviceGetCount(&count));
}

/* Loads that compilers widen to 16 bytes may end behind the CTA's shared memory, as on a GPU; what starts
   there is a fault, and so is a store. */
static CUresult touch_shared(const char *instruction)
{
    char ptx[512];
    snprintf(ptx, sizeof ptx,
             HEADER
             ".extern .shared .align 16 .b8 block[];\n.visible .entry touch()\n{\n.reg .b32 %%r<5>;\n"
             "mov.u32 %%r4, block;\nmov.b32 %%r0, 1; mov.b32 %%r1, 1; mov.b32 %%r2, 1; mov.b32 %%r3, 1;\n"
             "%s\nret;\n}\n",
             instruction);
    CUfunction function = load(ptx, "touch");
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 28, NULL, NULL, NULL));
    return cuCtxSynchronize();
}

static void test_widened_load(void **state)
{
    (void)state;
    OK(touch_shared("ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r4+16];"));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, touch_shared("st.shared.v4.b32 [%r4+16], {%r0, %r1, %r2, %r3};"));
}

static void test_load_behind(void **state)
{
    (void)state;
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, touch_shared("ld.shared.b32 %r0, [%r4+28];"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_widened_load),
        IN_CONTEXT(test_load_behind),
        IN_CONTEXT(test_vector_add),
        IN_CONTEXT(test_clusters),
        IN_CONTEXT(test_kernel_waits_for_host),
        IN_CONTEXT(test_cooperative),
        IN_CONTEXT(test_occupancy_driven),
        IN_CONTEXT(test_faults_stick),
        IN_CONTEXT(test_blocks_are_clusters),
    };
    return RUN_ALONE(tests);
}
