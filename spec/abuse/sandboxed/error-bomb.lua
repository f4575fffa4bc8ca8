-- An error value that is a tower of tables.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local t = {}
for i = 1, 1e5 do t = { t, ("x"):rep(10) } end
error(t)
