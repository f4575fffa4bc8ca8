-- Two writers of one saga. Its partition has one holder at a time, so there is
-- no such thing unless a lease was lost; then the constraint and the version of
-- its row are what keeps one from overwriting the other.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"
local json = require("moontide").json

local SAGA = [[
local moontide = require "moontide"
return moontide.saga "order" { id = moontide.by "order", starts = { "thing.Placed" },
  initial = function() return { seen = moontide.array() } end,
  on = { ["thing.Placed"] = function(saga, event) table.insert(saga.state.seen, event.payload.n) end } }
]]

-- Whether a session waits for a lock of another one; a file has one writer.
local WAITING = {
  postgres = "SELECT count(*) FROM pg_locks WHERE NOT granted",
  mysql = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}

local OTHER = "0190f3a2-0000-7000-8000-000000000001"

dialect.each(function(database)
  describe("a saga that another process writes, too,", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["order.lua"] = SAGA } }
      app:ok("run", "--until-idle") -- makes the tables
    end)

    after_each(function() app:close() end)

    local function place(n)
      app:append { { aggregate_id = "x", type = "thing.Placed", payload = ('{"order":"A","n":%d}'):format(n) } }
    end

    -- Lets the other session's statement stand uncommitted until the host waits
    -- for it, and commits it then.
    local function race(statement)
      local begin = database.name == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN"
      local held = app.db:hold(("%s; %s;"):format(begin, statement))
      local host = app:start("run", "--until-idle")
      if WAITING[database.name] then
        process.wait_until(function() return tonumber(app.db:value(WAITING[database.name])) > 0 end, 30,
          function() return "the host waits for the other's row\n" .. host:err() end)
      end
      held.commit()
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
    end

    local function stored()
      local id = app.db:value "SELECT id FROM SAGA_INSTANCES"
      assert.equal("1", tostring(app.db:value "SELECT count(*) FROM SAGA_INSTANCES"))
      return id, json.decode(app.db:value "SELECT state_json FROM SAGA_INSTANCES").seen
    end

    it("is begun once, and the page runs again on what the other has begun", function()
      place(1)
      race(([[INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id, state_json, version)
        VALUES ('%s', 'order', 'A', '{"seen":["other"]}', 7)]]):format(OTHER))
      local id, seen = stored()
      assert.equal(OTHER, id)
      assert.same({ "other", 1 }, seen)
      assert.equal("8", tostring(app.db:value "SELECT version FROM SAGA_INSTANCES"))
      assert.equal("0", tostring(app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES"))
    end)

    it("is not overwritten: the page runs again on what the other has written", function()
      place(1)
      app:ok("run", "--until-idle")
      place(2)
      race [[UPDATE SAGA_INSTANCES SET state_json = '{"seen":["other"]}', version = version + 1]]
      local _, seen = stored()
      assert.same({ "other", 2 }, seen)
      assert.equal("0", tostring(app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES"))
    end)

    it("that was deleted and begun anew meanwhile is another one, which keeps what it has", function()
      place(1)
      app:ok("run", "--until-idle")
      place(2)
      race(([[DELETE FROM SAGA_INSTANCES; INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id, state_json, version)
        VALUES ('%s', 'order', 'A', '{"seen":["anew"]}', 7)]]):format(OTHER))
      local id, seen = stored()
      assert.equal(OTHER, id)
      assert.same({ "anew", 2 }, seen)
    end)
  end)
end)
