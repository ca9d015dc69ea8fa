-- EXPECT: rows[0].columns = {"global atomics":2}
-- EXPECT: rows[1].columns = {"global atomics":1}
-- EXPECT: rows[2].columns = {"global atomics":null}
-- EXPECT: rows[0].bytes = 4000
-- EXPECT: columns = [{"at_least":false,"counter":"atomics_global","name":"global atomics","timed":false}]
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
  columns = { { "global atomics", function(p, v, launch) return v.atomics and v.atomics(launch) end, counter = "atomics_global" } },
  bytes = function(p) return 4 * p.n end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k", atomics = function(launch) return launch.clusters end },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
