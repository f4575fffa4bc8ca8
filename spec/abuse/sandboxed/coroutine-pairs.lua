-- Two coroutines that call each other for ever.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
local other = coroutine.wrap(function() while true do coroutine.yield() end end)
while true do other() end
