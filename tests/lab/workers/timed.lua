-- Columns that are made of the measured time (fake_gpu.c: a launch takes 100 us at 2 GHz).
return {
  summary = "timed columns",
  params  = { wrong = false },
  buffers = function() return { out = { type = "u32", count = 4, fill = "ones", reset = "launch",
                                        expect = { values = { 7, 1, 1, 1 } } } } end,
  launch  = function() return { grid = 1, block = 32, args = { "out" } } end,
  columns = {
    { "bytes per ns", timed = true, value = function(p, v, launch, dev, time)
        if p.wrong then error("no such rate") end
        return 400000 * launch.ctas / time.ns
      end },
    { "cycles", timed = true, value = function(p, v, launch, dev, time) return time.ns * time.sm_mhz / 1000 end },
  },
  variants = { { name = "steady", source = "workers.ptx", entry = "steady", cluster = false } },
}
