-- EXPECT: columns[0].at_least = true
return {
  summary = "case",
  buffers = function() return { out = { type = "u32", count = 1 } } end,
  launch = function() return { block = 32, grid = 1, args = { "out" } } end,
  columns = { { "granted", function() return 3 end, counter = "clc_granted", at_least = true } },
  variants = { { name = "a", source = "k.ptx", entry = "k", cluster = false } },
}
