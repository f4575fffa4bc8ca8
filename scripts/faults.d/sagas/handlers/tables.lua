-- Makes the table that the sagas write to.
local moontide = require "moontide"

return moontide.sql_projection "tables" {
  aggregates = { "hosts.thing" },
  tables = "ledger.sql",
  on = { ["hosts.Never"] = function() end },
}
