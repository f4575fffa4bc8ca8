-- Coroutines without end, 100,000 and more.
-- ends: ^%a+: handlers/NAME%.lua:%d+: handler .+
local kept = {}
for i = 1, 1e6 do
  kept[i] = coroutine.create(function() coroutine.yield(("x"):rep(100) .. i) end)
  coroutine.resume(kept[i])
end
