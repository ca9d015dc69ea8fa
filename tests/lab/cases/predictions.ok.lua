-- ROWS: [{"variant":"a","status":"ok","time":{"kind":"none"}},{"variant":"b","status":"ok","time":{"kind":"none"}}]
-- EXPECT: verdict 1 held "
-- EXPECT: verdict 2 not measured "nothing was timed
-- EXPECT: verdict 3 not measured "attempt to index a nil value
-- EXPECT: verdict 4 not measured "the prediction's function returned neither
-- ROWS: [{"variant":"a","status":"ok","time":{"kind":"measured"}},{"variant":"b","status":"wrong","time":{"kind":"none"}}]
-- EXPECT: verdict 1 refuted "b is not
-- EXPECT: verdict 2 held "
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
  predictions = {
    { "all rows are right", function(rows) for _, r in ipairs(rows) do if r.status ~= "ok" then return false, r.variant .. " is not" end end return true end },
    { "times are close", function(rows) if rows[1].time.kind == "none" then return nil, "nothing was timed" end return true end },
    { "raises", function(rows) return rows[99].status end },
    { "says nothing of use", function(rows) return 7 end },
    { "never ends", function(rows) while rows.forever do end end },
  },
  variants = {
    { name = "a", source = "k.ptx", entry = "k" },
    { name = "b", source = "k.ptx", entry = "k", cluster = false, baseline = true },
  },
}
