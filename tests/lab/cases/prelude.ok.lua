-- EXPECT: columns = [{"at_least":false,"counter":null,"name":"TB/s","timed":true},{"at_least":false,"counter":null,"name":"B/clk/SM","timed":true}]
-- ROWS: [{"variant":"a","status":"waived"}]
-- EXPECT: verdict 1 not measured "
-- EXPECT: verdict 2 not measured "
-- ROWS: [{"variant":"b","status":"ok","params":{},"rates":{"vs_baseline":null}},{"variant":"a","status":"ok","params":{"cluster":2},"rates":{"vs_baseline":{"ratio":1.5}}},{"variant":"a","status":"ok","params":{"cluster":1},"rates":{"vs_baseline":{"ratio":1.25}}}]
-- EXPECT: verdict 1 held "3 rows
-- EXPECT: verdict 2 held "1.50, cluster 2
-- ROWS: [{"variant":"a","status":"wrong","reason":"sum[0] is 3","params":{},"rates":{}}]
-- EXPECT: verdict 1 refuted "a: sum[0] is 3
-- EXPECT: verdict 2 not measured "
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
  columns = { tb_per_s("TB/s", function(p) return 4 * p.n end), bytes_per_clock("B/clk/SM", function(p) return 4 * p.n end) },
  predictions = {
    all_right "every sum is right",
    { "b is no slower", function(rows)
        local worst, size = worst_ratio(rows, "a")
        if worst then return true, string.format("%.2f, cluster %d", worst, size) end
      end },
  },
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
