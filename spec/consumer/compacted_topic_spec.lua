-- Consumers of a topic that is compacted while they are behind: they come to
-- the latest of each key, and have missed nothing.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local TOTALS = [[
local moontide = require "moontide"
return moontide.projection "totals" { topic = true,
  on = {
    ["spec.Add"] = function(state, event) state.n = (state.n or 0) + event.payload.by end,
    ["spec.Drop"] = function() return moontide.delete end } }]]

local SEEN = [[
local moontide = require "moontide"
local function put(sign)
  return function(state, event) state.log = (state.log or "") .. sign .. event.payload.n end
end
return moontide.projection "seen" { source = "read-model:totals",
  on = { ["read-model.Changed"] = put "=", ["read-model.Deleted"] = put "x" } }]]

local EAGER = 'partitions = 12, compaction = { schedule = "10ms" }'

dialect.each(function(database)
  describe("a consumer of a compacted topic", function()
    local app

    local function start(reads, config)
      app = application.new { database = database, config = config or EAGER, handlers = { ["totals.lua"] = TOTALS } }
      if reads then app:write("handlers/seen.lua", SEEN) end
    end

    after_each(function()
      app:close()
    end)

    -- Each in a batch of its own, so that each is a message.
    local function add(list)
      for _, item in ipairs(list) do
        app:append { { aggregate_id = item[1], type = item[2] and "spec.Add" or "spec.Drop",
          payload = ('{"by":%d}'):format(item[2] or 0) } }
        app:ok("run", "--until-idle")
      end
    end

    local function compact(left)
      process.wait_until(function()
        app:ok("run", "--until-idle")
        return app.db:value "SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS" == tostring(left)
      end, 30, left .. " messages that are left")
    end

    local function logs()
      local found = {}
      for _, model in ipairs(app:json("read", "seen")) do found[model.key] = model.state.log end
      return found
    end

    it("that was paused goes on with the latest of each key, and is not halted", function()
      start(true)
      add { { "a", 1 }, { "b", 1 } }
      app:ok("pause", "seen")
      add { { "a", 1 }, { "a", 1 }, { "b", 4 }, { "a", 5 } }
      compact(2)
      app:ok("resume", "seen")
      app:ok("run", "--until-idle")
      assert.same({ a = "=1=8", b = "=1=5" }, logs())
      local seen = app:json("status", "seen").consumers[1]
      assert.same({ "RUNNING", require("moontide").null, 0 },
        { seen.state, seen.incomplete_through, seen.lag.messages })
    end)

    it("that comes later begins with the latest of each key, tombstones too", function()
      start(false)
      add { { "a", 1 }, { "b", 1 }, { "a", 1 }, { "b" }, { "c", 3 } }
      compact(3)
      app:write("handlers/seen.lua", SEEN)
      app:ok("run", "--until-idle")
      assert.same({ a = "=2", b = "x1", c = "=3" }, logs())
    end)

    it("keeps tombstones until it has passed them", function()
      start(true)
      add { { "a", 1 } }
      app:ok("pause", "seen")
      add { { "a" }, { "b", 2 } }
      app:configure(EAGER .. ', tombstones = { max_age = "1ms" }')
      compact(2)
      assert.same({ "projection", "seen" }, { app:json("status").compaction[1].held_by.type,
        app:json("status").compaction[1].held_by.name })
      app:ok("resume", "seen")
      compact(1)
      assert.same({ a = "=1x1", b = "=2" }, logs())
    end)

    it("can be computed from what is there, and that says nothing against it", function()
      start(true, "partitions = 12")
      add { { "a", 1 }, { "a", 1 } }
      local function materialize()
        return application.json.decode(app:ok("read", "seen", "a", "--materialize", "--json"))[1]
      end
      local model = materialize()
      assert.same({ "=1=2", 2, true }, { model.state.log, model.messages, model.compared })
      app:configure(EAGER)
      compact(1)
      model = materialize()
      assert.same({ "=2", "=1=2", 1, false }, { model.state.log, model.stored.log, model.messages, model.compared })
      assert.matches("compaction may have deleted", model.reason, 1, true)
    end)
  end)
end)
