-- Leaves, as if all were well or not.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(exit code 3%)
os.exit(3)
