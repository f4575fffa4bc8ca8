-- Metamethods that call themselves.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local t = {}
setmetatable(t, { __index = function(self, key) return self[key .. "x"] end })
state.x = t.a
