-- Rows for the fake GPU (fake_gpu.c): what a kernel does follows from its name.
local names = { "steady", "other", "hang", "hang_late", "fault", "fault_late", "crash_late", "killed_late", "wrong_late",
                "slow", "slow_late" }
local variants = {}
for i, name in ipairs(names) do
  variants[i] = { name = name, source = "workers.ptx", entry = name, cluster = false, baseline = name == "steady" }
end
return {
  summary  = "kernels that do what their names say",
  params   = { n = 4, reset = "timed" },
  buffers  = function(p) return { out = { type = "u32", count = p.n, fill = "ones", reset = p.reset,
                                          expect = { values = { 7, 1, 1, 1 } } } } end,
  launch   = function() return { grid = 1, block = 32, args = { "out" } } end,
  bytes    = function(p) return 4 * p.n end,
  variants = variants,
}
