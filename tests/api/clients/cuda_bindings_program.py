"""cuda.bindings on the stand-in driver: NVRTC's PTX loaded, vector add with asynchronous copies on two streams."""
import ctypes
import sys

try:
    from cuda.bindings import driver, nvrtc
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

TEXT = b"""
extern "C" __global__ void add(float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] += b[i];
}"""
N = 4096


def ok(answer):
    """The values of a call that must have succeeded."""
    assert int(answer[0]) == 0, answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]


ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
major, minor = (ok(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_" + part),
                                               device)) for part in ("MAJOR", "MINOR"))
program = ok(nvrtc.nvrtcCreateProgram(TEXT, b"add.cu", 0, [], []))
ok(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_%d%d" % (major, minor)]))
ptx = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
ok(nvrtc.nvrtcGetPTX(program, ptx))
module = ok(driver.cuModuleLoadData(ptx))
add = ok(driver.cuModuleGetFunction(module, b"add"))

host = (ctypes.c_float * N)(*range(N))
a, b = ok(driver.cuMemAlloc(4 * N)), ok(driver.cuMemAlloc(4 * N))
copying, adding = (ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)) for _ in range(2))
copied = ok(driver.cuEventCreate(0))
ok(driver.cuMemcpyHtoDAsync(a, ctypes.addressof(host), 4 * N, copying))
ok(driver.cuMemcpyHtoDAsync(b, ctypes.addressof(host), 4 * N, copying))
ok(driver.cuEventRecord(copied, copying))
ok(driver.cuStreamWaitEvent(adding, copied, 0))
arguments = ((int(a), int(b), N), (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int))
ok(driver.cuLaunchKernel(add, N // 128, 1, 1, 128, 1, 1, 0, adding, arguments, 0))
ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(host), a, 4 * N, adding))
ok(driver.cuStreamSynchronize(adding))
assert all(host[i] == 2 * i for i in range(N))
print("ok")
