-- What an account allows: opened once, money that is there, empty when closed.
local moontide = require "moontide"

local function is_amount(value)
  return type(value) == "number" and value > 0 and value % 1 == 0
end

return moontide.aggregate "bank.account" {
  initial = function() return { open = false, balance = 0 } end,

  commands = {
    open = function(account, args)
      if account.open then return moontide.reject("account is open already") end
      if type(args.iban) ~= "string" then return moontide.reject("an account needs an IBAN") end
      return { moontide.event("account.Opened", { iban = args.iban }) }
    end,

    deposit = function(account, args)
      if not account.open then return moontide.reject("account is not open") end
      if not is_amount(args.amount) then return moontide.reject("amount must be a positive number of cents") end
      return { moontide.event("account.Deposited", { amount = args.amount }) }
    end,

    withdraw = function(account, args)
      if not account.open then return moontide.reject("account is not open") end
      if not is_amount(args.amount) then return moontide.reject("amount must be a positive number of cents") end
      if args.amount > account.balance then
        return moontide.reject("insufficient funds", { missing = args.amount - account.balance })
      end
      return { moontide.event("account.Withdrawn", { amount = args.amount }) }
    end,

    close = function(account)
      if not account.open then return {} end -- closed is closed: nothing to do
      if account.balance ~= 0 then
        return moontide.reject("account is not empty", { balance = account.balance })
      end
      return { moontide.event("account.Closed") }
    end,
  },

  apply = {
    ["account.Opened"] = function(account) account.open = true end,
    ["account.Deposited"] = function(account, event) account.balance = account.balance + event.payload.amount end,
    ["account.Withdrawn"] = function(account, event) account.balance = account.balance - event.payload.amount end,
    ["account.Closed"] = function(account) account.open = false end,
  },

  snapshot = { every = 200, version = 1 },
}
