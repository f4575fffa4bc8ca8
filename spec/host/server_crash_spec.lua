-- The database's server crashes under two hosts and comes back. Who holds what
-- is told by rows and not by sessions, so nothing is held by two, and nothing
-- by nobody.
local application = require "spec.support.application"
local cluster = require "spec.support.cluster"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local CONFIG = [[partitions = 12, poll = { max_interval = "20ms" },
  lease = { duration = "1s", heartbeat = "200ms", rebalance = "200ms" },
  retry = { attempts = 1000, delay = "10ms", factor = 1, jitter = 0 },]]
local LONG = 90 -- seconds: a start of a server may be slow
local ROUNDS = 2

dialect.servers(function(database)
  describe("two hosts whose server crashes", function()
    local app, server

    before_each(function()
      app = application.new { config = CONFIG }
      server = database.name == "mysql" and cluster.mariadb(app) or cluster.postgres(app)
      app.db = dialect.at(database.name, app, server.url)
      app:configure(CONFIG)
      ledger.add(app)
      app:ok("run", "--until-idle")
    end)

    after_each(function()
      app:close()
    end)

    local function number(sql) return tonumber(app.db:value(sql)) end

    it("share the partitions again when it is back, and apply everything once", function()
      local hosts = { app:start("run", "--workers", "1"), app:start("run", "--workers", "1") }
      local function said() return hosts[1]:err() .. "\n" .. hosts[2]:err() end
      local function all_held()
        process.wait_until(function()
          return number "SELECT count(*) FROM PARTITION_MEMBERS" == 2
            and number "SELECT count(DISTINCT instance_id) FROM PARTITION_OWNERSHIP" == 2
            and number "SELECT count(instance_id) FROM PARTITION_OWNERSHIP" == 12
        end, LONG, said)
      end
      local total = 0
      local function applies()
        local list = {}
        for i = 1, 46 do list[i] = { aggregate_id = "key-" .. i % 23 } end
        app:append(list)
        total = total + #list
        process.wait_until(function() return number "SELECT count(*) FROM ledger" >= total end, LONG, said)
      end
      all_held()
      applies()
      for _ = 1, ROUNDS do
        local before = select(2, said():gsub("trying again", ""))
        server:crash()
        process.wait_until(function() return select(2, said():gsub("trying again", "")) > before end, LONG, said)
        server:start()
        all_held()
        applies()
      end
      for _, host in ipairs(hosts) do
        assert.is_true(host:alive())
        host:signal "TERM"
        assert.equal(0, host:wait(30).code, said())
      end
      assert.same({}, ledger.faults(app))
      assert.equal(total, number "SELECT count(DISTINCT position) FROM ledger")
      assert.equal(total, number "SELECT count(*) FROM ledger")
    end)
  end)
end)
