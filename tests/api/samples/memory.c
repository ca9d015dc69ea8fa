/* Programs around memory: copies with pitches, another process, pools, managed memory, what a pointer is,
 * variables of modules. */
#include "sample.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- copies of boxes between host, device and arrays ---- */

static unsigned char byte_at(size_t x, size_t y, size_t z)
{
    return (unsigned char)(x * 7 + y * 13 + z * 29 + 1);
}

void sample_pitched_copies(void)
{
    enum { W = 40, H = 12, D = 5, PITCH = 48, ROWS = 15 };
    static unsigned char host[D][ROWS][PITCH], back[D][H][W];
    CUdeviceptr pitched;
    size_t pitch = 0;
    CUarray array;
    CUcontext context = sample_start();
    for (size_t z = 0; z < D; z++)
        for (size_t y = 0; y < ROWS; y++)
            for (size_t x = 0; x < PITCH; x++)
                host[z][y][x] = byte_at(x, y, z);
    OK(cuMemAllocPitch(&pitched, &pitch, W, H * D, 4));
    EXPECT(pitch >= W && pitch % 512 == 0);
    OK(cuMemsetD2D8(pitched, pitch, 0xee, W, H * D));
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = W / 4, .Height = H, .Depth = D, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
    OK(cuArray3DCreate(&array, &desc));
    /* host -> device -> array -> device -> host, with offsets and both pitches */
    CUDA_MEMCPY3D copy = {.srcXInBytes = 4,
                          .srcY = 2,
                          .srcZ = 1,
                          .srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = PITCH,
                          .srcHeight = ROWS,
                          .dstXInBytes = 8,
                          .dstY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = pitched,
                          .dstPitch = pitch,
                          .dstHeight = H,
                          .WidthInBytes = 24,
                          .Height = 9,
                          .Depth = 3};
    OK(cuMemcpy3D(&copy));
    CUDA_MEMCPY3D into = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = pitched,
                          .srcPitch = pitch,
                          .srcHeight = H,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = W,
                          .Height = H,
                          .Depth = D};
    OK(cuMemcpy3D(&into));
    CUDA_MEMCPY3D out = {.srcXInBytes = 8,
                         .srcY = 1,
                         .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = array,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = W,
                         .dstHeight = H,
                         .WidthInBytes = 24,
                         .Height = 9,
                         .Depth = 3};
    OK(cuMemcpy3D(&out));
    int wrong = 0;
    for (size_t z = 0; z < 3; z++)
        for (size_t y = 0; y < 9; y++)
            for (size_t x = 0; x < 24; x++)
                wrong += back[z][y][x] != byte_at(x + 4, y + 2, z + 1);
    SAME(0, wrong);
    /* what was not copied is as it was set */
    unsigned char row[W];
    OK(cuMemcpyDtoH(row, pitched, W));
    for (size_t x = 0; x < W; x++)
        wrong += row[x] != 0xee;
    SAME(0, wrong);
    /* peer copies within one context, two-dimensional copies within the device */
    CUdeviceptr other;
    size_t other_pitch;
    OK(cuMemAllocPitch(&other, &other_pitch, W, H, 16));
    const CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .srcDevice = pitched,
                                .srcPitch = pitch,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = other,
                                .dstPitch = other_pitch,
                                .WidthInBytes = W,
                                .Height = H};
    OK(cuMemcpy2DAsync(&flat, NULL));
    OK(cuMemcpyPeer(other, context, pitched + pitch, context, W));
    OK(cuMemcpyDtoH(row, other, W));
    for (size_t x = 0; x < 24; x++)
        wrong += row[x + 8] != byte_at(x + 4, 2, 1);
    SAME(0, wrong);
    CUDA_MEMCPY2D bad = flat;
    bad.srcPitch = W - 1; /* shorter than a row */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    bad = flat;
    bad.WidthInBytes = other_pitch + 1;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    out.srcXInBytes = W - 8; /* beyond the array */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&out));
    out.srcXInBytes = 2; /* half a texel: nobody minds */
    OK(cuMemcpy3D(&out));
    /* copies of nothing, overlapping ones, one that runs beyond its allocation */
    bad = flat;
    bad.Height = 0;
    OK(cuMemcpy2D(&bad));
    OK(cuMemcpyDtoD(other, other, W));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(other, host, (size_t)64 << 20));
    OK(cuCtxSynchronize());
}

/* ---- memory and an event of a parent, in its child ---- */

struct parcel {
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

static int ends[2];

static void ipc_child(void)
{
    struct parcel parcel;
    CUdeviceptr p = 0, again = 0;
    CUevent event;
    uint32_t words[4] = {0};
    if (read(ends[1], &parcel, sizeof parcel) != sizeof parcel) {
        sample_fail("nothing came from the parent");
        return;
    }
    sample_start();
    OK(cuIpcOpenEventHandle(&event, parcel.event));
    OK(cuIpcOpenMemHandle(&p, parcel.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuStreamWaitEvent(NULL, event, 0));
    OK(cuMemcpyDtoH(words, p, 16));
    SAME(0x01010101, words[0]);
    SAME(0x01010101, words[3]);
    OK(cuMemsetD32(p, 77, 1));
    OK(cuCtxSynchronize());
    OK(cuIpcOpenMemHandle(&again, parcel.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT(again == p);
    OK(cuIpcCloseMemHandle(p));
    OK(cuIpcCloseMemHandle(p));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    OK(cuEventDestroy(event));
}

void sample_ipc(void)
{
    struct parcel parcel;
    CUdeviceptr p;
    CUevent event;
    uint32_t word = 0;
    int status = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        sample_fail("no socket");
        return;
    }
    fflush(stdout);
    const pid_t child = fork(); /* before cuInit: a child of an initialised process could not use CUDA */
    if (child == 0) {
        close(ends[0]);
        sample_child(ipc_child);
        fflush(stdout);
        _exit(0);
    }
    sample_start();
    OK(cuMemAlloc(&p, 4096));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD8Async(p, 1, 4096, NULL));
    OK(cuEventRecord(event, NULL));
    OK(cuIpcGetMemHandle(&parcel.memory, p));
    OK(cuIpcGetEventHandle(&parcel.event, event));
    CUdeviceptr own;
    WANT(CUDA_ERROR_INVALID_CONTEXT,
         cuIpcOpenMemHandle(&own, parcel.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    if (write(ends[0], &parcel, sizeof parcel) != sizeof parcel)
        sample_fail("nothing could be sent");
    waitpid(child, &status, 0);
    SAME(0, status);
    OK(cuMemcpyDtoH(&word, p, 4));
    SAME(77, word);
    OK(cuMemFree(p));
    close(ends[0]);
    close(ends[1]);
}

/* ---- pools ---- */

static void CUDA_CB pause_a_little(void *data)
{
    (void)data;
    usleep(2000);
}

void sample_pools(void)
{
    CUmemoryPool pool, default_pool;
    CUstream a, b;
    CUevent freed;
    CUdeviceptr p = 0, q = 0;
    cuuint64_t value = 0;
    int supported = 0;
    uint32_t words[4] = {0};
    sample_start();
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    SAME(1, supported);
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    OK(cuMemPoolCreate(&pool, &properties));
    value = UINT64_MAX;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&freed, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, a));
    OK(cuMemsetD32Async(p, 5, 4, a));
    OK(cuMemcpyDtoHAsync(words, p, 16, a));
    OK(cuMemFreeAsync(p, a));
    /* the same stream may get the memory again at once, in order */
    OK(cuMemAllocFromPoolAsync(&q, 1 << 20, pool, a));
    OK(cuEventRecord(freed, a));
    OK(cuStreamWaitEvent(b, freed, 0));
    OK(cuMemsetD32Async(q, 6, 4, b));
    OK(cuMemFreeAsync(q, b));
    OK(cuStreamSynchronize(b));
    SAME(5, words[0]);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    SAME(0, value);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    SAME(1 << 20, value);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    EXPECT(value >= 1 << 20); /* kept: the threshold says so */
    OK(cuMemPoolTrimTo(pool, 0));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(0, value);
    value = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    SAME(0, value);
    /* the device's own */
    OK(cuDeviceGetDefaultMemPool(&default_pool, 0));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuMemAllocAsync(&p, 4096, a));
    CUmemoryPool of = NULL;
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    EXPECT(of == pool);
    OK(cuMemFreeAsync(p, a));
    OK(cuDeviceSetMemPool(0, default_pool));
    OK(cuStreamSynchronize(a));
    /* pooled memory may be freed by cuMemFree, ordinary memory by cuMemFreeAsync */
    OK(cuMemAllocAsync(&p, 4096, a));
    OK(cuStreamSynchronize(a));
    OK(cuMemFree(p));
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemFreeAsync(p, a));
    OK(cuStreamSynchronize(a));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, a));
    /* many times as much as there is, one after the other in the order of a stream */
    size_t spare = 0, total = 0;
    OK(cuMemGetInfo(&spare, &total));
    const size_t much = spare / 4 < (size_t)4 << 30 ? spare / 4 : (size_t)4 << 30;
    for (int i = 0; i < 24; i++) {
        OK(cuMemAllocAsync(&p, much + (size_t)(i % 3) * 4096, a));
        OK(cuMemsetD32Async(p, 7, 4, a));
        OK(cuLaunchHostFunc(a, pause_a_little, NULL));
        OK(cuMemFreeAsync(p, a));
    }
    OK(cuStreamSynchronize(a));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default_pool));
    OK(cuMemPoolDestroy(pool));
}

/* ---- managed memory ---- */

void sample_managed(void)
{
    CUdeviceptr p;
    CUstream stream;
    int concurrent = 0, number = 0;
    sample_start();
    OK(cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    OK(cuMemAllocManaged(&p, (size_t)4 << 20, CU_MEM_ATTACH_GLOBAL));
    uint32_t *words = (uint32_t *)(uintptr_t)p;
    words[0] = 1, words[(1 << 20) - 1] = 2;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                        host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    OK(cuMemAdvise(p, (size_t)4 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    OK(cuMemAdvise(p, (size_t)4 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    OK(cuMemAdvise(p, (size_t)4 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    OK(cuMemPrefetchAsync(p, (size_t)4 << 20, device, 0, stream));
    OK(cuMemsetD32Async(p + 4, 9, 1, stream));
    OK(cuStreamSynchronize(stream));
    SAME(1, words[0]);
    SAME(9, words[1]);
    SAME(2, words[(1 << 20) - 1]);
    OK(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096));
    SAME(1, number);
    OK(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 4096));
    SAME(0, number);
    OK(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 4096));
    SAME(0, number);
    OK(cuMemPrefetchAsync(p, (size_t)4 << 20, host, 0, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 4096));
    SAME(CU_DEVICE_CPU, number);
    OK(cuMemAdvise(p, (size_t)4 << 20, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    OK(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096));
    SAME(0, number);
    CUdeviceptr plain;
    OK(cuMemAlloc(&plain, 4096));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(plain, 4096, device, 0, stream));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    OK(cuMemFree(p));
    OK(cuMemFree(plain));
}

/* ---- what a pointer is ---- */

void sample_pointers(void)
{
    CUdeviceptr device, managed;
    void *pinned = NULL, *plain;
    CUcontext context = sample_start(), of = NULL;
    unsigned type = 0, managed_flag = 9, ordinal = 9;
    CUdeviceptr device_pointer = 0, start = 0;
    void *host_pointer = NULL;
    size_t bytes = 0;
    unsigned long long id = 0, other = 0;
    OK(cuMemAlloc(&device, 10000));
    OK(cuMemAllocManaged(&managed, 10000, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostAlloc(&pinned, 10000, CU_MEMHOSTALLOC_PORTABLE));
    plain = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_BUFFER_ID};
    void *places[] = {&of,    &type, &device_pointer, &host_pointer, &managed_flag, &ordinal, &start,
                      &bytes, &id};
    OK(cuPointerGetAttributes(9, wanted, places, device + 100));
    EXPECT(of == context && type == CU_MEMORYTYPE_DEVICE && device_pointer == device + 100);
    EXPECT(host_pointer == NULL && managed_flag == 0 && ordinal == 0 && start == device && bytes == 10000);
    OK(cuPointerGetAttributes(9, wanted, places, (CUdeviceptr)(uintptr_t)pinned + 8));
    EXPECT(type == CU_MEMORYTYPE_HOST && host_pointer == (char *)pinned + 8 && bytes == 10000);
    EXPECT(device_pointer == (CUdeviceptr)(uintptr_t)pinned + 8);
    OK(cuPointerGetAttributes(9, wanted, places, managed));
    EXPECT(managed_flag != 0 && host_pointer == (void *)(uintptr_t)managed);
    /* what CUDA does not know: the plural call answers with zeros, the singular one refuses */
    type = 7, of = context;
    OK(cuPointerGetAttributes(9, wanted, places, (CUdeviceptr)(uintptr_t)plain));
    EXPECT(type == 0 && of == NULL);
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)plain));
    OK(cuMemHostRegister(plain, 8192, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)plain));
    SAME(CU_MEMORYTYPE_HOST, type);
    OK(cuMemHostGetDevicePointer(&device_pointer, plain, 0));
    OK(cuMemsetD8(device_pointer, 3, 8192));
    SAME(3, ((unsigned char *)plain)[8191]);
    OK(cuMemHostUnregister(plain));
    WANT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(plain));
    /* a buffer's number is never used again */
    OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
    OK(cuMemFree(device));
    WANT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
    OK(cuMemAlloc(&device, 10000));
    OK(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
    EXPECT(id != other);
    int sync = 1;
    OK(cuPointerSetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
    OK(cuMemGetAddressRange(&start, &bytes, device + 9999));
    EXPECT(start == device && bytes == 10000);
    WANT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&start, &bytes, (CUdeviceptr)(uintptr_t)plain));
    unsigned flags = 0;
    OK(cuMemHostGetFlags(&flags, pinned));
    SAME(CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE, flags);
}

/* ---- variables of modules ---- */

void sample_globals(void)
{
    static const char ptx[] = HEAD
        ".visible .const .align 4 .u32 table[16384];\n" /* all of the 64 KiB */
        ".visible .global .align 8 .b8 big[131072];\n.visible .global .align 4 .u32 start = 0x1234;\n"
        ".visible .global .align 8 .u64 where = start;\n"
        ".visible .entry sum(.param .u64 p_out, .param .u32 p_at)\n{\n.reg .b64 o, a, t;\n.reg .b32 i, v, "
        "w;\n"
        "ld.param.u64 o, [p_out];\nld.param.u32 i, [p_at];\nmov.u64 t, table;\nmul.wide.u32 a, i, "
        "4;\nadd.u64 t, "
        "t, a;\n"
        "ld.const.u32 v, [t];\nmov.u64 t, big;\nadd.u64 t, t, a;\nld.global.u32 w, [t];\nadd.u32 v, v, w;\n"
        "ld.global.u64 t, [where];\nld.u32 w, [t];\nadd.u32 v, v, w;\nst.global.u32 [o], v;\nret;\n}\n";
    CUmodule module, twin;
    CUfunction sum;
    CUdeviceptr table, big, start, out;
    size_t bytes = 0;
    uint32_t at = 16383, value = 0, word;
    sample_start();
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&sum, module, "sum"));
    OK(cuModuleGetGlobal(&table, &bytes, module, "table"));
    SAME(65536, bytes);
    OK(cuModuleGetGlobal(&big, &bytes, module, "big"));
    SAME(131072, bytes);
    OK(cuModuleGetGlobal(&start, &bytes, module, "start"));
    SAME(4, bytes);
    OK(cuModuleGetGlobal(NULL, &bytes, module, "where"));
    SAME(8, bytes);
    WANT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&out, &bytes, module, "nothing"));
    OK(cuMemAlloc(&out, 4));
    void *params[] = {&out, &at};
    OK(cuMemcpyDtoH(&word, start, 4));
    SAME(0x1234, word);
    for (uint32_t round = 1; round < 4; round++) { /* constants change between launches */
        word = round * 1000;
        OK(cuMemcpyHtoD(table + 4 * at, &word, 4));
        OK(cuMemsetD32(big + 4 * at, round, 1));
        OK(sample_launch(sum, 1, 1, NULL, params));
        OK(cuMemcpyDtoH(&value, out, 4));
        SAME(round * 1001 + 0x1234, value);
    }
    /* a second load has variables of its own */
    CUdeviceptr second;
    OK(cuModuleLoadData(&twin, ptx));
    OK(cuModuleGetGlobal(&second, NULL, twin, "start"));
    EXPECT(second != start);
    OK(cuMemsetD32(second, 5, 1));
    OK(cuMemcpyDtoH(&word, start, 4));
    SAME(0x1234, word);
    int bytes_of = -1;
    OK(cuFuncGetAttribute(&bytes_of, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, sum));
    SAME(65536, bytes_of);
    OK(cuModuleUnload(twin));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(second, 5, 1));
    /* one word too many of constants */
    WANT(CUDA_ERROR_INVALID_PTX,
         cuModuleLoadData(&twin, HEAD ".visible .const .align 4 .u32 t[16385];\n.visible .entry e()\n"
                                      "{ .reg .u32 a; ld.const.u32 a, [t]; ret; }\n"));
    OK(cuModuleUnload(module));
}
