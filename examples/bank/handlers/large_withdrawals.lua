-- Who takes out much at once is looked at: an event for those who watch.
local moontide = require "moontide"

local MUCH = 1000000 -- cents

return moontide.listener "large-withdrawals" {
  aggregates = { "bank.account" },
  start = "now",
  on = {
    ["account.Withdrawn"] = function(event, ctx)
      if event.payload.amount >= MUCH then
        ctx:emit("watch.LargeWithdrawal", { account = event.key, amount = event.payload.amount }, { key = event.key })
      end
    end,
  },
}
