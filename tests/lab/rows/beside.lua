-- What a row launches besides its kernel, and what its result is held against.
local function doubles(n)
  local t = {}
  for i = 1, n do t[i] = 2 * (i - 1) end
  return t
end

return {
  summary = "companions, references and other oracles, for tests",
  params  = { n = 1000, tolerance = 0, beside = "leave", reference = "twice" },

  buffers = function(p, dev, v)
    local expect = { reference = { source = "rows.ptx", entry = p.reference, grid = 3, block = 64,
                                   args = { "input", "out", u32(p.n) } } }
    if v.name:find("same") then expect = { same_as = "copy" } end
    if v.name:find("beside") then expect = 7 end
    return {
      input = { type = "u32", count = p.n, fill = v.name:find("same") and "iota" or { "iota", "bits(3)" } },
      copy  = { type = "f32", count = p.n, fill = values(doubles(p.n)) },
      flag  = { type = "u32", count = 1 },
      out   = { type = "u32", count = v.name:find("beside") and 1 or p.n, expect = expect,
                tolerance = p.tolerance > 0 and { abs = p.tolerance } or nil },
    }
  end,

  launch = function(p, dev, v)
    if v.name == "beside" then
      return { grid = 1, block = 1, args = { "flag", "out" },
               companion = { source = "rows.ptx", entry = p.beside, grid = 1, block = 1, args = { "flag", u32(7) } } }
    end
    return { grid = 2, block = 128, args = { "input", "out", u32(p.n) } }
  end,

  variants = {
    { name = "right", source = "rows.ptx", entry = "twice" },
    { name = "nearly", source = "rows.ptx", entry = "nearly" },
    { name = "same", source = "rows.ptx", entry = "twice" },
    { name = "not_same", source = "rows.ptx", entry = "nearly" },
    { name = "beside", source = "rows.ptx", entry = "see" },
  },
}
