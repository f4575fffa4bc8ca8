-- Leaves.
-- ends: ^error: .+
os.exit(0)
