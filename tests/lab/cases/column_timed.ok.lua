-- EXPECT: columns = [{"at_least":false,"counter":null,"name":"rate","timed":true}]
-- EXPECT: rows[0].columns.rate = null
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
  columns = { { "rate", timed = true, value = function(p, v, launch, dev, time) return 1 / time.ns end } },
  bytes = function(p) return 4 * p.n end,
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
