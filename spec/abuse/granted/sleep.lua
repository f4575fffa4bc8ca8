-- Waits in C.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
require("ffi").cdef "unsigned sleep(unsigned);" while true do require("ffi").C.sleep(100) end
