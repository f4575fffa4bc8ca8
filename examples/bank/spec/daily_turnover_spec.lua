local moontide = require "moontide"
local testing = require "moontide.testing"

local function moved(kind, cents, occurred_at)
  return moontide.event("account." .. kind, { amount = cents }, { occurred_at = occurred_at })
end

describe("daily turnover", function()
  local host

  local function days(of)
    return (of or host):query "SELECT day, cents, movements FROM daily_turnover ORDER BY day"
  end

  before_each(function()
    host = testing.host { database = testing.database() }
  end)

  after_each(function()
    host:close()
  end)

  it("adds up what went in and out on one day", function()
    host:append("bank.account", "A-1", {
      moved("Deposited", 700, "2025-03-01T08:00:00Z"),
      moved("Withdrawn", 250, "2025-03-01T23:59:59.999999Z"),
    })
    host:append("bank.account", "A-2", { moved("Deposited", 50, "2025-03-01T12:00:00Z") })
    host:run()

    assert.same({ { day = "2025-03-01", cents = 1000, movements = 3 } }, days())
  end)

  it("takes the day from the event and not from the order of arrival", function()
    host:append("bank.account", "A-1", {
      moved("Deposited", 1, "2025-03-02T00:00:00Z"),
      moved("Deposited", 2, "2025-03-01T00:00:00Z"),
      moved("Deposited", 4, "2025-03-02T00:00:00Z"),
    })
    host:run()

    assert.same({
      { day = "2025-03-01", cents = 2, movements = 1 },
      { day = "2025-03-02", cents = 5, movements = 2 },
    }, days())
  end)

  it("goes on from what an earlier run has stored", function()
    host:append("bank.account", "A-1", { moved("Deposited", 1, "2025-03-01T00:00:00Z") })
    host:run()
    host:append("bank.account", "A-1", { moved("Deposited", 2, "2025-03-01T00:00:00Z") })
    host:run()

    assert.same({ { day = "2025-03-01", cents = 3, movements = 2 } }, days())
  end)

  it("counts nothing twice when a batch is delivered again", function()
    host:append("bank.account", "A-1", { moved("Deposited", 700, "2025-03-01T08:00:00Z") })
    host:redeliver()

    assert.same({ { day = "2025-03-01", cents = 700, movements = 1 } }, days())
  end)

  it("has no row for a day on which nothing moved", function()
    host:append("bank.account", "A-1", { moontide.event("account.Opened", { iban = "DE01" }) })
    host:run()

    assert.same({}, days())
  end)

  it("comes out the same after a rebuild, delivered twice, and in any order of accounts", function()
    local events = {}
    for i, account in ipairs { "A-1", "A-2", "A-3", "A-1", "A-2" } do
      local event = moved("Deposited", i * 100, ("2025-03-0%dT08:00:00Z"):format(i % 2 + 1))
      events[i] = testing.stream("bank.account", account, { event })[1]
    end

    local rows = testing.prove(require "handlers.daily_turnover", events, { read = days })
    assert.same({
      { day = "2025-03-01", cents = 600, movements = 2 },
      { day = "2025-03-02", cents = 900, movements = 3 },
    }, rows)
  end)
end)
