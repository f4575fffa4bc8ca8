-- Recursion without end.
-- ends: ^error: handlers/NAME%.lua:%d+: .*stack overflow
local function deeper() return 1 + deeper() end
deeper()
