-- Raises when it is asked what its error says.
-- ends: ^error: handlers/NAME%.lua:%d+: .+
error(setmetatable({}, { __tostring = function() error "again" end }))
