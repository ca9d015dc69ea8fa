-- Asynchronous copies as libcu++ and cooperative groups write them; contract in async.cu.
local doubled = {}
for i = 1, 7 * 1024 do doubled[i] = 2 * (i - 1) end
return {
  summary = "asynchronous copies in C++, for tests",
  buffers = function() return {
    input = { type = "u32", count = 7 * 1024, fill = "iota" },
    out   = { type = "u32", count = 7 * 1024, reset = "launch", expect = values(doubled) },
  } end,
  launch   = function() return { grid = 7, block = 128, args = { "input", "out" } } end,
  -- Bulk copies: one by cuda::barrier, one by memcpy_async_tx, two by the wrappers; the others are cp.async.
  columns  = { { "bulk bytes", function() return 4 * 4096 end, counter = "bulk_delivered_bytes" } },
  variants = { { name = "all", source = "async.cu", entry = "async_copies", cluster = false, requires = "sm_90" } },
}
