-- TWIN: plan.ok.lua
-- EXPECT: error experiment 13 launch: wanted a function, got 'x'
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
  launch = "x",
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
