-- A message, or a deadline, whose statement ends the connection each time: as a
-- query that crashes the server does. It must not keep the others waiting.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local LONG = 120 -- seconds, far more than the pauses between the connections take

local HANDLERS = [[
local moontide = require "moontide"
return {
  moontide.sql_projection "notes" { tables = "sql/notes.sql", on_error = "dead_letter",
    retry = { attempts = 2, delay = "10ms" }, on = {
      ["spec.Put"] = function(event, ctx)
        ctx:execute("INSERT INTO notes (position) VALUES (?)", event.position)
        if event.payload.lose then ctx:query %q end
      end } },
  moontide.saga "timer" { id = function(event) return event.key end, starts = { "spec.Timed" },
    retry = { attempts = 2, delay = "10ms" },
    on = { ["spec.Timed"] = function(saga, event) saga:deadline("over", "0s", event.payload) end },
    deadlines = { over = function(saga, deadline, ctx)
      if deadline.payload.lose then ctx:query %q end
      saga:complete()
    end } } }]]

dialect.each(function(database)
  if database.loss then describe("what loses its connection each time", function()
    local app, host

    before_each(function()
      app = application.new { database = database, config = "partitions = 3",
        handlers = { ["spec.lua"] = HANDLERS:format(database.loss, database.loss) } }
      app:write("sql/notes.sql", app.db:ddl
        "CREATE TABLE IF NOT EXISTS notes (n INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL);")
    end)

    after_each(function() app:close() end)

    local function start(times, events)
      app:ok("run", "--until-idle")
      for _, statement in ipairs { database:make_loss(times) } do app.db:command(statement) end
      app:append(events)
      host = app:start("run", "--workers", "1")
    end

    local function wait(sql, wanted)
      process.wait_until(function() return app.db:value(sql) == wanted end, LONG, function()
        return ("%s to be %s and not %s\n%s"):format(sql, wanted, app.db:value(sql), host:err())
      end)
    end

    local function stop()
      host:signal "TERM"
      assert.equal(0, host:wait(LONG).code, host:err())
    end

    it("has failed after ten times alone, at its first attempt and at the next", function()
      start(1000000, { { type = "spec.Put", aggregate_id = "A" },
        { type = "spec.Put", aggregate_id = "B", payload = '{"lose":true}' },
        { type = "spec.Put", aggregate_id = "C" }, { type = "spec.Put", aggregate_id = "B" } })
      wait("SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER'", "1")
      wait("SELECT count(*) FROM notes", "3")
      stop()
      assert.equal("3|8", app.db:value "SELECT count(DISTINCT position), sum(position) FROM notes")
      local letters = app:json("dead-letters", "list").messages
      assert.equal(1, #letters)
      assert.equal(2, letters[1].position)
      assert.equal(2, letters[1].failures)
      assert.matches("^conflict: 10 times in a row: the connection to the database was lost", letters[1].reason)
    end)

    it("costs no attempt when it ends before that", function()
      start(8, { { type = "spec.Put", aggregate_id = "B", payload = '{"lose":true}' } })
      wait("SELECT count(*) FROM notes", "1")
      stop()
      assert.same({}, app:json("dead-letters", "list").messages)
      assert.not_matches("could not apply", host:err(), 1, true)
    end)

    it("is a dead deadline, and others fire", function()
      start(1000000, { { type = "spec.Timed", aggregate_id = "B", payload = '{"lose":true}' },
        { type = "spec.Timed", aggregate_id = "C", payload = '{}' } })
      wait("SELECT count(*) FROM SAGA_DEADLINES WHERE status = 'DEAD_LETTER'", "1")
      wait("SELECT count(*) FROM SAGA_INSTANCES WHERE completed_at IS NOT NULL", "1")
      stop()
    end)
  end) end
end)
