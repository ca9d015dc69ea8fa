-- A tile for a peer: from global memory into another CTA's shared memory, with the peer's mbarrier counting what arrived.
-- Each CTA serves the next rank of its cluster. All variants share one contract (kernels/dsmem_stage/ways.cuh).

local KiB, MiB = 1024, 2 ^ 20

local function cut(p, dev)
  assert(p.tile >= 2 * KiB and next_pow2(p.tile) == p.tile, "a tile must be a power of two of at least 2 KiB")
  assert(p.stages >= 1, "stages must be at least 1")
  local rounds = p.rounds ~= 0 and p.rounds or dev.emulated and p.stages + 2 or 16 * MiB // p.tile
  assert(rounds >= p.stages, "there must be as many rounds as stages, or more")
  return { rounds = rounds, tiles = (dev.emulated and 4 or 16) * MiB // p.tile }
end

local function reference(p, out, first, count, tiles, ctas)
  local size = cluster_size(p.cluster)
  return { reference = { source = "../ptx/multicast_reference.ptx", entry = "multicast_reference", block = 256,
    grid = { ctas, count },
    args = { "source", out, u32(size), u32(first), u32(1), u32(p.tile), u32(tiles), u32(1), u32(size), u32(1), u32(1) } } }
end

local function landed(p, v, launch, dev) return launch.ctas * cut(p, dev).rounds * p.tile end

-- How often a variant's bytes move, by what moves them: bulk copies, global loads, stores to a peer (st.async is counted apart).
local function times(which)
  return function(p, v, launch, dev) return v.data and v.data[which] * landed(p, v, launch, dev) end
end

local COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
local NARROW = { ["narrow-scope"] = "a stage is released by a remote arrive of default scope: .release.cluster made it 3 to 14 times slower (H200)" }
local ACROSS = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"

return {
  summary = "A tile for a peer's shared memory: six ways there",
  params  = { tile = 16384, stages = 4, rounds = 0, ctas = 0 }, -- rounds 0: chosen; ctas: at most so many, 0: all that fit
  sweep   = { cluster = { 2, 4, 8, 16 } },
  check   = { tile = 4096, stages = 2, rounds = 5, ctas = 16 },

  buffers = function(p, dev, v, ctas)
    local c, n = cut(p, dev), ctas or 1
    return {
      source  = { type = "u32", count = c.tiles * p.tile // 4, fill = { "iota", "random(11)" } },
      scratch = { type = "u32", count = n * p.stages * p.tile // 4 },
      digests = { type = "u32", count = n * c.rounds, fill = 0, reset = "launch", verified_only = true,
                  expect = reference(p, "digests", 0, c.rounds, c.tiles, n) },
      last    = { type = "u32", count = n * p.stages, fill = 0, reset = "launch",
                  expect = reference(p, "last", c.rounds - p.stages, p.stages, c.tiles, n) },
      touched = { type = "u32", count = n, fill = 0, reset = "launch", expect = 0 },
    }
  end,

  launch = function(p, dev)
    local c = cut(p, dev)
    return {
      block = 288, grid = fit { per = "cluster", ctas_per_sm = 1, at_most = p.ctas > 0 and p.ctas or nil },
      -- guards, ring, mbarriers, landing places of the way that copies twice; at least so much that an SM holds one CTA
      smem_bytes = math.max(3 * KiB + p.stages * (2 * p.tile + 24),
                            (dev.shared_per_sm_bytes or 228 * KiB) // 2 // KiB * KiB + 2 * KiB),
      args = { "source", "digests", "last", "touched", "scratch", u32(c.rounds), u32(p.stages), u32(p.tile), u32(c.tiles),
               { verify = u32(1), time = u32(0) } },
    }
  end,
  bytes = function(p, dev, v, ctas) return ctas and ctas * cut(p, dev).rounds * p.tile end,
  hot   = false,

  columns = {
    { "CTAs", function(p, v, launch) return launch.ctas end, counter = "ctas" },
    { "bulk bytes", times "bulk", counter = "bulk_delivered_bytes" },
    { "loaded bytes", times "loaded", counter = "loads_global_bytes" },
    { "bytes stored to peers", times "stored", counter = "stores_remote_bytes" },
    { "st.async", function(p, v, launch, dev) return v.data and math.floor((v.data.async or 0) * landed(p, v, launch, dev)) end,
      counter = "async_stores" },
    { "bytes delivered", landed },
    tb_per_s("TB/s delivered", landed),
    bytes_per_clock("B/clk/SM", landed),
  },

  variants = {
    { name = "own", source = "dsmem_stage/own.cu", entry = "dsmem_stage_own", requires = "sm_90", baseline = true,
      must_contain = { COPY }, data = { bulk = 1, loaded = 0, stored = 0 }, about = "each CTA loads for itself" },
    { name = "mapped", accepts = NARROW, source = "dsmem_stage/mapped.cu", entry = "dsmem_stage_mapped", requires = "sm_90",
      must_contain = { COPY, "mapa" }, data = { bulk = 1, loaded = 0, stored = 0 },
      about = "cp.async.bulk to the peer's memory and mbarrier" },
    { name = "mapped_ptx", accepts = NARROW, source = "../ptx/dsmem_stage_mapped.ptx", entry = "dsmem_stage_mapped", requires = "sm_90",
      must_contain = { COPY, "mapa" }, data = { bulk = 1, loaded = 0, stored = 0 }, about = "the same by hand in PTX" },
    { name = "forward", accepts = NARROW, source = "dsmem_stage/forward.cu", entry = "dsmem_stage_forward", requires = "sm_90",
      must_contain = { COPY, ACROSS }, data = { bulk = 2, loaded = 0, stored = 0 },
      about = "a local load, then a copy between shared memories" },
    { name = "st_async", accepts = NARROW, source = "dsmem_stage/st_async.cu", entry = "dsmem_stage_st_async", requires = "sm_90",
      must_contain = { "st.async" }, data = { bulk = 0, loaded = 1, stored = 0, async = 1 / 16 },
      about = "ld.global, then st.async to the peer" },
    { name = "st_cluster", source = "dsmem_stage/stores.cu", entry = "dsmem_stage_st_cluster", requires = "sm_90",
      must_contain = { "st.shared::cluster", "barrier.cluster" }, data = { bulk = 0, loaded = 1, stored = 1 },
      about = "ld.global, then st.shared::cluster; cluster barriers" },
    { name = "through_global", source = "dsmem_stage/stores.cu", entry = "dsmem_stage_through_global", requires = "sm_90",
      must_contain = { "barrier.cluster" }, data = { bulk = 0, loaded = 2, stored = 0 },
      about = "written to global memory, read back by the peer; cluster barriers" },
  },

  predictions = {
    all_right "every tile arrived whole, and nothing beside it",
    { "a copy mapped to a peer is within 10 % of a CTA's own", function(rows)
        local worst, size = worst_ratio(rows, "mapped")
        if worst then return worst <= 1.1, string.format("at most %.3f, cluster %d", worst, size) end
      end },
  },
}
