-- Makes a global past the metatable.
-- ends: ^error: .+
rawset(_G, "leaked", true)
