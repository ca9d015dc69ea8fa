-- A variant that is at peace with a milder kind of hazard, and one that is not.

return {
  summary = "A flag that every thread sets, for tests",
  buffers = function() return { out = { type = "u32", count = 64, fill = 0 } } end,
  launch  = function() return { grid = 1, block = 64, args = { "out" } } end,
  variants = {
    { name = "accepting", source = "corpus/race_shared/same_value.ptx", entry = "same_value",
      accepts = { ["race-same-value"] = "all store 1" } },
    { name = "plain", source = "corpus/race_shared/same_value.ptx", entry = "same_value" },
  },
}
