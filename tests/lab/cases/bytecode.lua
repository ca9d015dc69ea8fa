Lua
-- TWIN: plan.ok.lua
-- EXPECT: error experiment 0 attempt to load a binary chunk (mode is 't')
