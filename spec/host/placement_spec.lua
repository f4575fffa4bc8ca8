-- Who moves the mark and who applies are told apart by their leases alone:
-- whatever dies, in whatever order, nothing waits for something that only the
-- dead one knew. And hosts that start at once on an empty database.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local CONFIG = [[partitions = 12, workers = 1, poll = { max_interval = "20ms" },
  retry = { attempts = 1000, delay = "10ms", factor = 1, jitter = 0 },
  lease = { duration = "1s", heartbeat = "200ms", rebalance = "200ms" },]]

dialect.servers(function(database)
  local app

  local function start(...)
    local host = app:start("run", ...)
    process.wait_until(function() return host:err():find("running", 1, true) end, 30, function() return host:err() end)
    return host
  end

  local function stop(host)
    host:signal "TERM"
    local result = host:wait(30)
    assert.equal(0, result.code, result.err)
  end

  local function number(sql) return tonumber(app.db:value(sql)) end

  describe("three hosts, of which one only moves the mark,", function()
    local keeper, keeper_id, appliers, total

    local function applies(count)
      local list = {}
      for i = 1, 46 do list[i] = { aggregate_id = "key-" .. i % 23 } end
      app:append(list)
      total = total + 46
      process.wait_until(function() return number "SELECT count(*) FROM ledger" == total end, 60, function()
        return ("%s of %d are applied\n%s"):format(app.db:value "SELECT count(*) FROM ledger", total, appliers[1]:err())
      end)
      assert.equal(total, number "SELECT count(DISTINCT position) FROM ledger")
      process.wait_until(function()
        return number "SELECT count(DISTINCT instance_id) FROM PARTITION_OWNERSHIP" == count
          and number "SELECT count(*) FROM PARTITION_OWNERSHIP WHERE instance_id IS NOT NULL" == 12
      end, 30, function() return count .. " that hold partitions" end)
    end

    local function mark_holder()
      return app.db:value "SELECT max(lease_owner) FROM HIGH_WATER_MARK_STORE WHERE topic_name = 'event-store'"
    end

    -- The keeper has no scripts, so it can hold no partition; it was first, so
    -- it is known by what it calls itself on the mark.
    before_each(function()
      app = application.new { database = database, config = CONFIG }
      ledger.add(app)
      app:ok("run", "--until-idle")
      app:exec("mkdir", "none")
      app:write("keeper.conf.lua", (app:read("moontide.conf.lua"):gsub("^return {", 'return { scripts = "none", ')))
      keeper = start("--config", "keeper.conf.lua")
      app:append { {} }
      total = 1
      keeper_id = process.wait_until(function()
        local id = mark_holder()
        return id ~= "" and id
      end, 30, function() return keeper:err() end)
      appliers = { start(), start() }
      applies(2)
      assert.equal(2, number "SELECT count(*) FROM PARTITION_MEMBERS")
      -- the mark is whose turn it was last; here it is to be the keeper's
      process.wait_until(function()
        applies(2)
        return mark_holder() == keeper_id
      end, 60, function() return keeper:err() end)
    end)

    after_each(function() app:close() end)

    local function another_moves_the_mark()
      assert.is_true(mark_holder() ~= "" and mark_holder() ~= keeper_id, mark_holder())
    end

    it("go on when one that applies dies, and then the one that moves the mark", function()
      appliers[1]:signal "KILL"
      table.remove(appliers, 1)
      applies(1)
      keeper:signal "KILL"
      applies(1)
      another_moves_the_mark()
      stop(appliers[1])
    end)

    it("go on when the one that moves the mark dies, and then one that applies", function()
      keeper:signal "KILL"
      applies(2)
      another_moves_the_mark()
      appliers[1]:signal "KILL"
      table.remove(appliers, 1)
      applies(1)
      stop(appliers[1])
    end)

    it("are all replaced after they died together", function()
      for _, host in ipairs { keeper, appliers[1], appliers[2] } do host:signal "KILL" end
      appliers = { start() }
      applies(1)
      another_moves_the_mark()
      stop(appliers[1])
    end)
  end)

  describe("hosts with another number of partitions each", function()
    before_each(function()
      app = application.new { database = database, config = CONFIG }
      ledger.add(app)
    end)

    after_each(function() app:close() end)

    for round = 1, 3 do
      it("that start at once on an empty database agree on one, and the others are refused, round " .. round, function()
        local hosts = {}
        for i, partitions in ipairs { 12, 16, 5 } do
          local name = partitions .. ".conf.lua"
          app:write(name, (app:read("moontide.conf.lua"):gsub("partitions = 12", "partitions = " .. partitions)))
          hosts[i] = app:start("run", "--config", name)
        end
        local running, refused
        process.wait_until(function()
          running, refused = nil, {}
          for _, host in ipairs(hosts) do
            if host:err():find("running", 1, true) then running = host end
            if not host:alive() then refused[#refused + 1] = host end
          end
          return running and #refused == 2
        end, 60, function() return hosts[1]:err() .. hosts[2]:err() .. hosts[3]:err() end)
        for _, host in ipairs(refused) do
          local result = host:wait(5)
          assert.equal(3, result.code, result.err)
          assert.matches("created with %d+ partitions", result.err)
        end
        -- and nothing of theirs is there
        assert.equal(1, number [[SELECT count(DISTINCT n) FROM
          (SELECT count(*) AS n FROM CONSUMER_CHECKPOINTS GROUP BY consumer_id) AS counted]])
        stop(running)
      end)
    end
  end)
end)
