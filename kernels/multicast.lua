-- Every CTA of a cluster needs the same tiles: what arrives, and what is asked for, when each loads them whole, when each
-- loads a share and multicasts it, when one issues everything. Source in L2 or in DRAM (--set source=DRAM); one CTA per SM,
-- the grid clamped to one wave. All variants share one contract: the first nine arguments of common_args.

local KiB, MiB = 1024, 2 ^ 20

-- Rates that this project measured on an H200 (driver 580.159.04, 2026-11-30), in bytes per ns: own loads of tiles in L2
-- by CTAs without clusters, and CUB's sum of 2^31 floats.
local MEASURED = { ["NVIDIA H200"] = { L2 = 9250, DRAM = 4630 } }

local SHAPES = { [1] = { 1, 1 }, [2] = { 2, 1 }, [4] = { 2, 2 }, [8] = { 4, 2 }, [16] = { 4, 4 } }
local SPAN = { none = 128, ["32B"] = 32, ["64B"] = 64, ["128B"] = 128 } -- bytes of a box's row
local MASK = { none = 0, ["32B"] = 1, ["64B"] = 3, ["128B"] = 7 }

-- How a row cuts memory: bytes of a tile, stages of the ring, tiles of the source, rounds.
local function cut(p, dev)
  local tile = p.tile ~= 0 and p.tile or math.min(32 * KiB, p.flight * KiB // 2)
  local stages = p.flight * KiB // tile
  assert(p.source == "L2" or p.source == "DRAM", "source must be L2 or DRAM")
  assert(tile % (16 * KiB) == 0 or next_pow2(tile) == tile, "a tile must be a power of two or a multiple of 16 KiB")
  assert(tile >= 4 * KiB, "a tile must be at least 4 KiB: 16 shares of 256 bytes")
  assert(stages >= 1, "flight, in KiB, must hold a tile")
  -- What is counted does not depend on the size; without a GPU a small one does.
  local source = dev.emulated and 4 * MiB or p.source == "L2" and 16 * MiB or 2048 * MiB
  local rounds = p.rounds ~= 0 and p.rounds or dev.emulated and stages + 2 or 64 * MiB // tile
  assert(rounds >= stages, "there must be as many rounds as stages, or more")
  return { tile = tile, stages = stages, rounds = rounds, source = source, tiles = source // tile }
end

local function shape(p)
  if type(p.cluster) == "table" then return { p.cluster[1], p.cluster[2] or 1 } end
  return SHAPES[p.cluster] or { p.cluster, 1 }
end

-- What each CTA's stage is made of, for the reference: pieces and how CTAs share them.
local function pieces(p, v, c)
  local sharing = v.data and v.data.sharing or "cluster" -- so does a variant added by --with
  if sharing == "none" then
    return { parts = 1, bytes = c.tile, tiles = c.tiles, 1, cluster_size(p.cluster), 1, 1 }
  elseif sharing == "grid" then
    local s = shape(p)
    return { parts = 2, bytes = c.tile // 2, tiles = c.tiles, s[1], s[2], 1, s[1] }
  end
  return { parts = 1, bytes = c.tile, tiles = c.tiles, 1, 1, 1, 1 }
end

local function reference(p, v, c, out, first, count, ctas)
  local s = pieces(p, v, c)
  return { reference = { source = "../ptx/multicast_reference.ptx", entry = "multicast_reference", block = 256,
    grid = { ctas, count },
    args = { "source", out, u32(cluster_size(p.cluster)), u32(first), u32(s.parts), u32(s.bytes), u32(s.tiles),
             u32(s[1]), u32(s[2]), u32(s[3]), u32(s[4]) } } }
end

local function common_args(c)
  return { "source", "digests", "last", "touched", u32(c.rounds), u32(c.stages), u32(c.tile), u32(c.tiles),
           { verify = u32(1), time = u32(0) } }
end

-- So much shared memory that an SM holds one CTA.
local function whole_sm(dev) return (dev.shared_per_sm_bytes or 228 * KiB) // 2 // KiB * KiB + 2 * KiB end

local function at_most(p) return p.ctas > 0 and p.ctas or nil end

local function launch_with(c, dev, args, most, cluster)
  return {
    block = 160, grid = fit { per = "cluster", ctas_per_sm = 1, at_most = most }, cluster = cluster, args = args,
    smem_bytes = math.max(2 * KiB + c.stages * (c.tile + 16), whole_sm(dev)), -- guards, ring, mbarriers
  }
end

local function bulk(p, dev)
  local c = cut(p, dev)
  return launch_with(c, dev, common_args(c), at_most(p))
end

local function tensor(p, dev, v)
  local c, width = cut(p, dev), SPAN[v.data.swizzle]
  local share = v.data.requests == "once" and c.tile // cluster_size(p.cluster) or c.tile
  local rows = math.min(256, share // width)
  local args = common_args(c)
  args[1] = { tensor_map = { buffer = "source", type = "u32", dims = { width // 4, c.source // width }, strides = { width },
                             box = { width // 4, rows }, swizzle = v.data.swizzle } }
  args[10], args[11], args[12], args[13] = u32(width), u32(rows), u32(share // (rows * width)), u32(MASK[v.data.swizzle])
  return launch_with(c, dev, args, at_most(p))
end

local function grid(p, dev)
  local c, s = cut(p, dev), shape(p)
  local args = common_args(c)
  args[10], args[11] = u32(s[1]), u32(s[2])
  return launch_with(c, dev, args, at_most(p), s)
end

-- Bytes asked of L2 by a whole launch, and bytes that land.
local function delivered(p, v, launch, dev)
  local c = cut(p, dev)
  return launch.ctas * c.rounds * c.tile
end

local function requested(p, v, launch, dev)
  local all = delivered(p, v, launch, dev)
  if not v.data then return nil end
  if v.data.requests == "all" then return all end
  if v.data.sharing ~= "grid" then return all // launch.cluster_size end
  local s = shape(p)
  return all // 2 // s[1] + all // 2 // s[2]
end

local COPY = "cp.async.bulk%s.shared::cluster.global.mbarrier::complete_tx::bytes%s"

local function variant(name, source, entry, sharing, requests, about, more)
  local v = { name = name, source = source, entry = entry, requires = "sm_90", about = about,
              must_contain = { string.format(COPY, source:find("tensor") and ".tensor.2d" or "",
                                             requests == "once" and ".multicast::cluster" or "") },
              data = { sharing = sharing, requests = requests },
              accepts = { ["narrow-scope"] = "a stage is released by a remote arrive of default scope: .release.cluster made it 3 to 14 times slower (H200)" } }
  for key, value in pairs(more or {}) do v[key] = value end
  return v
end

local variants = {
  variant("apart", "multicast/apart.cu", "multicast_apart", "none", "all", "no sharing: tiles of its own for each CTA"),
  variant("own", "multicast/own.cu", "multicast_own", "cluster", "all",
          "implicit sharing: each CTA loads the whole of the same tile", { baseline = true }),
  variant("multicast", "multicast/slices.cu", "multicast_slices", "cluster", "once",
          "each CTA loads one part in cluster size and sends it to all, 60 cycles after a stage was freed",
          { options = { "-DPACE_CYCLES=60" } }),
  variant("hasty", "multicast/slices.cu", "multicast_slices", "cluster", "once", "the same as soon as a stage was freed"),
  variant("multicast_ptx", "../ptx/multicast_slices.ptx", "multicast_slices", "cluster", "once", "hasty by hand in PTX"),
  variant("turns", "multicast/turns.cu", "multicast_turns", "cluster", "once",
          "each CTA loads one tile in cluster size whole, and sends it to all"),
  variant("one_issuer", "multicast/issuer.cu", "multicast_issuer", "cluster", "once", "rank 0 loads all and sends it to all"),
  variant("tensor_own", "multicast/tensor.cu", "multicast_tensor_own", "cluster", "all",
          "own, with tensor copies, swizzle 128B",
          { launch = tensor, data = { sharing = "cluster", requests = "all", swizzle = "128B" } }),
}
for _, swizzle in ipairs { "none", "32B", "64B", "128B" } do
  variants[#variants + 1] = variant("tensor_" .. swizzle, "multicast/tensor.cu", "multicast_tensor_slices", "cluster", "once",
    "multicast, with tensor copies, swizzle " .. swizzle,
    { launch = tensor, data = { sharing = "cluster", requests = "once", swizzle = swizzle } })
end
variants[#variants + 1] = variant("grid_own", "multicast/grid.cu", "multicast_grid_own", "grid", "all",
  "rows share A, columns share B: each CTA loads both whole", { launch = grid })
variants[#variants + 1] = variant("grid_masks", "multicast/grid.cu", "multicast_grid_masks", "grid", "once",
  "rows share A, columns share B: shares, multicast by masks", { launch = grid })

-- The ratio of own loads' time to a variant's, for one cluster size, from L2 with 128 KiB under way, where both were timed.
local function gain(rows, name, size)
  for _, row in ipairs(rows) do
    if row.variant == name and row.status == "ok" and row.params.cluster == size and row.params.source == "L2"
       and row.params.flight == 128 and row.rates.vs_baseline then
      return 1 / row.rates.vs_baseline.ratio
    end
  end
end

local function at_least(name, size, factor)
  return { string.format("from L2, multicast delivers %.2f times what own loads do, cluster %d", factor, size),
    function(rows)
      local got = gain(rows, name, size)
      if got then return got >= factor, string.format("%.3f", got) end
    end }
end

return {
  summary = "Tiles that a whole cluster needs: loaded by each CTA, or multicast",
  -- flight: KiB under way per CTA; tile, rounds 0: chosen from it; ctas: at most so many, 0: all that fit
  params  = { source = "L2", flight = 128, tile = 0, rounds = 0, ctas = 0 },
  sweep   = { cluster = { 1, 2, 4, 8, 16 } },
  check   = { flight = 16, tile = 4096, rounds = 5, ctas = 16 },

  buffers = function(p, dev, v, ctas)
    local c, n = cut(p, dev), ctas or 1
    return {
      source  = { type = "u32", count = c.source // 4, fill = { "iota", "random(11)" } },
      digests = { type = "u32", count = n * c.rounds, fill = 0, reset = "launch", verified_only = true,
                  expect = reference(p, v, c, "digests", 0, c.rounds, n) },
      last    = { type = "u32", count = n * c.stages, fill = 0, reset = "launch",
                  expect = reference(p, v, c, "last", c.rounds - c.stages, c.stages, n) },
      touched = { type = "u32", count = n, fill = 0, reset = "launch", expect = 0 },
    }
  end,

  launch = bulk,
  bytes  = function(p, dev, v, ctas)
    local c = cut(p, dev)
    return ctas and ctas * c.rounds * c.tile
  end,
  hot    = false,

  columns = {
    { "CTAs", function(p, v, launch) return launch.ctas end, counter = "ctas" },
    { "bytes requested", requested, counter = "bulk_requested_bytes" },
    { "bytes delivered", delivered, counter = "bulk_delivered_bytes" },
    tb_per_s("TB/s delivered", delivered),
    bytes_per_clock("B/clk/SM", delivered),
    { "asked of L2 rate", timed = true, -- 1: what CTAs without clusters drew from L2; more: merged before it
      value = function(p, v, launch, dev, time)
        local rate, bytes = MEASURED[dev.name], requested(p, v, launch, dev)
        return rate and bytes and bytes / time.ns / rate.L2
      end },
    { "of DRAM rate", timed = true,
      value = function(p, v, launch, dev, time)
        local rate = MEASURED[dev.name]
        if not rate or p.source ~= "DRAM" then return nil end
        local c = cut(p, dev)
        return delivered(p, v, launch, dev) / (v.data and v.data.sharing == "none" and 1 or launch.cluster_size)
               / time.ns / rate.DRAM
      end },
  },

  variants = variants,

  predictions = {
    all_right "every tile arrived whole, and nothing beside it",
    at_least("multicast", 4, 1.10),
    at_least("multicast", 8, 1.15),
    { "from DRAM, multicast gains nothing over own loads", function(rows)
        local most, size
        for _, row in ipairs(rows) do
          if row.variant == "multicast" and row.params.source == "DRAM" and row.status == "ok" and row.rates.vs_baseline then
            local got = 1 / row.rates.vs_baseline.ratio
            if not most or got > most then most, size = got, row.params.cluster end
          end
        end
        if most then return most <= 1.02, string.format("at most %.3f, cluster %d", most, size) end
      end },
  },
}
