local moontide = require "moontide"
local testing = require "moontide.testing"

describe("large withdrawals", function()
  local host

  before_each(function()
    host = testing.host { database = testing.database() }
  end)

  after_each(function()
    host:close()
  end)

  local function withdraw(amount)
    local moved = host:append("bank.account", "A-1", { moontide.event("account.Withdrawn", { amount = amount }) })
    host:run()
    return moved[1].id
  end

  it("are told, once", function()
    withdraw(1000000)
    host:redeliver()

    local payload = { account = "A-1", amount = 1000000 }
    assert.emitted(host, "watch.LargeWithdrawal", { key = "A-1", payload = payload, count = 1 })
  end)

  it("are told with the movement that caused it", function()
    local moved = withdraw(2000000)

    assert.equal(moved, host:emitted("watch.LargeWithdrawal")[1].metadata.causation_id)
  end)

  it("are no others", function()
    withdraw(999999)

    assert.is_not.emitted(host, "watch.LargeWithdrawal")
  end)
end)
