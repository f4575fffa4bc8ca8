-- Counts how often each position was applied, and by which host. A position
-- that is applied twice has 2 here; one that is skipped has no row.
local moontide = require "moontide"

local HOST = "HOST_NAME" -- replaced by scripts/faults in each host's copy

local function note(event, ctx)
  ctx:upsert("ledger", { position = event.position }, {
    message_id = event.id,
    host = HOST,
    applies = moontide.add(1),
  })
end

return moontide.sql_projection "ledger" {
  aggregates = { "bank.account" },
  tables = "sql/ledger.sql",
  on = {
    ["account.Opened"] = note,
    ["account.Deposited"] = note,
    ["account.Withdrawn"] = note,
    ["account.Closed"] = note,
  },
}
