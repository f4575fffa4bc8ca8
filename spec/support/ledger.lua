-- A consumer that counts how often each event was applied, in the transaction
-- that applies it; events of type thing.Happened.
local ledger = {}

ledger.HANDLER = [[
local moontide = require "moontide"
return moontide.sql_projection "ledger" {
  tables = "ledger.sql",
  on = {
    ["thing.Happened"] = function(event, ctx)
      ctx:execute("INSERT INTO ledger (id, position) VALUES (?, ?)", event.id, event.position)
    end,
  },
}]]

ledger.TABLE = "CREATE TABLE IF NOT EXISTS ledger (id UUID NOT NULL, position INTEGER NOT NULL);"

--- add(app): to an application.
function ledger.add(app)
  app:write("handlers/ledger.lua", ledger.HANDLER)
  app:write("ledger.sql", ledger.TABLE)
end

--- faults(app): what is wrong: stored events of the type that are not in the
-- ledger exactly once, and lines without an event.
function ledger.faults(app)
  local faults = app.db:query [[
    SELECT e.global_position AS position, count(l.id) AS times
      FROM EVENT_STORE e LEFT JOIN ledger l ON l.id = e.id AND l.position = e.global_position
     WHERE e.event_type = 'thing.Happened'
     GROUP BY e.global_position HAVING count(l.id) <> 1]]
  local lines = ledger.count(app)
  local events = tonumber(app.db:value "SELECT count(*) FROM EVENT_STORE WHERE event_type = 'thing.Happened'")
  if lines ~= events then faults[#faults + 1] = { lines = lines, events = events } end
  return faults
end

--- count(app): the lines; none while there is no table yet.
function ledger.count(app)
  local good, found = pcall(app.db.value, app.db, "SELECT count(*) FROM ledger")
  return good and tonumber(found) or 0
end

return ledger
