-- The start and the stop of a host while another program holds what they need,
-- or while their database goes and comes back.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

-- The verb, and what of the log says that the start is over.
local WAYS = {
  ["in workers"] = { words = { "run" }, over = "running 1 consumers" },
  ["in one process"] = { words = { "run", "--workers", "0" }, over = "running 1 consumers" },
  ["to idle"] = { words = { "run", "--until-idle" }, over = "applied 1 message" },
}
local WAITS = "the start waits for it"

-- Whether somebody has leases, and for longer than a statement waits for a lock
-- under leases of one second.
local HELD = "SELECT count(*) FROM PARTITION_OWNERSHIP WHERE instance_id IS NOT NULL"
local LONG = 3

-- A host that reaches its server through the proxy.
local function through(app, proxied, way)
  local words = { unpack(way.words) }
  words[#words + 1] = "--database"
  words[#words + 1] = proxied.url
  return app:start(unpack(words))
end

-- What a host writes when it starts for the first time.
local function hold(app)
  return app.db:hold [[
    BEGIN;
    INSERT INTO CONSUMERS (id, consumer_type, consumer_name, state_since)
    VALUES ('00000000-0000-7000-8000-000000000001', 'projection', 'ledger', CURRENT_TIMESTAMP);]]
end

dialect.each(function(database)
  describe("a start that meets locks", function()
    local app

    before_each(function()
      -- a start waits for ten seconds more than that
      app = application.new { database = database, config = 'limits = { time = "45s" }' }
      ledger.add(app)
      app:append { {} }
    end)

    after_each(function() app:close() end)

    local function hears(host, part)
      process.wait_until(function() return host:err():find(part, 1, true) end, 30, function()
        return part .. ": " .. host:err()
      end)
    end

    for how, way in pairs(WAYS) do
      it("waits for them, says so once, and goes on when they are gone: " .. how, function()
        local lock = hold(app)
        local host = app:start(unpack(way.words))
        hears(host, WAITS)
        assert.is_true(host:alive())
        lock.release()
        hears(host, way.over)
        process.wait_until(function() return ledger.count(app) == 1 end, 30, function() return host:err() end)
        host:signal "TERM"
        local result = host:wait(30)
        assert.equal(0, result.code, result.err)
        assert.equal(1, select(2, result.err:gsub(WAITS, "")), result.err)
      end)

      it("ends in order at a signal meanwhile: " .. how, function()
        local lock = hold(app)
        local host = app:start(unpack(way.words))
        hears(host, WAITS)
        host:signal "TERM"
        local result = host:wait(30)
        assert.equal(0, result.code, result.err)
        assert.is_nil(result.err:find(way.over, 1, true), result.err)
        lock.release()
        assert.equal(0, ledger.count(app))
      end)
    end
  end)
end)

dialect.each(function(database)
  describe("a stop that meets locks", function()
    local app

    before_each(function()
      app = application.new { database = database, config = 'stop_timeout = "2m"' }
      ledger.add(app)
      app:ok("run", "--until-idle")
    end)

    after_each(function() app:close() end)

    for _, words in ipairs { { "run" }, { "run", "--workers", "0" } } do
      it("waits for them, and gives the leases back: " .. table.concat(words, " "), function()
        local host = app:start(unpack(words))
        local function held() return app.db:value(HELD) ~= "0" end
        process.wait_until(held, 30, function() return "leases\n" .. host:err() end)
        local lock = app.db:hold "BEGIN; UPDATE PARTITION_INSTANCES SET expires_at = expires_at;"
        host:signal "TERM"
        local since = process.now()
        process.wait_until(function() return process.now() - since > LONG or not host:alive() end, 30, "a while")
        lock.release()
        local result = host:wait(30)
        assert.equal(0, result.code, result.err)
        assert.is_false(held())
      end)
    end
  end)
end)

dialect.servers(function(database)
  describe("a start that loses its connection", function()
    local app

    before_each(function()
      app = application.new { database = database }
      ledger.add(app)
      app:append { {} }
    end)

    after_each(function() app:close() end)

    -- Once the host has applied what there is.
    local function ends_well(host)
      process.wait_until(function() return ledger.count(app) == 1 or not host:alive() end, 60,
        function() return host:err() end)
      host:signal "TERM"
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
      assert.equal(1, ledger.count(app), result.err)
    end

    for how, way in pairs(WAYS) do
      for nth = 1, 3 do
        it(("connects again, in transaction %d: %s"):format(nth, how), function()
          local proxied = proxy.start(app, { cut = "before", at = "^(BEGIN|START TRANSACTION)", nth = nth })
          ends_well(through(app, proxied, way))
          assert.is_true(proxied:has_cut())
        end)
      end

      it("waits while the server is gone: " .. how, function()
        local proxied = proxy.start(app, {})
        local lock = hold(app)
        local host = through(app, proxied, way)
        process.wait_until(function() return host:err():find(WAITS, 1, true) end, 30,
          function() return host:err() end)
        proxied:leave()
        lock.release()
        local since = process.now()
        process.wait_until(function() return process.now() - since > 1 end, 30, "a while")
        assert.is_true(host:alive(), host:err())
        assert.equal(0, ledger.count(app))
        proxied:come_back()
        ends_well(host)
      end)
    end
  end)
end)

dialect.servers(function(database)
  describe("a stop that loses its connection", function()
    local app

    before_each(function()
      app = application.new { database = database, config = "partitions = 12" }
      ledger.add(app)
      app:ok("run", "--until-idle")
    end)

    after_each(function() app:close() end)

    for how, way in pairs(WAYS) do
      for what, at in pairs {
        ["saves its checkpoints"] = "UPDATE consumer_checkpoints",
        ["gives its leases back"] = "DELETE [^;]*partition_instances",
      } do
        it(("connects again, and %s: %s"):format(what, how), function()
          app:append { { type = "thing.Ignored" } }
          local proxied = proxy.start(app, { cut = "before", at = at })
          local host = through(app, proxied, way)
          process.wait_until(function()
            return not host:alive() or app.db:value(HELD) == "12" and app:json("status").topics[1].mark == 1
          end, 60, function() return "leases\n" .. host:err() end)
          host:signal "TERM"
          local result = host:wait(30)
          assert.equal(0, result.code, result.err)
          assert.is_true(proxied:has_cut())
          assert.equal("0", app.db:value(HELD))
        end)
      end
    end
  end)
end)

-- A file is locked as a whole, and so for all that comes before, too.
dialect.servers(function(database)
  describe("a run to idle that meets locks when all is applied", function()
    it("waits for them, and saves then how far it read", function()
      local app = application.new { database = database, config = "partitions = 12" }
      finally(function() app:close() end)
      ledger.add(app)
      app:ok("run", "--until-idle")
      app.db:execute "CREATE TABLE gate (n INTEGER)"
      app.db:execute "INSERT INTO gate VALUES (1)"
      for _, statement in ipairs(app.db:trigger { name = "pass", on = "CONSUMER_CHECKPOINTS", at = "BEFORE UPDATE",
        only = "NEW.position > 0", body = "UPDATE gate SET n = n" }) do
        app.db:command(statement)
      end
      app:append { { type = "thing.Ignored" } }
      local lock = app.db:hold "BEGIN; UPDATE gate SET n = n;"
      local host = app:start("run", "--until-idle")
      process.wait_until(function() return host:err():find("trying again", 1, true) or not host:alive() end, 30,
        function() return host:err() end)
      assert.is_true(host:alive(), host:err())
      lock.release()
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
      assert.equal("12|1|1", app.db:value [[SELECT count(position), min(position), max(position)
        FROM CONSUMER_CHECKPOINTS]])
    end)
  end)
end)

-- Elsewhere each application has a database of its own.
dialect.only("postgres", function(database)
  describe("a start that waits", function()
    it("does not keep those of applications in other schemas waiting", function()
      local app = application.new { database = database }
      local other = application.new { database = database, config = 'lease = { duration = "20s" }' }
      finally(function() other:close() app:close() end)
      ledger.add(app)
      ledger.add(other)
      -- another session makes a table of the other one just now
      local lock = other.db:hold "BEGIN; CREATE TABLE ledger (id UUID, position BIGINT);"
      local host = other:start("run", "--until-idle")
      process.wait_until(lock.blocks, 30, function() return "a start that waits\n" .. host:err() end)
      local result = app:expect(0, "run", "--until-idle")
      assert.is_nil(result.err:find(WAITS, 1, true), result.err)
      lock.release()
      result = host:wait(30)
      assert.equal(0, result.code, result.err)
    end)
  end)
end)

describe("a start that meets a file that is locked as a whole", function()
  it("waits for it", function()
    local app = application.new { database = dialect.sqlite(), config = 'limits = { time = "45s" }' }
    finally(function() app:close() end)
    ledger.add(app)
    app:append { {} }
    local lock = app.db:hold "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE;"
    local host = app:start("run", "--until-idle")
    process.wait_until(function() return host:err():find(WAITS, 1, true) end, 30, function() return host:err() end)
    lock.release()
    local result = host:wait(30)
    assert.equal(0, result.code, result.err)
    assert.equal(1, ledger.count(app))
  end)
end)
