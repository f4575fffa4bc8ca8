-- Opens a file.
-- ends: ^error: .+
io.open("/etc/passwd")
