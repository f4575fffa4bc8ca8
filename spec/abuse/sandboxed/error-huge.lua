-- Raises five megabytes.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
error(("x"):rep(5 * 2 ^ 20))
