-- A connection that is there and says nothing: the server behind it is gone, or
-- what stands between holds it open for nobody.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

-- Until somebody looks: `limits.time` and five seconds; and 2 s for the look.
-- A process may stand for longer than that in a handler.
local CONFIG = [[partitions = 12, limits = { time = "100ms" },
  retry = { attempts = 1000, delay = "10ms", factor = 1, jitter = 0 },
  lease = { duration = "1s", heartbeat = "200ms", rebalance = "200ms" }, poll = { max_interval = "20ms" }]]

-- MariaDB's client ends such a wait by itself, after 75 s.
dialect.only("postgres", function(database)
  describe("a connection that nothing comes over any more", function()
    local app, proxied

    before_each(function()
      app = application.new { database = database, config = CONFIG }
      ledger.add(app)
      app:ok("run", "--until-idle")
      proxied = proxy.start(app, {})
      proxied.url = proxied.url .. "&connect_timeout=5"
    end)

    after_each(function() app:close() end)

    local function wait_for(count, host)
      process.wait_until(function() return app:count "ledger" == count end, 30, function() return host:err() end)
    end

    it("is given up by the host, whose work another one has done meanwhile, and made anew", function()
      local host = app:start("run", "--workers", "1", "--database", proxied.url)
      app:append { {}, {} }
      wait_for(2, host)
      proxied.process:signal "STOP" -- its end of each connection still takes what comes
      local other = app:start("run", "--workers", "1")
      app:append { { aggregate_id = "A-2" }, {}, { aggregate_id = "A-3" } }
      wait_for(5, other)
      process.wait_until(function()
        local _, lines = host:err():gsub("does not answer, and is not at work", "")
        return lines >= 2 -- the worker's and the supervisor's
      end, 30, function() return host:err() end)
      proxied.process:signal "CONT"
      other:signal "TERM"
      assert.equal(0, other:wait(30).code, other:err())
      app:append { {}, { aggregate_id = "A-4" } }
      wait_for(7, host)
      host:signal "TERM"
      assert.equal(0, host:wait(30).code, host:err())
      assert.same({}, ledger.faults(app))
    end)
  end)
end)
