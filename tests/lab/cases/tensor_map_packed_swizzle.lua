-- EXPECT: error experiment 17 launch.args[1].tensor_map.swizzle: 16u6_align16b takes swizzle none, 128B or 128B_atom_32B
return {
  summary = "case",
  params = { n = 1000, block = 256 },
  sweep = { cluster = { 1, 2 } },
  buffers = function(p)
    return {
      input = { type = "u8", count = 65536, fill = "zero" },
      sum = { type = "f32", count = 1, expect = { sum_of = "input" } },
    }
  end,
  launch = function(p)
    return {
      block = p.block,
      grid = round_up(ceil_div(p.n, 2 * p.block), p.cluster),
      args = {
        { tensor_map = { buffer = "input", type = "16u6_align16b", dims = { 128, 4 }, strides = { 96 }, box = { 128, 4 }, swizzle = "128B_atom_32B_flip_8B" } },
      },
    }
  end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
