-- Recursion through C that catches its end.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
local function deeper() pcall(deeper) return deeper() end
deeper()
