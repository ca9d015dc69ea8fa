-- A column that is held against a counter as a least value: `granted` requests to cancel, of which this kernel makes none.
return {
  summary = "at least so many requests granted, for tests",
  params  = { n = 1000, granted = 0 },
  buffers = function(p) return { out = { type = "u32", count = p.n, fill = 0, reset = "launch", expect = 4 } } end,
  launch  = function(p) return { block = 128, grid = ceil_div(p.n, 128), args = { "out", u64(p.n) } } end,
  columns = { { "granted", function(p) return p.granted end, counter = "clc_granted", at_least = true } },
  variants = { { name = "four", source = "four.ptx", entry = "four", cluster = false } },
}
