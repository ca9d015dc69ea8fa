-- Kernels that fault, hang or do not fit, between good ones: a bad row costs itself and no other. Contract: (out, n),
-- out[i] = 4.

return {
  summary = "kernels that misbehave, for tests",
  params  = { n = 1000, block = 128, smem = 0 },
  sweep   = { cluster = { 2 } },

  buffers = function(p)
    return { out = { type = "u32", count = p.n, fill = 0, reset = "launch", expect = 4 } }
  end,
  launch = function(p, dev)
    return {
      block = p.block,
      grid = round_up(ceil_div(p.n + 1, p.block), p.cluster),
      smem_bytes = p.smem,
      args = { "out", u64(p.n) },
    }
  end,

  variants = {
    { name = "four", source = "four.ptx", entry = "four", baseline = true },
    { name = "fault", source = "fault_store.ptx", entry = "fault_store" },
    { name = "spin", source = "hang_spin.ptx", entry = "hang_spin" },
    { name = "busy", source = "hang_busy.ptx", entry = "hang_busy" },
    { name = "half", source = "hang_cluster.ptx", entry = "hang_cluster" },
    { name = "four_again", source = "four.ptx", entry = "four" },
  },
}
