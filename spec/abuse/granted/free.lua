-- Frees what is not its own.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(signal %d+, .+%)
local ffi = require "ffi"
ffi.cdef "void free(void *);"
while true do ffi.C.free(ffi.cast("void *", 16)) end
