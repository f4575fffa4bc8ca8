-- `moontide run` as a process: what it says and leaves when messages fail, when
-- it is stopped, when the database is locked, and when two run by mistake.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

local HEAD = [[local moontide = require "moontide"
]]

local NOTES = HEAD .. kit.LEDGER .. [[
return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
  ["spec.Put"] = function(event, ctx)
    ledger("notes", event, ctx)
    %s
  end } }]]

dialect.each(function(database)
  describe("moontide run", function()
    local app

    -- Takes about a millisecond.
    local SLOW = ("ctx:query %q"):format(database:count_to(10000))

    local function start(handler, config)
      app = application.new { database = database, config = "partitions = 12, " .. (config or ""),
        handlers = { ["notes.lua"] = NOTES:format(handler or "") } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      app:ok("run", "--until-idle") -- makes the tables that the specs look at
    end

    after_each(function() app:close() end)

    local function append(count, keys)
      local list = {}
      for i = 1, count do
        list[i] = { aggregate_id = "key-" .. i % (keys or 7), type = "spec.Put", payload = ('{"i":%d}'):format(i) }
      end
      app:append(list, "--batch", "1000")
    end

    local function value(sql)
      return app.db:value(sql)
    end

    local function said(host)
      return function() return host:err() end
    end

    -- Every position up to `last` exactly once, and per key in order.
    local function complete(last)
      assert.equal(tostring(last), value "SELECT count(DISTINCT position) FROM ledger")
      assert.equal(tostring(last), value "SELECT count(*) FROM ledger")
      assert.equal("0", value [[SELECT count(*) FROM ledger a JOIN ledger b
        ON a.key = b.key AND a.n < b.n AND a.position > b.position]])
    end

    it("--until-idle ends with 1 when a message failed, and says which consumer, why and what to do", function()
      start 'if event.payload.i == 2 then error "cannot price this" end'
      append(3)
      local result = app:expect(1, "run", "--until-idle")
      assert.matches("notes", result.err, 1, true)
      assert.matches("APPLY_ERROR", result.err, 1, true)
      assert.matches("handlers/notes.lua:9: cannot price this", result.err, 1, true)
      assert.matches("position=2", result.err, 1, true)
      assert.matches("tries it again", result.err, 1, true)
      assert.equal("2", value "SELECT count(*) FROM ledger")
      -- and again, for it tries again
      app:expect(1, "run", "--until-idle")
      assert.equal("2", value "SELECT count(*) FROM ledger")
      app:write("handlers/notes.lua", NOTES:format "")
      app:ok("run", "--until-idle")
      complete(3)
    end)

    it("--until-idle saves what it read, also over an empty stretch", function()
      start()
      app:append { { type = "spec.Ignored" }, { type = "spec.Ignored" } }
      app:ok("run", "--until-idle")
      assert.equal("12|2|2", value "SELECT count(position), min(position), max(position) FROM CONSUMER_CHECKPOINTS")
    end)

    -- One look for what is due takes about as long as a page here, and has one
    -- part in ten of the time: taking turns they would be as many as the pages.
    it("gathers retries that come due one by one while there are pages", function()
      local PAGES = 80
      start('if event.payload.i % 5 == 0 and ctx.attempt == 1 then error "not yet" end',
        'batch = 5, retry = { attempts = 3, delay = "1ms", max_delay = "1ms" }')
      append(5 * PAGES, 5 * PAGES)
      local code
      for _ = 1, 50 do -- the last of them may not be due yet when all else is done
        code = app:moontide("run", "--until-idle", "--workers", "0").code
        if code ~= 75 then break end
      end
      assert.equal(0, code)
      complete(5 * PAGES)
      local looks, before = 0, "1"
      for attempt in value("SELECT attempt FROM ledger ORDER BY n"):gmatch "%d+" do
        if attempt == "2" and before == "1" then looks = looks + 1 end
        before = attempt
      end
      assert.is_true(looks >= 1 and looks <= PAGES / 2, ("%d looks beside %d pages"):format(looks, PAGES))
    end)

    it("goes on with other consumers when one is halted", function()
      start 'error "always"'
      app:write("handlers/others.lua", HEAD .. [[
        return moontide.projection "others" { on = {
          ["spec.Put"] = function(state, event) state.n = event.position end } }]])
      append(3, 1)
      local host = app:start("run")
      process.wait_until(function() return value "SELECT count(*) FROM CONSUMERS WHERE state = 'HALTED'" == "1" end, 20)
      append(3, 1)
      process.wait_until(function() return value "SELECT state FROM others" == '{"n":6}' end, 20, said(host))
      assert.equal("3", value [[SELECT max(position) FROM CONSUMER_CHECKPOINTS k JOIN CONSUMERS c
        ON c.id = k.consumer_id WHERE c.consumer_name = 'notes']])
      host:signal "TERM"
      assert.equal(0, host:wait().code)
    end)

    it("ends with 0 on SIGTERM after the batch in hand, with empty stretches saved", function()
      start()
      append(5)
      -- in one process the mark is moved, and read up to, in one round
      local host = app:start("run", "--workers", "0")
      process.wait_until(function() return value "SELECT count(*) FROM ledger" == "5" end, 20, said(host))
      app:append { { type = "spec.Ignored" } }
      process.wait_until(function()
        return value "SELECT high_water_mark FROM HIGH_WATER_MARK_STORE WHERE topic_name = 'event-store'" == "6"
      end, 20, said(host))
      host:signal "TERM"
      assert.equal(0, host:wait().code)
      assert.equal("12|6|6", value "SELECT count(position), min(position), max(position) FROM CONSUMER_CHECKPOINTS")
      complete(5)
    end)

    it("finishes the batch in hand on SIGTERM and starts no other", function()
      -- slow batches: each message takes some time by SQL
      start(SLOW, "batch = 10")
      append(500)
      -- several have batches of their own, and their partitions stand apart
      local host = app:start("run", "--workers", "1")
      process.wait_until(function() return tonumber(value "SELECT count(*) FROM ledger") >= 10 end, 30, said(host))
      host:signal "TERM"
      assert.equal(0, host:wait().code)
      local count = tonumber(value "SELECT count(*) FROM ledger")
      assert.is_true(count < 500, "it was done before the signal came")
      complete(count)
      assert.equal(("12|%d|%d"):format(count, count),
        value "SELECT count(position), min(position), max(position) FROM CONSUMER_CHECKPOINTS")
      app:ok("run", "--until-idle")
      complete(500)
    end)

    it("applies nothing while another program holds its checkpoints longer than it waits, and then goes on", function()
      start(nil, "batch = 4")
      append(5)
      local host = app:start("run")
      process.wait_until(function() return value "SELECT count(*) FROM ledger" == "5" end, 20, said(host))
      host:signal_all "STOP"
      append(5)
      local lock = app.db:hold(app.db.lock_checkpoints)
      host:signal_all "CONT"
      -- it has waited in vain when it says so
      process.wait_until(function() return host:err():lower():find("lock", 1, true) end, 30, said(host))
      assert.equal("5|5", value "SELECT (SELECT count(*) FROM ledger), max(position) FROM CONSUMER_CHECKPOINTS")
      assert.is_true(host:alive())
      lock.release()
      process.wait_until(function() return value "SELECT count(*) FROM ledger" == "10" end, 30, said(host))
      complete(10)
      append(5)
      process.wait_until(function() return value "SELECT count(*) FROM ledger" == "15" end, 30, said(host))
      complete(15)
      host:signal "TERM"
      assert.equal(0, host:wait().code)
    end)

    it("shares the partitions with another one, and neither applies anything twice", function()
      -- who stands for a while on a busy machine is not dead
      start(nil, 'batch = 5, lease = { duration = "20s", heartbeat = "200ms", rebalance = "200ms" }')
      local first, second = app:start("run", "--workers", "1"), app:start("run", "--workers", "1")
      local function count() return tonumber(value "SELECT count(*) FROM ledger") end
      local function evidence() return first:err() .. second:err() end
      for _, host in ipairs { first, second } do
        process.wait_until(function() return host:err():find("running", 1, true) end, 30, evidence)
      end
      for _ = 1, 60 do append(10) end
      process.wait_until(function() return count() >= 600 end, 60, evidence)
      process.wait_until(function()
        return value "SELECT count(DISTINCT instance_id) FROM PARTITION_OWNERSHIP" == "2"
      end, 30, evidence)
      first:signal "TERM"
      assert.equal(0, first:wait().code)
      append(100)
      process.wait_until(function() return count() >= 700 end, 60, evidence)
      second:signal "TERM"
      assert.equal(0, second:wait().code)
      complete(700)
      assert.is_nil(evidence():find("level=warn", 1, true), evidence())
      -- whoever stops in order leaves nothing behind
      assert.equal("0|0|0", value [[SELECT (SELECT count(*) FROM PARTITION_INSTANCES),
        (SELECT count(*) FROM PARTITION_MEMBERS), (SELECT count(instance_id) FROM PARTITION_OWNERSHIP)]])
    end)

    it("needs no more memory for many large payloads than for a few, whatever `batch` says", function()
      start(nil, 'batch = 1000, limits = { payload = "4MiB" }')
      local payload = '{"text":"' .. ("x"):rep(2 * 1024 * 1024) .. '"}'
      -- the peak, in KiB, of a host that finds so many messages waiting
      local function peak(count, last)
        for _ = 1, count / 5 do
          local list = {}
          for i = 1, 5 do list[i] = { aggregate_id = "k" .. i, type = "spec.Put", payload = payload } end
          app:append(list)
        end
        -- a sanitizer keeps what was freed; it must not count
        local host = app:start("run", "--workers", "1", { env = { ASAN_OPTIONS = "quarantine_size_mb=1" } })
        process.wait_until(function() return value "SELECT count(*) FROM ledger" == tostring(last) end, 60, said(host))
        local status = process.read_file(("/proc/%d/status"):format(host:worker()))
        host:signal "TERM"
        assert.equal(0, host:wait().code)
        return tonumber(status:match "VmHWM:%s+(%d+) kB")
      end
      local few, many = peak(10, 10), peak(40, 50)
      assert.is_true(few > 4 * 1024, "that is no host: " .. few)
      assert.is_true(many < few + 16 * 1024, ("%d KiB for 10, %d KiB for 40"):format(few, many))
      complete(50)
    end)
  end)
end)
