-- Reads bytecode.
-- ends: ^error: .+
load("\27LJ\2\2", "x")()
