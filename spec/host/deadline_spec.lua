-- Deadlines of a running host: in time without asking all the time, by who holds
-- the saga's partition, and once, whatever becomes of who was about to fire.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

-- Each firing is a row of the ledger: its position is the deadline's payload.
local SAGA = 'local moontide = require "moontide"\n' .. [[
local function fired(saga, deadline, ctx)
  ctx:execute('INSERT INTO ledger (consumer, "key", position, attempt) VALUES (?, ?, ?, ?)',
    deadline.name, saga.id, deadline.payload, ctx.attempt)
end
return moontide.saga "order" { starts = { "spec.Placed" }, id = moontide.by "order",
  on = {
    ["spec.Placed"] = function(saga, event)
      saga:deadline("payment", event.payload.within, event.payload.i)
    end,
    ["spec.Closed"] = function(saga, event, ctx)
      ctx:execute('INSERT INTO ledger (consumer, "key", position, attempt) VALUES (?, ?, ?, ?)',
        "closed", saga.id, event.position, ctx.attempt)
      saga:complete()
    end },
  deadlines = {
    payment = function(saga, deadline, ctx)
      %s
      fired(saga, deadline, ctx)
      saga.state.fired = (saga.state.fired or 0) + 1
    end } }]]

local CONFIG = [[workers = %d, partitions = 12, grants = { "os", "io" },
  retry = { attempts = %d, delay = "1ms", jitter = 0 },
  lease = { duration = "%s", heartbeat = "200ms", rebalance = "200ms" }%s]]

-- A host that looks by itself never while the spec lasts.
local NEVER = ', poll = { min_interval = "1h", max_interval = "1h" }'

-- Attempts where hosts are killed, or stand for longer than their lease.
local PATIENT = 1000

dialect.each(function(database)
  describe("deadlines of a running host", function()
    local app

    local function start(options)
      options = options or {}
      app = application.new { database = database,
        config = CONFIG:format(options.workers or 0, options.attempts or 3, options.lease or "2s", options.more or ""),
        handlers = { ["order.lua"] = SAGA:format(options.handler or "") } }
      app:ok("run", "--until-idle") -- makes the host's tables
      app.db:command(app.db:ddl(kit.LEDGER_SQL))
    end

    after_each(function() app:close() end)

    local function place(count, within, from)
      local list = {}
      for i = from or 1, (from or 1) + count - 1 do
        list[#list + 1] = { aggregate_id = "O-" .. i, type = "spec.Placed",
          payload = ('{"order":"O-%d","within":%s,"i":%d}'):format(i, within, i) }
      end
      app:append(list, "--batch", "100")
    end

    local function number(sql) return tonumber(app.db:value(sql)) end
    local function left() return number "SELECT count(*) FROM SAGA_DEADLINES" end

    local function fired(count, evidence)
      process.wait_until(function() return number "SELECT count(*) FROM ledger" >= count end, 60, evidence)
      assert.equal(count, number "SELECT count(*) FROM ledger")
      assert.equal(count, number "SELECT count(DISTINCT position) FROM ledger")
      assert.equal(0, left())
    end

    it("fire at their time, whenever their host looks for messages", function()
      start { more = NEVER }
      place(3, '"3s"')
      app:ok("run", "--until-idle")
      local host = app:start "run"
      fired(3, function() return host:err() end)
    end)

    it("fire when an operator says so, whether a host runs or not", function()
      start()
      place(3, '"1h"')
      app:ok("run", "--until-idle")
      assert.equal(3, left())
      assert.matches("1 deadline is due now", app:ok("deadlines", "fire", "order", "O-2", "payment"))
      app:ok("run", "--until-idle")
      assert.equal("O-2", app.db:value 'SELECT "key" FROM ledger')
      local host = app:start "run"
      process.wait_until(function() return #app:json("status", "order").consumers[1].owners > 0 end, 30)
      app:ok("deadlines", "fire", "--all")
      fired(3, function() return host:err() end)
    end)

    it("fire once when the one of two hosts that was about to is killed", function()
      start { attempts = PATIENT }
      place(60, '"1s"')
      app:ok("run", "--until-idle")
      local hosts = { app:start "run", app:start "run" }
      local function evidence() return hosts[1]:err() .. hosts[2]:err() end
      place(60, "0.3", 61)
      process.wait_until(function() return number "SELECT count(*) FROM ledger" > 0 end, 30, evidence)
      hosts[1]:signal "KILL"
      place(60, "0.3", 121)
      fired(180, evidence)
    end)

    it("fire before their saga is completed or never, while hosts die of it", function()
      start { lease = "1s", attempts = PATIENT }
      local SAGAS = 120
      local hosts = { app:start "run", app:start "run" }
      local function evidence() return hosts[1]:err() .. hosts[2]:err() end
      place(SAGAS, "0.4")
      local list = {}
      for i = 1, SAGAS do
        list[i] = { aggregate_id = "O-" .. i, type = "spec.Closed", payload = ('{"order":"O-%d"}'):format(i) }
      end
      for i = 1, SAGAS, 20 do
        app:append({ unpack(list, i, i + 19) }, "--batch", "5")
        if i == 41 then hosts[1]:signal "KILL" end
      end
      process.wait_until(function()
        return number "SELECT count(*) FROM SAGA_INSTANCES WHERE completed_at IS NOT NULL" == SAGAS
      end, 60, evidence)
      assert.equal(0, left())
      assert.equal(SAGAS, number "SELECT count(*) FROM ledger WHERE consumer = 'closed'")
      assert.equal(0, number [[SELECT count(*) FROM ledger a JOIN ledger b ON a."key" = b."key" AND a.n < b.n
        AND a.consumer IN ('closed', b.consumer)]])
      local fires = number "SELECT count(*) FROM ledger WHERE consumer = 'payment'"
      assert.equal(fires, number [[SELECT count(*) FROM SAGA_INSTANCES WHERE state_json LIKE '%"fired":1%']])
      assert.equal(0, number [[SELECT count(*) FROM SAGA_INSTANCES WHERE state_json LIKE '%"fired":2%']])
    end)

    it("fire once when their holder sleeps past its lease with them in hand, and another dies of them", function()
      local DUE, HALF = 500, 250
      -- each host marks that it has the first one and one in the middle in hand
      start { lease = "1s", attempts = PATIENT, handler = ([[
        if deadline.payload == 1 or deadline.payload == %d then
          local file = io.open(os.getenv "SPEC_MARK" .. deadline.payload, "w")
          file:close()
          local till = os.time() + 2
          while os.time() < till do end
        end]]):format(HALF), more = ', limits = { time = "60s" }' }
      place(DUE, '"1h"')
      app:ok("run", "--until-idle")
      app:ok("deadlines", "fire", "--all")
      local hosts = {}
      local function mark(i) return ("%s/host-%d-"):format(app.root, i) end
      local function begin(i) hosts[i] = app:start("run", { env = { SPEC_MARK = mark(i) } }) end
      local function evidence()
        local logs = {}
        for i, host in ipairs(hosts) do logs[i] = host:err() end
        return table.concat(logs)
      end
      begin(1)
      process.wait_until(function() return process.read_file(mark(1) .. 1) end, 30, evidence)
      hosts[1]:signal "STOP"
      begin(2)
      begin(3)
      -- as long as the session of the first holds its locks nobody can fire
      process.pause(2000)
      hosts[1]:signal "CONT"
      local who
      process.wait_until(function()
        for i in ipairs(hosts) do
          if process.read_file(mark(i) .. HALF) then who = i end
        end
        return who
      end, 60, evidence)
      hosts[who]:signal "KILL"
      fired(DUE, evidence)
      assert.equal(DUE, number [[SELECT count(*) FROM SAGA_INSTANCES WHERE state_json LIKE '%"fired":1%']])
    end)

    describe("that end their host", function()
      it("are dead letters after their budget, and no other is", function()
        start { lease = "600ms", handler = "if deadline.payload == 7 then os.exit(9) end" }
        place(20, "0")
        local died = 0
        process.wait_until(function()
          local result = app:moontide("run", "--until-idle")
          if result.code == 9 then died = died + 1 end
          return result.code == 0 and left() == 1
        end, 120, "a host that comes to its end")
        -- the first death is of a host that had nothing to be careful of
        assert.equal(4, died)
        assert.equal("O-7|DEAD_LETTER|3|crash: the host that made this attempt ended without a word",
          app.db:value "SELECT saga_id, status, attempts, failure_reason FROM SAGA_DEADLINES")
        assert.equal(19, number "SELECT count(*) FROM ledger")
        assert.equal(1, number "SELECT max(attempt) FROM ledger")
      end)

      it("count an attempt of their worker's each, and cost the others none", function()
        start { workers = 1, attempts = 2, handler = "if deadline.payload == 7 then os.exit(9) end" }
        place(20, "0")
        local host = app:start "run"
        process.wait_until(function() return left() == 1 and number "SELECT count(*) FROM ledger" == 19 end, 60,
          function() return host:err() end)
        process.wait_until(function()
          return app.db:value "SELECT status FROM SAGA_DEADLINES" == "DEAD_LETTER"
        end, 60, function() return host:err() end)
        assert.equal("2", app.db:value "SELECT attempts FROM SAGA_DEADLINES")
        assert.matches("crash: .*the worker ended in its deadline handler %(exit code 9%)",
          app.db:value "SELECT failure_reason FROM SAGA_DEADLINES")
        host:signal "TERM"
        assert.equal(0, host:wait(30).code)
      end)

      it("may be retried by an operator once the handler is mended", function()
        start { attempts = 1, handler = 'if os.getenv "SPEC_FAILS" then error "not now" end' }
        place(3, "0")
        app:moontide("run", "--until-idle", { env = { SPEC_FAILS = "1" } })
        assert.equal(3, number "SELECT count(*) FROM SAGA_DEADLINES WHERE status = 'DEAD_LETTER'")
        assert.matches("3 dead letters left alone", app:ok("deadlines", "fire", "order"))
        assert.matches("3 deadlines with a fresh budget", app:ok("deadlines", "retry", "--status", "DEAD_LETTER"))
        app:ok("run", "--until-idle")
        fired(3)
      end)
    end)
  end)
end)
