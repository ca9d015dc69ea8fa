-- Copies with a mistake each, between good ones: what the stand-in driver says of it, and a GPU does.

local names = { "right", "more_expected", "less_expected", "source_misaligned", "destination_misaligned", "size_misaligned",
                "mask_beyond", "mate_gone", "box_too_large", "wrong_rank" }
local variants = {}
for _, name in ipairs(names) do
  variants[#variants + 1] = { name = name, source = "bad_copies.ptx", entry = name, requires = "sm_90" }
end
variants[#variants + 1] = { name = "box_beyond", source = "bad_copies.ptx", entry = "box_too_large", requires = "sm_90",
                            about = "a box of 64 KiB into 1 KiB of shared memory" }
variants[#variants + 1] = { name = "stages", source = "bad_copies.ptx", entry = "right", requires = "sm_90",
                            about = "a ring of more stages than a CTA's shared memory holds" }

return {
  summary = "copies with a mistake each, for tests",
  params  = { stages = 6 },
  buffers = function() return {
    input = { type = "u32", count = 65536, fill = 4 },
    out   = { type = "u32", count = 1, fill = 0, reset = "launch", expect = 4 },
  } end,
  launch = function(p, dev, v)
    local side = v.name == "box_too_large" and 256 or v.name == "box_beyond" and 128
    return {
      grid = 2, block = 32, cluster = 2, smem_bytes = v.name == "stages" and 128 + p.stages * 40960 or 1024,
      args = { "input", "out", { tensor_map = { buffer = "input", dims = { 256, 256 }, strides = { 1024 },
                                                box = { side or 8, side or 1 } } } },
    }
  end,
  variants = variants,
}
