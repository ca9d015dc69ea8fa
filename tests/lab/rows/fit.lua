-- Grids that the device decides. count adds 1 per CTA; the column and the sum follow the grid that was found.
return {
  summary = "fit, for tests",
  params  = { block = 256, waves = 1, at_most = 0, ctas_per_sm = 0, per = "cluster", smem = 0, tell = true },
  sweep   = { cluster = { 1, 4 } },
  buffers = function(p, dev, v, ctas)
    return { sum = { type = "u32", count = 1, reset = "launch", expect = ctas or 0 } }
  end,
  bytes   = function(p, dev, v, ctas) return 4 * ctas end,
  launch  = function(p)
    local function given(n) return n > 0 and n or nil end
    return {
      block = p.block, smem_bytes = p.smem, args = { "sum" },
      grid = fit { per = p.per, waves = p.waves, at_most = given(p.at_most), ctas_per_sm = given(p.ctas_per_sm) },
    }
  end,
  columns = { { "atomics", function(p, v, launch) return launch.ctas + (p.tell and 0 or 1) end, counter = "atomics_global" } },
  variants = {
    { name = "clusters", source = "rows.ptx", entry = "count" },
    { name = "ctas", source = "rows.ptx", entry = "count", cluster = false },
  },
}
