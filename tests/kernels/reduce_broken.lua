-- The cluster reduction, broken on purpose in five ways, each beside its right twin, reduce_mapa. What each must come to is
-- in the kernel's own header; where the outcome depends on the device the note says on which.

return {
  summary = "The cluster reduction with one mistake each: what the emulator, a GPU or a checker says of it",
  params  = { n = 65537, block = 256 },
  sweep   = { cluster = { 4 } },

  buffers = function(p)
    return {
      input = { type = "f32", count = p.n, fill = { "ones", "bits(7)" } },
      sum   = { type = "f32", count = 1, fill = 0, reset = "launch", expect = { sum_of = "input" } },
    }
  end,

  launch  = function(p)
    return {
      block = p.block,
      grid = round_up(ceil_div(p.n, 2 * p.block), p.cluster),
      args = { "input", "sum", u64(p.n) },
    }
  end,

  variants = {
    { name = "right", source = "../../ptx/reduce_mapa.ptx", entry = "reduce_mapa", baseline = true },
    { name = "own_tile", source = "reduce_broken/own_tile.ptx", entry = "own_tile",
      broken = "wrong sum: rank 0 adds its own total once per peer" },
    { name = "wrong_rank", source = "reduce_broken/wrong_rank.ptx", entry = "wrong_rank",
      broken = "fault: maps a rank outside the cluster" },
    { name = "no_exit_barrier", source = "reduce_broken/no_exit_barrier.ptx", entry = "no_exit_barrier",
      broken = "fault: reads the shared memory of a CTA that has ended" },
    { name = "no_entry_barrier", source = "reduce_broken/no_entry_barrier.ptx", entry = "no_entry_barrier",
      broken = "undefined: reads a total that may not have been written" },
    { name = "warp_skips", source = "reduce_broken/warp_skips.ptx", entry = "warp_skips",
      broken = "right all the same: a warp ends without arriving at the cluster barrier" },
  },
}
