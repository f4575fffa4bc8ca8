-- A saga per event with a deadline that is due in a while, and a note of each
-- that fired.
local moontide = require "moontide"

return {
  moontide.sql_projection "tables" {
    aggregates = { "outage.thing" },
    tables = "fired.sql",
    on = { ["outage.Never"] = function() end },
  },
  moontide.saga "late" {
    aggregates = { "outage.thing" },
    id = function(event) return event.key end,
    starts = { "outage.Put" },
    on = { ["outage.Put"] = function(saga, event) saga:deadline("late", event.payload.due) end },
    deadlines = {
      late = function(saga, _, ctx)
        saga.state.fired = (saga.state.fired or 0) + 1
        ctx:execute("INSERT INTO fired (thing) VALUES (?)", saga.id)
      end,
    },
  },
}
