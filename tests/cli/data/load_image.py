"""A driver-API program: loads the image file that is named, twice, and prints what cuModuleLoadData returned."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, module = ctypes.c_void_p(), ctypes.c_void_p()
with open(sys.argv[1], "rb") as file:
    image = file.read()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print("cuModuleLoadData", *(cuda.cuModuleLoadData(ctypes.byref(module), image) for _ in range(2)))
