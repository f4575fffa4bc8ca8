-- Catches whatever ends its loop, for ever.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
while true do pcall(function() while true do end end) end
