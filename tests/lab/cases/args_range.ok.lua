-- EXPECT: rows[0].args[3] = {"type":"s32","value":-7}
-- EXPECT: rows[0].args[4] = {"type":"f32","value":0.5}
-- EXPECT: rows[0].args[5] = {"type":"f64","value":2}
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
      args = { "input", "sum", u32(7), s32(-7), f32(0.5), f64(2), s64(-1) },
    }
  end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
