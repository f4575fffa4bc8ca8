-- Hosts that start at one moment, of which some die at once: whoever is left
-- has all partitions, and nothing is there twice or stays behind.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local HOSTS, KILLED = 6, 3
local KILL_WITHIN = 1000 -- milliseconds

dialect.servers(function(database)
  describe("six hosts that start together, of which three are killed within a second,", function()
    local app

    after_each(function() app:close() end)

    local function number(sql) return tonumber(app.db:value(sql)) end

    -- Each with a worker of its own; gives those that are left.
    local function start()
      local hosts = {}
      for i = 1, HOSTS do hosts[i] = app:start "run" end
      for i = 1, KILLED do
        process.pause(math.random(KILL_WITHIN / KILLED))
        table.remove(hosts, math.random(HOSTS - i + 1)):signal "KILL"
      end
      return hosts
    end

    local function logs(hosts)
      local text = {}
      for i, host in ipairs(hosts) do text[i] = host:err() end
      return table.concat(text)
    end

    local function share_all(hosts)
      process.wait_until(function()
        local good, shared = pcall(app.db.value, app.db, [[
          SELECT count(*), count(instance_id), count(DISTINCT instance_id) FROM PARTITION_OWNERSHIP]])
        return good and shared == "12|12|" .. #hosts
      end, 60, function() return "12 partitions of " .. #hosts .. "\n" .. logs(hosts) end)
    end

    local function apply(hosts, total)
      local list = {}
      for i = 1, 24 do list[i] = { aggregate_id = "K-" .. i } end
      app:append(list)
      process.wait_until(function() return ledger.count(app) == total end, 60, function() return logs(hosts) end)
      assert.same({}, ledger.faults(app))
    end

    local function nothing_twice()
      assert.equal(1, number "SELECT count(*) FROM PARTITION_METADATA")
      assert.equal(1, number "SELECT count(*) FROM CONSUMERS")
      assert.equal(12, number "SELECT count(*) FROM CONSUMER_CHECKPOINTS")
      assert.equal(0, number [[SELECT count(*) FROM (SELECT topic_name FROM HIGH_WATER_MARK_STORE
        GROUP BY topic_name HAVING count(*) > 1) AS several]])
    end

    it("share all partitions, on an empty database and on a used one", function()
      app = application.new { database = database, config = "partitions = 12, workers = 1, "
        .. "retry = { attempts = 1000, delay = '10ms', factor = 1, jitter = 0 }" }
      ledger.add(app)
      for _, total in ipairs { 24, 48 } do
        local hosts = start()
        share_all(hosts)
        nothing_twice()
        apply(hosts, total)
        -- the rows of the dead go when somebody looks
        process.wait_until(function() return number "SELECT count(*) FROM PARTITION_MEMBERS" == #hosts end, 60,
          function() return logs(hosts) end)
        for _, host in ipairs(hosts) do
          host:signal "TERM"
          assert.equal(0, host:wait(30).code, host:err())
        end
        assert.equal(0, number "SELECT count(*) FROM PARTITION_MEMBERS")
        assert.equal(0, number "SELECT count(instance_id) FROM PARTITION_OWNERSHIP")
      end
    end)
  end)
end)
