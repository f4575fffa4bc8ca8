-- Writes and reads bytecode.
-- ends: ^error: .+
local made = loadstring(string.dump(function() return 1 end)) state.n = made()
