-- A saga for each account: what the account summary does, as a process that
-- begins with the opening and ends with the closing.
local moontide = require "moontide"

return moontide.saga "account-saga" {
  aggregates = { "bank.account" },
  id = function(event) return event.aggregate_id end,
  starts = { "account.Opened" },
  initial = function() return { balance = 0 } end,

  on = {
    ["account.Opened"] = function(saga, event) saga.state.iban = event.payload.iban end,
    ["account.Deposited"] = function(saga, event)
      saga.state.balance = saga.state.balance + event.payload.amount
    end,
    ["account.Withdrawn"] = function(saga, event)
      saga.state.balance = saga.state.balance - event.payload.amount
    end,
    ["account.Closed"] = function(saga) saga:complete() end,
  },
}
