-- Asks for a finalizer.
-- ends: ^error: .+
newproxy(true)
