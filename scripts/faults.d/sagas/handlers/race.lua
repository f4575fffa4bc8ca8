-- Sagas that end by an answer or by the deadline for it, whichever comes first,
-- and begin anew under the same id. Each step is noted by the database's clock.
local moontide = require "moontide"

local BURN = 20000 -- so that answers come while others' deadlines fire

local NOTE = {}
for dialect, now in pairs {
  sqlite = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
  postgres = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
  mysql = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
} do
  NOTE[dialect] = "INSERT INTO races (thing, what, round, of_round, due_us, noted_us) VALUES (?, ?, ?, ?, ?, "
    .. now .. ")"
end

local function burn()
  local sum = 0
  for i = 1, BURN do sum = sum + i % 7 end
  return sum
end

local function note(saga, ctx, what, round)
  ctx:execute(NOTE, saga.id, what, round, saga.state.round, saga.state.due_us)
end

return {
  moontide.publisher "relay" { to = "stdout:" },

  moontide.saga "race" {
    aggregates = { "hosts.race" },
    id = function(event) return event.key end,
    starts = { "race.Started" },
    on = {
      -- comes twice, and is told by two sagas under one id
      ["race.Started"] = function(saga, event, ctx)
        local told = event.payload
        ctx:publish("relay", "race.Told", { pair = told.pair, round = told.round },
          { id = told.message, ordering_key = told.pair })
        if saga.state.round then return note(saga, ctx, "started again", told.round) end
        saga.state.round, saga.state.due_us = told.round, told.due_us
        saga:deadline("answer", told.due, { round = told.round })
        if told.reminder then saga:deadline("reminder", told.reminder, { round = told.round }) end
        note(saga, ctx, "started", told.round)
      end,
      ["race.Answered"] = function(saga, event, ctx)
        if event.payload.round ~= saga.state.round then return note(saga, ctx, "stale", event.payload.round) end
        burn()
        note(saga, ctx, "answered", event.payload.round)
        saga:complete()
      end,
    },
    deadlines = {
      -- of a saga that is deleted by hand
      reminder = function(saga, deadline, ctx) note(saga, ctx, "reminded", deadline.payload.round) end,
      answer = function(saga, deadline, ctx)
        burn()
        note(saga, ctx, "silent", deadline.payload.round)
        saga:complete()
      end,
    },
  },
}
