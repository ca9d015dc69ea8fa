-- A tensor map as an argument: 10 x 2 words in rows of 64 bytes; the box at (-4, -1) has zeros outside.
local function expected()
  local t = {}
  for y = -1, 2 do
    for x = -4, 3 do t[#t + 1] = (x >= 0 and y >= 0 and y < 2) and 16 * y + x or 0 end
  end
  return t
end

-- im2col: the box leaves out the last of three pixels of each row.
local function pixels()
  local t = {}
  for _, first in ipairs { 0, 12, 24, 36 } do
    for i = 0, 7 do t[#t + 1] = first + i end
  end
  return t
end

return {
  summary = "tensor maps, for tests",
  params  = { offset = 0, swizzle = "none", type = "s32" },
  buffers = function(p, dev, v)
    return {
      input = { type = "s32", count = 64, fill = "iota", offset_bytes = p.offset },
      out   = { type = "s32", count = 32, expect = values(v.name == "columns" and pixels() or expected()) },
    }
  end,
  launch = function(p, dev, v)
    local map = { buffer = "input", type = p.type, dims = { 10, 2 }, strides = { 64 }, box = { 8, 4 }, swizzle = p.swizzle }
    if v.name == "columns" then
      map = { buffer = "input", dims = { 4, 3, 2, 2 }, strides = { 16, 48, 96 },
              im2col = { lower = { 0, 0 }, upper = { -1, 0 }, channels = 4, pixels = 8 } }
    end
    return { grid = 1, block = 1, args = { { tensor_map = map }, "out" } }
  end,
  variants = {
    { name = "tile", source = "rows.ptx", entry = "tile" },
    { name = "columns", source = "rows.ptx", entry = "columns" },
  },
}
