-- What is left of a topic of read models that was switched off: the host that
-- switches it on again deletes it first, beside its other work, and can be
-- stopped and killed meanwhile.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local LEFT = 60000
local LONG = 120 -- seconds, on a busy machine

local NOTE = "topic read%-model:totals was switched off at %S+ and holds messages still"

local TOTALS = [[
  local moontide = require "moontide"
  local totals = moontide.projection "totals" { %s
    on = { ["spec.Add"] = function(state, event) state.n = (state.n or 0) + event.payload.by end } } ]]

local READER = [[
  local seen = moontide.projection "seen" { source = "read-model:totals", on = {
    ["read-model.Changed"] = function(state, event) state.n = event.payload.n end } }
  return { totals, seen }]]

local BOTH, ALONE = TOTALS:format "" .. READER, TOTALS:format "" .. "return totals"
local SAYS_ON = TOTALS:format "topic = true," .. "return totals"

dialect.each(function(database)
  describe("what is left of a topic that was switched off", function()
    local app

    after_each(function() app:close() end)

    local function add(keys)
      local events = {}
      for i, key in ipairs(keys) do events[i] = { aggregate_id = key, type = "spec.Add", payload = '{"by":1}' } end
      app:append(events)
    end

    local function count(name, condition)
      return tonumber(app.db:value(("SELECT count(*) FROM %s WHERE %s"):format(name, condition or "1 = 1")))
    end

    -- Messages from before the topic was switched off.
    local function left()
      return count("READ_MODEL_CAPTURE_RECORDS", "read_model_type = 'of before'")
    end

    local function is_off()
      return count("READ_MODEL_TOPICS", "switched_off_at IS NOT NULL") == 1
    end

    local function evidence(host)
      return function() return ("%d are left\n%s"):format(left(), host:err()) end
    end

    -- As after `topics off` that was killed when it had begun.
    local function start()
      app = application.new { database = database, handlers = { ["spec.lua"] = BOTH },
        config = 'compaction = { schedule = "none" }' }
      app:ok("run", "--until-idle")
      app:write("handlers/spec.lua", ALONE)
      app:ok("unsubscribe", "seen")
      for first = 1, LEFT, 4000 do
        local rows = {}
        for i = first, first + 3999 do
          rows[#rows + 1] = ([[('00000000-0000-7000-8000-%012d', 'totals', %d, 1, 'old', 'of before', '{}', 1,
            %s, '%s')]]):format(i, i, database.name == "postgres" and "false" or "0",
            database.name == "mysql" and "2026-01-01 00:00:00" or "2026-01-01T00:00:00.000000Z")
        end
        app.db:execute([[INSERT INTO READ_MODEL_CAPTURE_RECORDS (id, topic, topic_position, partition_key,
          read_model_key, read_model_type, payload, cascade_depth, deleted, occurred_at) VALUES ]] ..
          table.concat(rows, ","))
      end
      app.db:execute "UPDATE READ_MODEL_TOPICS SET switched_off_at = switched_on_at"
    end

    it("goes beside other work, whatever ends the host meanwhile", function()
      start()
      add { "A", "B" }
      assert.matches(NOTE, app:ok "status")
      assert.matches(NOTE, table.concat(app:json("status").notes, "\n"))
      app:write("handlers/spec.lua", BOTH)

      local host = app:start("run", "--workers", "0")
      process.wait_until(function() return count "totals" == 2 end, LONG, evidence(host))
      assert.is_true(is_off())
      process.wait_until(function() return left() < LEFT end, LONG, evidence(host))
      host:signal "TERM"
      assert.equal(0, host:wait(LONG).code)
      local stopped = left()
      assert.is_true(is_off() and stopped > 0, "it was done before it was stopped")

      host = app:start("run", "--workers", "1") -- goes on where the other has stopped
      process.wait_until(function() return left() < stopped end, LONG, evidence(host))
      host:signal_all "KILL"
      host:wait(LONG)
      assert.is_true(is_off() and left() > 0, "it was done before it was killed")

      app:ok("run", "--until-idle")
      assert.equal(0, left())
      assert.no.matches(NOTE, app:ok "status")
      assert.equal(0, count("READ_MODEL_TOPICS", "switched_off_at IS NOT NULL OR filled_at IS NULL"))
      assert.equal(2, count "seen")
    end)

    it("keeps a projection that says so from nothing but its topic", function()
      start()
      add { "A", "B" }
      app:write("handlers/spec.lua", SAYS_ON)
      local host = app:start("run", "--workers", "0")
      process.wait_until(function() return count "totals" == 2 end, LONG, evidence(host))
      assert.is_true(is_off())
      process.wait_until(function()
        return count("READ_MODEL_TOPICS", "filled_at IS NOT NULL AND switched_off_at IS NULL") == 1
      end, LONG, evidence(host))
      assert.equal(0, left())
      assert.equal(2, count "READ_MODEL_CAPTURE_RECORDS")
      host:signal "TERM"
      assert.equal(0, host:wait(LONG).code)
    end)
  end)
end)
