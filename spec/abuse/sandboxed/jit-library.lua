-- Turns the compiler on.
-- ends: ^error: .+
jit.on()
