-- A loop that begins once another one has been compiled.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
local n = 0
for round = 1, 300 do n = n + round end
while n > 0 do n = n + 1 end
