-- A message with an id of its own that two writers stage at once: whoever comes
-- second has nothing to add, or other content.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local ID = "0190f3a2-0000-7000-8000-00000000000a"

local LISTENER = ([[
local moontide = require "moontide"
return { moontide.publisher "mail" { to = "stdout:" },
  moontide.listener "post" { start = "beginning", retry = { attempts = 1 }, on_error = "dead_letter", on = {
    ["thing.Told"] = function(event, ctx)
      ctx:publish("mail", "mail.Send", { n = event.payload.n }, { id = "%s", ordering_key = "K" })
    end } } }
]]):format(ID)

-- Whether a session waits for a lock of another one; a file has one writer.
local WAITING = {
  postgres = "SELECT count(*) FROM pg_locks WHERE NOT granted",
  mysql = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}

dialect.each(function(database)
  describe("a message that another process stages at the same time", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["post.lua"] = LISTENER } }
      app:ok("run", "--until-idle") -- makes the tables
    end)

    after_each(function() app:close() end)

    -- The other's row stands uncommitted until the host waits for it.
    local function race(payload)
      app:append { { aggregate_id = "x", type = "thing.Told", payload = '{"n":1}' } }
      local begin = database.name == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN"
      local now = "'2026-01-01 00:00:00'"
      local held = app.db:hold(([[%s; INSERT INTO OUTBOX (id, outbox_route, event_id, event_type, occurred_at, payload,
          status, created_at, available_at, ordering_key)
        VALUES ('%s', 'mail', '%s', 'mail.Send', %s, '%s', 'pending', %s, %s, 'K');]]):format(begin, ID, ID, now,
        payload, now, now))
      local host = app:start("run", "--until-idle")
      if WAITING[database.name] then
        process.wait_until(function() return tonumber(app.db:value(WAITING[database.name])) > 0 end, 60,
          function() return "the host waits for the other's row\n" .. host:err() end)
      end
      held.commit()
      local result = host:wait(60)
      assert.equal(0, result.code, result.err)
      assert.equal("1", tostring(app.db:value "SELECT count(*) FROM OUTBOX"))
      assert.equal(payload, app.db:value "SELECT payload FROM OUTBOX")
    end

    it("is the same one when its content is the same", function()
      race '{"n":1}'
      assert.equal("0", tostring(app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES"))
    end)

    it("fails its event when its content is another one", function()
      race '{"n":2}'
      assert.matches("is in the outbox with another payload", app.db:value [[SELECT failure_reason
        FROM CONSUMER_UNDELIVERED_MESSAGES]], 1, true)
    end)
  end)
end)
