-- Ends itself as the kernel does when memory is short.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(.+%)
local ffi = require "ffi"
ffi.cdef "int raise(int);"
ffi.C.raise(9)
