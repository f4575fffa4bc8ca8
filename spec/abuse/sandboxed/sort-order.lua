-- Sorts by an order that is none, for ever.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local list = {}
for i = 1, 1e5 do list[i] = i % 7 end
while true do pcall(table.sort, list, function() return true end) end
