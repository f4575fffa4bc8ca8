-- Recursion through C.
-- ends: ^error: handlers/NAME%.lua:%d+: .*C stack overflow
local function deeper() return (("x"):gsub("x", deeper)) end
deeper()
