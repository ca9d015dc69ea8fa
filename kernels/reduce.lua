-- Sum n floats. The textbook kernel adds one global atomic per CTA; clusters collect their CTAs' totals through
-- distributed shared memory and add one per cluster. All variants share one contract: (input, sum, n).

local function textbook(p)
  return {
    block = p.block,
    grid = round_up(ceil_div(p.n, 2 * p.block), p.cluster), -- CTAs beyond n add zero
    args = { "input", "sum", u64(p.n) },
  }
end

local function one_per_cta(launch) return launch.ctas end
local function one_per_cluster(launch) return launch.clusters end

return {
  summary = "Sum n floats with one global atomic per CTA, or one per cluster through distributed shared memory",
  params  = { n = 16776605, block = 256, offset = 0 }, -- offset: of the input from its allocation, in bytes
  sweep   = { cluster = { 1, 2, 4, 8 } },
  check   = { n = 65537 },

  buffers = function(p)
    assert(p.block <= 1024 and next_pow2(p.block) == p.block, "block must be a power of two up to 1024")
    return {
      input = { type = "f32", count = p.n, fill = { "ones", "bits(7)" }, offset_bytes = p.offset },
      sum   = { type = "f32", count = 1, fill = 0, reset = "launch", expect = { sum_of = "input" },
                -- f32 holds every partial sum exactly up to 2^24; beyond that each add may round
                tolerance = p.n > 2 ^ 24 and { rel = 1e-3 } or nil },
    }
  end,

  launch  = textbook,
  bytes   = function(p) return 4 * p.n end,
  columns = {
    { "global atomics", function(p, v, launch) return v.atomics and v.atomics(launch) end, counter = "atomics_global" },
  },

  variants = {
    { name = "atomic", source = "reduce/atomic.cu", entry = "reduce_atomic", cluster = false, baseline = true,
      atomics = one_per_cta, about = "two loads, a tree in shared memory, one atomic per CTA" },
    { name = "atomic_ptx", source = "../ptx/reduce_atomic.ptx", entry = "reduce_atomic", cluster = false,
      atomics = one_per_cta, about = "the same by hand in PTX" },
    { name = "cg", source = "reduce/cg.cu", entry = "reduce_cg", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "cooperative groups: map_shared_rank, rank 0 collects" },
    { name = "mapa", source = "../ptx/reduce_mapa.ptx", entry = "reduce_mapa", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "the same by hand: barrier.cluster, mapa, ld.shared::cluster" },
  },
}
