-- Raises nothing.
-- ends: ^error: handlers/NAME%.lua:%d+: error value is nil
error(nil)
