-- Verbs that change rows by the thousand do it in transactions of a thousand:
-- one that fails, or is stopped by a signal, keeps what those before it did, and
-- a repeat does the rest.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local MANY = 2500 -- more than two transactions take
local VERY_MANY = 8000 -- so many that a signal comes before the last of them
local TRIES = 50 -- to send a signal while a verb is at work
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
    local function fill(table_name, columns, many)
      local names, values = {}, {}
      for name, value in pairs(columns) do
        names[#names + 1], values[#values + 1] = name, value
      end
      local rows = {}
      for n = 1, many or MANY do
        rows[n] = "(" .. table.concat(values, ", "):gsub("%f[%w]n%f[%W]", tostring(n))
          :gsub("uuid%((%d+)%)", function(at) return ("'00000000-0000-7000-8000-%012d'"):format(at) end) .. ")"
      end
      app.db:execute(("INSERT INTO %s (%s) VALUES %s"):format(table_name, table.concat(names, ", "),
        table.concat(rows, ", ")))
    end

    local function deadlines(status, many)
      fill("SAGA_DEADLINES", { id = "uuid(n)", saga_type = "'order'", saga_id = "'S-n'", name = "'pay'",
        instance_id = "uuid(n)", due_at = future, partition_no = "0", status = ("'%s'"):format(status),
        attempts = "3", next_retry_at = status == "PENDING" and future or "NULL" }, many)
    end

    local function parked(many)
      fill("OUTBOX", { id = "uuid(n)", outbox_route = "'log'", event_id = "uuid(n)", event_type = "'T'",
        occurred_at = past, payload = "'{}'", status = "'parked'", created_at = past, available_at = past,
        attempts = "5" }, many)
    end

    local function halting(many)
      fill("CONSUMER_UNDELIVERED_MESSAGES", { id = "uuid(n)", consumer_id = "(SELECT id FROM CONSUMERS)",
        source_name = "'event-store'", resolved_key = "'K-n'", key_hash = "n", message_position = "n",
        partition_no = "0", status = "'HALTED'", failure_count = "1", failure_reason = "'no good'",
        recorded_at = past, unresolved = "false" }, many)
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
      parked()
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

    local function messages_of_a_topic()
      app.db:execute(("INSERT INTO READ_MODEL_TOPICS (topic, switched_on_at, filled_at) VALUES ('former', %s, %s)")
        :format(past, past))
      fill("READ_MODEL_CAPTURE_RECORDS", { id = "uuid(n)", topic = "'former'", topic_position = "n",
        partition_key = "0", read_model_key = "'K-n'", read_model_type = "'former'", payload = "'{}'",
        cascade_depth = "1", deleted = "false", occurred_at = past }, VERY_MANY)
    end

    local HALTED = "CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'HALTED'"
    local MORE = " before that; doing it again goes on with the rest)"

    -- The verb is stopped while it has something left to do: how many rows of
    -- that, and what it said. One that was faster than the signal did it all.
    local function stopped(signal, left, prepare, ...)
      for _ = 1, TRIES do
        prepare()
        local verb = app:start(...)
        process.wait_until(function() return not verb:alive() or count(left) < VERY_MANY end, 60,
          function() return "the first rows: " .. verb:err() end)
        verb:signal(signal)
        local result, rest = verb:wait(60), count(left)
        if result.code ~= 0 then return rest, result end
        assert.equal(0, rest)
        for _, name in ipairs { "SAGA_DEADLINES", "OUTBOX", "CONSUMER_UNDELIVERED_MESSAGES",
          "CONSUMER_SKIPPED_MESSAGES", "READ_MODEL_TOPICS", "READ_MODEL_CAPTURE_RECORDS" } do
          app.db:execute("DELETE FROM " .. name)
        end
      end
      error("no signal came in time: " .. table.concat({ ... }, " "))
    end

    -- { signal, what is left to do, how it got there, what is said, verb }
    local function pending() deadlines("PENDING", VERY_MANY) end
    local function dead() deadlines("DEAD_LETTER", VERY_MANY) end
    local function halted() halting(VERY_MANY) end
    local VERBS = {
      { "INT", "SAGA_DEADLINES WHERE next_retry_at > due_at OR due_at > '2198-01-01'", pending,
        "(%d deadlines were made due" .. MORE, "deadlines", "fire", "--all" },
      { "TERM", "SAGA_DEADLINES WHERE attempts = 3", dead, "(%d deadlines were made due" .. MORE,
        "deadlines", "retry", "--all" },
      { "INT", "SAGA_DEADLINES", dead, "(%d deadlines were deleted" .. MORE, "deadlines", "delete", "--all" },
      { "TERM", "OUTBOX WHERE attempts = 5", function() parked(VERY_MANY) end,
        "(%d messages were made pending" .. MORE, "outbox", "retry", "--all" },
      { "INT", HALTED, halted, "(%d messages were retried" .. MORE, "resume", "notes" },
      { "TERM", HALTED, halted, "(%d messages were skipped" .. MORE, "resume", "notes", "--past" },
      { "INT", HALTED, halted, "(%d messages were retried" .. MORE, "dead-letters", "retry", "--all" },
      { "TERM", HALTED, halted, "(%d messages were deleted" .. MORE, "dead-letters", "delete", "--all" },
      { "INT", "READ_MODEL_CAPTURE_RECORDS", messages_of_a_topic,
        "(the topic is off, and %d of its messages were removed" .. MORE, "topics", "off", "former" },
    }

    for _, case in ipairs(VERBS) do
      local signal, left, prepare, said = unpack(case, 1, 4)
      local verb = { unpack(case, 5) }

      it(("are told of by `%s` that SIG%s stops, and done by the next one"):format(table.concat(verb, " "), signal),
        function()
          local rest, result = stopped(signal, left, prepare, "--json", unpack(verb))
          assert.equal(1, result.code)
          assert.equal("", result.out)
          assert.is_true(rest > 0 and rest < VERY_MANY and rest % 1000 == 0, rest)
          local message = "stopped by a signal " .. said:format(VERY_MANY - rest)
          assert.equal("moontide: " .. message, result.err:match "(moontide: [^\n]*)\n{")
          assert.same({ status = "stopped", message = message },
            application.lines(result.err:match "\n({.*)$")[1].error)
          app:ok(unpack(verb))
          assert.equal(0, count(left))
        end)
    end

    it("stay as they are when a signal comes before the first of them", function()
      parked()
      local held = app.db:hold "BEGIN; UPDATE OUTBOX SET attempts = 6;"
      local verb = app:start("outbox", "retry", "--all")
      process.wait_until(function()
        local caught = (process.read_file(("/proc/%d/status"):format(verb.pid)) or ""):match "SigCgt:%s*%x*(%x)%x%x%x\n"
        return not verb:alive() or tonumber(caught or "0", 16) % 8 >= 4 -- the 15th bit
      end, 60, function() return "its hand on SIGTERM: " .. verb:err() end)
      verb:signal "TERM"
      local result = verb:wait(60)
      held.release()
      assert.equal("moontide: stopped by a signal (nothing was changed)\n", result.err)
      assert.equal(1, result.code)
      assert.equal(MANY, count "OUTBOX WHERE attempts = 5")
    end)
  end)
end)
