-- EXPECT: error experiment 17 launch.args[1].tensor_map.strides[1]: wanted a multiple of 32, got 48
return {
  summary = "case",
  params = { n = 1000, block = 256 },
  sweep = { cluster = { 1, 2 } },
  buffers = function(p)
    return {
      input = { type = "f32", count = p.n, fill = "ones" },
      sum = { type = "f32", count = 1, expect = { sum_of = "input" } },
    }
  end,
  launch = function(p)
    return {
      block = p.block,
      grid = round_up(ceil_div(p.n, 2 * p.block), p.cluster),
      args = {
        { tensor_map = { buffer = "input", dims = { 8, 4, 4 }, strides = { 48, 192 }, box = { 8, 4, 4 }, interleave = "32B", swizzle = "32B" } },
      },
    }
  end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
