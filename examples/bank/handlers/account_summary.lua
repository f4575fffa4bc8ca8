-- One read model per open account: its IBAN and its balance in cents.
local moontide = require "moontide"
local t = moontide.types

return moontide.projection "account-summary" {
  aggregates = { "bank.account" },

  fields = {
    iban = t.text { unique = true, optional = true },
    balance = t.integer(),
  },

  initial = function() return { balance = 0 } end,

  on = {
    ["account.Opened"] = function(account, event)
      account.iban = event.payload.iban
    end,
    ["account.Deposited"] = function(account, event)
      account.balance = account.balance + event.payload.amount
    end,
    ["account.Withdrawn"] = function(account, event)
      account.balance = account.balance - event.payload.amount
    end,
    ["account.Closed"] = function()
      return moontide.delete
    end,
  },
}
