/* Forms of CUDA 2 and 3 whose sizes are 32 bits wide: contexts, sizes, arrays. Those that take device
   addresses of 32 bits are not here: no address of the emulated device is that short
   (tests/api/data/not_emulated.txt). */
#include "emu/api.h"

static unsigned narrow(size_t size)
{
    return size > UINT32_MAX ? UINT32_MAX : (unsigned)size;
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return cuCtxCreate_v2(pctx, flags, dev);
}

/* UNVERIFIED: what a real driver says of sizes that do not fit; here they are the greatest number. */
CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    size_t wide = 0;
    CUresult result = cuDeviceTotalMem_v2(bytes != NULL ? &wide : NULL, dev);
    if (result == CUDA_SUCCESS)
        *bytes = narrow(wide);
    return result;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
    size_t wide_free = 0, wide_total = 0;
    CUresult result =
        cuMemGetInfo_v2(free_bytes != NULL ? &wide_free : NULL, total != NULL ? &wide_total : NULL);
    if (result == CUDA_SUCCESS) {
        *free_bytes = narrow(wide_free);
        *total = narrow(wide_total);
    }
    return result;
}

CUresult CUDAAPI cuMemAllocHost(void **pp, unsigned int bytesize)
{
    return cuMemAllocHost_v2(pp, bytesize);
}

/* ---- arrays ---- */

CUresult CUDAAPI cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    if (pAllocateArray == NULL)
        return cuArrayCreate_v2(pHandle, NULL);
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = pAllocateArray->Width,
                                        .Height = pAllocateArray->Height,
                                        .Format = pAllocateArray->Format,
                                        .NumChannels = pAllocateArray->NumChannels};
    return cuArrayCreate_v2(pHandle, &desc);
}

CUresult CUDAAPI cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY_DESCRIPTOR desc;
    CUresult result = cuArrayGetDescriptor_v2(pArrayDescriptor != NULL ? &desc : NULL, hArray);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR_v1){.Width = narrow(desc.Width),
                                                       .Height = narrow(desc.Height),
                                                       .Format = desc.Format,
                                                       .NumChannels = desc.NumChannels};
    return result;
}

CUresult CUDAAPI cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    if (pAllocateArray == NULL)
        return cuArray3DCreate_v2(pHandle, NULL);
    const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = pAllocateArray->Width,
                                          .Height = pAllocateArray->Height,
                                          .Depth = pAllocateArray->Depth,
                                          .Format = pAllocateArray->Format,
                                          .NumChannels = pAllocateArray->NumChannels,
                                          .Flags = pAllocateArray->Flags};
    return cuArray3DCreate_v2(pHandle, &desc);
}

CUresult CUDAAPI cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult result = cuArray3DGetDescriptor_v2(pArrayDescriptor != NULL ? &desc : NULL, hArray);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){.Width = narrow(desc.Width),
                                                         .Height = narrow(desc.Height),
                                                         .Depth = narrow(desc.Depth),
                                                         .Format = desc.Format,
                                                         .NumChannels = desc.NumChannels,
                                                         .Flags = desc.Flags};
    return result;
}
