/* The driver's log as programs read it; external memory; batches. */
#include <stdio.h>
#include <unistd.h>

#include "api_test.h"

static char heard[8][256];
static int n_heard;

static void CUDA_CB hear(void *data, CUlogLevel level, char *message, size_t length)
{
    assert_ptr_equal(data, heard);
    assert_int_equal(level, CU_LOG_LEVEL_ERROR);
    assert_int_equal(length, strlen(message));
    snprintf(heard[n_heard++ % 8], sizeof heard[0], "%s", message);
    CUdevice device = 0; /* a callback may call the driver */
    OK(cuDeviceGet(&device, 0));
}

static size_t lines(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void test_log(void **state)
{
    (void)state;
    CUlogsCallbackHandle handle;
    CUlogIterator from, all = 0;
    CUdeviceptr memory = 0;
    char buffer[32768];
    size_t size = sizeof buffer;
    OK(cuLogsRegisterCallback(hear, heard, &handle));
    OK(cuLogsCurrent(&from, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&memory, 0));
    assert_int_equal(n_heard, 2);
    assert_string_equal(heard[1], "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2");
    OK(cuLogsDumpToMemory(&from, buffer, &size, 0));
    assert_int_equal(lines(buffer), 2);
    assert_int_equal(size, strlen(buffer));
    assert_non_null(strstr(buffer, heard[0]));
    assert_non_null(strstr(buffer, "][CUDA][E] Returning 1"));
    size = sizeof buffer;
    OK(cuLogsDumpToMemory(&from, buffer, &size, 0)); /* nothing new */
    assert_int_equal(size, 0);
    OK(cuDeviceGetCount(&(int){0})); /* a call that succeeds says nothing */
    assert_int_equal(n_heard, 2);

    /* a hundred messages are kept; of what does not fit the newest is given */
    for (int i = 0; i < 120; i++)
        WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(12345));
    size = sizeof buffer;
    OK(cuLogsDumpToMemory(&all, buffer, &size, 0));
    assert_int_equal(lines(buffer), 101);
    assert_non_null(strstr(buffer, "lost"));
    size = 400;
    OK(cuLogsDumpToMemory(NULL, buffer, &size, 0));
    assert_true(size < 400 && lines(buffer) >= 2);
    assert_non_null(strstr(buffer, "from cuMemFree_v2"));
    size = 10;
    WANT(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(NULL, buffer, &size, 0));
    assert_int_equal(size, 0);

    char path[] = "/tmp/clusterlab-test-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    OK(cuLogsDumpToFile(NULL, path, 0));
    const ssize_t got = pread(fd, buffer, sizeof buffer - 1, 0);
    assert_true(got > 0);
    buffer[got] = '\0';
    assert_true(lines(buffer) > 90);
    close(fd);
    unlink(path);
    OK(cuLogsUnregisterCallback(handle));
    const int before = n_heard;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(12345));
    assert_int_equal(n_heard, before);
    WANT(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(handle));
}

/* Two mappings of one exported piece of memory. */
static void test_external(void **state)
{
    (void)state;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle physical;
    CUexternalMemory memory;
    CUdeviceptr first, second;
    int fd = -1;
    uint32_t word = 0;
    OK(cuMemCreate(&physical, 2 << 20, &prop, 0));
    OK(cuMemExportToShareableHandle(&fd, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd, .size = 2 << 20};
    OK(cuImportExternalMemory(&memory, &desc));
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 0, .size = 2 << 20};
    OK(cuExternalMemoryGetMappedBuffer(&first, memory, &buffer));
    buffer = (CUDA_EXTERNAL_MEMORY_BUFFER_DESC){.offset = 4096, .size = 4096};
    OK(cuExternalMemoryGetMappedBuffer(&second, memory, &buffer));
    OK(cuMemsetD32(first + 4096, 0x1234, 1));
    OK(cuMemcpyDtoH(&word, second, 4));
    assert_int_equal(word, 0x1234);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&word, second + 4094, 4)); /* beyond the buffer */
    buffer.size = 2 << 20;
    WANT(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(&second, memory, &buffer));
    OK(cuDestroyExternalMemory(memory));
    WANT(CUDA_ERROR_INVALID_VALUE, cuDestroyExternalMemory(memory));
    OK(cuMemcpyDtoH(&word, first + 4096, 4)); /* buffers stay */
    OK(cuMemFree(second));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(second));
    OK(cuMemFree(first));
    OK(cuMemRelease(physical));
}

static void test_batches(void **state)
{
    (void)state;
    CUdeviceptr managed[2], device;
    CUstream stream;
    size_t sizes[2] = {4096, 4096}, indices[2] = {0, 1};
    CUmemLocation places[2] = {{.type = CU_MEM_LOCATION_TYPE_DEVICE}, {.type = CU_MEM_LOCATION_TYPE_HOST}};
    int where = 77;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++)
        OK(cuMemAllocManaged(&managed[i], 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAlloc(&device, 4096));
    OK(cuMemPrefetchBatchAsync(managed, sizes, 2, places, indices, 2, 0, stream));
    OK(cuMemRangeGetAttribute(&where, sizeof where, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed[1],
                              4096));
    assert_int_equal(where, CU_DEVICE_CPU);
    OK(cuMemDiscardBatchAsync(managed, sizes, 2, 0, stream));
    OK(cuMemDiscardAndPrefetchBatchAsync(managed, sizes, 2, places, indices, 1, 0, stream));
    OK(cuMemRangeGetAttribute(&where, sizeof where, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed[1],
                              4096));
    assert_int_equal(where, 0);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(managed, sizes, 2, places, indices, 3, 0, stream));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(&device, sizes, 1, 0, stream));

    /* a batch of boxes: rows of 8 bytes out of a matrix with rows of 32 */
    unsigned char matrix[4][32], box[2][8];
    for (unsigned i = 0; i < sizeof matrix; i++)
        matrix[i / 32][i % 32] = (unsigned char)i;
    OK(cuMemcpyHtoD(device, matrix, sizeof matrix));
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {8, 2, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = device + 32 + 4;
    op.src.op.ptr.rowLength = 32;
    op.dst.op.ptr.ptr = device + 1024;
    OK(cuMemcpy3DBatchAsync(1, &op, 0, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(box, device + 1024, sizeof box));
    assert_memory_equal(box[0], &matrix[1][4], 8);
    assert_memory_equal(box[1], &matrix[2][4], 8);
    op.extent.depth = 0;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, &op, 0, stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_log),
        IN_CONTEXT(test_external),
        IN_CONTEXT(test_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
