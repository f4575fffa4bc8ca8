-- Returns a tower of tables.
-- ends: ^%a+: handlers/NAME%.lua:%d+: .+
for _ = 1, 1e5 do state = { state } end
return { deep = state }
