-- A kernel that writes one element more than its buffer has.
return {
  summary = "a store past the end of a buffer, for tests",
  params  = { n = 1000 },
  buffers = function(p)
    return {
      input = { type = "u32", count = p.n + 1, fill = "ones" },
      out   = { type = "u32", count = p.n, expect = 2 },
    }
  end,
  launch = function(p, dev, v)
    return { grid = 2, block = 128, args = { "input", "out", u32(v.name == "outside" and p.n + 1 or p.n) } }
  end,
  variants = {
    { name = "inside", source = "rows.ptx", entry = "twice" },
    { name = "outside", source = "rows.ptx", entry = "twice" },
  },
}
