-- Hosts whose own clock is wrong: what is due, tried again, or too old to be
-- kept is judged by the database's clock, which is the same for all of them.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local folder = require "spec.support.folder"
local kit = require "spec.support.kit"
local process = require "spec.support.process"
local ffi = require "ffi"

local YEARS = 20 * 365 * 86400 -- seconds

local HANDLERS = { ["order.lua"] = 'local moontide = require "moontide"\n' .. kit.LEDGER .. [[
return {
  moontide.publisher "log" { to = "stdout:" },
  moontide.aggregate "spec.box" { commands = { open = function() return {} end }, apply = {} },
  moontide.listener "told" { start = "beginning",
    on = { ["spec.Told"] = function(event, ctx) ctx:publish("log", event.key, {}) end } },
  moontide.saga "order" { starts = { "spec.Placed", "spec.Closed" }, id = moontide.by "order",
    on = {
      ["spec.Placed"] = function(saga, event) saga:deadline("late", event.payload.within) end,
      ["spec.Closed"] = function(saga) saga:complete() end,
    },
    deadlines = { late = function(saga, deadline, ctx) ctx:emit("spec.Late", {}, { key = saga.id }) end } },
  moontide.listener "tried" { start = "beginning",
    on = { ["spec.Tried"] = function(event, ctx)
      if ctx.attempt == 1 then error "not yet" end
      ledger("tried", event, ctx)
    end } } }]] }

local CONFIG = [[partitions = 12, workers = %d, retry = { attempts = 5, delay = "100ms", factor = 1, jitter = 0 },
  sagas = { keep = "1h" }, commands = { keep = "1h" }]]

dialect.servers(function(database)
  for name, workers in pairs { ["in one process"] = 0, ["with workers"] = 1 } do
    describe("a host whose clock is wrong, " .. name .. ",", function()
      local app, library

      before_each(function()
        app = application.new { database = database, config = CONFIG:format(workers), handlers = HANDLERS }
        app:ok("run", "--until-idle") -- makes the host's tables
        app.db:command(app.db:ddl(kit.LEDGER_SQL))
        library = app.root .. "/clock.so"
        local made = app:exec(os.getenv "CC" or "cc", "-std=c11", "-shared", "-fPIC", "-o", library,
          folder.source "scripts/lib/clock.c")
        assert.equal(0, made.code, made.err)
      end)

      after_each(function() app:close() end)

      -- The environment of a program whose clock is so many seconds ahead.
      local function ahead(seconds)
        local file = ("%s/clock%d"):format(app.root, seconds)
        process.write_file(file, ffi.string(ffi.new("int64_t[1]", seconds * 1000000LL), 8))
        return { env = { LD_PRELOAD = library, MOONTIDE_CLOCK = file,
          ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":verify_asan_link_order=0" } }
      end

      local function put(kind, order, within)
        app:append { { aggregate_id = order, type = kind,
          payload = ('{"order":"%s","within":"%s"}'):format(order, within or "0") } }
      end

      local function number(sql) return tonumber(app.db:value(sql)) end

      local function comes_true(host, condition)
        process.wait_until(condition, 30, function() return host:err() end)
      end

      for where, seconds in pairs { ahead = YEARS, behind = -YEARS } do
        it("fires what is due, and nothing else, when it is years " .. where, function()
          put("spec.Placed", "soon", "1s")
          put("spec.Placed", "later", "1h")
          local host = app:start("run", ahead(seconds))
          comes_true(host, function() return number "SELECT count(*) FROM EVENT_CAPTURE_RECORDS" > 0 end)
          assert.equal("later", app.db:value "SELECT saga_id FROM SAGA_DEADLINES")
          host:stop()
        end)

        it("records failures for others to try again, when it is years " .. where, function()
          put("spec.Tried", "A")
          local wrong = app:start("run", ahead(seconds))
          comes_true(wrong, function() return number "SELECT count(*) FROM ledger" == 1 end)
          wrong:stop()
          put("spec.Tried", "B")
          app:moontide("run", "--until-idle", ahead(seconds))
          local right = app:start "run"
          comes_true(right, function() return number "SELECT count(*) FROM ledger" == 2 end)
          right:stop()
        end)

        it("has messages sent in the order of their staging, and not later, when it is years " .. where, function()
          local function tell(what, options)
            put("spec.Told", what)
            app:ok("run", "--until-idle", options)
          end
          local function due()
            return (app.db:value "SELECT event_type FROM OUTBOX ORDER BY available_at, created_at":gsub("%s+", " "))
          end
          tell "one"
          tell("two", ahead(seconds))
          tell "three"
          assert.equal("one two three", due())
          app.db:execute "UPDATE OUTBOX SET status = 'parked' WHERE event_type = 'one'"
          app:ok("outbox", "retry", "--publisher", "log", ahead(seconds))
          tell "four"
          assert.equal("two three one four", due())
        end)

        it("keeps results of commands, its own and others', when it is years " .. where, function()
          app:ok("command", "spec.box", "A", "open", "--id", "0190f3a2-0000-7000-8000-000000000001")
          app:ok("command", "spec.box", "B", "open", "--id", "0190f3a2-0000-7000-8000-000000000002", ahead(seconds))
          app:ok("run", "--until-idle")
          assert.equal(2, number "SELECT count(*) FROM COMMAND_RESULTS")
        end)

        it("keeps completed sagas and results as long as others, when it is years " .. where, function()
          app.db:execute([[INSERT INTO COMMAND_RESULTS (id, aggregate_type, aggregate_id, name, outcome, created_at)
            VALUES ('0190f3a2-0000-7000-8000-000000000001', 'a', 'b', 'c', '{}', CURRENT_TIMESTAMP)]])
          put("spec.Closed", "A")
          app:ok("run", "--until-idle", ahead(seconds))
          app:ok("run", "--until-idle", ahead(seconds))
          app:ok("run", "--until-idle")
          assert.equal("A", app.db:value "SELECT saga_id FROM SAGA_INSTANCES WHERE completed_at IS NOT NULL")
          assert.equal(1, number "SELECT count(*) FROM COMMAND_RESULTS")
        end)
      end
    end)
  end
end)
