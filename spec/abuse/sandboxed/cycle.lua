-- Keeps itself in itself.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
state.me = state
