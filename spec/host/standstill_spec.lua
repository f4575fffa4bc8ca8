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

-- Nobody dies here, and who stands for a while on a busy machine is not dead.
local LEASE = 'lease = { duration = "20s", heartbeat = "200ms", rebalance = "200ms" }'

dialect.each(function(database)
  describe("a consumer that stands still in one host", function()
    local app, older, newer

    before_each(function()
      app = application.new { database = database,
        config = 'partitions = 12, workers = 1, poll = { max_interval = "20ms" }, ' .. LEASE,
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

local NOTES = [[
local moontide = require "moontide"
return {
  moontide.sql_projection "notes" { tables = "sql/notes.sql", retry = { attempts = 1 }, on_error = "dead_letter",
    on = { ["spec.Put"] = function(event, ctx) %s end } },
  moontide.projection "others" { on = { ["spec.Put"] = function(state, event) state.n = event.position end } },
}
]]
local DDL = "CREATE TABLE IF NOT EXISTS notes (place INTEGER PRIMARY KEY);\n"

dialect.each(function(database)
  describe("an SQL projection whose table is gone", function()
    local app, host

    after_each(function() app:close() end)

    local function start(body)
      app = application.new { database = database, config = 'partitions = 4, poll = { max_interval = "20ms" }',
        handlers = { ["notes.lua"] = NOTES:format(body) } }
      app:write("sql/notes.sql", DDL)
      app:ok("run", "--until-idle")
    end

    local function append() app:append { { aggregate_id = "A", type = "spec.Put" } } end

    local function number(sql) return tonumber(app.db:value(sql)) end

    for what, body in pairs {
      ["executes"] = 'ctx:execute("INSERT INTO notes VALUES (?)", event.position)',
      ["upserts"] = 'ctx:upsert("notes", { place = event.position }, {})',
      ["asks and executes"] = 'ctx:query("SELECT count(*) AS n FROM notes") '
        .. 'ctx:execute("INSERT INTO notes VALUES (?)", event.position)',
    } do
      it("stands still, blames no message, and goes on with the table when it " .. what, function()
        start(body)
        append()
        -- one that starts when the table is gone makes it
        host = app:start("run", "--workers", "1")
        process.wait_until(function() return number "SELECT count(*) FROM notes" == 1 end, 30,
          function() return host:err() end)
        app.db:execute "DROP TABLE notes"
        append()
        process.wait_until(function() return host:err():find("stands still: its table 'notes' is missing", 1, true) end,
          30, function() return host:err() end)
        process.wait_until(function() return number "SELECT count(*) FROM others" == 1 end, 30,
          function() return host:err() end)
        assert.equal(0, number "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES", host:err())
        app.db:execute "CREATE TABLE notes (place INTEGER PRIMARY KEY)"
        process.wait_until(function() return number "SELECT count(*) FROM notes" == 1 end, 30,
          function() return host:err() end)
        assert.equal(2, number "SELECT max(place) FROM notes")
        host:signal "TERM"
        assert.equal(0, host:wait(20).code)
      end)
    end

    it("has a message that asks for a table of nobody fail as by any other mistake", function()
      start 'ctx:execute "INSERT INTO nowhere VALUES (1)"'
      append()
      app:moontide("run", "--until-idle")
      assert.equal("DEAD_LETTER", app.db:value "SELECT status FROM CONSUMER_UNDELIVERED_MESSAGES")
    end)
  end)
end)
