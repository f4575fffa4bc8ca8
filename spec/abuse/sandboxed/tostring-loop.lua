-- Loops when it is asked what its error says.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
error(setmetatable({}, { __tostring = function() while true do end end }))
