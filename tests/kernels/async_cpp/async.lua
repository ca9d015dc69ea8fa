-- Asynchronous copies as libcu++ and cooperative groups write them; contract in async.cu.
local variants = {}
for i, name in ipairs { "groups", "barrier", "barrier_words", "pipeline", "pipeline_thread", "bulk_tx", "wrappers" } do
  variants[i] = { name = name, source = "async.cu", entry = name, cluster = false, requires = "sm_90", baseline = i == 1 }
end
local doubled = {}
for i = 1, 4096 do doubled[i] = 2 * (i - 1) end
return {
  summary = "asynchronous copies in C++, for tests",
  buffers = function() return {
    input = { type = "u32", count = 4096, fill = "iota" },
    out   = { type = "u32", count = 4096, reset = "launch", expect = values(doubled) },
  } end,
  launch   = function() return { grid = 4, block = 128, args = { "input", "out" } } end,
  columns  = { { "bulk bytes", function() end, counter = "bulk_delivered_bytes" } },
  variants = variants,
}
