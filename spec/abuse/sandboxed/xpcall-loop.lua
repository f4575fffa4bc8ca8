-- Loops where an error is handled.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
xpcall(function() error "first" end, function() while true do end end)
