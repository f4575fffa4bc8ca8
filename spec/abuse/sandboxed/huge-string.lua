-- A string that no Lua has.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
state.s = ("x"):rep(2 ^ 31)
