/* Calls of features that the emulated device does not have: checkpoints of processes, multicast objects,
   decompression, notifications, flushes of RDMA writes, descriptors of address ranges, atomics of the host
   and of peers. Arguments are looked at as an H200's driver looks at them
   (tests/api/data/h200_resources.txt). */
#include "emu/api.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- "CUDA Checkpointing": this process is running; others cannot be asked ---- */

static CUresult enter_process(const char *call, int pid, bool with_place)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(with_place);
    if (pid == (int)getpid())
        return CUDA_SUCCESS;
    if (pid <= 0 || kill(pid, 0) != 0)
        return api_fail(CUDA_ERROR_OPERATING_SYSTEM, "no process %d", pid);
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "other processes cannot be asked");
}

CUresult CUDAAPI cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    CUresult result = enter_process(__func__, pid, state != NULL);
    if (result != CUDA_SUCCESS)
        return result;
    *state = CU_PROCESS_STATE_RUNNING;
    return api_leave();
}

CUresult CUDAAPI cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    CUresult result = enter_process(__func__, pid, tid != NULL);
    if (result != CUDA_SUCCESS)
        return result;
    *tid = (int)syscall(SYS_gettid);
    return api_leave();
}

CUresult CUDAAPI cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    (void)args;
    CUresult result = enter_process(__func__, pid, true);
    return result != CUDA_SUCCESS ? result
                                  : api_fail(CUDA_ERROR_NOT_SUPPORTED, "checkpoints are not emulated");
}

static CUresult while_running(const char *call, int pid)
{
    CUresult result = enter_process(call, pid, true);
    return result != CUDA_SUCCESS ? result : api_fail(CUDA_ERROR_ILLEGAL_STATE, "the process is running");
}

CUresult CUDAAPI cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    (void)args;
    return while_running(__func__, pid);
}

CUresult CUDAAPI cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    (void)args;
    return while_running(__func__, pid);
}

CUresult CUDAAPI cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    (void)args;
    return while_running(__func__, pid);
}

/* ---- "Multicast Object Management": CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0 ---- */

static CUresult multicast(const char *call)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "multicast objects need several devices: one is emulated");
}

CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
{
    (void)mcHandle, (void)prop;
    return multicast(__func__);
}

CUresult CUDAAPI cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                           CUmulticastGranularity_flags option)
{
    (void)granularity, (void)prop, (void)option;
    return multicast(__func__);
}

CUresult CUDAAPI cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)
{
    (void)mcHandle, (void)dev;
    return multicast(__func__);
}

CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                    CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                                    unsigned long long flags)
{
    (void)mcHandle, (void)mcOffset, (void)memHandle, (void)memOffset, (void)size, (void)flags;
    return multicast(__func__);
}

CUresult CUDAAPI cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                     CUdeviceptr memptr, size_t size, unsigned long long flags)
{
    (void)mcHandle, (void)mcOffset, (void)memptr, (void)size, (void)flags;
    return multicast(__func__);
}

CUresult CUDAAPI cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                                   size_t size)
{
    (void)mcHandle, (void)dev, (void)mcOffset, (void)size;
    return multicast(__func__);
}

/* ---- RDMA, descriptors of ranges, decompression ---- */

/* Nothing writes to the device from outside. */
CUresult CUDAAPI cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                            CUflushGPUDirectRDMAWritesScope scope)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                 scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
    return api_leave();
}

CUresult CUDAAPI cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                               CUmemRangeHandleType handleType, unsigned long long flags)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    API_REQUIRE(handle != NULL && handleType == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD && flags <= 1);
    API_REQUIRE(dptr != 0 && size > 0 && dptr % page == 0 && size % page == 0 &&
                api_memory(dptr, size) != NULL);
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "there are no dma-bufs of an emulated device's memory");
}

/* CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK is 0, as on the H200. */
CUresult CUDAAPI cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count,
                                           unsigned int flags, size_t *errorIndex, CUstream stream)
{
    API_ENTER_CONTEXT(context);
    (void)context, (void)paramsArray, (void)count, (void)flags, (void)errorIndex, (void)stream;
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "the device decompresses nothing");
}

/* ---- atomics of the host and of peers ---- */

CUresult CUDAAPI cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                                   const CUatomicOperation *operations, unsigned int count,
                                                   CUdevice dev)
{
    API_ENTER();
    if (dev != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", dev);
    API_REQUIRE(capabilities != NULL && operations != NULL && count > 0);
    for (unsigned i = 0; i < count; i++)
        API_REQUIRE((unsigned)operations[i] < (unsigned)CU_ATOMIC_OPERATION_MAX);
    for (unsigned i = 0; i < count; i++)
        capabilities[i] = 0;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                                  const CUatomicOperation *operations, unsigned int count,
                                                  CUdevice srcDevice, CUdevice dstDevice)
{
    API_ENTER();
    (void)capabilities, (void)operations, (void)count;
    return api_fail(CUDA_ERROR_INVALID_DEVICE, "devices %d and %d are no two devices", srcDevice, dstDevice);
}

/* ---- notifications: none is ever sent ---- */

struct notification {
    CUasyncCallbackHandle handle;
};

CUresult CUDAAPI cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc,
                                                   void *userData, CUasyncCallbackHandle *callback)
{
    API_ENTER();
    (void)userData;
    if (device != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", device);
    API_REQUIRE(callbackFunc != NULL && callback != NULL);
    struct notification *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->handle = emu_handle_new(EMU_HANDLE_NOTIFICATION, made);
    if (made == NULL || made->handle == NULL) {
        free(made);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a callback's record");
    }
    *callback = made->handle;
    return api_leave();
}

CUresult CUDAAPI cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
    API_ENTER();
    if (device != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", device);
    struct notification *found = emu_handle_get(EMU_HANDLE_NOTIFICATION, callback);
    API_REQUIRE(found != NULL);
    emu_handle_free(callback);
    free(found);
    return api_leave();
}

/* ---- others ---- */

/* A LUID is what Windows knows an adapter by. */
CUresult CUDAAPI cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
    API_ENTER();
    (void)dev;
    API_REQUIRE(luid != NULL && deviceNodeMask != NULL);
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "devices have LUIDs on Windows only");
}

CUresult CUDAAPI cuDeviceGetNvSciSyncAttributes(void *nvSciSyncAttrList, CUdevice dev, int flags)
{
    API_ENTER();
    (void)dev, (void)flags;
    if (nvSciSyncAttrList == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "no list of attributes");
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "NvSciSync is not emulated");
}

/* CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS is 0. */
CUresult CUDAAPI cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    API_ENTER();
    API_REQUIRE(fptr != NULL && symbol != NULL);
    if (emu_handle_get(EMU_HANDLE_LIBRARY, library) == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a live library");
    return api_fail(CUDA_ERROR_INVALID_VALUE,
                    "functions of the device and of the host have addresses of their own");
}

/* CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH is 0. */
CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList,
                                                      unsigned int numDevices, unsigned int flags)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(launchParamsList != NULL && numDevices > 0 && flags <= 3);
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "cooperative launches on several devices are not emulated");
}
