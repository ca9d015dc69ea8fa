-- C = A B by CTAs that come in pairs: different rows of A, the same columns of B. B's tiles are loaded by each CTA, or half
-- by each and shared. In f32 with FMA, bound by arithmetic: what is promised is bytes. In bf16 with wgmma (sm_90a), with
-- tiles so flat that B's traffic limits: time moves too.

local PAIR = { 2, 1, 1 }

-- Without a GPU a small product does: what is counted, and that the bits are right, does not depend on the size.
local function sizes(p, dev, v)
  local small = dev.emulated and 128 or nil
  local m, n, k = p.m, p.n, p.k
  if m == 0 then m = small or (v.data and v.data.bf16) and 4096 or 2048 end
  if n == 0 then n = small or (v.data and v.data.bf16) and 4096 or 2048 end
  if k == 0 then k = small or (v.data and v.data.bf16) and 4096 or 1024 end
  local unit = (v.data and v.data.bf16) and { 128, 256, 64 } or { 128, 64, 16 }
  assert(m % unit[1] == 0 and n % unit[2] == 0 and k % unit[3] == 0,
         string.format("m, n and k must be multiples of %d, %d and %d", unit[1], unit[2], unit[3]))
  return m, n, k
end

local function f32_launch(p, dev, v)
  local m, n, k = sizes(p, dev, v)
  local paired = not v.data or v.data.paired -- a variant added by --with is a pair's
  return {
    block = 256, grid = { m // 64, n // 64 }, cluster = paired and PAIR or false,
    args = { "a", { tensor_map = { buffer = "b", dims = { n, k }, strides = { 4 * n },
                                   box = { 64, (not v.data or v.data.half) and 8 or 16 } } }, "c", u32(n), u32(k) },
  }
end

local function bf16_launch(p, dev, v)
  local m, n, k = sizes(p, dev, v)
  return {
    block = 160, grid = { n // 256, m // 64 }, cluster = v.data.paired and { 1, 2, 1 } or false, smem_bytes = 5 * (40 * 1024 + 16),
    args = { { tensor_map = { buffer = "a", dims = { k, m }, strides = { 2 * k }, box = { 64, 64 }, swizzle = "128B" } },
             { tensor_map = { buffer = "b", dims = { k, n }, strides = { 2 * k }, box = { 64, v.data.half and 128 or 256 },
                              swizzle = "128B" } }, "c", u32(n), u32(k) },
  }
end

-- Bytes of B that a launch asks for: its tiles' columns once for each CTA, or once for each pair.
local function asked_of_b(p, dev, v)
  local m, n, k = sizes(p, dev, v)
  if v.data.bf16 then return m // 64 * n * k * 2 // (v.data.half and 2 or 1) end
  return m // 64 * n * k * 4 // (v.data.half and 2 or 1)
end

-- What bulk copies ask for: B, and in bf16 A too; what dsmem passes on to the peer counts as well.
local function bulk_bytes(p, v, launch, dev)
  if not v.data then return nil end
  local m, n, k = sizes(p, dev, v)
  local b = asked_of_b(p, dev, v)
  if v.data.bf16 then return b + n // 256 * m * k * 2 end
  return v.data.passes and 2 * b or b
end

local function variant(name, source, entry, about, data, more)
  local v = { name = name, source = source, entry = entry, requires = data.bf16 and "sm_90a" or "sm_90", about = about,
              cluster = false, data = data, launch = data.bf16 and bf16_launch or f32_launch,
              against = data.bf16 and "wgmma_own" or "own",
              accepts = { ["narrow-scope"] = "a stage is released by a remote arrive of default scope: .release.cluster made it 3 to 14 times slower (H200)" },
              must_contain = { "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" ..
                               (data.half and not data.passes and ".multicast::cluster" or "") } }
  if data.bf16 then
    v.must_contain[2] = "wgmma.mma_async"
    v.waive = function(p, dev) return dev.emulated and "the stand-in driver does not run wgmma" end
  end
  for key, value in pairs(more or {}) do v[key] = value end
  return v
end

local function ratio(rows, name)
  for _, row in ipairs(rows) do
    if row.variant == name and row.status == "ok" and row.rates.vs_baseline then return row.rates.vs_baseline.ratio end
  end
end

return {
  summary = "C = A B by pairs of CTAs that share B's tiles, or do not",
  params  = { m = 0, n = 0, k = 0 }, -- 0: chosen
  check   = { m = 128, n = 64, k = 96 },

  buffers = function(p, dev, v)
    local m, n, k = sizes(p, dev, v)
    local bf16 = v.data and v.data.bf16
    local name = bf16 and "tile_matmul_reference_bf16" or "tile_matmul_reference"
    local type = bf16 and "bf16" or "f32"
    return {
      a = { type = type, count = m * k, fill = { "bits(3)", "random(5)" } },
      b = { type = type, count = n * k, fill = { "bits(4)", "random(6)" } },
      c = { type = "f32", count = m * n, fill = 0, tolerance = bf16 and { rel = 2e-3, abs = 1e-3 } or nil,
            expect = { reference = { source = "../ptx/" .. name .. ".ptx", entry = name, block = 64,
                                     grid = { n // 64, m }, args = { "a", "b", "c", u32(n), u32(k) } } } },
    }
  end,
  launch = f32_launch,
  bytes  = function(p, dev, v) return v.data and bulk_bytes(p, v, nil, dev) end,

  columns = {
    { "B bytes requested", function(p, v, launch, dev) return v.data and asked_of_b(p, dev, v) end },
    { "bulk bytes requested", bulk_bytes, counter = "bulk_requested_bytes" },
    { "TFLOP/s", timed = true,
      value = function(p, v, launch, dev, time)
        local m, n, k = sizes(p, dev, v)
        return 2 * m * n * k / time.ns / 1000
      end },
  },

  variants = {
    variant("own", "tile_matmul/f32.cu", "tile_matmul_own", "f32: no cluster, each CTA loads B's tiles whole", {},
            { baseline = true }),
    variant("own_pair", "tile_matmul/f32.cu", "tile_matmul_own", "f32: the same launched as pairs", { paired = true }),
    variant("multicast", "tile_matmul/f32.cu", "tile_matmul_multicast", "f32: each CTA loads half and multicasts it",
            { paired = true, half = true }),
    variant("multicast_ptx", "../ptx/tile_matmul_multicast.ptx", "tile_matmul_multicast", "the same by hand in PTX",
            { paired = true, half = true }),
    variant("dsmem", "tile_matmul/f32.cu", "tile_matmul_dsmem", "f32: each CTA loads half and copies it on to its peer",
            { paired = true, half = true, passes = true }),
    variant("wgmma_own", "tile_matmul/wgmma.cu", "tile_matmul_wgmma_own", "bf16: no cluster, B's tiles whole", { bf16 = true }),
    variant("wgmma_own_pair", "tile_matmul/wgmma.cu", "tile_matmul_wgmma_own", "bf16: the same launched as pairs",
            { bf16 = true, paired = true }),
    variant("wgmma_multicast", "tile_matmul/wgmma.cu", "tile_matmul_wgmma_multicast",
            "bf16: each CTA loads half and multicasts it", { bf16 = true, paired = true, half = true }),
  },

  predictions = {
    all_right "every product is right, f32 to the bit",
    { "in f32, sharing B moves no time (5 %)", function(rows)
        local got = ratio(rows, "multicast")
        if got then return math.abs(got - 1) <= 0.05, string.format("%+.1f %%", 100 * (got - 1)) end
      end },
    { "in bf16, sharing B takes a tenth of the time away or more", function(rows)
        local got = ratio(rows, "wgmma_multicast")
        if got then return got <= 0.9, string.format("%+.1f %%", 100 * (got - 1)) end
      end },
  },
}
