-- An argument that has one value when the launch is verified and another when it is timed.
return {
  summary = "verifying arguments, for tests",
  buffers = function(p, dev, v)
    return { out = { type = "u32", count = 1, expect = v.name == "timed_value" and 2 or 1,
                     verified_only = v.name == "loose" } }
  end,
  launch   = function() return { grid = 1, block = 1, args = { "out", { verify = u32(1), time = u32(2) } } } end,
  variants = {
    { name = "loose", source = "rows.ptx", entry = "tell" },
    { name = "strict", source = "rows.ptx", entry = "tell" },
    { name = "timed_value", source = "rows.ptx", entry = "tell" },
  },
}
