-- A host whose consumer is unsubscribed at the moment at which it gives some of
-- its partitions away. SQLite has one host.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

-- Nobody's lease lapses while a process stands.
local CONFIG = 'partitions = 12, lease = { duration = "60s", heartbeat = "200ms", rebalance = "200ms" }'

local function counts(name, event_type)
  return ([[local moontide = require "moontide"
    return moontide.projection "%s" { on = {
      ["%s"] = function(state, event) state.n = event.position end } }]]):format(name, event_type)
end

dialect.servers(function(database)
  describe("a consumer that is unsubscribed just before partitions change hands", function()
    local app

    after_each(function() app:close() end)

    it("stands still in its host, which goes on with the others", function()
      app = application.new { database = database, config = CONFIG,
        handlers = { ["notes.lua"] = counts("notes", "spec.Put"), ["others.lua"] = counts("others", "spec.Other") } }
      app:ok("run", "--until-idle") -- makes the tables that are looked at
      local host = app:start("run", "--workers", "0")
      local function await(condition, what)
        process.wait_until(condition, 60, function() return what .. "\n" .. host:err() end)
      end
      local function append(n)
        app:append { { type = "spec.Other" } }
        await(function() return app.db:value "SELECT state FROM others" == ('{"n":%d}'):format(n) end, "event " .. n)
      end
      -- once the second is applied, the first is a stretch that the other
      -- consumer has read over and not saved
      append(1)
      append(2)
      host:signal "STOP"
      assert.equal("0", app.db:value [[SELECT count(*) FROM CONSUMER_CHECKPOINTS k
        JOIN CONSUMERS c ON c.id = k.consumer_id WHERE c.consumer_name = 'notes' AND k.position > 0]])
      app.db:execute [[INSERT INTO PARTITION_INSTANCES (instance_id, started_at, last_heartbeat, expires_at)
        VALUES ('another', '2026-01-01 00:00:00', '2026-01-01 00:00:00', '2999-01-01 00:00:00')]]
      app.db:execute [[INSERT INTO PARTITION_MEMBERS (instance_id, consumer_type, consumer_name)
        VALUES ('another', 'projection', 'notes')]]
      -- what unsubscribe does, between the host's look at the leases and its save
      local verb = app.db:hold [[BEGIN IMMEDIATE;
        DELETE FROM CONSUMER_CHECKPOINTS
         WHERE consumer_id = (SELECT id FROM CONSUMERS WHERE consumer_name = 'notes');
        DELETE FROM PARTITION_OWNERSHIP WHERE consumer_name = 'notes';
        DELETE FROM CONSUMERS WHERE consumer_name = 'notes';]]
      host:signal "CONT"
      await(verb.blocks, "a host that waits")
      verb.commit()
      await(function() return host:err():find("unsubscribed while it ran", 1, true) end, "a consumer that stands still")
      append(3)
      host:signal "TERM"
      local result = host:wait(60)
      assert.equal(0, result.code, result.err)
    end)
  end)
end)
