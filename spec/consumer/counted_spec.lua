-- Messages of which an attempt was counted before their partition had come to
-- them: that of a worker that died. Their rows lie beyond the checkpoint.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

-- `notes` fails for bad payloads as `poison` says.
local function handlers(poison, policy, key)
  return kit.LEDGER .. ([[
    return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s
      retry = { attempts = 3, delay = "10s", factor = 1, jitter = 0 }, %s
      on = {
      ["spec.Put"] = function(event, ctx)
        %s
        ledger("notes", event, ctx)
      end } }]]):format(key or "", policy or "", poison)
end

local POISON = [[if event.payload.bad then error("no " .. ctx.attempt) end]]

local STREAM = {
  { "A", "spec.Put", {} }, { "B", "spec.Put", {} }, { "C", "spec.Put", {} },
  { "B", "spec.Put", { bad = true } }, { "A", "spec.Put", {} }, { "B", "spec.Put", {} },
}

dialect.each(function(database)
  describe("a message whose attempt was counted before its page came to it", function()
    local rig

    -- Everything is as if a worker had died in the first page: what it did is
    -- gone, and only the row of the message that it died of is there.
    local function counted(policy, settings)
      local options = { database = database, files = FILES, handlers = handlers(POISON, policy) }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
      rig:append_all(STREAM)
      rig:run()
      assert.same({ "4 B FAILED", "6 B WAITING" }, rig:waiting())
      rig:query "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'WAITING'"
      rig:query "DELETE FROM ledger"
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 0"
    end

    local function mend(policy)
      rig:script(handlers("", policy))
      rig:reopen()
    end

    after_each(function() rig:close() end)

    it("is neither applied nor recorded again by the page, and holds its key from there on", function()
      counted()
      mend()
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5" }, rig:ledger())
      assert.same({ "4 B FAILED", "6 B WAITING" }, rig:waiting())
      assert.equal(1, rig:undelivered()[1].failures)
      assert.equal(6, (rig:checkpoints "notes"))
    end)

    it("is tried again when it is due, with what waits behind it", function()
      counted()
      mend()
      rig:run()
      rig.host:advance "11s"
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5", "B:4", "B:6" }, rig:ledger())
      assert.equal(2, rig:query("SELECT attempt FROM ledger WHERE position = 4")[1].attempt)
      assert.same({}, rig:waiting())
      rig:append("B", "spec.Put", {})
      rig:run()
      assert.equal("B:7", rig:ledger()[7])
    end)

    -- As compaction deletes what a later message of the key supersedes.
    it("holds its key as well when its topic has it no more, lest it be applied after what is newer", function()
      counted()
      rig:query "DELETE FROM EVENT_STORE WHERE global_position = 4"
      mend()
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5" }, rig:ledger())
      assert.same({ "4 B FAILED", "6 B WAITING" }, rig:waiting())
      rig.host:advance "11s"
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5", "B:4", "B:6" }, rig:ledger())
      assert.same({}, rig:waiting())
    end)

    it("holds it also when its topic has nothing behind it yet", function()
      counted()
      rig:query "DELETE FROM EVENT_STORE WHERE global_position > 3"
      mend()
      rig:run()
      rig:append("B", "spec.Put", {})
      rig:run()
      assert.same({ "A:1", "B:2", "C:3" }, rig:ledger())
      rig.host:advance "11s"
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "B:4", "B:7" }, rig:ledger())
    end)

    it("is not tried before the earlier messages of its key, although it is due", function()
      for _, batch in ipairs { 1, 2, 100 } do
        counted(nil, { batch = batch })
        rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET next_retry_at = NULL"
        mend()
        rig:run()
        local order = {}
        for _, entry in ipairs(rig:ledger()) do
          if entry:sub(1, 1) == "B" then order[#order + 1] = entry end
        end
        assert.same({ "B:2", "B:4", "B:6" }, order)
        assert.same({}, rig:waiting())
        if batch < 100 then rig:close() end
      end
    end)

    it("waits behind an earlier one of its key that fails in the page", function()
      counted()
      rig:script(handlers "if event.position == 2 and ctx.attempt == 1 then error 'early' end")
      rig:reopen()
      rig:run()
      assert.same({ "2 B FAILED", "4 B FAILED", "6 B WAITING" }, rig:waiting())
      rig.host:advance "11s"
      rig:run()
      assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger())
    end)

    it("is not run any more when that spent its budget: on_error gets the recorded failure", function()
      local policy = [[on_error = function(event, failure)
          return failure.attempts == 3 and failure.class == "error" and failure.reason:find "no 1" and
            event.payload.bad and "dead_letter" or "halt"
        end,]]
      counted(policy)
      rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_count = 3, next_retry_at = NULL"
      mend(policy)
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5", "B:6" }, rig:ledger())
      assert.same({ "4 B DEAD_LETTER" }, rig:waiting())
      assert.equal(3, rig:undelivered()[1].failures)
      assert.equal("RUNNING", rig:state "notes")
    end)

    for word, expected in pairs {
      halt = { "4 B HALTED", "6 B WAITING" },
      dead_letter_key = { "4 B DEAD_LETTER_KEY", "6 B DEAD_LETTER_KEY" },
      dead_letter = { "4 B DEAD_LETTER" },
      skip = {},
    } do
      it(("with a spent budget ends as on_error = %q says"):format(word), function()
        local policy = ("on_error = %q,"):format(word)
        counted(policy)
        rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_count = 3, next_retry_at = NULL"
        mend(policy)
        rig:run()
        assert.same(expected, rig:waiting())
        assert.equal(word == "halt" and "HALTED APPLY_ERROR" or "RUNNING", rig:state "notes")
        assert.is_nil(table.concat(rig:ledger(), " "):find "B:4")
      end)
    end

    it("stays unapplied when an operator deletes it before the page has come to it", function()
      counted()
      mend()
      rig.app:ok("dead-letters", "delete", "4")
      assert.same({}, rig:waiting())
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5", "B:6" }, rig:ledger())
      assert.same({}, rig:waiting())
      assert.same({}, rig:query "SELECT message_position FROM CONSUMER_SKIPPED_MESSAGES WHERE message_position < 6")
    end)

    it("is deleted while the host stands right before it", function()
      counted()
      mend()
      rig:query "UPDATE CONSUMERS SET state = 'PAUSED'"
      rig:run()
      rig.app:ok("dead-letters", "delete", "4")
      rig.app:ok("resume", "notes")
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "A:5", "B:6" }, rig:ledger())
    end)

    it("is known as well when it was recorded behind the back of a host that had nothing undelivered", function()
      counted()
      rig:query "CREATE TABLE kept AS SELECT * FROM CONSUMER_UNDELIVERED_MESSAGES"
      mend()
      rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET next_retry_at = NULL"
      rig:run()
      for _ = 1, 3 do -- quiet pages
        rig:append("A", "spec.Put", {})
        rig:run()
      end
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", {} }, { "B", "spec.Put", {} } }
      rig:query "UPDATE kept SET message_position = 11"
      rig:query "INSERT INTO CONSUMER_UNDELIVERED_MESSAGES SELECT * FROM kept"
      rig:query "DROP TABLE kept"
      rig:run()
      assert.same({ "11 B FAILED", "12 B WAITING" }, rig:waiting())
      assert.equal("A:10", rig:ledger()[#rig:ledger()])
    end)

    it("goes with a rebuild, and is applied like any other", function()
      counted()
      mend()
      rig:query "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES"
      rig:run()
      assert.same({ "A:1", "B:2", "C:3", "B:4", "A:5", "B:6" }, rig:ledger())
    end)
  end)

  describe("a message whose key function took its worker along", function()
    local rig
    local KEY = [[key = function(event)
        if event.payload.bad and not event.payload.mended then %s end
        return event.key
      end,]]

    local function counted()
      rig = kit.new { database = database, files = FILES,
        handlers = handlers("", nil, KEY:format [[error "no key"]]) }
      rig:append_all(STREAM)
      rig:run()
      assert.equal(12, #rig:waiting())
      assert.equal("4  FAILED", rig:waiting()[1])
      rig:query "DELETE FROM ledger"
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 0"
    end

    local function mend(key)
      rig:script(handlers("", nil, key))
      rig:accept()
      rig:reopen()
    end

    after_each(function() rig:close() end)

    it("does not run it again in the page, which ends there", function()
      counted()
      mend(KEY:format [[error "called"]])
      rig:run()
      assert.same({ "A:1", "B:2", "C:3" }, rig:ledger())
      assert.equal(12, #rig:waiting())
      assert.same({ 4, 4 }, { rig:checkpoints "notes" })
      for _, row in ipairs(rig:undelivered()) do
        assert.same({ 1, "error: handlers/spec.lua:8: no key" }, { row.failures, row.reason })
      end
    end)

    it("is recorded without a call for the partitions of its page that did not know of it", function()
      counted()
      rig:query "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES WHERE partition_no > 2"
      mend(KEY:format [[error "called"]])
      rig:run()
      assert.equal(12, #rig:waiting())
      for _, row in ipairs(rig:undelivered()) do
        assert.same({ 1, 4, "error: handlers/spec.lua:8: no key" }, { row.failures, row.position, row.reason })
      end
    end)

    it("is applied by its retry, before what comes behind it in its partition", function()
      counted()
      mend(KEY:format "")
      rig:run()
      assert.same({ "A:1", "B:2", "C:3" }, rig:ledger())
      rig.host:advance "11s"
      rig:run()
      assert.same({}, rig:waiting())
      local order = {}
      for _, entry in ipairs(rig:ledger()) do
        if entry:sub(1, 1) == "B" then order[#order + 1] = entry end
      end
      assert.same({ "B:2", "B:4", "B:6" }, order)
      assert.equal(6, #rig:ledger())
    end)
  end)

  describe("a read model's key with a message that was counted before its page", function()
    local rig
    local SUMS = [[
      return moontide.projection "sums" {
        retry = { attempts = 3, delay = "10s", factor = 1, jitter = 0 },
        on = { ["spec.Put"] = function(state, event) %s state.n = (state.n or 0) + 1 end } }]]

    after_each(function() rig:close() end)

    it("is rebuilt without it, and the page applies it then", function()
      rig = kit.new { database = database, handlers = SUMS:format "if event.payload.bad then error 'no' end" }
      rig:append_all(STREAM)
      rig:run()
      assert.same({ "4 B FAILED", "6 B WAITING" }, rig:waiting())
      rig:query "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'WAITING'"
      rig:query "DELETE FROM sums"
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 0"
      rig:script(SUMS:format "")
      rig:reopen()
      rig.app:ok("rebuild", "sums", "--key", "B")
      rig:run()
      assert.same({ n = 3 }, rig.host:read("sums", "B"))
      assert.same({}, rig:waiting())
    end)
  end)
end)
