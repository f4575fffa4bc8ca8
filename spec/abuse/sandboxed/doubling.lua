-- A string that doubles.
-- ends: ^memory: handlers/NAME%.lua:%d+: handler needed more than limits%.memory = 24MiB
local s = "x"
while true do s = s .. s end
