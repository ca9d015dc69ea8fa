-- EXPECT: rows[0].params.text = "1 2 10 a b z "
local s = ""
for k in pairs { z = 1, b = 2, a = 3, 5, 6, [10] = 7 } do s = s .. k .. " " end

return {
  summary = "case",
  params = { text = s, n = 1000, block = 256 },
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
      args = { "input", "sum", u64(p.n) },
    }
  end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
