"""IREE's compiler and CUDA runtime on the stand-in driver: a matrix product, a softmax of three, sums of rows."""
import sys

try:
    import iree.compiler
    import iree.runtime
    import numpy as np
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

SOURCE = """
func.func @product(%a: tensor<64x48xf32>, %b: tensor<48x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x48xf32>, tensor<48x32xf32>) outs(%start : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}
func.func @softmax(%a: tensor<1x3xf32>) -> tensor<1x3xf32> {
  %empty = tensor.empty() : tensor<1x3xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<1x3xf32>) outs(%empty : tensor<1x3xf32>) -> tensor<1x3xf32>
  return %r : tensor<1x3xf32>
}
func.func @sums(%a: tensor<100x1000xf32>) -> tensor<100xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<100xf32>) -> tensor<100xf32>
  %r = linalg.reduce ins(%a : tensor<100x1000xf32>) outs(%start : tensor<100xf32>) dimensions = [1]
    (%x: f32, %sum: f32) {
      %next = arith.addf %x, %sum : f32
      linalg.yield %next : f32
    }
  return %r : tensor<100xf32>
}
"""
image = iree.compiler.compile_str(SOURCE, target_backends=["cuda"], extra_args=["--iree-cuda-target=sm_80"])
context = iree.runtime.SystemContext(config=iree.runtime.Config("cuda"))
context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, image))
module = context.modules.module
random = np.random.default_rng(1)
a, b, rows = (random.random(shape, dtype=np.float32) for shape in ((64, 48), (48, 32), (100, 1000)))
three = np.array([[-1, 0, 1]], np.float32)  # read by one load of four: the last lies behind the buffer
np.testing.assert_allclose(module.product(a, b).to_host(), a @ b, rtol=1e-5)
np.testing.assert_allclose(module.softmax(three).to_host(), np.exp(three) / np.exp(three).sum(), rtol=1e-5)
np.testing.assert_allclose(module.sums(rows).to_host(), rows.sum(axis=1), rtol=1e-5)
print("ok")
