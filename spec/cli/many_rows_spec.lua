-- Verbs that change rows by the thousand do it in transactions of a thousand:
-- one that fails keeps what those before it did, and a repeat does the rest.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local MANY = 2500 -- more than two transactions take
local HANDLER = [[
  return require("moontide").projection "notes" { on_error = "halt", on = {
    ["spec.Put"] = function(_, event) error("no good: " .. event.key) end } }]]

dialect.each(function(database)
  describe("very many rows", function()
    local app, past, future

    before_each(function()
      app = application.new { database = database, config = "partitions = 12", handlers = { ["notes.lua"] = HANDLER } }
      app:ok("run", "--until-idle")
      past = ("'%s'"):format(app.db:moment "2026-01-01T00:00:00.000000Z")
      future = ("'%s'"):format(app.db:moment "2199-01-01T00:00:00.000000Z")
    end)

    after_each(function() app:close() end)

    -- Rows of a table, each column by its expression of n.
    local function fill(table_name, columns)
      local names, values = {}, {}
      for name, value in pairs(columns) do
        names[#names + 1], values[#values + 1] = name, value
      end
      local rows = {}
      for n = 1, MANY do
        rows[n] = "(" .. table.concat(values, ", "):gsub("%f[%w]n%f[%W]", tostring(n))
          :gsub("uuid%((%d+)%)", function(at) return ("'00000000-0000-7000-8000-%012d'"):format(at) end) .. ")"
      end
      app.db:execute(("INSERT INTO %s (%s) VALUES %s"):format(table_name, table.concat(names, ", "),
        table.concat(rows, ", ")))
    end

    local function deadlines(status)
      fill("SAGA_DEADLINES", { id = "uuid(n)", saga_type = "'order'", saga_id = "'S-n'", name = "'pay'",
        instance_id = "uuid(n)", due_at = future, partition_no = "0", status = ("'%s'"):format(status),
        attempts = "3", next_retry_at = status == "PENDING" and future or "NULL" })
    end

    local function halting()
      fill("CONSUMER_UNDELIVERED_MESSAGES", { id = "uuid(n)", consumer_id = "(SELECT id FROM CONSUMERS)",
        source_name = "'event-store'", resolved_key = "'K-n'", key_hash = "n", message_position = "n",
        partition_no = "0", status = "'HALTED'", failure_count = "1", failure_reason = "'no good'",
        recorded_at = past, unresolved = "false" })
      app.db:execute "UPDATE CONSUMERS SET state = 'HALTED', halt_reason = 'APPLY_ERROR'"
    end

    local function count(what) return tonumber(app.db:value("SELECT count(*) FROM " .. what)) end

    -- While fn runs no row like that can be changed in such a way.
    local function stuck(at, on, only, fn)
      for _, sql in ipairs(app.db:trigger { name = "stuck", at = at, on = on, only = only, fails = "stuck here" }) do
        app.db:command(sql)
      end
      fn()
      app.db:command(app.db:drop_trigger("stuck", on))
    end

    local function fails_behind(done, ...)
      local err = app:fails(1, ...)
      assert.matches("stuck here", err)
      assert.matches(("%%(%s before that; doing it again goes on with the rest%%)"):format(done), err)
    end

    it("are made due by `deadlines fire`, each once, by one that is stopped and asked for again", function()
      deadlines "PENDING"
      stuck("AFTER UPDATE", "SAGA_DEADLINES", "OLD.saga_id = 'S-2100'", function()
        fails_behind("2000 deadlines were made due", "deadlines", "fire", "--all")
      end)
      assert.equal(2000, count("SAGA_DEADLINES WHERE due_at < " .. future))
      assert.same({ 500, 0, 0 }, (function(r) return { r.changed, r.dead_letters, r.of_host } end)(
        app:json("deadlines", "fire", "--all")))
      assert.equal(MANY, count "SAGA_DEADLINES WHERE due_at = next_retry_at")
      assert.matches("no deadline matches that is not due already: nothing changed",
        app:ok("deadlines", "fire", "--all"))
    end)

    it("are given a fresh budget by `deadlines retry` and deleted by `deadlines delete`", function()
      deadlines "DEAD_LETTER"
      assert.equal(0, app:json("deadlines", "fire", "--all").changed)
      stuck("AFTER UPDATE", "SAGA_DEADLINES", "OLD.saga_id = 'S-1001'", function()
        fails_behind("1000 deadlines were made due", "deadlines", "retry", "--all")
      end)
      assert.equal(MANY - 1000, app:json("deadlines", "retry", "--all").changed)
      assert.equal(MANY, count "SAGA_DEADLINES WHERE status = 'PENDING' AND attempts = 0")
      assert.equal(0, app:json("deadlines", "retry", "--all").changed)
      app.db:execute "UPDATE SAGA_DEADLINES SET name = 'moontide:step' WHERE saga_id IN ('S-7', 'S-1500')"
      stuck("AFTER DELETE", "SAGA_DEADLINES", "OLD.saga_id = 'S-1101'", function()
        fails_behind("1000 deadlines were deleted", "deadlines", "delete", "--all")
      end)
      local deleted = app:json("deadlines", "delete", "--all")
      assert.same({ MANY - 1002, 2 }, { deleted.changed, deleted.of_host })
      assert.equal(2, count "SAGA_DEADLINES")
    end)

    it("are taken by a filter of `deadlines`, and no others", function()
      deadlines "PENDING"
      app.db:execute "UPDATE SAGA_DEADLINES SET saga_type = 'other' WHERE saga_id LIKE '%7'"
      assert.equal(MANY / 10, app:json("deadlines", "delete", "other").changed)
      assert.equal(1, app:json("deadlines", "delete", "order", "S-2400", "pay").changed)
      assert.equal(MANY - MANY / 10 - 1, count "SAGA_DEADLINES")
    end)

    it("are made pending by `outbox retry`", function()
      fill("OUTBOX", { id = "uuid(n)", outbox_route = "'log'", event_id = "uuid(n)", event_type = "'T'",
        occurred_at = past, payload = "'{}'", status = "'parked'", created_at = past, available_at = past,
        attempts = "5" })
      app.db:execute "UPDATE OUTBOX SET event_type = 'U' WHERE id < '00000000-0000-7000-8000-000000000301'"
      assert.equal(300, app:json("outbox", "retry", "--type", "U").changed)
      stuck("AFTER UPDATE", "OUTBOX", "OLD.id = '00000000-0000-7000-8000-000000001500'", function()
        fails_behind("1000 messages were made pending", "outbox", "retry", "--all")
      end)
      assert.equal(MANY - 1300, app:json("outbox", "retry", "--all").changed)
      assert.equal(MANY, count "OUTBOX WHERE status = 'pending' AND attempts = 0")
      assert.equal(0, app:json("outbox", "retry", "--all").changed)
    end)

    it("that halted a consumer keep it halted until `resume` has given the last of them a fresh budget", function()
      halting()
      stuck("AFTER UPDATE", "CONSUMER_UNDELIVERED_MESSAGES", "OLD.message_position = 1700", function()
        fails_behind("1000 messages were retried", "resume", "notes")
      end)
      assert.equal("HALTED", app.db:value "SELECT state FROM CONSUMERS")
      assert.equal(MANY - 1000, count "CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'HALTED'")
      local result = app:json("resume", "notes")
      assert.same({ MANY - 1000, "HALTED", "RUNNING" }, { result.retried, result.state_before, result.state })
      assert.equal(MANY, count "CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'FAILED' AND failure_count = 0")
      assert.equal(1, count "CONSUMERS WHERE state IS NULL")
    end)

    it("that halted a consumer are skipped by `resume --past`, whatever was recorded of them before", function()
      halting()
      stuck("AFTER DELETE", "CONSUMER_UNDELIVERED_MESSAGES", "OLD.message_position = 2222", function()
        fails_behind("2000 messages were skipped", "resume", "notes", "--past")
      end)
      assert.equal("HALTED", app.db:value "SELECT state FROM CONSUMERS")
      assert.equal(2000, count "CONSUMER_SKIPPED_MESSAGES")
      app.db:execute "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES" -- and once more, as if all of it came again
      app.db:execute "UPDATE CONSUMER_SKIPPED_MESSAGES SET every_key = true WHERE message_position = 5"
      halting()
      local result = app:json("resume", "notes", "--past")
      assert.same({ MANY, "RUNNING" }, { result.skips, result.state })
      assert.equal(MANY, count "CONSUMER_SKIPPED_MESSAGES")
      assert.equal(1, count "CONSUMER_SKIPPED_MESSAGES WHERE every_key")
      assert.equal(0, count "CONSUMER_UNDELIVERED_MESSAGES")
    end)

    it("that halted a consumer are skipped by `--every-key` with what waits for other keys", function()
      halting()
      app.db:execute [[UPDATE CONSUMER_UNDELIVERED_MESSAGES SET status = 'WAITING', key_hash = -1,
        message_position = message_position - 1 WHERE message_position % 10 = 0]]
      local result = app:json("resume", "notes", "--past", "--every-key")
      assert.same({ MANY - MANY / 10, MANY }, { result.skips, result.undelivered_removed })
      assert.equal(MANY - MANY / 10, count "CONSUMER_SKIPPED_MESSAGES WHERE every_key")
      assert.equal(0, count "CONSUMER_UNDELIVERED_MESSAGES")
    end)
  end)
end)
