-- Topics of read models between processes: hosts that share the work, that are
-- killed, and that wait.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local TOTALS = [[local moontide = require "moontide"
local totals = moontide.projection "totals" { %s
  initial = function() return { n = 0 } end,
  on = {
    ["spec.Put"] = function(state) state.n = state.n + 1 end,
    ["spec.Drop"] = function() return moontide.delete end } }
]]

-- Keeps the newest state, and counts what is out of order or met twice.
local READER = [[
local seen = moontide.projection "seen" { source = "read-model:totals",
  initial = function() return { bad = 0, last = 0 } end,
  on = {
    ["read-model.Changed"] = function(state, event)
      if event.payload.n <= state.last then state.bad = state.bad + 1 end
      state.last = event.payload.n
    end,
    ["read-model.Deleted"] = function(state, event)
      if event.payload.n < state.last then state.bad = state.bad + 1 end
      state.last, state.gone = 0, true
    end } }
local third = moontide.projection "third" { source = "read-model:seen", on = {
  ["read-model.Changed"] = function(state, event) state.last = event.payload.last end } }
return { totals, seen, third }
]]

local ONE = TOTALS:format "" .. "return totals"
local ALL = TOTALS:format "" .. READER
local EVERY = TOTALS:format 'changes = "every",' .. READER

local LONG = 60 -- seconds, on a busy machine
local KEYS = 23

dialect.each(function(database)
  describe("read models between hosts", function()
    local app, hosts, appended

    after_each(function() app:close() end)

    local function start(handlers, config, count)
      app = application.new { database = database, handlers = { ["totals.lua"] = handlers },
        config = "partitions = 12, log = { level = 'warn' }, " ..
          "retry = { attempts = 1000, delay = '10ms', max_delay = '50ms' }, " .. (config or "workers = 0") }
      appended, hosts = {}, {}
      app:ok("run", "--until-idle") -- makes the tables that the specs look at
      for i = 1, count or 0 do hosts[i] = app:start("run") end
    end

    local function evidence()
      local parts = {}
      for i, host in ipairs(hosts) do parts[i] = host:err() end
      return table.concat(parts, "\n")
    end

    local function append(count)
      local list = {}
      for i = 1, count do
        local key = "key-" .. i % KEYS
        list[i] = { aggregate_id = key, type = "spec.Put", payload = "{}" }
        appended[key] = (appended[key] or 0) + 1
      end
      app:append(list, "--batch", "7")
    end

    -- What a consumer has of each key, by key; `member` of its state.
    local function states(consumer, member)
      local found, read = {}, app:moontide("--json", "read", consumer)
      if read.code ~= 0 then return found end -- no host has loaded it yet
      for _, model in ipairs(application.json.decode(read.out)) do found[model.key] = model.state[member] end
      return found
    end

    local function same(a, b)
      for key, value in pairs(a) do if b[key] ~= value then return false end end
      for key in pairs(b) do if a[key] == nil then return false end end
      return true
    end

    local function all_there()
      process.wait_until(function()
        return same(states("third", "last"), appended)
      end, LONG, evidence)
      assert.same(appended, states("totals", "n"))
      assert.same(appended, states("seen", "last"))
      for key, bad in pairs(states("seen", "bad")) do assert.equal(0, bad, key) end
      -- the newest message of each key is that of its read model's row
      assert.equal(app.db:value "SELECT count(*) FROM totals", app.db:value [[SELECT count(*)
        FROM totals t JOIN READ_MODEL_CAPTURE_RECORDS r
          ON r.topic = 'totals' AND r.read_model_key = t.read_model_id AND r.id = t.message_id
        WHERE NOT EXISTS (SELECT 1 FROM READ_MODEL_CAPTURE_RECORDS n WHERE n.topic = r.topic
          AND n.read_model_key = r.read_model_key AND n.topic_position > r.topic_position)]])
    end

    it("are told in order while two hosts switch their topic on and go on applying", function()
      start(ONE, "workers = 1", 2) -- a supervisor watches the scripts
      append(200)
      app:write("handlers/totals.lua", ALL)
      for _ = 1, 10 do append(50) end
      all_there()
    end)

    it("are told in order, each state once, though hosts are killed", function()
      start(EVERY, "workers = 0, batch = 20, compaction = { schedule = 'none' }", 2)
      for round = 1, 6 do
        append(60)
        local killed = 1 + round % 2
        hosts[killed]:signal "KILL"
        append(20)
        hosts[killed] = app:start("run")
      end
      all_there()
      local total = 0
      for _, n in pairs(appended) do total = total + n end
      assert.equal(tostring(total),
        app.db:value "SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS WHERE topic = 'totals'")
    end)

    it("are filled in to the end though the host that does it is killed", function()
      start(ONE)
      local list = {}
      for i = 1, 3000 do list[i] = { aggregate_id = "key-" .. i, type = "spec.Put", payload = "{}" } end
      app:append(list)
      app:ok("run", "--until-idle")
      app:write("handlers/totals.lua", ALL)
      local kills = 0
      local FILLED = "SELECT count(*) FROM READ_MODEL_TOPICS WHERE topic = 'totals' AND filled_at IS NOT NULL"
      while app.db:value(FILLED) == "0" do
        local host = app:start("run")
        process.wait_until(function()
          return tonumber(app.db:value "SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS WHERE topic = 'totals'") >=
            kills * 500 + 1
        end, LONG, function() return host:err() end)
        host:signal "KILL"
        host:wait()
        kills = kills + 1
        if kills > 3 then break end
      end
      app:ok("run", "--until-idle")
      assert.equal("3000|3000", app.db:value [[SELECT count(*), count(DISTINCT read_model_key)
        FROM READ_MODEL_CAPTURE_RECORDS WHERE topic = 'totals']])
      assert.equal("3000", app.db:value "SELECT count(*) FROM third")
    end)

    it("are shown by events and status", function()
      start(ONE)
      append(1)
      app:ok("run", "--until-idle")
      local refused = app:expect(64, "events", "--topic", "read-model:totals")
      assert.matches("the topic 'read-model:totals' is not on", refused.err, 1, true)
      app:write("handlers/totals.lua", ALL)
      app:ok("pause", "totals") -- also then its topic is filled
      app:ok("run", "--until-idle")
      app:append { { aggregate_id = "key-1", type = "spec.Drop" } }
      app:ok("resume", "totals")
      app:ok("run", "--until-idle")
      local shown = app:events("--topic", "read-model:totals")
      assert.equal(2, #shown)
      assert.equal("read-model.Changed", shown[1].type)
      assert.equal("read-model.Deleted", shown[2].type)
      assert.same({ n = 1 }, shown[2].payload)
      assert.equal("key-1", shown[2].key)
      assert.equal(1, #app:events("--topic", "read-model:totals", "--type", "read-model.Deleted"))
      assert.equal(2, #app:events("--topic", "read-model:totals", "--key", "key-1"))
      app:ok("pause", "seen")
      append(1)
      app:ok("run", "--until-idle")
      local seen = app:json("status", "seen").consumers[1]
      assert.equal("read-model:totals", seen.source)
      assert.equal(1, seen.lag.messages)
    end)
  end)

  local MODES = { ["with a supervisor"] = "workers = 1", ["in one process"] = "workers = 0" }

  for mode, workers in pairs(MODES) do
    describe("a chain of projections " .. mode, function()
      it("does not wait for a poll between its links", function()
        local tells = database.name ~= "mysql" -- there a host looks by itself
        local app = application.new { database = database, handlers = { ["totals.lua"] = ALL } }
        finally(function() app:close() end)
        local direct = app.db.direct and ("notify_url = %q, "):format(app.db.direct) or ""
        app:configure("partitions = 3, " .. direct .. workers .. (tells and
          ', poll = { min_interval = "1h", max_interval = "1h" }' or ', poll = { max_interval = "50ms" }'))
        app:ok("run", "--until-idle")
        local host = app:start("run")
        for i = 1, 5 do
          app:append { { aggregate_id = "A", type = "spec.Put", payload = "{}" } }
          process.wait_until(function()
            local read = app:moontide("--json", "read", "third", "A")
            return read.code == 0 and application.json.decode(read.out)[1].state.last == i
          end, 30, function() return host:err() end)
        end
      end)
    end)
  end
end)
