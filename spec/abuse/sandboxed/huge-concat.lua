-- Many strings made into one.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local part = ("x"):rep(2 ^ 20)
local list = {}
for i = 1, 2000 do list[i] = part end
state.s = table.concat(list)
