-- Put before a handler file by scripts/bench: its handlers fail for the
-- positions and the keys of POISON, which a line above this one sets.
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

