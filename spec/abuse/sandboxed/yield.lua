-- Yields to whom nobody knows.
-- ends: ^error: handlers/NAME%.lua:%d+: .*a handler may not yield
coroutine.yield(1)
