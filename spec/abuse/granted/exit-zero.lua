-- Leaves as if all were well.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(exit code 0%)
os.exit(0)
