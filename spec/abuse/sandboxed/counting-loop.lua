-- A loop of arithmetic, which a compiler takes.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
local n = 0
for i = 1, 1e18 do n = n + i % 3 end
state.n = n
