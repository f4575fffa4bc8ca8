local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

-- Writes each event into a ledger, in the transaction that applies it; the
-- cell of a named event takes its time.
local HANDLER = [[
local moontide = require "moontide"
return moontide.sql_projection "ledger" {
  tables = "ledger.sql",
  on = {
    ["thing.Happened"] = function(event, ctx)
      ctx:execute("INSERT INTO ledger (id, position) VALUES (?, ?)", event.id, event.position)
    end,
    ["thing.Slow"] = function(event, ctx)
      ctx:execute("INSERT INTO ledger (id, position) VALUES (?, ?)", event.id, event.position)
      local n = 0
      for i = 1, event.payload.loops do n = n + i % 7 end
    end,
    ["thing.Broken"] = function() error "this one never works" end,
  },
}]]

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new {
      database = database, config = 'partitions = 12, poll = { max_interval = "20ms" }',
      handlers = { ["ledger.lua"] = HANDLER },
    }
    app:write("ledger.sql", "CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL, position INTEGER NOT NULL);")
  end)

  after_each(function()
    app:close()
  end)

  local function applied()
    local good, found = pcall(app.db.value, app.db, "SELECT count(*) FROM ledger")
    return good and tonumber(found) or 0
  end

  local function wait_for(count, host)
    process.wait_until(function() return applied() >= count end, 30, function()
      return ("%d applied events, there are %d\n%s"):format(count, applied(), host:err())
    end)
  end

  local function events(count, kind)
    local list = {}
    for i = 1, count do
      list[i] = { aggregate_id = "K-" .. i % 9, type = kind or "thing.Happened", payload = '{"loops":2000000}' }
    end
    return list
  end

  -- Once its worker has used the processor for long, the handler is in its loop.
  local function in_its_loop(host)
    local worker = host:worker()
    process.wait_until(function() return process.cpu(worker) > 0.5 end, 30, function()
      return "the handler does not run\n" .. host:err()
    end)
  end

  describe("a running host", function()
    it("ends with 1 when the batch in hand outlasts stop_timeout, and keeps nothing of it", function()
      app:configure 'partitions = 12, stop_timeout = "1s", limits = { time = "60s" }'
      app:append(events(1))
      app:append { { aggregate_id = "K-1", type = "thing.Slow", payload = '{"loops":1e15}' } }
      local host = app:start("run", "--workers", "1")
      process.wait_until(function() return host:err():find("running", 1, true) end, 30, "the host to run")
      in_its_loop(host)
      host:signal "TERM"
      local result = host:wait(20)
      assert.equal(1, result.code)
      assert.matches("did not end within stop_timeout", host:err(), 1, true)
      assert.equal(0, applied())
    end)

    it("applies what is there and what comes", function()
      app:append(events(10))
      local host = app:start "run"
      wait_for(10, host)
      for i = 1, 5 do
        app:append(events(3))
        wait_for(10 + 3 * i, host)
      end
      assert.is_true(host:alive())
      host:signal "TERM"
      assert.equal(0, host:wait(15).code)
      assert.equal(25, applied())
    end)

    for _, name in ipairs { "TERM", "INT" } do
      it("ends with 0 at SIG" .. name .. " when it is idle, and its checkpoints are saved", function()
        app:append(events(7))
        local host = app:start "run"
        wait_for(7, host)
        host:signal(name)
        local result = host:wait(15)
        assert.equal(0, result.code, result.err)
        assert.equal("", result.out)
        assert.matches("stopped", result.err, 1, true)
        local again = app:json("run", "--until-idle")
        assert.equal(0, again.applied)
        assert.equal(7, app:json("status").consumers[1].position)
      end)
    end

    it("finishes the batch in hand at SIGTERM: all of it is applied, with its checkpoint", function()
      app:configure "partitions = 12, batch = 10"
      app:append(events(160, "thing.Slow"))
      local host = app:start("run", "--workers", "1") -- whose batches follow each other
      wait_for(1, host)
      host:signal "TERM"
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
      local count = applied()
      assert.is_true(count < 160, "the signal came too late for this test")
      -- whole batches, and as many as the checkpoint says
      assert.equal(app.db:value "SELECT max(position) FROM ledger", tostring(count))
      assert.equal(count, app:json("status").consumers[1].position)
      app:ok("run", "--until-idle")
      assert.equal("160", app.db:value "SELECT count(DISTINCT id) FROM ledger")
      assert.equal(160, applied())
    end)

    it("ends at once at a second signal, and loses nothing by it", function()
      app:configure 'partitions = 12, limits = { time = "60s" }'
      app:append { { type = "thing.Slow", payload = '{"loops":3000000000}' } }
      local host = app:start("run", "--workers", "1")
      process.wait_until(function() return host:err():find("running", 1, true) end, 20, "the host")
      in_its_loop(host)
      host:signal "TERM"
      host:signal "TERM"
      process.wait_until(function() host:signal "TERM"; return not host:alive() end, 10, "the end")
      assert.equal(128 + 15, host:wait(5).code)
      assert.equal(0, applied())
      app:configure "partitions = 12"
      assert.equal("1", app.db:value "SELECT count(*) FROM EVENT_STORE")
    end)

    it("killed at any moment has applied each event once, or not yet", function()
      -- whatever a killed host had in hand has failed once
      app:configure 'partitions = 12, batch = 7, retry = { attempts = 100, delay = "10ms", factor = 1 }'
      app:append(events(160, "thing.Slow"))
      local kills = 0
      for round = 1, 5 do
        local before = applied()
        local host = app:start "run"
        wait_for(math.min(before + 5 * round, 150), host)
        if host:signal "KILL" then kills = kills + 1 end
        assert.equal(128 + 9, host:wait(10).code)
      end
      assert.equal(5, kills)
      assert.is_true(applied() < 160, "the kills came too late for this test")
      app:ok("run", "--until-idle")
      assert.equal(160, applied())
      assert.equal("160", app.db:value "SELECT count(DISTINCT id) FROM ledger")
    end)

    it("does not stop for a message that cannot be applied, and names it in its log", function()
      app:append { { type = "thing.Broken" } }
      local host = app:start("run", { env = { MOONTIDE_LOG_FORMAT = "json" } })
      process.wait_until(function() return host:err():find("this one never works", 1, true) end, 20,
        function() return host:err() end)
      local line
      for text in host:err():gmatch "[^\n]+" do
        local entry = application.json.decode(text)
        if text:find("this one never works", 1, true) then line = line or entry end
      end
      assert.equal("ledger", line.consumer)
      assert.equal("event-store", line.topic)
      assert.equal(1, line.position)
      assert.is_string(line.message_id)
      assert.equal("error", line.level)
      assert.is_true(host:alive())
      host:signal "TERM"
      assert.equal(0, host:wait(15).code)
      assert.equal("HALTED", app:json("status").consumers[1].state)
    end)

    it("never logs a payload", function()
      app:append { { type = "thing.Broken", payload = '{"secret":"pa55w0rd"}' }, { payload = '"pa55w0rd"' } }
      local result = app:moontide("run", "--until-idle", { env = { MOONTIDE_LOG_LEVEL = "debug" } })
      assert.equal(1, result.code)
      assert.is_nil((result.out .. result.err):find("pa55w0rd", 1, true))
    end)

    it("logs at the level that is asked for", function()
      app:append(events(1)) -- first: both would make the tables
      local host = app:start("run", { env = { MOONTIDE_LOG_LEVEL = "warn" } })
      wait_for(1, host)
      host:signal "TERM"
      local result = host:wait(15)
      assert.same({ 0, "" }, { result.code, result.err })
    end)
  end)

  describe("run --until-idle", function()
    it("ends with 1 when a consumer is halted, each time, until it is mended", function()
      app:append { {}, { type = "thing.Broken" }, {} }
      for _ = 1, 2 do
        assert.matches("is halted with APPLY_ERROR", app:fails(1, "run", "--until-idle"), 1, true)
      end
      app:write("handlers/ledger.lua", (HANDLER:gsub('error "this one never works"', "")))
      app:ok("run", "--until-idle")
      assert.same({}, app:json("status").problems)
      assert.equal(2, applied())
    end)

    it("ends with 0 at SIGTERM and leaves the rest for later", function()
      app:configure "partitions = 12, batch = 10"
      app:append(events(160, "thing.Slow"))
      local host = app:start("run", "--until-idle")
      wait_for(1, host)
      host:signal "TERM"
      assert.equal(0, host:wait(30).code)
      assert.is_true(applied() < 160)
      app:ok("run", "--until-idle")
      assert.equal(160, applied())
    end)

    it("has nothing to do without events and without declarations", function()
      assert.equal(0, app:json("run", "--until-idle").applied)
      app:exec("rm", "handlers/ledger.lua")
      assert.equal(0, app:json("run", "--until-idle").applied)
    end)
  end)
end)
