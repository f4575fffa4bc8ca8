local moontide = require "moontide"
local testing = require "moontide.testing"

local declaration = require "handlers.account_summary"

local function opened(iban) return moontide.event("account.Opened", { iban = iban }) end
local function deposited(cents) return moontide.event("account.Deposited", { amount = cents }) end
local function withdrawn(cents) return moontide.event("account.Withdrawn", { amount = cents }) end
local function closed() return moontide.event("account.Closed", {}) end

describe("account summary", function()
  local host

  before_each(function()
    host = testing.host { database = testing.database() }
  end)

  after_each(function()
    host:close()
  end)

  it("starts at zero with the IBAN it was opened with", function()
    host:append("bank.account", "A-1", { opened "DE01" })
    host:run()

    assert.same({ iban = "DE01", balance = 0 }, host:read("account-summary", "A-1"))
  end)

  it("adds deposits and subtracts withdrawals", function()
    host:append("bank.account", "A-1", { opened "DE01", deposited(700), withdrawn(250) })
    host:append("bank.account", "A-1", { deposited(1) })
    host:run()

    assert.equal(451, host:read("account-summary", "A-1").balance)
  end)

  it("keeps the accounts apart", function()
    host:append("bank.account", "A-1", { opened "DE01", deposited(5) })
    host:append("bank.account", "a-1", { opened "DE02", deposited(9) })
    host:run()

    assert.equal(5, host:read("account-summary", "A-1").balance)
    assert.equal(9, host:read("account-summary", "a-1").balance)
  end)

  it("is gone once the account is closed", function()
    host:append("bank.account", "A-1", { opened "DE01" })
    host:run()
    host:append("bank.account", "A-1", { closed() })
    host:run()

    assert.is_nil(host:read("account-summary", "A-1"))
  end)

  it("frees the IBAN of a closed account", function()
    host:append("bank.account", "A-1", { opened "DE01", closed() })
    host:append("bank.account", "A-2", { opened "DE01" })
    host:run()

    assert.is_nil(host:read("account-summary", "A-1"))
    assert.equal("DE01", host:read("account-summary", "A-2").iban)
  end)

  it("does not change when a batch is delivered again", function()
    host:append("bank.account", "A-1", { opened "DE01", deposited(700) })
    host:run()
    host:append("bank.account", "A-1", { withdrawn(250) })
    host:redeliver()

    assert.equal(450, host:read("account-summary", "A-1").balance)
  end)

  it("is a pure function of the events", function()
    local events = testing.stream("bank.account", "A-1", { opened "DE01", deposited(40) })

    local states = testing.project(declaration, events)

    assert.same({ iban = "DE01", balance = 40 }, states["A-1"])
  end)

  it("comes out the same after a rebuild, delivered twice, and in any order of accounts", function()
    local events = testing.stream("bank.account", "A-1", { opened "DE01", deposited(40), withdrawn(15) })
    for _, event in ipairs(testing.stream("bank.account", "A-2", { opened "DE02", deposited(7), closed() })) do
      events[#events + 1] = event
    end

    assert.same({ ["A-1"] = { iban = "DE01", balance = 25 } }, testing.prove(declaration, events))
  end)
end)
