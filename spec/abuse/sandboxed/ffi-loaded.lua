-- Asks for it where it may lie loaded.
-- ends: ^error: .+
package.loaded.ffi.cdef "int abort(void);"
