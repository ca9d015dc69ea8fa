/* Memory: allocation, copies in all their shapes, sets, pinned and managed memory, pools, pointer attributes.
 */
#include <stdbool.h>

#include "api_test.h"

static void test_linear(void **state)
{
    (void)state;
    unsigned char host[256], back[256];
    CUdeviceptr a, b;
    size_t before, during, total;
    for (int i = 0; i < 256; i++)
        host[i] = (unsigned char)i;
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAlloc(&a, 256));
    OK(cuMemAlloc(&b, (size_t)64 << 20));
    OK(cuMemGetInfo(&during, &total));
    assert_true(before - during >= (size_t)64 << 20);
    OK(cuMemcpyHtoD(a, host, 256));
    OK(cuMemcpyDtoD(b + 1, a, 255));
    OK(cuMemcpyDtoH(back, b + 1, 255));
    assert_memory_equal(back, host, 255);
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, a + 128, 128)); /* unified: either side may be host memory */
    assert_memory_equal(back, host + 128, 128);
    OK(cuMemcpy(a, (CUdeviceptr)(uintptr_t)host, 1));
    OK(cuMemcpyDtoD(a + 1, a, 200)); /* overlapping */
    OK(cuMemcpyDtoH(back, a, 201));
    assert_memory_equal(back + 1, host, 200);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back, a, 257));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back, a - 1, 2));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(a, a + 200, SIZE_MAX));
    OK(cuMemFree(b));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(b));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(b, host, 1));
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuMemcpy((CUdeviceptr)(uintptr_t)back, b, 1)); /* freed is not host memory */
    OK(cuMemGetInfo(&during, &total));
    OK(cuMemFree(a));
}

static void test_boxes(void **state)
{
    (void)state;
    enum { WIDTH = 20, HEIGHT = 7, DEPTH = 3 };
    unsigned char host[DEPTH][HEIGHT][32], back[DEPTH][HEIGHT][32];
    CUdeviceptr device;
    size_t pitch;
    for (size_t i = 0; i < sizeof host; i++)
        ((unsigned char *)host)[i] = (unsigned char)(i * 7);
    memset(back, 0, sizeof back);
    OK(cuMemAllocPitch(&device, &pitch, WIDTH, HEIGHT * DEPTH, 4));
    assert_int_equal(pitch % 512, 0);
    CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = 32,
                        .srcHeight = HEIGHT,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = device,
                        .dstPitch = pitch,
                        .dstHeight = HEIGHT,
                        .WidthInBytes = WIDTH,
                        .Height = HEIGHT,
                        .Depth = DEPTH};
    OK(cuMemcpy3D(&in));
    /* One inner box back: x 3..12, y 2..5, z 1..2. */
    CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = device,
                         .srcPitch = pitch,
                         .srcHeight = HEIGHT,
                         .srcXInBytes = 3,
                         .srcY = 2,
                         .srcZ = 1,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = 32,
                         .dstHeight = HEIGHT,
                         .dstXInBytes = 3,
                         .dstY = 2,
                         .dstZ = 1,
                         .WidthInBytes = 10,
                         .Height = 4,
                         .Depth = 2};
    OK(cuMemcpy3D(&out));
    for (int z = 0; z < DEPTH; z++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < 32; x++) {
                bool inside = z >= 1 && y >= 2 && y < 6 && x >= 3 && x < 13;
                assert_int_equal(back[z][y][x], inside ? host[z][y][x] : 0);
            }
    CUDA_MEMCPY2D row = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = device,
                         .srcPitch = pitch,
                         .srcY = 3,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = (CUdeviceptr)(uintptr_t)back,
                         .dstPitch = 32,
                         .WidthInBytes = WIDTH,
                         .Height = 2};
    OK(cuMemcpy2D(&row));
    assert_memory_equal(back[0][0], host[0][3], WIDTH);
    assert_memory_equal(back[0][1], host[0][4], WIDTH);
    row.srcPitch = WIDTH - 1;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&row));
    row.srcPitch = pitch;
    row.srcY = HEIGHT * DEPTH - 1; /* the second row lies behind the allocation */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&row));
    row.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    WANT(CUDA_ERROR_INVALID_HANDLE, cuMemcpy2D(&row)); /* no such array */
    row.srcMemoryType = (CUmemorytype)9;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&row));
    in.WidthInBytes = SIZE_MAX / 2;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&in));
}

static void test_sets(void **state)
{
    (void)state;
    CUdeviceptr a;
    uint32_t back[64];
    OK(cuMemAlloc(&a, sizeof back));
    OK(cuMemsetD8(a, 0xab, sizeof back));
    OK(cuMemsetD16(a + 2, 0x1234, 3));
    OK(cuMemsetD32(a + 16, 0xdeadbeef, 5));
    OK(cuMemcpyDtoH(back, a, sizeof back));
    assert_int_equal(back[0], 0x1234abab);
    assert_int_equal(back[1], 0x12341234);
    assert_int_equal(back[2], 0xabababab);
    assert_int_equal(back[4], 0xdeadbeef);
    assert_int_equal(back[8], 0xdeadbeef);
    assert_int_equal(back[9], 0xabababab);
    OK(cuMemsetD2D32(a, 32, 7, 3, 8));
    OK(cuMemcpyDtoH(back, a, sizeof back));
    for (int i = 0; i < 64; i++)
        if (i % 8 < 3)
            assert_int_equal(back[i], 7);
        else
            assert_int_not_equal(back[i], 7);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(a, 32, 7, 9, 2)); /* wider than the pitch */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(a, 32, 7, 8, 9)); /* one row too many */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(a + 1, 7, 1));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(a, 7, SIZE_MAX));
}

static void test_pinned(void **state)
{
    (void)state;
    int *host = NULL, local[1024], back = 0;
    CUdeviceptr device, alias;
    unsigned type = 0;
    OK(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_PORTABLE));
    host[3] = 77;
    OK(cuMemHostGetDevicePointer(&alias, host, 0));
    OK(cuMemcpyDtoH(&back, alias + 12, 4)); /* it is device-visible memory too */
    assert_int_equal(back, 77);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)(host + 5)));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    OK(cuMemFreeHost(host));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));

    local[1000] = 5;
    OK(cuMemHostRegister(local, sizeof local, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&device, local, 0));
    OK(cuMemcpyDtoH(&back, device + 4000, 4));
    assert_int_equal(back, 5);
    WANT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(local + 1, 4, 0));
    OK(cuMemHostUnregister(local));
    WANT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(local));
    WANT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
}

static void test_managed(void **state)
{
    (void)state;
    CUdeviceptr managed;
    unsigned flag = 0;
    OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    int *host = (int *)(uintptr_t)managed; /* one address for both sides */
    OK(cuMemsetD32(managed, 9, 1024));
    OK(cuCtxSynchronize());
    assert_int_equal(host[1023], 9);
    OK(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
    assert_int_equal(flag, 1);
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    OK(cuMemPrefetchAsync(managed, 4096, here, 0, NULL));
    OK(cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(managed, 4097, here, 0, NULL));
    OK(cuMemFree(managed));
}

static void test_pools(void **state)
{
    (void)state;
    CUmemoryPool pool, current;
    CUdeviceptr a, b;
    CUstream stream;
    uint64_t used = 9, high = 0;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    OK(cuStreamCreate(&stream, 0));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuDeviceGetMemPool(&current, 0));
    assert_ptr_equal(pool, current);
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuMemAllocAsync(&a, 1000, stream));
    OK(cuMemAllocFromPoolAsync(&b, 24, pool, stream));
    OK(cuPointerGetAttribute(&current, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a));
    assert_ptr_equal(pool, current);
    OK(cuMemsetD8Async(a, 1, 1000, stream));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 1024);
    OK(cuMemFreeAsync(a, stream));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, stream));
    OK(cuStreamSynchronize(stream));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(a, 1, 1));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
    assert_int_equal(used, 24);
    assert_int_equal(high, 1024);
    OK(cuMemPoolDestroy(pool)); /* with a live allocation in it */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(pool, 0));
    OK(cuMemsetD8(b, 1, 24));
    OK(cuMemFree(b));
    OK(cuDeviceGetMemPool(&current, 0));
    OK(cuStreamDestroy(stream));
}

static void test_pointers(void **state)
{
    CUcontext context = *state, owner = NULL;
    CUdeviceptr a, start = 0;
    size_t bytes = 0;
    int ordinal = 9, local = 0;
    unsigned type = 0;
    OK(cuMemAlloc(&a, 1000));
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, a + 999));
    assert_ptr_equal(owner, context);
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                        CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &start, &bytes, &ordinal};
    OK(cuPointerGetAttributes(4, attributes, values, a + 500));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_true(start == a);
    assert_int_equal(bytes, 1000);
    assert_int_equal(ordinal, 0);
    OK(cuPointerGetAttributes(4, attributes, values,
                              (CUdeviceptr)(uintptr_t)&local)); /* no error for host memory */
    assert_int_equal(type, 0);
    assert_int_equal(ordinal, -2);
    WANT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_linear),  IN_CONTEXT(test_boxes), IN_CONTEXT(test_sets),     IN_CONTEXT(test_pinned),
        IN_CONTEXT(test_managed), IN_CONTEXT(test_pools), IN_CONTEXT(test_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
