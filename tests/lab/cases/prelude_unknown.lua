-- TWIN: prelude.ok.lua
-- EXPECT: error experiment 23 attempt to call a nil value (global 'all_rigth')
-- EXPECT: remedy did you mean 'all_right'?
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
    all_rigth "every sum is right",
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
