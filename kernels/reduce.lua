-- Sum n floats. The textbook kernel adds one global atomic per CTA; clusters collect their CTAs' totals through
-- distributed shared memory and add one per cluster. All variants share one contract: (input, sum, n).

local function textbook(p)
  return {
    block = p.block,
    grid = round_up(ceil_div(p.n, 2 * p.block), p.cluster), -- CTAs beyond n add zero
    args = { "input", "sum", u64(p.n) },
  }
end

local LONG = 2 ^ 27 -- an H200's crossing: such an input sweeps the L2 anyway (kernels/reduce/fast.cu)

local function fast(p)
  local per_cta = p.n < LONG and 8192 or 32768
  return { block = 1024, grid = ceil_div(p.n, per_cta), args = { "input", "sum", u64(p.n) } }
end

-- A tile per CTA, or CTAs that stay (kernels/reduce/ring.cuh).
local function fast_cluster(p)
  local launch = { block = 256, grid = round_up(ceil_div(p.n, 4096), p.cluster), args = { "input", "sum", u64(p.n) } }
  if p.n >= p.long then
    launch.grid, launch.smem_bytes = fit { per = "cluster" }, 6 * 16384
  end
  return launch
end

local function one_per_cta(launch) return launch.ctas end
local function one_per_cluster(launch) return launch.clusters end

-- What the predictions need: the median of a measured row, or nil.
local function median(row)
  return row.status == "ok" and row.time and row.time.kind == "measured" and row.time.cold_ns.median or nil
end

local function is_textbook(row) return row.variant ~= "fast" and row.variant ~= "fast_cluster" end

local function percent(ratio) return string.format("%+.1f %%", 100 * (ratio - 1)) end

return {
  summary = "Sum n floats with one global atomic per CTA, or one per cluster through distributed shared memory",
  -- offset: of the input from its allocation, in bytes; long: from so many elements on, CTAs that stay
  params  = { n = 16776605, block = 256, offset = 0, long = LONG },
  sweep   = { cluster = { 1, 2, 4, 8 } },
  check   = { n = 65537 },

  buffers = function(p)
    assert(p.block >= 32 and p.block <= 1024 and next_pow2(p.block) == p.block,
           "block must be a power of two from 32 to 1024")
    assert(p.offset % 4 == 0, "offset must be a multiple of 4, the size of a float")
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
      about = "by hand in PTX: barrier.cluster, mapa, ld.shared::cluster" },
    { name = "inline", source = "reduce/inline.cu", entry = "reduce_inline", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "CUDA C++ with inline PTX" },
    { name = "relaxed", source = "reduce/relaxed.cu", entry = "reduce_relaxed", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "the second arrive relaxed: it publishes nothing" },
    { name = "split", source = "reduce/split.cu", entry = "reduce_split", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "totals pushed to rank 0; the block sum between arrive and wait" },
    { name = "parallel", source = "reduce/parallel.cu", entry = "reduce_parallel", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "one collecting thread per CTA of the cluster" },
    { name = "static", source = "reduce/static.cu", entry = "reduce_static", requires = "sm_90", static_cluster = 4,
      must_contain = { "barrier.cluster", "mapa" }, atomics = one_per_cluster,
      about = "cooperative groups, the cluster fixed when compiled (__cluster_dims__)" },
    { name = "fast", source = "reduce/fast.cu", entry = "reduce_fast", cluster = false, launch = fast,
      atomics = one_per_cta, about = "as fast as DRAM: a tile of float4 per CTA" },
    { name = "fast_cluster", source = "reduce/fast_cluster.cu", entry = "reduce_fast_cluster", requires = "sm_90",
      must_contain = { "barrier.cluster", "mapa" }, launch = fast_cluster, atomics = one_per_cluster,
      about = "tiles, or a ring of bulk copies; a finish through distributed shared memory" },
  },

  -- As a course text states them.
  predictions = {
    { "every sum is exact", function(rows)
        local right, rounds = 0, false
        for _, row in ipairs(rows) do
          rounds = rounds or row.params.n > 2 ^ 24
          if row.status == "wrong" then return false, row.variant .. ": " .. row.reason end
          if row.status == "ok" then right = right + 1 end
        end
        if right > 0 then return true, right .. " rows" .. (rounds and ", to the rounding of f32 adds" or "") end
      end },
    { "the potential cluster size is at least 8", function(rows, dev)
        if dev.potential_cluster then return dev.potential_cluster >= 8, "it is " .. dev.potential_cluster end
        for _, row in ipairs(rows) do
          if row.status == "ok" and (row.params.cluster or 0) >= 8 then
            return true, row.variant .. " ran with " .. row.params.cluster
          end
        end
      end },
    { "all rows of the textbook kernel are within 10 % of each other", function(rows)
        local least, most, fastest, slowest
        for _, row in ipairs(rows) do
          local ns = is_textbook(row) and median(row)
          if ns and (not least or ns < least) then least, fastest = ns, row end
          if ns and (not most or ns > most) then most, slowest = ns, row end
        end
        if fastest ~= slowest then
          return most <= 1.1 * least, string.format("%s with cluster %s is %s of %s with cluster %s", slowest.variant,
            slowest.params.cluster or "none", percent(most / least), fastest.variant, fastest.params.cluster or "none")
        end
      end },
    { "a cluster of 1 is within 2 % of the baseline", function(rows)
        local worst, name
        for _, row in ipairs(rows) do
          local against = is_textbook(row) and median(row) and row.params.cluster == 1 and row.rates.vs_baseline
          if against and (not worst or math.abs(against.ratio - 1) > math.abs(worst - 1)) then
            worst, name = against.ratio, row.variant
          end
        end
        if worst then return math.abs(worst - 1) <= 0.02, name .. ": " .. percent(worst) end
      end },
    { "collecting in parallel moves no row beyond noise", function(rows)
        local serial, compared = {}, 0
        for _, row in ipairs(rows) do
          if row.variant == "inline" and median(row) then serial[row.params.cluster] = row.rates.vs_baseline end
        end
        for _, row in ipairs(rows) do
          local one, many = serial[row.params.cluster], row.rates and row.rates.vs_baseline
          if row.variant == "parallel" and median(row) and one and many then
            compared = compared + 1
            if one.low > many.high or many.low > one.high then
              return false, string.format("cluster %s: %s", row.params.cluster, percent(many.ratio / one.ratio))
            end
          end
        end
        if compared > 0 then return true, compared .. " cluster sizes: the intervals overlap" end
      end },
  },
}
