-- One upsert for each event, nearly each of another row: what the handler asks
-- of the database is all of the work.
local moontide = require "moontide"

local function add(event, ctx, cents)
  ctx:upsert("account_balance", { account = event.aggregate_id }, {
    cents = moontide.add(cents),
    events = moontide.add(1),
  })
end

return moontide.sql_projection "account-balance" {
  aggregates = { "bank.account" },
  tables = "sql/account_balance.sql",

  on = {
    ["account.Opened"] = function(event, ctx) add(event, ctx, 0) end,
    ["account.Deposited"] = function(event, ctx)
      add(event, ctx, event.payload.amount)
    end,
    ["account.Withdrawn"] = function(event, ctx)
      add(event, ctx, -event.payload.amount)
    end,
    ["account.Closed"] = function(event, ctx) add(event, ctx, 0) end,
  },
}
