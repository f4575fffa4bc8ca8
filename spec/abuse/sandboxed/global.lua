-- Makes a global.
-- ends: ^error: .+
leaked = true
