-- Takes the watch away.
-- ends: ^error: .+
debug.sethook()
