-- RUN: --set n=2^12
-- EXPECT: rows[0].params.n = 4096
-- EXPECT: rows[0].launch.grid = [8,1,1]
-- RUN: --set n=1,2,1
-- EXPECT: count rows = 6
-- EXPECT: rows[0].params.n = 1
-- EXPECT: rows[2].params.n = 2
-- EXPECT: rows[0].params.cluster = 1
-- EXPECT: rows[1].params.cluster = 2
-- RUN: --cluster 3,7
-- EXPECT: count rows = 3
-- EXPECT: rows[1].launch.cluster = [7,1,1]
-- EXPECT: rows[1].launch.grid = [7,1,1]
-- RUN: --cluster 2x1,4x1x1
-- EXPECT: rows[0].params.cluster = 2
-- EXPECT: rows[1].params.cluster = 4
-- RUN: --variant b
-- EXPECT: count rows = 1
-- EXPECT: rows[0].variant = 1
-- RUN: --variant a,b --cluster 16
-- EXPECT: count rows = 2
-- RUN: --with cases/k.ptx
-- EXPECT: count rows = 5
-- EXPECT: variants[2].name = "k"
-- EXPECT: variants[2].entry = null
-- EXPECT: rows[3].variant = 2
-- RUN: --with cases/k.ptx:ns::k<4> --variant a
-- EXPECT: count rows = 4
-- EXPECT: variants[2].entry = "ns::k<4>"
-- RUN: --device {"cc":"8.0"}
-- EXPECT: rows[0].waived = null
-- RUN: --device {"memory_bytes":1024}
-- EXPECT: rows[0].waived = "needs 0.0 GiB of device memory; the device has 0.0 GiB"
-- EXPECT: rows[0].launch = null
-- EXPECT: rows[0].buffers = null
-- RUN: --cluster 8,16 --device {"max_cluster":8}
-- EXPECT: rows[0].waived = null
-- EXPECT: rows[1].waived = "the device takes no cluster of 16 CTAs of this kernel (its occupancy query: at most 8)"
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
