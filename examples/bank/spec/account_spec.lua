local moontide = require "moontide"
local testing = require "moontide.testing"

local account = require "handlers.account"

local function opened() return moontide.event("account.Opened", { iban = "DE01" }) end
local function deposited(cents) return moontide.event("account.Deposited", { amount = cents }) end
local function closed() return moontide.event("account.Closed") end

describe("an account", function()
  it("is opened once, under an IBAN", function()
    testing.given(account, {}):when("open", {}):rejects "an account needs an IBAN"
    testing.given(account, {}):when("open", { iban = "DE01" }):emits(opened())
      :when("open", { iban = "DE02" }):rejects "account is open already"
  end)

  it("takes whole cents only", function()
    for _, amount in ipairs { 0, -5, 1.5 } do
      testing.given(account, { opened() }):when("deposit", { amount = amount })
        :rejects "amount must be a positive number of cents"
    end
    testing.given(account, { opened() }):when("deposit", { amount = 5 }):emits(deposited(5))
  end)

  it("gives no credit, and says what is missing", function()
    testing.given(account, { opened(), deposited(10) }):when("withdraw", { amount = 12 })
      :rejects("insufficient funds", { missing = 2 })
  end)

  it("is closed empty, and closing it again changes nothing", function()
    testing.given(account, { opened(), deposited(10) }):when("close"):rejects("account is not empty", { balance = 10 })
    testing.given(account, { opened(), deposited(10) }):when("withdraw", { amount = 10 }):accepts()
      :when("close"):emits(closed()):leaves { open = false, balance = 0 }
      :when("close"):emits_nothing()
  end)

  it("does a command once, however often it is sent", function()
    local host = testing.host { database = testing.database() }
    finally(function() host:close() end)
    local id = "01890a5d-ac96-774b-bcce-b302099a8057"

    assert.emitted(host:command("bank.account", "A-1", "open", { iban = "DE01" }), "account.Opened")
    for _ = 1, 3 do
      assert.emitted(host:command("bank.account", "A-1", "deposit", { amount = 7 }, { id = id }), "account.Deposited")
    end
    host:run()

    assert.equal(7, host:read("account-summary", "A-1").balance)
    assert.rejected(host:command("bank.account", "A-1", "withdraw", { amount = 8 }), "insufficient funds",
      { missing = 1 })
  end)
end)
