-- Takes a function of the table library away.
-- ends: ^error: .+
table.insert = nil
