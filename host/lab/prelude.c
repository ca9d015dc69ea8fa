/* What several experiments say in the same words: columns of rates, a prediction that every row is right, the
   worst ratio of a variant. host/lab/README.md ("Helpers") has the contract of each. */
#include "lab/prelude.h"

#include <lauxlib.h>

static const char source[] =
    "local function need(name, bytes)\n"
    "  if type(name) ~= 'string' then error('wanted the name of a column, got a ' .. type(name), 3) end\n"
    "  if type(bytes) ~= 'function' then\n"
    "    error(name .. ': wanted a function of (p, v, launch, dev) for its bytes, got a ' .. type(bytes), "
    "3)\n"
    "  end\n"
    "end\n"
    /* Bytes over the measured time, in TB/s; nil where there are no bytes to tell. */
    "function tb_per_s(name, bytes)\n"
    "  need(name, bytes)\n"
    "  return { name, timed = true, value = function(p, v, launch, dev, time)\n"
    "    local n = bytes(p, v, launch, dev)\n"
    "    return n and n / time.ns / 1000\n"
    "  end }\n"
    "end\n"
    /* Bytes per clock of an SM and CTA; nil where the clock was not measured. */
    "function bytes_per_clock(name, bytes)\n"
    "  need(name, bytes)\n"
    "  return { name, timed = true, value = function(p, v, launch, dev, time)\n"
    "    local n = time.sm_mhz and bytes(p, v, launch, dev)\n"
    "    return n and n / (time.ns * time.sm_mhz / 1000) / launch.ctas\n"
    "  end }\n"
    "end\n"
    /* The prediction that no row is wrong: not measured while none is ok. */
    "function all_right(text)\n"
    "  return { text, function(rows)\n"
    "    local right = 0\n"
    "    for _, row in ipairs(rows) do\n"
    "      if row.status == 'wrong' then return false, row.variant .. ': ' .. row.reason end\n"
    "      if row.status == 'ok' then right = right + 1 end\n"
    "    end\n"
    "    if right > 0 then return true, right .. ' rows' end\n"
    "  end }\n"
    "end\n"
    /* The greatest vs_baseline of a variant's measured rows, and that row's cluster; nil without one. */
    "function worst_ratio(rows, variant)\n"
    "  local worst, size\n"
    "  for _, row in ipairs(rows) do\n"
    "    local against = row.variant == variant and row.status == 'ok' and row.rates.vs_baseline\n"
    "    if against and (not worst or against.ratio > worst) then worst, size = against.ratio, "
    "row.params.cluster end\n"
    "  end\n"
    "  return worst, size\n"
    "end\n";

const char *const clab_prelude_names[] = {"tb_per_s", "bytes_per_clock", "all_right", "worst_ratio", NULL};

void clab_prelude_load(lua_State *L)
{
    if (luaL_loadbufferx(L, source, sizeof source - 1, "=" CLAB_PRELUDE_CHUNK, "t") != LUA_OK)
        lua_error(L);
    lua_call(L, 0, 0);
}
