-- Loops where memory is collected.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
local ffi = require "ffi"
for _ = 1, 100 do ffi.gc(ffi.new "int[1]", function() while true do end end) end
local n = 0
while true do n = #(("x"):rep(n % 1000 + 1)) end
