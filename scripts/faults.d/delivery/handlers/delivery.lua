-- The same messages as a state per key and as rows: which were applied, in
-- which order, with which attempt. A payload says how often its message fails,
-- for whom, and what its spent budget leads to.
local moontide = require "moontide"
local t = moontide.types

local MENDED = false -- scripts/faults makes copies of this file with true
local PASSED = { states = {}, notes = {} } -- and with what was passed over

local RETRY = { attempts = 12, delay = "20ms", factor = 1.5, max_delay = "40ms", jitter = 0.5 }
local WORK = 200000 -- turns of a loop: some time that a kill can fall into

local function fails(name, event)
  local payload = event.payload
  return (payload.who == name or payload.who == "both") and payload.fails or 0
end

-- After the effect, which has to be undone.
local function try(name, event, ctx)
  local failures = fails(name, event)
  if MENDED or failures == 0 then return end
  ctx.log.warn("attempt", { n = event.payload.n, attempt = ctx.attempt })
  if ctx.attempt > 1 then
    for _ = 1, WORK do end
  end
  if ctx.attempt <= failures then
    error(("%d fails, '%s' \"%d\""):format(event.payload.n, name, ctx.attempt))
  end
end

local function decide(event)
  return event.payload.policy
end

local NOTE = "INSERT INTO %s (model_key, n, position, attempt, replaying) VALUES (?, ?, ?, ?, ?)"
local NOTES, JOURNAL = NOTE:format "notes", NOTE:format "journal"

local function note(event, ctx)
  local n, replaying = event.payload.n, ctx.replaying and 1 or 0
  if PASSED.notes[n] then return end
  if n % 7 == 0 then -- at once, and so under a savepoint
    ctx:update(NOTES, ctx.key, n, event.position, ctx.attempt, replaying)
  else
    ctx:execute(NOTES, ctx.key, n, event.position, ctx.attempt, replaying)
  end
  ctx:execute(JOURNAL, ctx.key, n, event.position, ctx.attempt, replaying)
  try("notes", event, ctx)
end

return {
  moontide.projection "states" {
    retry = RETRY,
    on_error = decide,
    fields = { applied = t.integer() },
    initial = function() return { applied = 0, seen = moontide.array(), attempts = moontide.array() } end,
    on = {
      ["delivery.Put"] = function(state, event, ctx)
        local n = event.payload.n
        if PASSED.states[n] then return end
        state.applied = state.applied + 1
        state.seen[state.applied] = n
        state.attempts[state.applied] = ctx.attempt
        try("states", event, ctx)
      end,
    },
  },
  moontide.sql_projection "notes" {
    retry = RETRY,
    on_error = decide,
    tables = { sqlite = "sql/sqlite.sql", postgres = "sql/postgres.sql", mysql = "sql/mysql.sql" },
    reset = function(ctx)
      ctx:execute "DELETE FROM notes"
      ctx:execute(JOURNAL, "", 0, 0, 0, 0)
    end,
    on = { ["delivery.Put"] = note },
  },
}
