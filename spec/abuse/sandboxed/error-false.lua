-- Raises no.
-- ends: ^error: handlers/NAME%.lua:%d+: error value is false
error(false)
