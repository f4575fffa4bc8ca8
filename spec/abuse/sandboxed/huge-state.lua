-- A state of a hundred megabytes.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
state.blob = ("x"):rep(100 * 2 ^ 20)
