-- Changes its environment.
-- ends: ^error: .+
setfenv(1, {})
