-- Yields out of a sort.
-- ends: ^error: handlers/NAME%.lua:%d+: .*a handler may not yield
coroutine.wrap(function() table.sort({ 3, 2, 1 }, function() coroutine.yield() end) end)()
