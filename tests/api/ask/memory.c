/* Allocation, pinned and registered host memory, what a pointer is, pools, managed and virtual memory. */
#include "ask.h"

#include <sys/mman.h>
#include <unistd.h>

static CUdeviceptr of(const void *host)
{
    return (CUdeviceptr)(uintptr_t)host;
}

void section_memory(void)
{
    CUdeviceptr a = 0, b = 0;
    size_t free_bytes = 0, total = 0, pitch = 0;
    if (!ask_setup())
        return;
    ASK("cuMemGetInfo NULL free", cuMemGetInfo(NULL, &total));
    ASK("cuMemGetInfo NULL total", cuMemGetInfo(&free_bytes, NULL));
    ASK("cuMemGetInfo NULL both", cuMemGetInfo(NULL, NULL));
    ASKF("cuMemGetInfo", cuMemGetInfo(&free_bytes, &total), " %d",
         free_bytes <= total && free_bytes > total / 4);
    cuDeviceTotalMem(&t.size, 0);
    ASKF("total is the device's", CUDA_SUCCESS, " %d", t.size == total);
    ASK("cuMemAlloc NULL", cuMemAlloc(NULL, 16));
    ASK("cuMemAlloc NULL 0", cuMemAlloc(NULL, 0));
    ASK("cuMemAlloc ~0", cuMemAlloc(&a, ~(size_t)0));
    ASK("cuMemAlloc 2^40", cuMemAlloc(&a, (size_t)1 << 40));
    ASK("cuMemAlloc 2^63", cuMemAlloc(&a, (size_t)1 << 63));
    ASKF("cuMemAlloc 1", cuMemAlloc(&a, 1), " %d", (int)(a % 512));
    ASKF("range of 1", cuMemGetAddressRange(&b, &t.size, a), " %d %zu", a == b, t.size);
    ASK("range one beyond", cuMemGetAddressRange(&b, &t.size, a + 1));
    ASK("range 511 beyond", cuMemGetAddressRange(&b, &t.size, a + 511));
    ASKF("range NULL base", cuMemGetAddressRange(NULL, &t.size, a), " %zu", t.size);
    ASKF("range NULL size", cuMemGetAddressRange(&b, NULL, a), " %d", a == b);
    ASK("range NULL both", cuMemGetAddressRange(NULL, NULL, a));
    ASK("range of 0", cuMemGetAddressRange(&b, &t.size, 0));
    ASKF("range of pinned", cuMemGetAddressRange(&b, &t.size, of(o.pinned) + 8), " %d %zu", b == of(o.pinned),
         t.size);
    ASKF("range of managed", cuMemGetAddressRange(&b, &t.size, o.managed + 8), " %d %zu", b == o.managed,
         t.size);
    ASKF("range of pooled", cuMemGetAddressRange(&b, &t.size, o.pooled + 8), " %d %zu", b == o.pooled,
         t.size);
    cuModuleGetGlobal(&t.pointer, NULL, o.module, "counter");
    ASKF("range of a variable", cuMemGetAddressRange(&b, &t.size, t.pointer), " %d", b <= t.pointer);
    ASK("free", cuMemFree(a));
    ASK("free again", cuMemFree(a));
    ASK("range of freed", cuMemGetAddressRange(&b, &t.size, a));
    MUST(cuMemAlloc(&a, 4096));
    ASK("free inner", cuMemFree(a + 512));
    ASK("free one beyond", cuMemFree(a + 4096));
    ASK("free pinned", cuMemFree(of(o.pinned)));
    ASK("free managed inner", cuMemFree(o.managed + 16));
    ASK("free managed", cuMemFree(o.managed));
    ASK("free variable", cuMemFree(t.pointer));
    ASK("free pooled", cuMemFree(o.pooled));
    ASK("free pooled again", cuMemFree(o.pooled));
    ASK("free ~0", cuMemFree(~(CUdeviceptr)0));
    ASK("cuMemFreeHost device memory", cuMemFreeHost((void *)(uintptr_t)a));
    ASK("cuMemFreeHost NULL", cuMemFreeHost(NULL));
    ASK("cuMemFreeHost inner", cuMemFreeHost((char *)o.pinned + 8));
    ASK("cuMemFreeHost", cuMemFreeHost(o.pinned));
    ASK("cuMemFreeHost again", cuMemFreeHost(o.pinned));
    static const size_t widths[] = {1, 511, 512, 513, 5000, 1 << 20};
    for (size_t i = 0; i < COUNT(widths); i++) {
        pitch = 0;
        ASKF(ask_name("cuMemAllocPitch %zu", widths[i]), cuMemAllocPitch(&b, &pitch, widths[i], 3, 16),
             " %zu", pitch);
    }
    for (unsigned element = 0; element < 33; element++)
        if (element < 10 || element > 30 || element == 16)
            ASK(ask_name("cuMemAllocPitch element %u", element), cuMemAllocPitch(&b, &pitch, 64, 2, element));
    ASKF("cuMemAllocPitch range", cuMemGetAddressRange(NULL, &t.size, b), " %zu", t.size);
    ASK("cuMemAllocPitch width 0", cuMemAllocPitch(&b, &pitch, 0, 2, 4));
    ASK("cuMemAllocPitch height 0", cuMemAllocPitch(&b, &pitch, 64, 0, 4));
    ASK("cuMemAllocPitch NULL", cuMemAllocPitch(NULL, &pitch, 64, 2, 4));
    ASK("cuMemAllocPitch NULL pitch", cuMemAllocPitch(&b, NULL, 64, 2, 4));
    ASK("cuMemAllocPitch too wide", cuMemAllocPitch(&b, &pitch, (size_t)1 << 32, 2, 4));
    ASK("cuMemAllocManaged NULL", cuMemAllocManaged(NULL, 16, CU_MEM_ATTACH_GLOBAL));
    ASK("cuMemAllocManaged 0", cuMemAllocManaged(&b, 0, CU_MEM_ATTACH_GLOBAL));
    for (unsigned value = 0; value < 9; value++)
        ASK(ask_name("cuMemAllocManaged flags %u", value), cuMemAllocManaged(&b, 16, value));
    ASK("cuMemAllocManaged 2^50", cuMemAllocManaged(&b, (size_t)1 << 50, CU_MEM_ATTACH_GLOBAL));
}

void section_host_memory(void)
{
    void *host = NULL;
    unsigned value = 0;
    CUdeviceptr d = 0;
    static _Alignas(4096) unsigned char page[3 * 4096];
    if (!ask_setup())
        return;
    ASK("cuMemAllocHost NULL", cuMemAllocHost(NULL, 16));
    ASK("cuMemAllocHost 0", cuMemAllocHost(&host, 0));
    ASK("cuMemAllocHost 2^60", cuMemAllocHost(&host, (size_t)1 << 60));
    ASK("cuMemHostAlloc NULL", cuMemHostAlloc(NULL, 16, 0));
    for (unsigned i = 0; i < 17; i++) {
        host = NULL;
        ASK(ask_name("cuMemHostAlloc flags %u", i), cuMemHostAlloc(&host, 16, i));
        value = 99;
        ASKF(ask_name("cuMemHostGetFlags of %u", i), cuMemHostGetFlags(&value, host), " %u", value);
        ASKF(ask_name("cuMemHostGetDevicePointer of %u", i), cuMemHostGetDevicePointer(&d, host, 0), " %d",
             d == of(host));
    }
    ASK("cuMemHostGetFlags NULL", cuMemHostGetFlags(NULL, o.pinned));
    ASK("cuMemHostGetFlags of NULL", cuMemHostGetFlags(&value, NULL));
    ASKF("cuMemHostGetFlags inner", cuMemHostGetFlags(&value, (char *)o.pinned + 8), " %u", value);
    ASK("cuMemHostGetFlags of the stack", cuMemHostGetFlags(&value, &host));
    ASK("cuMemHostGetFlags of device memory", cuMemHostGetFlags(&value, (void *)(uintptr_t)o.device));
    ASKF("cuMemHostGetFlags of managed", cuMemHostGetFlags(&value, (void *)(uintptr_t)o.managed), "%s", "");
    ASK("cuMemHostGetDevicePointer NULL", cuMemHostGetDevicePointer(NULL, o.pinned, 0));
    ASK("cuMemHostGetDevicePointer of NULL", cuMemHostGetDevicePointer(&d, NULL, 0));
    ASK("cuMemHostGetDevicePointer flags", cuMemHostGetDevicePointer(&d, o.pinned, 1));
    ASKF("cuMemHostGetDevicePointer inner", cuMemHostGetDevicePointer(&d, (char *)o.pinned + 8, 0), " %d",
         (int)(d - of(o.pinned)));
    ASK("cuMemHostGetDevicePointer of device memory",
        cuMemHostGetDevicePointer(&d, (void *)(uintptr_t)o.device, 0));
    ASKF("cuMemHostGetDevicePointer of managed",
         cuMemHostGetDevicePointer(&d, (void *)(uintptr_t)o.managed, 0), "%s", "");
    ASK("cuMemHostRegister NULL", cuMemHostRegister(NULL, 4096, 0));
    ASK("cuMemHostRegister 0 bytes", cuMemHostRegister(page, 0, 0));
    for (unsigned i = 0; i < 17; i++) {
        ASK(ask_name("cuMemHostRegister flags %u", i), cuMemHostRegister(page, 4096, i));
        value = 99;
        ASKF(ask_name("cuMemHostGetFlags of registered %u", i), cuMemHostGetFlags(&value, page), " %u",
             value);
        ASK(ask_name("cuMemHostUnregister of %u", i), cuMemHostUnregister(page));
    }
    ASK("cuMemHostRegister", cuMemHostRegister(page, 4096, 0));
    ASKF("cuMemHostGetDevicePointer of registered", cuMemHostGetDevicePointer(&d, page, 0), " %d",
         d == of(page));
    ASKF("cuMemHostGetDevicePointer inside registered", cuMemHostGetDevicePointer(&d, page + 100, 0), " %d",
         d == of(page + 100));
    ASK("cuMemHostRegister overlapping", cuMemHostRegister(page, 2 * 4096, 0));
    ASK("cuMemHostRegister inside", cuMemHostRegister(page + 16, 64, 0));
    ASK("cuMemHostRegister beside", cuMemHostRegister(page + 4096, 4096, 0));
    ASKF("range of registered", cuMemGetAddressRange(&d, &t.size, of(page + 10)), " %d %zu", d == of(page),
         t.size);
    ASK("cuMemHostUnregister inside", cuMemHostUnregister(page + 16));
    ASK("cuMemHostUnregister NULL", cuMemHostUnregister(NULL));
    ASK("cuMemHostUnregister pinned", cuMemHostUnregister(o.pinned));
    ASK("cuMemFreeHost registered", cuMemFreeHost(page));
    ASK("cuMemHostUnregister", cuMemHostUnregister(page));
    ASK("cuMemHostUnregister again", cuMemHostUnregister(page));
    ASK("cuMemHostRegister unaligned", cuMemHostRegister(page + 5000, 100, 0));
    ASK("cuMemHostRegister another piece of the page", cuMemHostRegister(page + 8192, 100, 0));
    ASK("cuMemHostUnregister unaligned", cuMemHostUnregister(page + 5000));
    ASK("cuMemHostRegister pinned", cuMemHostRegister(o.pinned, 4096, 0));
    ASK("cuMemHostRegister device memory", cuMemHostRegister((void *)(uintptr_t)o.device, 4096, 0));
    ASK("cuMemHostRegister managed", cuMemHostRegister((void *)(uintptr_t)o.managed, 4096, 0));
    ASK("cuMemHostRegister unmapped", cuMemHostRegister((void *)(uintptr_t)0x10000, 4096, 0));
    void *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASK("cuMemHostRegister read-only memory", cuMemHostRegister(constant, 4096, 0));
    ASK("cuMemHostUnregister read-only memory", cuMemHostUnregister(constant));
    ASK("cuMemHostRegister read-only memory, as such",
        cuMemHostRegister(constant, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
    ASK("cuMemHostUnregister read-only memory, as such", cuMemHostUnregister(constant));
}

/* ---- pointers ---- */

static void attributes_of(const char *kind, CUdeviceptr pointer)
{
    for (int attribute = -1; attribute < 24; attribute++) {
        _Alignas(8) unsigned char value[128];
        memset(value, 0xee, sizeof value);
        const char *name = ask_name("%s %d", kind, attribute);
        if (!ask_begin(name))
            continue;
        const CUresult result = cuPointerGetAttribute(value, (CUpointer_attribute)attribute, pointer);
        ask_answer((int)result);
        uint64_t number;
        uint32_t word;
        memcpy(&number, value, sizeof number);
        memcpy(&word, value, sizeof word);
        switch (attribute) {
        case 1: /* the context */
            ask_say(" %s", number == (uint64_t)(uintptr_t)o.context ? "context"
                           : number == 0                            ? "NULL"
                                                                    : "other");
            break;
        case 3:
        case 4:
        case 11: /* addresses, relative to the pointer */
            if (number == 0)
                ask_say(" NULL");
            else if (number == 0xeeeeeeeeeeeeeeee)
                ask_say(" unchanged");
            else
                ask_say(" %lld", (long long)(number - pointer));
            break;
        case 5: /* tokens */
        case 7: /* an id, unlike anything */
        case 20:
            break;
        case 12:
        case 18:
        case 14:
            ask_say(" %llu", (unsigned long long)number);
            break;
        case 17:
        case 19:
            ask_say(" %s", number == 0 ? "NULL" : number == 0xeeeeeeeeeeeeeeee ? "unchanged" : "value");
            break;
        default:
            ask_say(" %x", word);
        }
        ask_say("\n");
    }
}

void section_pointer(void)
{
    static _Alignas(4096) unsigned char page[4096];
    CUdeviceptr freed = 0, reserved = 0, variable = 0;
    if (!ask_setup())
        return;
    MUST(cuMemAlloc(&freed, 1 << 21));
    MUST(cuMemFree(freed));
    MUST(cuMemAddressReserve(&reserved, (size_t)2 << 20, 0, 0, 0));
    MUST(cuModuleGetGlobal(&variable, NULL, o.module, "counter"));
    MUST(cuMemHostRegister(page, 4096, 0));
    attributes_of("device", o.device + 64);
    attributes_of("pinned", of(o.pinned) + 64);
    attributes_of("managed", o.managed + 64);
    attributes_of("pooled", o.pooled + 64);
    attributes_of("registered", of(page) + 64);
    attributes_of("variable", variable);
    attributes_of("stack", of(&freed));
    attributes_of("freed", freed);
    attributes_of("reserved", reserved + 64);
    attributes_of("null", 0);
    attributes_of("wild", (CUdeviceptr)0x123456789abc000);
    ASK("NULL", cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, o.device));
    const CUdeviceptr all[] = {o.device, of(o.pinned), o.managed, of(&freed), 0};
    for (size_t i = 0; i < COUNT(all); i++) {
        CUpointer_attribute attributes[] = {
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            CU_POINTER_ATTRIBUTE_IS_MANAGED,  CU_POINTER_ATTRIBUTE_RANGE_SIZE,
            CU_POINTER_ATTRIBUTE_MAPPED,      CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
            CU_POINTER_ATTRIBUTE_CONTEXT,     CU_POINTER_ATTRIBUTE_HOST_POINTER};
        unsigned type = 77, managed = 77, mapped = 77;
        int ordinal = 77;
        size_t range = 77;
        unsigned long long allowed = 77;
        void *context = &t, *host = &t;
        void *values[] = {&type, &ordinal, &managed, &range, &mapped, &allowed, &context, &host};
        ASKF(ask_name("cuPointerGetAttributes %zu", i),
             cuPointerGetAttributes(COUNT(values), attributes, values, all[i]), " %u %d %u %zu %u %llu %s %s",
             type, ordinal, managed & 0xff, range, mapped & 0xff, allowed,
             context == NULL ? "NULL"
             : context == &t ? "unchanged"
                             : "context",
             host == NULL ? "NULL"
             : host == &t ? "unchanged"
                          : "host");
    }
    CUpointer_attribute one = CU_POINTER_ATTRIBUTE_MEMORY_TYPE, bad = (CUpointer_attribute)77;
    void *value = &t.u;
    ASK("cuPointerGetAttributes of 0", cuPointerGetAttributes(0, &one, &value, o.device));
    ASK("cuPointerGetAttributes NULL", cuPointerGetAttributes(1, NULL, &value, o.device));
    ASK("cuPointerGetAttributes NULL values", cuPointerGetAttributes(1, &one, NULL, o.device));
    ASK("cuPointerGetAttributes 77", cuPointerGetAttributes(1, &bad, &value, o.device));
    for (int attribute = 0; attribute < 22; attribute++)
        for (int on = 0; on < 3; on++) {
            unsigned set = (unsigned)on;
            uint64_t padded[2] = {set};
            ASK(ask_name("cuPointerSetAttribute %d to %d", attribute, on),
                cuPointerSetAttribute(padded, (CUpointer_attribute)attribute, o.device));
        }
    unsigned set = 1;
    ASKF("sync memops is", cuPointerGetAttribute(&t.u, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o.device), " %u",
         t.u);
    ASK("cuPointerSetAttribute NULL",
        cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o.device));
    ASK("cuPointerSetAttribute inner",
        cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o.device + 16));
    ASK("cuPointerSetAttribute of pinned",
        cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, of(o.pinned)));
    ASK("cuPointerSetAttribute of managed",
        cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o.managed));
    ASK("cuPointerSetAttribute of pooled",
        cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o.pooled));
    ASK("cuPointerSetAttribute of the stack",
        cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, of(&set)));
}

/* ---- pools ---- */

void section_pool(void)
{
    CUmemoryPool pool = NULL, second = NULL;
    CUdeviceptr a = 0, b = 0;
    if (!ask_setup())
        return;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    ASK("create NULL", cuMemPoolCreate(NULL, &properties));
    ASK("create NULL properties", cuMemPoolCreate(&pool, NULL));
    for (int type = -1; type < 4; type++) {
        CUmemPoolProps changed = properties;
        changed.allocType = (CUmemAllocationType)type;
        ASK(ask_name("create type %d", type), cuMemPoolCreate(&second, &changed));
    }
    for (int handle = 0; handle < 17; handle = handle == 0 ? 1 : 2 * handle) {
        CUmemPoolProps changed = properties;
        changed.handleTypes = (CUmemAllocationHandleType)handle;
        ASK(ask_name("create handle %d", handle), cuMemPoolCreate(&second, &changed));
    }
    for (int location = 0; location < 6; location++)
        for (int id = -1; id < 2; id++) {
            CUmemPoolProps changed = properties;
            changed.location.type = (CUmemLocationType)location;
            changed.location.id = id;
            ASK(ask_name("create location %d %d", location, id), cuMemPoolCreate(&second, &changed));
        }
    CUmemPoolProps changed = properties;
    changed.reserved[0] = 1;
    ASK("create reserved", cuMemPoolCreate(&second, &changed));
    changed = properties;
    changed.usage = 1;
    ASK("create usage 1", cuMemPoolCreate(&second, &changed));
    changed = properties;
    changed.maxSize = 1 << 20;
    ASK("create of 1 MiB", cuMemPoolCreate(&second, &changed));
    ASK("alloc 2 MiB of it", cuMemAllocFromPoolAsync(&a, 2 << 20, second, o.stream));
    ASK("alloc 40 MiB of it", cuMemAllocFromPoolAsync(&a, 40 << 20, second, o.stream));
    ASK("create", cuMemPoolCreate(&pool, &properties));
    for (int attribute = 0; attribute < 18; attribute++) {
        memset(t.bytes, 0xee, 16);
        const char *name = ask_name("get %d", attribute);
        ASKF(name, cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, t.bytes),
             " %02x%02x%02x%02x %02x", t.bytes[0], t.bytes[1], t.bytes[2], t.bytes[3], t.bytes[4]);
    }
    for (int attribute = 0; attribute < 18; attribute++)
        for (int value = 0; value < 3; value++) {
            cuuint64_t number = (cuuint64_t)value;
            ASK(ask_name("set %d to %d", attribute, value),
                cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, &number));
        }
    cuuint64_t threshold = ~(cuuint64_t)0;
    ASK("set threshold", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    threshold = 0;
    ASKF("get threshold", cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), " %llx",
         (unsigned long long)threshold);
    ASK("get NULL", cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    ASK("set NULL", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    ASK("get of NULL", cuMemPoolGetAttribute(NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, t.bytes));
    ASK("set of NULL", cuMemPoolSetAttribute(NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, t.bytes));
    ASK("trim NULL", cuMemPoolTrimTo(NULL, 0));
    ASK("trim", cuMemPoolTrimTo(pool, 0));
    ASK("alloc from NULL", cuMemAllocFromPoolAsync(&a, 64, NULL, o.stream));
    ASK("alloc into NULL", cuMemAllocFromPoolAsync(NULL, 64, pool, o.stream));
    ASK("alloc 0", cuMemAllocFromPoolAsync(&a, 0, pool, o.stream));
    ASKF("alloc 1", cuMemAllocFromPoolAsync(&a, 1, pool, o.stream), " %d", (int)(a % 512));
    ASKF("range of 1", cuMemGetAddressRange(&b, &t.size, a), " %d %zu", b == a, t.size);
    ASK("alloc 2^46", cuMemAllocFromPoolAsync(&b, (size_t)1 << 46, pool, o.stream));
    ASK("stream after that", cuStreamSynchronize(o.stream));
    for (int attribute = 5; attribute < 9; attribute++) {
        cuuint64_t value = 7;
        cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, &value);
        ASKF(ask_name("get %d in use", attribute), CUDA_SUCCESS, " %llu", (unsigned long long)value);
    }
    ASK("free NULL stream", cuMemFreeAsync(a, NULL));
    ASK("free again", cuMemFreeAsync(a, NULL));
    ASK("free 0", cuMemFreeAsync(0, NULL));
    ASK("free the stack's", cuMemFreeAsync(of(&a), NULL));
    ASK("free pinned", cuMemFreeAsync(of(o.pinned), NULL));
    ASK("free managed", cuMemFreeAsync(o.managed, NULL));
    cuCtxSynchronize();
    for (int attribute = 5; attribute < 9; attribute++) {
        cuuint64_t value = 7;
        cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, &value);
        ASKF(ask_name("get %d unused", attribute), CUDA_SUCCESS, " %llu", (unsigned long long)value);
    }
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                  there = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                  host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ASKF("access", cuMemPoolGetAccess(&access, pool, &here), " %d", (int)access);
    ASK("access of device 1", cuMemPoolGetAccess(&access, pool, &there));
    ASKF("access of the host", cuMemPoolGetAccess(&access, pool, &host), "%s", "");
    ASK("access NULL", cuMemPoolGetAccess(NULL, pool, &here));
    ASK("access NULL location", cuMemPoolGetAccess(&access, pool, NULL));
    ASK("access of NULL", cuMemPoolGetAccess(&access, NULL, &here));
    for (int flags = 0; flags < 5; flags++) {
        CUmemAccessDesc set = {here, (CUmemAccess_flags)flags};
        ASK(ask_name("set access %d", flags), cuMemPoolSetAccess(pool, &set, 1));
    }
    CUmemAccessDesc set = {there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASK("set access of device 1", cuMemPoolSetAccess(pool, &set, 1));
    set.location = host;
    ASK("set access of the host", cuMemPoolSetAccess(pool, &set, 1));
    ASK("set access NULL", cuMemPoolSetAccess(pool, NULL, 1));
    ASK("set access of none", cuMemPoolSetAccess(pool, &set, 0));
    ASK("device pool", cuDeviceSetMemPool(0, pool));
    ASKF("device pool is", cuDeviceGetMemPool(&second, 0), " %d", second == pool);
    ASKF("default pool is not", cuDeviceGetDefaultMemPool(&second, 0), " %d", second == pool);
    MUST(cuMemAllocAsync(&a, 64, o.stream));
    ASKF("allocated there", cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a), " %d",
         second == pool);
    ASK("destroy in use", cuMemPoolDestroy(pool));
    ASKF("device pool after", cuDeviceGetMemPool(&second, 0), " %d", second == o.pool);
    ASK("free after", cuMemFreeAsync(a, o.stream));
    ASK("finish", cuStreamSynchronize(o.stream));
    ASK("destroy NULL", cuMemPoolDestroy(NULL));
    ASK("destroy default", cuMemPoolDestroy(o.pool));
    ASK("alloc async NULL", cuMemAllocAsync(NULL, 64, o.stream));
    ASK("alloc async on legacy", cuMemAllocAsync(&a, 64, CU_STREAM_LEGACY));
    ASK("free of it on per-thread", cuMemFreeAsync(a, CU_STREAM_PER_THREAD));
    ASK("finish all", cuCtxSynchronize());
    CUmemLocation somewhere = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    ASKF("cuMemGetDefaultMemPool", cuMemGetDefaultMemPool(&second, &somewhere, CU_MEM_ALLOCATION_TYPE_PINNED),
         " %d", second == o.pool);
    ASK("cuMemGetDefaultMemPool NULL",
        cuMemGetDefaultMemPool(NULL, &somewhere, CU_MEM_ALLOCATION_TYPE_PINNED));
    ASK("cuMemGetDefaultMemPool type 3", cuMemGetDefaultMemPool(&second, &somewhere, (CUmemAllocationType)3));
    ASKF("cuMemGetMemPool", cuMemGetMemPool(&second, &somewhere, CU_MEM_ALLOCATION_TYPE_PINNED), " %d",
         second == o.pool);
    somewhere.id = 1;
    ASK("cuMemGetMemPool device 1", cuMemGetMemPool(&second, &somewhere, CU_MEM_ALLOCATION_TYPE_PINNED));
}

/* ---- managed memory ---- */

void section_managed(void)
{
    if (!ask_setup())
        return;
    static const int types[] = {CU_MEM_LOCATION_TYPE_INVALID,
                                CU_MEM_LOCATION_TYPE_DEVICE,
                                CU_MEM_LOCATION_TYPE_HOST,
                                CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
                                9};
    for (int advice = 0; advice < 8; advice++)
        for (size_t i = 0; i < COUNT(types); i++)
            for (int id = 0; id < 2; id++) {
                const CUmemLocation location = {.type = (CUmemLocationType)types[i], .id = id};
                ASK(ask_name("cuMemAdvise %d at %d %d", advice, types[i], id),
                    cuMemAdvise(o.managed, DEVICE_BYTES, (CUmem_advise)advice, location));
            }
    for (size_t i = 0; i < COUNT(types); i++)
        for (int id = -1; id < 2; id++) {
            const CUmemLocation location = {.type = (CUmemLocationType)types[i], .id = id};
            ASK(ask_name("cuMemPrefetchAsync to %d %d", types[i], id),
                cuMemPrefetchAsync(o.managed, DEVICE_BYTES, location, 0, o.stream));
        }
    const CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    ASK("finish", cuStreamSynchronize(o.stream));
    ASK("cuMemAdvise of device memory", cuMemAdvise(o.device, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemAdvise of pinned", cuMemAdvise(of(o.pinned), 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemAdvise of the stack", cuMemAdvise(of(&types), 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemAdvise of 0 bytes", cuMemAdvise(o.managed, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemAdvise beyond",
        cuMemAdvise(o.managed, 4 * DEVICE_BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemAdvise inner", cuMemAdvise(o.managed + 100, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemAdvise of NULL", cuMemAdvise(0, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ASK("cuMemPrefetchAsync of device memory", cuMemPrefetchAsync(o.device, 64, device, 0, o.stream));
    ASK("cuMemPrefetchAsync of pinned", cuMemPrefetchAsync(of(o.pinned), 64, device, 0, o.stream));
    ASK("cuMemPrefetchAsync of the stack", cuMemPrefetchAsync(of(&types), 64, device, 0, o.stream));
    ASK("cuMemPrefetchAsync of 0 bytes", cuMemPrefetchAsync(o.managed, 0, device, 0, o.stream));
    ASK("cuMemPrefetchAsync beyond", cuMemPrefetchAsync(o.managed, 4 * DEVICE_BYTES, device, 0, o.stream));
    ASK("cuMemPrefetchAsync inner", cuMemPrefetchAsync(o.managed + 100, 100, device, 0, o.stream));
    ASK("cuMemPrefetchAsync flags", cuMemPrefetchAsync(o.managed, 100, device, 1, o.stream));
    ASK("cuMemPrefetchAsync legacy", cuMemPrefetchAsync(o.managed, 100, device, 0, NULL));
    CUdeviceptr fresh = 0;
    MUST(cuMemAllocManaged(&fresh, DEVICE_BYTES, CU_MEM_ATTACH_GLOBAL));
    for (int round = 0; round < 3; round++) {
        if (round == 1) {
            cuMemAdvise(fresh, DEVICE_BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, device);
            cuMemAdvise(fresh, DEVICE_BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device);
            cuMemAdvise(fresh, DEVICE_BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, device);
        } else if (round == 2) {
            cuMemPrefetchAsync(fresh, DEVICE_BYTES, device, 0, o.stream);
            cuStreamSynchronize(o.stream);
        }
        for (int attribute = 0; attribute < 11; attribute++)
            for (size_t bytes = 2; bytes <= 16; bytes *= 2) {
                memset(t.bytes, 0xee, 16);
                int32_t words[2];
                const char *name =
                    ask_name("cuMemRangeGetAttribute %d, %zu bytes, %d", attribute, bytes, round);
                if (!ask_begin(name))
                    continue;
                const CUresult result = cuMemRangeGetAttribute(
                    t.bytes, bytes, (CUmem_range_attribute)attribute, fresh, DEVICE_BYTES);
                memcpy(words, t.bytes, sizeof words);
                ask_answer((int)result);
                ask_say(" %d %d\n", words[0], words[1]);
            }
    }
    ASK("cuMemRangeGetAttribute NULL",
        cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, fresh, 64));
    ASK("cuMemRangeGetAttribute of 0 bytes",
        cuMemRangeGetAttribute(t.bytes, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, fresh, 0));
    ASK("cuMemRangeGetAttribute of device memory",
        cuMemRangeGetAttribute(t.bytes, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, o.device, 64));
    ASK("cuMemRangeGetAttribute of the stack",
        cuMemRangeGetAttribute(t.bytes, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, of(&fresh), 64));
    CUmem_range_attribute two[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                   CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
    size_t sizes[] = {4, 4};
    void *values[] = {&t.i, &t.j};
    ASKF("cuMemRangeGetAttributes", cuMemRangeGetAttributes(values, sizes, two, 2, fresh, 64), " %d %d", t.i,
         t.j);
    ASK("cuMemRangeGetAttributes of none", cuMemRangeGetAttributes(values, sizes, two, 0, fresh, 64));
    ASK("cuMemRangeGetAttributes NULL", cuMemRangeGetAttributes(NULL, sizes, two, 2, fresh, 64));
    for (unsigned flags = 0; flags < 9; flags++)
        ASK(ask_name("cuStreamAttachMemAsync %u", flags), cuStreamAttachMemAsync(o.stream, fresh, 0, flags));
    ASK("cuStreamAttachMemAsync single on legacy",
        cuStreamAttachMemAsync(NULL, fresh, 0, CU_MEM_ATTACH_SINGLE));
    ASK("cuStreamAttachMemAsync whole length",
        cuStreamAttachMemAsync(o.stream, fresh, DEVICE_BYTES, CU_MEM_ATTACH_GLOBAL));
    ASK("cuStreamAttachMemAsync part", cuStreamAttachMemAsync(o.stream, fresh, 64, CU_MEM_ATTACH_GLOBAL));
    ASK("cuStreamAttachMemAsync inner",
        cuStreamAttachMemAsync(o.stream, fresh + 64, 0, CU_MEM_ATTACH_GLOBAL));
    ASK("cuStreamAttachMemAsync of device memory",
        cuStreamAttachMemAsync(o.stream, o.device, 0, CU_MEM_ATTACH_GLOBAL));
    ASK("cuStreamAttachMemAsync of the stack",
        cuStreamAttachMemAsync(o.stream, of(&t), 64, CU_MEM_ATTACH_GLOBAL));
    ASK("cuStreamAttachMemAsync of NULL", cuStreamAttachMemAsync(o.stream, 0, 0, CU_MEM_ATTACH_GLOBAL));
}

/* ---- virtual memory ---- */

void section_virtual_memory(void)
{
    const size_t chunk = (size_t)2 << 20;
    CUdeviceptr at = 0, other = 0;
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    if (!ask_setup())
        return;
    for (int option = 0; option < 3; option++) {
        t.size = 0;
        ASKF(ask_name("granularity %d", option),
             cuMemGetAllocationGranularity(&t.size, &properties, (CUmemAllocationGranularity_flags)option),
             " %zu", t.size);
    }
    ASK("granularity NULL",
        cuMemGetAllocationGranularity(NULL, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ASK("granularity NULL properties",
        cuMemGetAllocationGranularity(&t.size, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    for (int location = 0; location < 6; location++)
        for (int id = 0; id < 2; id++) {
            CUmemAllocationProp changed = properties;
            changed.location.type = (CUmemLocationType)location;
            changed.location.id = id;
            t.size = 0;
            ASKF(ask_name("granularity location %d %d", location, id),
                 cuMemGetAllocationGranularity(&t.size, &changed, CU_MEM_ALLOC_GRANULARITY_MINIMUM), " %zu",
                 t.size);
            ASK(ask_name("create location %d %d", location, id), cuMemCreate(&handle, chunk, &changed, 0));
        }
    ASK("create NULL", cuMemCreate(NULL, chunk, &properties, 0));
    ASK("create NULL properties", cuMemCreate(&handle, chunk, NULL, 0));
    ASK("create flags", cuMemCreate(&handle, chunk, &properties, 1));
    ASK("create 0", cuMemCreate(&handle, 0, &properties, 0));
    ASK("create of 1000", cuMemCreate(&handle, 1000, &properties, 0));
    ASK("create of 64 KiB", cuMemCreate(&handle, 65536, &properties, 0));
    ASK("create of 2^46", cuMemCreate(&handle, (size_t)1 << 46, &properties, 0));
    for (int type = 0; type < 4; type++) {
        CUmemAllocationProp changed = properties;
        changed.type = (CUmemAllocationType)type;
        ASK(ask_name("create type %d", type), cuMemCreate(&again, chunk, &changed, 0));
    }
    for (int type = 0; type < 17; type = type == 0 ? 1 : 2 * type) {
        CUmemAllocationProp changed = properties;
        changed.requestedHandleTypes = (CUmemAllocationHandleType)type;
        ASK(ask_name("create handle type %d", type), cuMemCreate(&again, chunk, &changed, 0));
    }
    for (int field = 0; field < 4; field++)
        for (int value = 1; value < 3; value++) {
            CUmemAllocationProp changed = properties;
            if (field == 0)
                changed.allocFlags.compressionType = (unsigned char)value;
            else if (field == 1)
                changed.allocFlags.gpuDirectRDMACapable = (unsigned char)value;
            else if (field == 2)
                changed.allocFlags.usage = (unsigned short)value;
            else
                changed.allocFlags.reserved[0] = (unsigned char)value;
            ASK(ask_name("create field %d = %d", field, value), cuMemCreate(&again, chunk, &changed, 0));
        }
    ASK("create", cuMemCreate(&handle, chunk, &properties, 0));
    ASK("reserve NULL", cuMemAddressReserve(NULL, chunk, 0, 0, 0));
    ASK("reserve 0", cuMemAddressReserve(&at, 0, 0, 0, 0));
    ASK("reserve 1000", cuMemAddressReserve(&at, 1000, 0, 0, 0));
    ASK("reserve 4096", cuMemAddressReserve(&at, 4096, 0, 0, 0));
    ASK("reserve 64 KiB", cuMemAddressReserve(&at, 65536, 0, 0, 0));
    ASK("reserve flags", cuMemAddressReserve(&at, chunk, 0, 0, 1));
    static const size_t alignments[] = {
        1, 3, 512, 4096, 65536, (size_t)2 << 20, (size_t)3 << 20, (size_t)1 << 30};
    for (size_t i = 0; i < COUNT(alignments); i++)
        ASKF(ask_name("reserve alignment %zu", alignments[i]),
             cuMemAddressReserve(&at, chunk, alignments[i], 0, 0), " %d", (int)(at % chunk));
    ASK("reserve 2^60", cuMemAddressReserve(&at, (size_t)1 << 60, 0, 0, 0));
    ASKF("reserve", cuMemAddressReserve(&at, 4 * chunk, 0, 0, 0), " %d", (int)(at % chunk));
    ASKF("reserve at the same", cuMemAddressReserve(&other, 4 * chunk, 0, at, 0), " %d", other == at);
    ASKF("reserve at an odd address", cuMemAddressReserve(&other, chunk, 0, at + 4096, 0), " %d",
         other == at);
    ASK("map offset", cuMemMap(at, chunk, chunk, handle, 0));
    ASK("map flags", cuMemMap(at, chunk, 0, handle, 1));
    ASK("map 0", cuMemMap(at, 0, 0, handle, 0));
    ASK("map half", cuMemMap(at, chunk / 2, 0, handle, 0));
    ASK("map more", cuMemMap(at, 2 * chunk, 0, handle, 0));
    ASK("map misaligned", cuMemMap(at + 4096, chunk, 0, handle, 0));
    ASK("map outside", cuMemMap(at + 4 * chunk, chunk, 0, handle, 0));
    ASK("map over device memory", cuMemMap(o.device & ~(CUdeviceptr)(chunk - 1), chunk, 0, handle, 0));
    ASK("map handle 0", cuMemMap(at, chunk, 0, 0, 0));
    ASK("map", cuMemMap(at, chunk, 0, handle, 0));
    ASK("map again", cuMemMap(at, chunk, 0, handle, 0));
    ASK("map a second time elsewhere", cuMemMap(at + chunk, chunk, 0, handle, 0));
    CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned long long flags = 9;
    ASKF("access before", cuMemGetAccess(&flags, &access.location, at), " %llu", flags);
    ASK("set without access", cuMemsetD8(at, 1, 16));
    ASK("set access of 0", cuMemSetAccess(at, 0, &access, 1));
    ASK("set access of part", cuMemSetAccess(at, chunk / 2, &access, 1));
    ASK("set access of too much", cuMemSetAccess(at, 4 * chunk, &access, 1));
    ASK("set access NULL", cuMemSetAccess(at, chunk, NULL, 1));
    ASK("set access of none", cuMemSetAccess(at, chunk, &access, 0));
    for (int value = 0; value < 5; value++) {
        CUmemAccessDesc changed = {properties.location, (CUmemAccess_flags)value};
        ASK(ask_name("set access %d", value), cuMemSetAccess(at, chunk, &changed, 1));
        ASKF(ask_name("access after %d", value), cuMemGetAccess(&flags, &access.location, at), " %llu",
             flags);
    }
    access.location.id = 1;
    ASK("set access of device 1", cuMemSetAccess(at, chunk, &access, 1));
    access.location.id = 0;
    ASK("set access", cuMemSetAccess(at, 2 * chunk, &access, 1));
    ASK("use", cuMemsetD8(at, 1, 16));
    ASKF("range", cuMemGetAddressRange(&other, &t.size, at + 100), " %d %zu", other == at, t.size);
    ASKF("range of the second", cuMemGetAddressRange(&other, &t.size, at + chunk + 100), " %d %zu",
         other == at + chunk, t.size);
    ASK("set across both", cuMemsetD8(at, 1, 2 * chunk));
    ASK("cuMemFree", cuMemFree(at));
    ASK("retain", cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 5)));
    ASKF("same handle", CUDA_SUCCESS, " %d", again == handle);
    ASK("retain of device memory", cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)o.device));
    ASK("retain NULL", cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)at));
    CUmemAllocationProp read = {0};
    ASKF("properties", cuMemGetAllocationPropertiesFromHandle(&read, handle), " %d %d %d %d %d %d",
         (int)read.type, (int)read.requestedHandleTypes, (int)read.location.type, read.location.id,
         read.allocFlags.compressionType, read.allocFlags.gpuDirectRDMACapable);
    ASK("properties NULL", cuMemGetAllocationPropertiesFromHandle(NULL, handle));
    int descriptor = -1;
    ASK("export without type",
        cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK("free reserved in use", cuMemAddressFree(at, 4 * chunk));
    ASK("unmap half", cuMemUnmap(at, chunk / 2));
    ASK("unmap inner", cuMemUnmap(at + 4096, chunk));
    ASK("release", cuMemRelease(handle));
    ASK("release again", cuMemRelease(handle));
    ASK("use after release", cuMemsetD8(at, 1, 16));
    ASK("unmap", cuMemUnmap(at, 2 * chunk));
    ASK("unmap again", cuMemUnmap(at, chunk));
    ASK("use after unmap", cuMemsetD8(at, 1, 16));
    ASK("free part", cuMemAddressFree(at, chunk));
    ASK("free inner", cuMemAddressFree(at + chunk, chunk));
    ASK("free", cuMemAddressFree(at, 4 * chunk));
    ASK("free again", cuMemAddressFree(at, 4 * chunk));
    ASK("free of 0", cuMemAddressFree(0, 0));
    ASK("release 0", cuMemRelease(0));
}
