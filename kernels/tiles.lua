-- Who computes which tile. A grid of tiles of different costs; each is computed once, by a CTA per tile, by CTAs with
-- fixed shares, by CTAs that draw from a counter, or by CTAs that take over those that have not started (cluster launch
-- control, compute capability 10.0 and up). One CTA per SM, forced by shared memory.

local UNIT_NS = 20000 -- the shortest tile on a GPU, at its highest clock
local STEP_CYCLES = 4 -- a dependent multiply-add

-- As good as random, and the same everywhere (the finaliser of splitmix64).
local function scatter(i)
  local z = (i + 1) * 0x9e3779b97f4a7c15
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31)
end

-- Costs in units, of tile i of n; the longest is at most 2 % of all work / SMs, but in the profile that is about it.
local profiles = {
  uniform    = function(i, n, sms) return 1 end,
  remainder  = function(i, n, sms) return 1 end, -- half an SM count too many
  triangular = function(i, n, sms) return 1 + i % 16 end, -- causal attention: 16 rows a head, each longer than the last
  heavy      = function(i, n, sms) return scatter(i) & 31 == 0 and 50 or 1 end, -- one tile in 32 costs 50 times the others
  long_last  = function(i, n, sms) return i == n - 1 and math.max(1, n // (2 * sms)) or 1 end, -- half an SM's share
}
-- Tiles per SM: on a GPU as many as the 2 % ask for; on an emulated device fewer, which keeps the shape, unless gpu_sizes asks
-- for a GPU's.
local per_sm = {
  gpu      = { uniform = 60, remainder = 60, triangular = 96, heavy = 1000, long_last = 60 },
  emulated = { uniform = 12, remainder = 8, triangular = 8, heavy = 16, long_last = 12 },
}

-- Whether sizes are those of an emulated device.
local function is_small(p, dev) return dev.emulated ~= false and not p.gpu_sizes end
local function is_emulated(dev) return dev.emulated ~= false end

local function tile_count(p, dev)
  local sms = dev.sms or 132
  local n = p.tiles
  if n == 0 then
    n = sms * per_sm[is_small(p, dev) and "emulated" or "gpu"][p.profile] + (p.profile == "remainder" and sms // 2 or 0)
  end
  return round_up(n, 2) -- a multiple of the largest cluster
end

local function costs(p, dev)
  local cost = assert(profiles[p.profile], "profile must be uniform, remainder, triangular, heavy or long_last")
  local n, list = tile_count(p, dev), {}
  for i = 0, n - 1 do list[i + 1] = cost(i, n, dev.sms or 132) end
  return list
end

local function block_of(p, dev)
  if p.block > 0 then return p.block end
  return is_small(p, dev) and 64 or is_emulated(dev) and 32 or 128
end

-- Rounds of a unit: of 32 steps, or of 128 bytes a thread. On a GPU a unit takes at least UNIT_NS.
local function rounds(p, dev)
  if p.rounds > 0 then return p.rounds end
  if is_small(p, dev) then return p.memory and 8 or 40 end
  if p.memory then
    local bytes = 4800 / (dev.sms or 132) * UNIT_NS -- of an SM's share of 4.8 TB/s
    return ceil_div(math.ceil(bytes), 128 * block_of(p, dev))
  end
  return ceil_div(UNIT_NS * ((dev.clock_khz or 1980000) // 1000), 32 * STEP_CYCLES * 1000)
end

local function words(p, dev)
  if not p.memory then return 2 ^ 16 // 1 end
  return (is_small(p, dev) and 2 ^ 18 or 2 ^ 28) // 1 -- a GiB: no L2 holds it
end

local function smem(dev) return (dev.shared_per_sm_bytes or 233472) // 2 end -- two do not fit an SM

local function launch(p, dev, grid)
  local n = tile_count(p, dev)
  return {
    block = block_of(p, dev), grid = grid, smem_bytes = smem(dev),
    args = { "cost", "result", "done", "handed", "log", "input", "next", u32(n), u32(rounds(p, dev)), u32(words(p, dev)),
             u32(p.memory and 1 or 0) },
    companion = p.hold > 0 and {
      source = "tiles/hold.cu", entry = "tiles_hold", grid = p.hold, block = 32, smem_bytes = smem(dev),
      args = { "log", u32(n), u32(p.hold_us) },
    } or nil,
  }
end

local function one_per_tile(p, dev) return launch(p, dev, tile_count(p, dev)) end
local function two_per_cluster(p, dev)
  local both = one_per_tile(p, dev)
  both.cluster = 2
  return both
end
local function one_per_sm(p, dev) return launch(p, dev, fit { per = "cta", at_most = tile_count(p, dev) }) end

-- Requests that must be granted: every CTA that does not start is taken over by one that did. Nil where the stand-in
-- driver was told to do otherwise.
local function all_but_resident(p, v, launch, dev)
  local options = dev.options or {}
  if v.data and v.data.clc and not options.decline and dev.emulated then
    return math.max(0, launch.clusters - dev.sms // launch.cluster_size)
  end
end

local function measured(row)
  return row.status == "ok" and row.timeline and row.timeline.kind == "measured" and row.timeline.over_bound or nil
end
local dynamic = { counter = true, counter_early = true, clc = true, clc_ptx = true, clc_late = true, clc_cg = true }

-- A row's time over the bound for all rows of its profile: their work at the least cost that any of them had for it.
local function over_common_bound(rows, row)
  local unit
  for _, other in ipairs(rows) do
    if measured(other) and other.params.profile == row.params.profile then
      unit = math.min(unit or 1e18, other.timeline.unit_ns)
    end
  end
  local t = row.timeline
  local bound = math.max((t.cost * unit + t.held_ns) / row.device.sms, t.longest_ns)
  return row.time.cold_ns.median / bound
end

local function clc(name, source, about)
  return { name = name, source = source, entry = name == "clc_ptx" and "tiles_clc" or "tiles_" .. name, cluster = false,
           requires = "sm_100", must_contain = { "clusterlaunchcontrol.try_cancel" }, data = { clc = true }, about = about }
end

return {
  summary = "Tiles of different costs: a CTA each, fixed shares, a counter, cluster launch control",
  -- block, tiles, rounds: 0 as the profile and the device ask for. hold: SMs that a second kernel keeps for the first hold_us.
  -- gpu_sizes: an emulated device gets a GPU's tiles and rounds too (minutes), with blocks of 32.
  params  = { block = 0, tiles = 0, rounds = 0, memory = false, hold = 0, hold_us = 1000, gpu_sizes = false },
  sweep   = { profile = { "uniform", "remainder", "triangular", "heavy", "long_last" } },
  check   = { tiles = 192, rounds = 2 }, -- more than a B200 holds at once: there is something to take

  buffers = function(p, dev)
    local cost = costs(p, dev)
    local n, block = #cost, block_of(p, dev)
    assert(block % 32 == 0 and block >= 32 and block <= 1024, "block must be a multiple of 32 from 32 to 1024")
    assert(p.hold >= 0 and p.hold_us >= 0, "hold and hold_us must not be negative")
    return {
      cost   = { type = "u32", count = n, fill = values(cost) },
      input  = { type = "u32", count = words(p, dev), fill = { "iota", "bits(7)" } },
      result = { type = "u32", count = n, fill = 0, reset = "launch", expect = { reference = {
        source = "tiles/reference.cu", entry = "tiles_reference", block = 256, grid = ceil_div(n, 8),
        args = { "cost", "result", "input", u32(n), u32(rounds(p, dev)), u32(words(p, dev)), u32(p.memory and 1 or 0),
                 u32(block) } } } },
      done   = { type = "u32", count = n, fill = 0, reset = "launch", expect = 1 }, -- every tile exactly once
      handed = { type = "u32", count = 1, fill = 0, reset = "launch", expect = n }, -- launched + taken over, or drawn
      next   = { type = "u32", count = 1, fill = 0, reset = "launch" },
      log    = { type = "u64", count = 4 * (n + p.hold), fill = 0 },
    }
  end,

  launch  = one_per_tile,
  waive   = function(p, dev)
    if p.hold > 0 and is_emulated(dev) then
      return "a companion kernel holds SMs, and the stand-in driver runs it to its end first"
    end
  end,
  timeline = { log = "log", costs = "cost", item = "tile" },
  columns = {
    { "granted", all_but_resident, counter = "clc_granted", at_least = true },
    { "declined", function() end, counter = "clc_declined" },
  },

  variants = {
    { name = "grid", source = "tiles/grid.cu", entry = "tiles_grid", cluster = false, baseline = true,
      about = "one CTA per tile: the hardware hands them out" },
    { name = "static", source = "tiles/static.cu", entry = "tiles_static", cluster = false, launch = one_per_sm,
      about = "persistent CTAs with fixed shares: own index, then every grid-th tile" },
    { name = "counter", source = "tiles/counter.cu", entry = "tiles_counter", cluster = false, launch = one_per_sm,
      about = "persistent CTAs that draw from one global counter between tiles" },
    { name = "counter_early", source = "tiles/counter_early.cu", entry = "tiles_counter_early", cluster = false,
      launch = one_per_sm, about = "the same, drawing shortly before a tile ends" },
    clc("clc", "tiles/clc.cu", "cluster launch control: ask first, then compute"),
    clc("clc_ptx", "../ptx/tiles_clc.ptx", "the same by hand in PTX"),
    clc("clc_late", "tiles/clc_late.cu", "compute first, then ask: the latency shows"),
    { name = "clc_cluster", source = "tiles/clc_cluster.cu", entry = "tiles_clc_cluster", cluster = false, launch = two_per_cluster,
      requires = "sm_100f", must_contain = { "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all" }, data = { clc = true },
      about = "clusters of 2; one asks, both are answered; three requests under way" },
    { name = "clc_cg", source = "tiles/clc_cg.cu", entry = "tiles_clc_cg", cluster = false, requires = "sm_100",
      must_contain = { "clusterlaunchcontrol.try_cancel" }, data = { clc = true }, options = { "--device-int128" },
      about = "libcu++: cuda::for_each_canceled_block" },
  },

  predictions = {
    { "every tile is computed exactly once", function(rows)
        local right = 0
        for _, row in ipairs(rows) do
          if row.status == "wrong" then return false, row.variant .. ", " .. row.params.profile .. ": " .. row.reason end
          if row.status == "ok" then right = right + 1 end
        end
        if right > 0 then return true, right .. " rows" end
      end },
    { "a tile takes at least 20 us", function(rows)
        local least
        for _, row in ipairs(rows) do
          if measured(row) then least = math.min(least or 1e18, row.timeline.shortest_ns) end
        end
        if least then return least >= UNIT_NS, string.format("the shortest took %.1f us", least / 1000) end
      end },
    { "fixed shares are 10 % over the lower bound on triangular and heavy costs", function(rows)
        local least
        for _, row in ipairs(rows) do
          if row.variant == "static" and (row.params.profile == "triangular" or row.params.profile == "heavy") then
            local over = measured(row)
            if over then least = math.min(least or 1e9, over) end
          end
        end
        if least then return least >= 1.1, string.format("at least %.3f", least) end
      end },
    { "the best dynamic form, its launch included, is within 3 % of the lower bound on triangular and heavy costs",
      function(rows)
        local best, text = {}, {}
        for _, row in ipairs(rows) do
          local profile = row.params.profile
          if dynamic[row.variant] and measured(row) and (profile == "triangular" or profile == "heavy") then
            best[profile] = math.min(best[profile] or 1e9, over_common_bound(rows, row))
          end
        end
        local held = best.triangular and best.heavy and true or nil
        for profile, over in pairs(best) do
          held = held and over <= 1.03
          text[#text + 1] = string.format("%s: %.3f", profile, over)
        end
        return held, table.concat(text, ", ")
      end },
  },
}
