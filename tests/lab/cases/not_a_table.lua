-- TWIN: plan.ok.lua
-- EXPECT: error experiment 3 an experiment file returns a table
return 7
