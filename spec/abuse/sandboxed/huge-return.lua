-- Returns what is too large to be kept.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local list = {}
for i = 1, 100 do list[i] = ("x"):rep(2 ^ 18) .. i end
return { list = list }
