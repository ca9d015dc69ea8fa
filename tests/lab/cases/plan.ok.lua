-- EXPECT: count rows = 3
-- EXPECT: count variants = 2
-- EXPECT: count buffer_sets = 1
-- EXPECT: rows[0].variant = 0
-- EXPECT: rows[0].params = {"block":256,"cluster":1,"n":1000}
-- EXPECT: rows[0].launch.cluster = [1,1,1]
-- EXPECT: rows[1].launch.grid = [2,1,1]
-- EXPECT: rows[1].launch.cluster = [2,1,1]
-- EXPECT: rows[1].launch.block = [256,1,1]
-- EXPECT: rows[2].variant = 1
-- EXPECT: rows[2].params = {"block":256,"n":1000}
-- EXPECT: rows[2].launch.cluster = null
-- EXPECT: rows[2].args = [{"buffer":"input"},{"buffer":"sum"},{"type":"u64","value":1000}]
-- EXPECT: buffer_sets[0][0].name = "input"
-- EXPECT: buffer_sets[0][0].fill = [{"kind":"ones"}]
-- EXPECT: buffer_sets[0][1].expect = {"sum_of":"input"}
-- EXPECT: variants[0].entry = "k"
-- EXPECT: variants[1].baseline = true
-- EXPECT: hot = true
-- EXPECT: summary = "case"
-- EXPECT: rows[0].waived = null
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
      args = { "input", "sum", u64(p.n) },
    }
  end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
