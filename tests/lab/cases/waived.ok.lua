-- RUN: --device {"cc":"9.0","emulated":true}
-- EXPECT: rows[0].waived = "needs compute capability 10.0 or later; the device has 9.0"
-- EXPECT: rows[2].waived = null
-- EXPECT: rows[3].waived = "needs the family of sm_100f; the device has compute capability 9.0"
-- EXPECT: rows[4].waived = "compiled for clusters of 2x1x1 (__cluster_dims__): the shape cannot be swept"
-- EXPECT: rows[5].waived = null
-- EXPECT: rows[5].launch.cluster = [2,1,1]
-- EXPECT: rows[6].waived = "not emulated"
-- RUN: --device {"cc":"10.3","emulated":false}
-- EXPECT: rows[0].waived = null
-- EXPECT: rows[2].waived = "needs sm_90a, that is compute capability 9.0 exactly; the device has 10.3"
-- EXPECT: rows[3].waived = null
-- EXPECT: rows[6].waived = null
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
    { name = "a", source = "k.ptx", entry = "k", requires = "sm_100" },
    { name = "exact", source = "k.ptx", entry = "k", requires = "sm_90a", cluster = false },
    { name = "family", source = "k.ptx", entry = "k", requires = "sm_100f", cluster = false },
    { name = "static", source = "k.ptx", entry = "k", static_cluster = 2 },
    { name = "own", source = "k.ptx", entry = "k", cluster = false, waive = function(p, dev) return dev.emulated and "not emulated" end },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
