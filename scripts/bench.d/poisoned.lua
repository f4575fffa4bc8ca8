-- Put before a handler file by scripts/bench, which fills the line below and
-- leaves out the last one: its handlers fail for these positions and keys.
local POISON = { attempts = 0, positions = {}, keys = {} }

local function poisoned(handlers)
  local positions, keys, attempts = POISON.positions, POISON.keys, POISON.attempts
  for event_type, handler in pairs(handlers) do
    handlers[event_type] = function(state, event, ctx)
      if (positions[event.position] or keys[event.key]) and ctx.attempt <= attempts then
        error "poisoned by the bench"
      end
      return handler(state, event, ctx)
    end
  end
  return handlers
end

return poisoned
