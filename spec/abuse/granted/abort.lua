-- Aborts.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(signal 6, Aborted%)
require("ffi").cdef "void abort(void);" require("ffi").C.abort()
