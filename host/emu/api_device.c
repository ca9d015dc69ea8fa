/* "Device Management": the one emulated device, its name, memory and attributes. An attribute is the model's
   (model.c) where models differ, the truth about the stand-in where it lacks a feature, else what an H200
   answers (api_device.def). Peer access: there is no second device. */
#include "emu/api.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
    CUdevice_attribute attribute;
    int value;
} h200[] = {
#define ATTRIBUTE(name, value) {CU_DEVICE_ATTRIBUTE_##name, value},
#include "emu/api_device.def"
#undef ATTRIBUTE
};

/* Attributes that the model decides. False: not one of them. */
static bool of_model(const struct emu_model *model, CUdevice_attribute attribute, int *out_value)
{
    bool integrated = model->sm == 110 || model->sm == 121;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *out_value = (int)model->clock_khz;
        return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *out_value = (int)model->sms;
        return true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *out_value = (int)model->memory_clock_khz;
        return true;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *out_value = (int)model->bus_bits;
        return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *out_value = (int)model->l2_bytes;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE: /* five eighths, as on the H200 */
        *out_value = (int)(model->l2_bytes / 8 * 5);
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *out_value = (int)model->threads_per_sm;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *out_value = (int)model->ctas_per_sm;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *out_value = (int)model->shared_per_sm_bytes;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *out_value = (int)model->shared_per_block_optin_bytes;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *out_value = (int)model->registers_per_sm;
        return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *out_value = model->cc_major;
        return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *out_value = model->cc_minor;
        return true;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: /* full FP64 rate on CC 9.0 and 10.0 only
                                                                     */
        *out_value = model->sm == 90 || model->sm == 100 ? 2 : 64;
        return true;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
        *out_value = integrated;
        return true;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
        *out_value = model->sm == 90 || model->sm == 100 || model->sm == 103;
        return true;
    default:
        return false;
    }
}

/* Features that the stand-in does not have, whatever the model. */
static bool is_absent(CUdevice_attribute attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
    case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        return true;
    default:
        return false;
    }
}

/* Enters with a device argument. */
#define ENTER_DEVICE(device)                                                                          \
    API_ENTER();                                                                                      \
    do {                                                                                              \
        if ((device) != 0)                                                                            \
            return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", \
                            (int)(device));                                                           \
    } while (0)

CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(pi != NULL);
    if (of_model(api_device()->model, attrib, pi))
        return api_leave();
    for (size_t i = 0; i < API_COUNT_OF(h200); i++)
        if (h200[i].attribute == attrib) {
            *pi = is_absent(attrib) ? 0 : h200[i].value;
            if (attrib == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) /* no fabric */
                *pi = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
            return api_leave();
        }
    return api_fail(CUDA_ERROR_INVALID_VALUE, "device attribute %d", (int)attrib);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER_DEVICE(ordinal);
    API_REQUIRE(device != NULL);
    *device = 0;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    API_ENTER();
    API_REQUIRE(count != NULL);
    *count = 1;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(name != NULL && len != 0);
    snprintf(name, len < 0 ? INT_MAX : (size_t)len, "%s", api_device()->model->name); /* so on the H200 */
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(uuid != NULL);
    *uuid = api_device()->uuid;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(bytes != NULL);
    uint64_t available, total;
    emu_memory_info(api_device()->machine, &available, &total);
    *bytes = total;
    return api_leave();
}

CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(major != NULL && minor != NULL);
    *major = api_device()->model->cc_major;
    *minor = api_device()->model->cc_minor;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(prop != NULL);
    *prop = (CUdevprop){
        .maxThreadsPerBlock = 1024,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {2147483647, 65535, 65535},
        .sharedMemPerBlock = 48 * 1024,
        .totalConstantMemory = 64 * 1024,
        .SIMDWidth = 32,
        .memPitch = 2147483647,
        .regsPerBlock = 65536,
        .clockRate = (int)api_device()->model->clock_khz,
        .textureAlign = 512,
    };
    return api_leave();
}

/* A bus that no machine has, so that no tool takes the device for a real one. */
static const char bus_id[] = "0000:EE:00.0";

CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(pciBusId != NULL && len != 0);
    const int room = len < 0 || len > (int)sizeof bus_id ? (int)sizeof bus_id : len;
    memcpy(pciBusId, bus_id, (size_t)room - 1); /* what fits is written in any case, on the H200 */
    pciBusId[len < 0 ? room - 2 : room - 1] = '\0';
    API_REQUIRE(len >= (int)sizeof bus_id);
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    API_ENTER();
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    API_REQUIRE(dev != NULL && pciBusId != NULL);
    if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = function = 0;
        if (sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) < 2)
            bus = UINT32_MAX;
    }
    if (bus == UINT32_MAX)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "\"%.32s\" is no PCI bus id", pciBusId);
    if (domain != 0 || bus != 0xee || slot != 0 || function != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "no device at \"%.32s\"", pciBusId);
    *dev = 0;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    ENTER_DEVICE(dev);
    (void)type; /* unknown ones too, on the H200 */
    API_REQUIRE(pi != NULL);
    *pi = 0;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
                                                    unsigned numChannels, CUdevice dev)
{
    ENTER_DEVICE(dev);
    API_REQUIRE(maxWidthInElements != NULL && (numChannels == 1 || numChannels == 2 || numChannels == 4));
    unsigned bytes;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        bytes = 1;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        bytes = 2;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        bytes = 4;
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "format 0x%x", (unsigned)format);
    }
    /* 4 GiB, and at most 2^30 elements: what an H200 answers (attribute 69 is the least of these). */
    const size_t elements = ((size_t)1 << 32) / (bytes * numChannels);
    *maxWidthInElements = elements < (size_t)1 << 30 ? elements : (size_t)1 << 30;
    return api_leave();
}

/* ---- peers ---- */

CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    ENTER_DEVICE(dev | peerDev);
    API_REQUIRE(canAccessPeer != NULL);
    *canAccessPeer = 0; /* a device is no peer of itself */
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                         CUdevice dstDevice)
{
    API_ENTER();
    (void)attrib;
    API_REQUIRE(value != NULL);
    return api_fail(CUDA_ERROR_INVALID_DEVICE, "devices %d and %d are no two devices", srcDevice, dstDevice);
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(Flags == 0);
    if (peerContext == NULL || api_context_get(peerContext) == NULL)
        return api_fail(api_context_error(peerContext), "not a live context");
    return api_fail(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "the context is of the same device");
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    if (peerContext == NULL || api_context_get(peerContext) == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a live context");
    return api_fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "one device is emulated: there are no peers");
}
