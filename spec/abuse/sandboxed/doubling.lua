-- A string that doubles.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local s = "x"
while true do s = s .. s end
