-- Loops in what a pattern calls.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
state.s = (("a"):rep(1e6)):gsub("a", function() for _ = 1, 1e6 do end end)
