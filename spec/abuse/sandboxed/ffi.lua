-- Asks for the library that has all of memory.
-- ends: ^error: .+
require("ffi").cdef "int abort(void);"
