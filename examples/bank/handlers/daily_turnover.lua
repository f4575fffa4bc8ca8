-- Money moved per day, in and out alike, in a table of our own.
local moontide = require "moontide"

local function moved(event, ctx)
  ctx:upsert("daily_turnover", { day = ctx.key }, {
    cents = moontide.add(event.payload.amount),
    movements = moontide.add(1),
  })
end

return moontide.sql_projection "daily-turnover" {
  aggregates = { "bank.account" },
  tables = "sql/daily_turnover.sql",

  -- The day is the key, so one partition owns a day.
  key = function(event) return event.occurred_at:sub(1, 10) end,
  reset = function(ctx) ctx:execute("DELETE FROM daily_turnover") end,

  on = {
    ["account.Deposited"] = moved,
    ["account.Withdrawn"] = moved,
  },
}
