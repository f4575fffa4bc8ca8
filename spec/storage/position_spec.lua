local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"

local FOREIGN = 100000 -- events that no consumer asks for

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = "partitions = 12" }
    ledger.add(app)
  end)

  after_each(function()
    app:close()
  end)

  local function assert_each_applied_once()
    assert.same({}, ledger.faults(app))
  end

  describe("after a restart", function()
    for k = 0, 5 do
      it(("the first event after %d consumed ones is applied, and once"):format(k), function()
        local events = {}
        for i = 1, k do events[i] = { aggregate_id = "K-" .. i } end
        if k > 0 then app:append(events) end
        app:ok("run", "--until-idle")
        assert_each_applied_once()
        app:append { { aggregate_id = "K-1" } }
        app:ok("run", "--until-idle")
        assert.equal(tostring(k + 1), app.db:value "SELECT count(*) FROM ledger")
        assert_each_applied_once()
        app:ok("run", "--until-idle")
        assert_each_applied_once()
      end)
    end

    it("an event after deleted ones is applied", function()
      app:append { {}, {}, {} }
      app:ok("run", "--until-idle")
      app.db:execute "DELETE FROM EVENT_STORE"
      app.db:execute "DELETE FROM ledger"
      app:append { {} }
      app:ok("run", "--until-idle")
      assert.same({ { position = 4 } }, app.db:query "SELECT position FROM ledger")
    end)
  end)

  describe("events of types that nobody handles", function()
    it("are passed in bulk, and the one behind them is applied", function()
      local lines = {}
      for i = 1, FOREIGN do
        lines[i] = ('{"aggregate_type":"o","aggregate_id":"K-%d","type":"other.Thing","payload":{}}'):format(i % 997)
      end
      app:append(lines, "--batch", "10000")
      app:append { {} }
      app:ok("run", "--until-idle")
      assert.same({ { position = FOREIGN + 1 } }, app.db:query "SELECT position FROM ledger")
      local consumer = app:json("status").consumers[1]
      assert.equal(FOREIGN + 1, consumer.position)
      assert.equal(0, consumer.lag.messages)
      -- a checkpoint row per partition, not one per event
      assert.is_true(tonumber(app.db:value "SELECT count(*) FROM CONSUMER_CHECKPOINTS") <= 12)
    end)
  end)

  describe("the high-water mark", function()
    it("follows the counter", function()
      app:append { {}, {}, {} }
      app:ok("run", "--until-idle")
      local topic = app:json("status").topics[1]
      assert.same({ name = "event-store", mark = 3, ["end"] = 3, start = 0 }, topic)
    end)

    it("is not passed by a failed append", function()
      app:append { {} }
      app:refuses({ {}, "nonsense" }, 1)
      app:ok("run", "--until-idle")
      assert.equal(1, app:json("status").topics[1].mark)
    end)

    local function restore_older_copy()
      app:append { {}, {}, {}, {}, {} }
      app:ok("run", "--until-idle")
      app.db:execute "DELETE FROM EVENT_STORE WHERE global_position > 2"
      app.db:set_counter(2)
    end

    it("above the end of its topic stops the host, which names both", function()
      restore_older_copy()
      local err = app:fails(3, "run", "--until-idle")
      assert.matches("ends at position 2", err, 1, true)
      assert.matches("high-water mark 5", err, 1, true)
    end)

    it("above the end of its topic stops appends: no position below it is given", function()
      restore_older_copy()
      assert.matches("high-water mark 5", app:refuses({ {} }, 3), 1, true)
      assert.equal(2, app:count())
    end)

    it("above the end of its topic is a problem that status shows", function()
      restore_older_copy()
      assert.matches("below its high-water mark 5", app:json("status").problems[1], 1, true)
    end)
  end)

  describe("two hosts on one database", function()
    it("apply every event once", function()
      app:ok("run", "--until-idle")
      local events = {}
      for i = 1, 3000 do events[i] = { aggregate_id = "K-" .. i % 50 } end
      -- who stands for a while on a busy machine is not dead
      app:configure [[partitions = 12, batch = 20,
        lease = { duration = "20s", heartbeat = "200ms", rebalance = "200ms" }]]
      app:append(events, "--batch", "500")
      local one, two = app:start("run", "--until-idle"), app:start("run", "--until-idle")
      local first, second = one:wait(60), two:wait(60)
      assert.equal(0, first.code, first.err)
      assert.equal(0, second.code, second.err)
      assert.equal("3000", app.db:value "SELECT count(*) FROM ledger")
      assert_each_applied_once()
    end)
  end)
end)
