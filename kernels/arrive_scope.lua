-- The multicast pipeline with its consumer's release, and its waits, written in different ways. All variants share one
-- contract: that of kernels/multicast.lua.

local KiB, MiB = 1024, 2 ^ 20

local function cut(p, dev)
  local stages = p.flight * KiB // p.tile
  assert(p.tile >= 4 * KiB and next_pow2(p.tile) == p.tile, "a tile must be a power of two of at least 4 KiB")
  assert(stages >= 1, "flight, in KiB, must hold a tile")
  local rounds = p.rounds ~= 0 and p.rounds or dev.emulated and stages + 2 or 48 * MiB // p.tile
  assert(rounds >= stages, "there must be as many rounds as stages, or more")
  return { stages = stages, rounds = rounds, tiles = (dev.emulated and 4 or 16) * MiB // p.tile }
end

local function reference(p, out, first, count, tiles, ctas)
  return { reference = { source = "../ptx/multicast_reference.ptx", entry = "multicast_reference", block = 256,
    grid = { ctas, count },
    args = { "source", out, u32(cluster_size(p.cluster)), u32(first), u32(1), u32(p.tile), u32(tiles),
             u32(1), u32(1), u32(1), u32(1) } } }
end

local COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
local FORMS = {
  { "default", "DEFAULT", "mbarrier.arrive.shared::cluster", "default scope, which is .cta" },
  { "relaxed", "RELAXED", "mbarrier.arrive.relaxed.cluster", ".relaxed.cluster" },
  { "release", "RELEASE", "mbarrier.arrive.release.cluster", ".release.cluster" },
}

local variants = {}
for _, form in ipairs(FORMS) do
  for _, loop in ipairs { false, true } do
    for _, acquire in ipairs { false, true } do
      if not (loop and form[1] == "relaxed") then
        local options = { "-DARRIVE_" .. form[2] }
        if loop then options[#options + 1] = "-DONE_THREAD" end
        if acquire then options[#options + 1] = "-DACQUIRE_CLUSTER" end
        variants[#variants + 1] = {
          accepts = { ["narrow-scope"] = "what a narrower scope saves is the question here" },
          name = form[1] .. (loop and "_loop" or "") .. (acquire and "_acquire" or ""),
          source = "arrive_scope/pipeline.cu", entry = "arrive_scope", requires = "sm_90", options = options,
          must_contain = { COPY, form[3], acquire and "mbarrier.try_wait.parity.acquire.cluster" or "mbarrier.try_wait" },
          baseline = #variants == 0,
          about = "release: " .. form[4] .. (loop and ", one thread in a loop" or ", one lane per peer") ..
                  "; waits: " .. (acquire and ".acquire.cluster" or "default"),
        }
      end
    end
  end
end
variants[#variants + 1] = { name = "relaxed_ptx", accepts = { ["narrow-scope"] = "what a narrower scope saves is the question here" }, source = "../ptx/arrive_scope_relaxed.ptx", entry = "arrive_scope_relaxed",
  requires = "sm_90", must_contain = { COPY, "mbarrier.arrive.relaxed.cluster" }, about = "relaxed by hand in PTX" }

local function delivered(p, v, launch, dev) return launch.ctas * cut(p, dev).rounds * p.tile end

return {
  summary = "How a consumer tells its cluster that a stage is free, and what each way of writing it costs",
  -- flight: KiB under way per CTA; rounds 0: chosen; ctas: at most so many, 0: all that fit
  params  = { flight = 128, tile = 32768, rounds = 0, ctas = 0 },
  sweep   = { cluster = { 2, 4, 8, 16 } },
  check   = { flight = 16, tile = 4096, rounds = 5, ctas = 16 },

  buffers = function(p, dev, v, ctas)
    local c, n = cut(p, dev), ctas or 1
    return {
      source  = { type = "u32", count = c.tiles * p.tile // 4, fill = { "iota", "random(11)" } },
      digests = { type = "u32", count = n * c.rounds, fill = 0, reset = "launch", verified_only = true,
                  expect = reference(p, "digests", 0, c.rounds, c.tiles, n) },
      last    = { type = "u32", count = n * c.stages, fill = 0, reset = "launch",
                  expect = reference(p, "last", c.rounds - c.stages, c.stages, c.tiles, n) },
      touched = { type = "u32", count = n, fill = 0, reset = "launch", expect = 0 },
    }
  end,

  launch = function(p, dev)
    local c = cut(p, dev)
    return {
      block = 160, grid = fit { per = "cluster", ctas_per_sm = 1, at_most = p.ctas > 0 and p.ctas or nil },
      -- guards, ring, mbarriers; at least so much that an SM holds one CTA
      smem_bytes = math.max(2 * KiB + c.stages * (p.tile + 16), (dev.shared_per_sm_bytes or 228 * KiB) // 2 // KiB * KiB + 2 * KiB),
      args = { "source", "digests", "last", "touched", u32(c.rounds), u32(c.stages), u32(p.tile), u32(c.tiles),
               { verify = u32(1), time = u32(0) } },
    }
  end,
  bytes = function(p, dev, v, ctas) return ctas and ctas * cut(p, dev).rounds * p.tile end,
  hot   = false,

  columns = {
    { "CTAs", function(p, v, launch) return launch.ctas end, counter = "ctas" },
    { "bytes requested", function(p, v, launch, dev) return delivered(p, v, launch, dev) // launch.cluster_size end,
      counter = "bulk_requested_bytes" },
    { "bytes delivered", delivered, counter = "bulk_delivered_bytes" },
    tb_per_s("TB/s delivered", delivered),
    bytes_per_clock("B/clk/SM", delivered),
  },

  variants = variants,

  predictions = {
    all_right "every tile arrived whole, and nothing beside it",
    { ".relaxed.cluster costs what the default scope does (3 %)", function(rows)
        local worst, size = worst_ratio(rows, "relaxed")
        if worst then return worst <= 1.03, string.format("at most %.3f, cluster %d", worst, size) end
      end },
    { ".release.cluster from one thread in a loop, waits with .acquire.cluster: three times or more", function(rows)
        local worst, size = worst_ratio(rows, "release_loop_acquire")
        if worst then return worst >= 3, string.format("up to %.2f, cluster %d", worst, size) end
      end },
  },
}
