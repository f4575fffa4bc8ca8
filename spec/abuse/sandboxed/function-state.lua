-- Keeps a function.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
state.f = function() end
