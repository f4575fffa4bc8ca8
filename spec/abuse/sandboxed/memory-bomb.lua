-- Keeps everything.
-- ends: ^memory: handlers/NAME%.lua:%d+: handler needed more than limits%.memory = 16MiB
local kept = {}
for i = 1, 1e9 do kept[i] = ("x"):rep(1e6 + i) end
