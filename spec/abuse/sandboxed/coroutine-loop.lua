-- Loops in coroutines within coroutines.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
local function nested(depth)
  if depth == 0 then while true do end end
  coroutine.wrap(nested)(depth - 1)
end
nested(20)
