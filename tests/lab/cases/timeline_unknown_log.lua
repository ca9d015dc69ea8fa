-- TWIN: timeline.ok.lua
-- EXPECT: error experiment 11 timeline.log: there is no buffer 'logg'
return {
  summary = "case",
  buffers = function()
    return {
      log = { type = "u64", count = 8 },
      cost = { type = "u32", count = 2, fill = values { 1, 2 } },
    }
  end,
  timeline = { log = "logg" },
  launch = function() return { block = 32, grid = 1, args = { "log" } } end,
  variants = { { name = "a", source = "k.ptx", entry = "k", cluster = false } },
}
