-- TWIN: timeline.ok.lua
-- EXPECT: error experiment 11 timeline.log: wanted a u64 buffer of 4 words a slot; 'log' is u64[7]
return {
  summary = "case",
  buffers = function()
    return {
      log = { type = "u64", count = 7 },
      cost = { type = "u32", count = 2, fill = values { 1, 2 } },
    }
  end,
  timeline = { log = "log" },
  launch = function() return { block = 32, grid = 1, args = { "log" } } end,
  variants = { { name = "a", source = "k.ptx", entry = "k", cluster = false } },
}
