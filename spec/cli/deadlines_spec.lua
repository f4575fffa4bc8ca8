-- The verb `deadlines`: what an operator sees and does, with and without a host.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local SAGA = [[
local moontide = require "moontide"
return moontide.saga "order" { starts = { "spec.Placed" }, id = moontide.by "order",
  on = {
    ["spec.Placed"] = function(saga, event)
      saga:deadline("payment", event.payload.within, event.payload.more)
      saga:deadline("reminder", "30d")
    end },
  deadlines = {
    payment = function(saga)
      if os.getenv "SPEC_FAILS" then error "no money" end
      saga.state.fired = (saga.state.fired or 0) + 1
      if os.getenv "SPEC_AGAIN" and saga.state.fired < 200 then saga:deadline("payment", 0) end
    end,
    reminder = function() end } }]]

dialect.each(function(database)
  describe("deadlines", function()
    local app

    local function start(orders)
      app = application.new { database = database, config = 'partitions = 12, workers = 0, grants = { "os" }',
        handlers = { ["order.lua"] = SAGA } }
      app:ok("run", "--until-idle")
      local list = {}
      for id, payload in pairs(orders) do
        list[#list + 1] = { aggregate_id = id, type = "spec.Placed",
          payload = ('{"order":"%s",%s}'):format(id, payload) }
      end
      app:append(list)
      app:ok("run", "--until-idle")
    end

    after_each(function() app:close() end)

    -- "saga name" of what the filter means.
    local function listed(...)
      local answer, list = app:json("deadlines", "list", ...), {}
      for i, one in ipairs(answer.deadlines) do list[i] = one.saga_id .. " " .. one.name end
      table.sort(list)
      return list
    end

    it("lists what is set, the next ones first, by what is asked for", function()
      start { ["O-1"] = '"within":"2h"', ["O-2"] = '"within":"1h"' }
      local out = app:ok "deadlines"
      assert.matches("saga +id +deadline +due at +due +status +attempts +reason\n", out)
      assert.matches("O%-2 +payment[^\n]*PENDING +0[^\n]*\n[^\n]*O%-1 +payment", out)
      assert.same({ "O-1 payment", "O-1 reminder", "O-2 payment", "O-2 reminder" }, listed())
      assert.same({ "O-1 payment", "O-1 reminder" }, listed("order", "O-1"))
      assert.same({ "O-1 payment" }, listed("order", "O-1", "payment"))
      assert.same({ "O-2 payment" }, listed("--due-before", "90m"))
      assert.same({}, listed("--due-before", "now"))
      assert.same({ "O-1 payment", "O-2 payment" }, listed("--name", "payment"))
      assert.same({ "O-1 payment", "O-1 reminder" }, listed("--saga", "O-1"))
      assert.same({}, listed("--type", "other"))
      assert.same({}, listed("--status", "DEAD_LETTER"))
      local first = app:json("deadlines", "list", "--limit", "1")
      assert.equal(4, first.total)
      assert.equal("O-2", first.deadlines[1].saga_id)
      assert.matches("the first 1 of 4", app:moontide("deadlines", "--limit", "1").err)
    end)

    it("shows one with what it was set with", function()
      start { ["O-1"] = '"within":"2031-01-31T12:00:00Z","more":{"a":[1,null]}' }
      local out = app:ok("deadlines", "show", "order", "O-1", "payment")
      assert.matches('payload +{"a":%[1,null%]}', out)
      assert.matches("due at +2031%-01%-31T12:00:00.000000Z, in ", out)
      local one = app:json("deadlines", "show", "order", "O-1", "payment").deadlines[1]
      assert.equal("2031-01-31T12:00:00.000000Z", one.due_at)
      assert.equal(one.due_at, one.next_retry_at)
      assert.equal("O-1", one.metadata.saga_id)
      assert.same({ "O-1 payment" }, listed(one.id))
      assert.matches("no deadline is meant", app:fails(1, "deadlines", "show", "order", "O-9"))
    end)

    it("changes nothing that nobody asked for", function()
      start { ["O-1"] = '"within":"1h"' }
      for _, verb in ipairs { "fire", "retry", "delete", "show" } do
        assert.matches("needs to know which deadlines", app:fails(64, "deadlines", verb))
      end
      assert.matches("do not go together", app:fails(64, "deadlines", "fire", "order", "--type", "order"))
      assert.matches("%-%-due%-before takes a time", app:fails(64, "deadlines", "list", "--due-before", "soon"))
      assert.matches("no deadline matches", app:ok("deadlines", "delete", "order", "O-9"))
      assert.equal(2, #listed())
    end)

    it("deletes them unfired, and takes dead ones up again", function()
      start { ["O-1"] = '"within":"1h"', ["O-2"] = '"within":"0"' , ["O-3"] = '"within":"0"' }
      assert.same({ changed = 1, dead_letters = 0, of_host = 0 },
        app:json("deadlines", "delete", "order", "O-1", "payment"))
      assert.same({ "O-1 reminder", "O-2 reminder", "O-3 reminder" }, listed())
      app:ok("deadlines", "fire", "order", "O-2", "reminder")
      assert.equal(1, app:json("run", "--until-idle").fired)
      assert.same({ "O-1 reminder", "O-3 reminder" }, listed())
    end)

    it("that set themselves again at once let a run to idle end", function()
      start { ["O-1"] = '"within":"1h"' }
      app:ok("deadlines", "fire", "order", "O-1", "payment")
      app:moontide("run", "--until-idle", { env = { SPEC_AGAIN = "1" } })
      local fired = app:json("sagas", "show", "order", "O-1").data.fired
      assert.is_true(fired >= 1 and fired < 50)
      assert.same({ "O-1 payment", "O-1 reminder" }, listed())
    end)

    it("are told by status when they are dead or overdue", function()
      start { ["O-1"] = '"within":"1h"', ["O-2"] = '"within":"1h"' }
      app:ok("deadlines", "fire", "--name", "payment")
      app:moontide("run", "--until-idle", { env = { SPEC_FAILS = "1" } })
      assert.same({ "O-1 payment", "O-2 payment" }, listed("--status", "DEAD_LETTER"))
      local status = app:json "status"
      assert.same({ "order", 4, 0, 2, 0 }, { status.deadlines[1].saga_type, status.deadlines[1].deadlines,
        status.deadlines[1].failed, status.deadlines[1].dead_letters, status.deadlines[1].overdue })
      local problems = table.concat(status.problems, "\n")
      assert.matches("saga 'order' has 2 dead deadlines, the last of them 'payment' of saga 'O%-%d': "
        .. "error: handlers/order.lua:%d+: no money; `moontide deadlines list order %-%-status DEAD_LETTER`", problems)
      app:ok("deadlines", "retry", "--status", "DEAD_LETTER")
      app:configure 'partitions = 12, workers = 0, grants = { "os" }, clock_offset = "31d"'
      problems = table.concat(app:json("status").problems, "\n")
      assert.matches("saga 'order' has 4 overdue deadlines, the first since %d+ d; no host runs it", problems)
      app:ok("pause", "order")
      assert.matches("none fires while it is PAUSED", table.concat(app:json("status").problems, "\n"))
      app:ok("resume", "order")
      app:ok("run", "--until-idle")
      assert.same({}, listed())
      assert.same({}, app:json("status").deadlines)
    end)
  end)
end)
