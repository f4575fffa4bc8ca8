-- A consumer that stands still in one host, because that has an older
-- declaration, is applied by another one, and all others are shared as before.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local MODELS = [[
local moontide = require "moontide"
return {
  moontide.projection "models" { on_change = "rebuild", key = function(event) return event.key%s end,
    on = { ["spec.Put"] = function(state, event) state.n = event.position end } },
  moontide.projection "others" { on = { ["spec.Put"] = function(state, event) state.n = event.position end } },
}
]]

dialect.each(function(database)
  describe("a consumer that stands still in one host", function()
    local app, older, newer

    before_each(function()
      app = application.new { database = database,
        config = 'partitions = 12, workers = 1, poll = { max_interval = "20ms" }',
        handlers = { ["models.lua"] = MODELS:format "" } }
      app:ok("run", "--until-idle")
    end)

    after_each(function() app:close() end)

    local function said()
      return older:err() .. (newer and newer:err() or "")
    end

    local function number(sql) return tonumber(app.db:value(sql)) end

    -- By how many instances its partitions are held, when all are.
    local function holders(consumer)
      local held, by = app.db:value(([[SELECT count(instance_id), count(DISTINCT instance_id)
        FROM PARTITION_OWNERSHIP WHERE consumer_name = '%s']]):format(consumer)):match "(%d+)|(%d+)"
      return held == "12" and tonumber(by)
    end

    local function append(keys)
      local list = {}
      for i = 1, keys do list[i] = { aggregate_id = "KEY-" .. i, type = "spec.Put" } end
      app:append(list)
    end

    it("gives its partitions away there, keeps the others, and tries again without taking any", function()
      older = app:start("run", "--workers", "0") -- which takes no saved scripts
      process.wait_until(function() return holders "models" == 1 and holders "others" == 1 end, 30, said)
      append(30)
      process.wait_until(function() return number "SELECT count(*) FROM models" == 30 end, 30, said)
      app:write("handlers/models.lua", MODELS:format ":lower()")
      newer = app:start "run"
      process.wait_until(function()
        return holders "models" == 1 and holders "others" == 2
          and number "SELECT count(*) FROM PARTITION_MEMBERS WHERE consumer_name = 'models'" == 1
      end, 30, said)
      append(40)
      process.wait_until(function()
        return number "SELECT count(*) FROM models WHERE read_model_id LIKE 'key-%' OR read_model_id LIKE 'KEY-%'" == 40
          and number "SELECT count(*) FROM others" == 40
      end, 30, said)
      assert.is_nil(app:json("read", "models")[1].key:find "%u")
      -- longer than the pause before it is tried again
      local generations = app.db:value "SELECT sum(generation) FROM PARTITION_OWNERSHIP WHERE consumer_name = 'models'"
      local from = process.now()
      process.wait_until(function() return process.now() - from > 2 end, 10)
      assert.equal(generations,
        app.db:value "SELECT sum(generation) FROM PARTITION_OWNERSHIP WHERE consumer_name = 'models'")
      assert.equal(1, select(2, older:err():gsub("stands still", "")))
      for _, host in ipairs { older, newer } do
        host:signal "TERM"
        assert.equal(0, host:wait(30).code, host:err())
      end
    end)
  end)
end)
