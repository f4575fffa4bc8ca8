-- Two hosts on one database: who applies what, and what becomes of it when one
-- of them is killed.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

local NOTES = 'local moontide = require "moontide"\n' .. kit.LEDGER .. [[
return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s on = {
  ["spec.Put"] = function(event, ctx) ledger("notes", event, ctx) end } }]]

-- Whoever stands for longer than the lease on a busy machine is taken for dead,
-- and what he had in hand may have failed once.
local LEASE = 'workers = 0, partitions = 12, lease = { duration = "2s", heartbeat = "200ms", rebalance = "200ms" }'
local PATIENT = ', retry = { attempts = 1000, delay = "10ms", factor = 1, jitter = 0 }'

-- A time an hour later.
local LATER = {
  sqlite = "strftime('%%Y-%%m-%%dT%%H:%%M:%%f000Z', %s, '1 hour')",
  postgres = "%s + interval '1 hour'",
  mysql = "%s + INTERVAL 1 HOUR",
}

dialect.each(function(database)
  describe("two hosts", function()
    local app, first, second

    local function start(declared)
      app = application.new { database = database, config = LEASE .. PATIENT,
        handlers = { ["notes.lua"] = NOTES:format(declared or "") } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      app:ok("run", "--until-idle") -- makes the tables that the specs look at
      first = app:start("run")
      second = app:start("run")
    end

    after_each(function() app:close() end)

    local function evidence() return first:err() .. second:err() end

    local function owners()
      return app:json("status", "notes").consumers[1].owners
    end

    local function held()
      local counts = {}
      for i, owner in ipairs(owners()) do counts[i] = #owner.partitions end
      return table.concat(counts, " ")
    end

    local function append(count)
      local list = {}
      for i = 1, count do
        list[i] = { aggregate_id = "key-" .. i % 23, type = "spec.Put", payload = ('{"i":%d}'):format(i) }
      end
      app:append(list)
    end

    local function applied(count)
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM ledger" == tostring(count)
      end, 60, evidence)
      assert.equal(tostring(count), app.db:value "SELECT count(DISTINCT position) FROM ledger")
    end

    it("share the partitions, and one takes over what the other held when it is killed", function()
      start()
      process.wait_until(function() return held() == "6 6" end, 30, evidence)
      append(50)
      applied(50)
      first:signal "KILL"
      append(50)
      process.wait_until(function() return held() == "12" end, 30, evidence)
      applied(100)
      for _, owner in ipairs(owners()) do assert.is_true(owner.live) end
      second:signal "TERM"
      assert.equal(0, second:wait().code)
      assert.same({}, owners())
    end)

    it("take over from one that died before the database's clock went back", function()
      start()
      process.wait_until(function() return held() == "6 6" end, 30, evidence)
      append(50)
      applied(50)
      -- what it leaves is an hour ahead; the one that lives writes its own anew
      local later = LATER[database.name]
      first:signal "STOP"
      app.db:execute(("UPDATE PARTITION_INSTANCES SET last_heartbeat = %s, expires_at = %s"):format(
        later:format "last_heartbeat", later:format "expires_at"))
      app.db:execute [[UPDATE HIGH_WATER_MARK_STORE SET lease_owner = 'gone',
        lease_expires_at = (SELECT max(expires_at) FROM PARTITION_INSTANCES)]]
      first:signal "KILL"
      append(50)
      process.wait_until(function() return held() == "12" end, 30, evidence)
      applied(100)
      second:signal "TERM"
      assert.equal(0, second:wait().code)
    end)

    it("are not idle while a message waits for its retry where the other one applies", function()
      app = application.new { database = database, config = LEASE:gsub("2s", "1m"):gsub('"200ms"', '"10s"'),
        handlers = { ["notes.lua"] = [[local moontide = require "moontide"
          return moontide.projection "notes" { retry = { attempts = 9, delay = "4m", jitter = 0 },
            on = { ["spec.Put"] = function() error "not yet" end } }]] } }
      first = app:start("run")
      append(1)
      process.wait_until(function()
        return first:err():find("not yet", 1, true)
      end, 30, function() return first:err() end)
      for _, signal in ipairs { false, "KILL" } do
        if signal then
          first:signal(signal)
          first:wait(30)
        end
        local said = app:expect(75, "run", "--until-idle").err
        assert.matches("messages of projection 'notes' wait for another attempt, the next one in [12]%d%d%.%d s", said)
      end
    end)

    it("keep a consumer with a single owner on one of them", function()
      start 'distribution = "single-owner",'
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM PARTITION_MEMBERS" == "2" and held() == "12"
      end, 30, evidence)
      append(30)
      applied(30)
      -- the one that comes second may be the one: it is handed over then
      process.wait_until(function() return held() == "12" end, 30, evidence)
    end)
  end)
end)
