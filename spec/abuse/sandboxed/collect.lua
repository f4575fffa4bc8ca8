-- Collects garbage for ever.
-- ends: ^error: .+
while true do collectgarbage() end
