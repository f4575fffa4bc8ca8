-- Very many messages that failed together: they are not all tried again at one
-- moment, and the log does not tell of each.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

local KEYS, STEPS = 400, 10
local EACH = KEYS / STEPS

local HEAD = 'local moontide = require "moontide"\n'

-- With this jitter an attempt comes between 50 and 150 minutes after the failure.
local HANDLERS = kit.LEDGER .. [[
  return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on_error = "dead_letter_key",
    retry = { attempts = 3, delay = "100m", factor = 1, max_delay = "3h", jitter = 0.5 }, on = {
      ["spec.Put"] = function(event, ctx)
        ctx:query "SELECT n FROM needed"
        ledger("notes", event, ctx)
      end } }]]

dialect.each(function(database)
  describe("messages of many keys that failed together", function()
    local rig, app

    after_each(function()
      if rig then rig:close() end
      if app then app:close() end
      rig, app = nil, nil
    end)

    it("are told in a few lines", function()
      app = application.new { database = database, config = "partitions = 12, workers = 1",
        handlers = { ["notes.lua"] = HEAD .. HANDLERS } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      local events = {}
      for i = 1, KEYS do events[i] = { aggregate_id = "K-" .. i, type = "spec.Put" } end
      app:append(events)
      local host = app:start("run")
      process.wait_until(function()
        local good, count = pcall(app.db.value, app.db, "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
        return good and count == tostring(KEYS)
      end, 60, function() return host:err() end)
      host:signal "TERM"
      assert.equal(0, host:wait(30).code, host:err())
      local _, lines = host:err():gsub("could not apply", "")
      assert.is_true(lines > 0 and lines <= 10, host:err())
      assert.matches("repeats=3%d%d", host:err())
    end)

    it("are tried again over all of the time that the jitter gives, each once, and none is lost", function()
      rig = kit.new { database = database, files = { ["sql/ledger.sql"] = kit.LEDGER_SQL }, handlers = HANDLERS }
      local events = {}
      for i = 1, KEYS do events[i] = { "K-" .. i, "spec.Put", {} } end
      rig:append_all(events)
      rig:run()
      local function applied() return rig:value "SELECT count(*) AS value FROM ledger" end
      assert.equal(KEYS, #rig:undelivered "notes")
      rig:query "CREATE TABLE needed (n INTEGER)"
      rig.host:advance "40m"
      rig:run()
      assert.equal(0, applied())
      rig.host:advance "10m"
      local counts, before = {}, 0
      for i = 1, STEPS do
        rig.host:advance "10m"
        rig:run()
        counts[i], before = applied() - before, applied()
      end
      for i = 2, STEPS - 1 do -- no part of it is without, or has much more than the others
        assert.is_true(counts[i] > EACH / 4 and counts[i] < EACH * 2, table.concat(counts, " "))
      end
      rig.host:advance "10m"
      rig:run()
      assert.equal(KEYS, applied())
      assert.same({}, rig:undelivered "notes")
      assert.equal(2, rig:value "SELECT max(attempt) AS value FROM ledger")
    end)
  end)
end)
