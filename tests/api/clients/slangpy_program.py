"""SlangPy's CUDA device on the stand-in driver: a function over arrays, mip maps made by textures and surfaces."""
import pathlib
import sys
import tempfile

try:
    import numpy as np
    import slangpy
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder) / "program.slang"
    source.write_text("float f(float a, float b) { return sin(a) * b + sqrt(abs(a)); }\n")
    device = slangpy.create_device(slangpy.DeviceType.cuda, include_paths=[folder])
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(1000).astype(np.float32) for _ in range(2))
    result = slangpy.Module.load_from_file(device, str(source)).f(a, b, _result="numpy")
    np.testing.assert_allclose(result, np.sin(a) * b + np.sqrt(np.abs(a)), rtol=1e-5, atol=1e-6)
    texels = np.arange(16, dtype=np.float32).reshape(4, 4)
    texture = device.create_texture(type=slangpy.TextureType.texture_2d, format=slangpy.Format.r32_float, width=4, height=4,
                                    mip_count=slangpy.ALL_MIPS, data=texels,
                                    usage=slangpy.TextureUsage.shader_resource | slangpy.TextureUsage.unordered_access)
    encoder = device.create_command_encoder()
    encoder.generate_mips(texture)
    device.submit_command_buffer(encoder.finish())
    np.testing.assert_allclose(texture.to_numpy(mip=1), texels.reshape(2, 2, 2, 2).mean(axis=(1, 3)))
    device.close()
print("ok")
