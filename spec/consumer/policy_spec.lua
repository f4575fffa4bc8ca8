-- What becomes of a message that failed: retries, their budget and their
-- times, the words of on_error, and what waits behind.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

-- `notes` fails for bad payloads until a row of `mended` says otherwise.
local function handlers(policy, poison)
  return kit.LEDGER .. ([[
    return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s, on = {
      ["spec.Put"] = function(event, ctx)
        ledger("notes", event, ctx)
        if event.payload.bad then %s end
      end } }]]):format(policy, poison or [[error("no " .. ctx.attempt)]])
end

local RETRY = 'retry = { attempts = 3, delay = "10m", factor = 3, max_delay = "20m", jitter = 0 }'
local ONCE = "retry = { attempts = 1 }"

local STREAM = {
  { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} },
  { "B", "spec.Put", {} }, { "A", "spec.Put", {} }, { "B", "spec.Put", {} },
}

dialect.each(function(database)
  describe("the failure policy", function()
    local rig

    local function start(policy, poison)
      rig = kit.new { database = database, files = FILES, handlers = handlers(policy, poison) }
      rig:append_all(STREAM)
      rig:run()
    end

    local function mend()
      rig:script(handlers(RETRY, "return"))
      rig:reopen()
    end

    local function skipped()
      local list = {}
      for i, row in ipairs(rig:query [[SELECT message_position AS position, resolved_key AS "key", every_key AS whole
          FROM CONSUMER_SKIPPED_MESSAGES ORDER BY message_position]]) do
        local whole = row.whole == true or row.whole == 1
        list[i] = ("%d %s%s"):format(row.position, row.key, whole and " every key" or "")
      end
      return list
    end

    after_each(function() rig:close() end)

    it("records the first failure as FAILED with the time of the next attempt, and lets the consumer run", function()
      start(RETRY)
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
      local row = rig:query([[SELECT next_retry_at AS at, recorded_at AS since
        FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'FAILED']])[1]
      assert.is_string(row.at)
      assert.is_true(row.at > row.since)
      assert.equal("RUNNING", rig:state "notes")
      assert.same({ "A:1", "C:3", "A:5" }, rig:ledger())
    end)

    it("does not try a message before its time", function()
      start(RETRY)
      rig.host:advance "9m"
      rig:run()
      assert.equal(1, rig:undelivered()[1].failures)
      rig.host:advance "2m"
      rig:run()
      assert.equal(2, rig:undelivered()[1].failures)
    end)

    it("tries a message at its time also by a clock that is long behind", function()
      rig = kit.new { database = database, files = FILES, handlers = handlers(RETRY), clock_offset = "-36500d" }
      rig:append_all(STREAM)
      rig:run()
      rig.host:advance "11m"
      rig:run()
      assert.equal(2, rig:undelivered()[1].failures)
    end)

    it("makes each delay longer by the factor, up to max_delay", function()
      start 'retry = { attempts = 9, delay = "10m", factor = 3, max_delay = "20m", jitter = 0 }'
      rig.host:advance "11m"
      rig:run()
      assert.equal(2, rig:undelivered()[1].failures)
      rig.host:advance "18m" -- and not after 10 min again, nor after 30 min
      rig:run()
      assert.equal(2, rig:undelivered()[1].failures)
      rig.host:advance "3m"
      rig:run()
      assert.equal(3, rig:undelivered()[1].failures)
    end)

    it("counts on from any number of failures that somebody wrote by hand", function()
      for _, count in ipairs { "2147483647", "-7" } do
        start(RETRY)
        rig:query("UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_count = " .. count .. " WHERE status = 'FAILED'")
        rig.host:advance "11m"
        rig:run()
        local failures = tonumber(rig:undelivered()[1].failures)
        assert.equal(count == "-7" and 1 or 2147483647, failures)
        if count == "-7" then break end
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
        rig:close()
      end
    end)

    it("passes the attempt to the handler and keeps the last reason", function()
      start(RETRY)
      rig.host:advance "11m"
      rig:run()
      assert.matches("no 2$", rig:undelivered()[1].reason)
    end)

    it("keeps the count over a restart of the host", function()
      start(RETRY)
      rig:restart()
      rig:run()
      assert.equal(1, rig:undelivered()[1].failures)
      rig.host:advance "11m"
      rig:run()
      assert.equal(2, rig:undelivered()[1].failures)
    end)

    it("applies the message and what waits behind it in order once a retry succeeds", function()
      start(RETRY, "if ctx.attempt < 2 then error('no') end")
      rig:append("B", "spec.Put", {})
      rig:append("C", "spec.Put", {})
      rig:run()
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING", "7 B WAITING" }, rig:waiting())
      rig.host:advance "11m"
      rig:run()
      assert.same({}, rig:waiting())
      assert.same({ "A:1", "C:3", "A:5", "C:8", "B:2", "B:4", "B:6", "B:7" }, rig:ledger())
      rig:append("B", "spec.Put", {})
      rig:run()
      assert.equal("B:9", rig:ledger()[9]) -- and the key flows again
    end)

    it("halts the consumer when the attempts are used up, unless it says otherwise", function()
      start(RETRY)
      for _ = 1, 2 do
        rig.host:advance "21m"
        rig:run()
      end
      assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
      assert.equal(3, rig:undelivered()[1].failures)
      assert.equal("HALTED APPLY_ERROR", rig:state "notes")
      local row = rig:query "SELECT next_retry_at AS at FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'HALTED'"[1]
      assert.is_nil(row.at)
      rig:restart()
      rig:run()
      assert.equal(1, rig:undelivered()[1].failures) -- a fresh budget
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
    end)

    it("spends the budget at once for moontide.permanent", function()
      start(RETRY, "error(moontide.permanent 'never')")
      assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
    end)

    it("lets a DEAD_LETTER lie alone and its key go on", function()
      start(ONCE .. ', on_error = "dead_letter"')
      assert.same({ "2 B DEAD_LETTER" }, rig:waiting())
      assert.same({ "A:1", "C:3", "B:4", "A:5", "B:6" }, rig:ledger())
      assert.equal("RUNNING", rig:state "notes")
      rig.host:advance "1d"
      rig:restart()
      rig:run()
      assert.same({ "2 B DEAD_LETTER" }, rig:waiting()) -- nobody tries it by himself
    end)

    it("records the later messages of a DEAD_LETTER_KEY key dead behind it, uncounted and without a reason", function()
      start(ONCE .. ', on_error = "dead_letter_key"')
      rig:append("B", "spec.Put", {})
      rig:append("C", "spec.Put", {})
      rig:run()
      assert.same({ "2 B DEAD_LETTER_KEY", "4 B DEAD_LETTER_KEY", "6 B DEAD_LETTER_KEY", "7 B DEAD_LETTER_KEY" },
        rig:waiting())
      local rows = rig:undelivered()
      assert.equal(1, rows[1].failures)
      for i = 2, 4 do assert.same({ 0, nil }, { rows[i].failures, rows[i].reason }) end
      assert.equal("RUNNING", rig:state "notes")
      rig:restart()
      rig:append("B", "spec.Put", {})
      rig:run()
      assert.equal("9 B DEAD_LETTER_KEY", rig:waiting()[5])
    end)

    it("takes what waits behind a message along when that becomes its key's dead letter", function()
      start('retry = { attempts = 2, delay = "10m", jitter = 0 }, on_error = "dead_letter_key"')
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
      rig.host:advance "11m"
      rig:run()
      assert.same({ "2 B DEAD_LETTER_KEY", "4 B DEAD_LETTER_KEY", "6 B DEAD_LETTER_KEY" }, rig:waiting())
    end)

    it("frees what waits behind a message that becomes a dead letter alone after its retries", function()
      start('retry = { attempts = 2, delay = "10m", jitter = 0 }, on_error = "dead_letter"')
      rig.host:advance "11m"
      rig:run()
      assert.same({ "2 B DEAD_LETTER" }, rig:waiting())
      assert.same({ "A:1", "C:3", "A:5", "B:4", "B:6" }, rig:ledger())
    end)

    it("skips a message for good, and records it while it can be met", function()
      start(ONCE .. ', on_error = "skip"')
      assert.same({}, rig:waiting())
      assert.same({ "2 B" }, skipped())
      assert.same({ "A:1", "C:3", "B:4", "A:5", "B:6" }, rig:ledger())
      rig:append("C", "spec.Put", {})
      rig:run()
      assert.same({}, skipped()) -- every partition has passed it
      rig:restart()
      rig:run()
      assert.equal("RUNNING", rig:state "notes")
    end)

    it("skips after the retries, too, and frees what waits", function()
      start('retry = { attempts = 2, delay = "10m", jitter = 0 }, on_error = "skip"')
      rig.host:advance "11m"
      rig:run()
      assert.same({}, rig:waiting())
      assert.same({ "2 B" }, skipped())
      assert.same({ "A:1", "C:3", "A:5", "B:4", "B:6" }, rig:ledger())
    end)

    it("asks a function, with the event and the failure", function()
      start(ONCE .. [[, on_error = function(event, failure)
        assert(event.position == 2 and event.payload.bad and event.key == "B")
        assert(failure.attempts == 1 and failure.permanent == false and failure.class == "error", failure.class)
        assert(failure.reason:find("handlers/spec.lua:%d+: no 1$"), failure.reason)
        return "dead_letter"
      end]])
      assert.same({ "2 B DEAD_LETTER" }, rig:waiting())
    end)

    it("tells the function that a failure is permanent", function()
      start(RETRY .. ", on_error = function(_, failure) return failure.permanent and 'skip' or 'halt' end",
        "error(moontide.permanent 'never')")
      assert.same({}, rig:waiting())
      assert.same({ "2 B" }, skipped())
    end)

    for what, body in pairs {
      ["raises"] = "error 'oh'", ["gives no word"] = "return 'dead'", ["gives nothing"] = "",
      ["loops"] = "while true do end", ["gives a table"] = "return {}",
    } do
      it("halts, and says so, when the function " .. what, function()
        rig = kit.new { database = database, files = FILES, limits = { time = "200ms" },
          handlers = handlers(ONCE .. (", on_error = function() %s end"):format(body)) }
        rig:append_all(STREAM)
        rig:run()
        assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
        assert.matches("on_error does not say what to do", rig:log())
      end)
    end

    it("tries many messages that failed at one time together, in order", function()
      rig = kit.new { database = database, files = FILES, batch = 50,
        handlers = handlers(RETRY, "if ctx.attempt < 2 then error('no') end") }
      local list, expected = {}, {}
      for i = 1, 120 do
        list[i] = { "K" .. i % 40, "spec.Put", { bad = i <= 40 } }
        expected[i] = ("K%d:%d"):format(i % 40, i)
      end
      rig:append_all(list)
      rig:run()
      assert.equal(120, #rig:undelivered())
      assert.same({}, rig:ledger())
      rig.host:advance "11m"
      rig:run()
      assert.same({}, rig:waiting())
      assert.same(expected, rig:ledger())
    end)

    it("retries under another handler after a mend, from the copy", function()
      start(RETRY)
      mend()
      rig.host:advance "11m"
      rig:run()
      assert.same({}, rig:waiting())
      assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger())
    end)
  end)

  describe("a message whose keys cannot be told", function()
    local rig

    local function keyed(policy, body)
      return ([[
        return moontide.projection "keyed" { %s,
          key = function(event) %s return event.payload.to end,
          on = { ["spec.Set"] = function(state, event)
            state.seen = (state.seen and state.seen .. " " or "") .. event.position
          end } }]]):format(policy, body)
    end

    local function start(policy)
      rig = kit.new { database = database, handlers = keyed(policy, 'if event.payload.bad then error "no" end') }
      rig:append_all { { "A", "spec.Set", { to = "x" } }, { "A", "spec.Set", { bad = true, to = "y" } },
        { "B", "spec.Set", { to = "x" } }, { "B", "spec.Set", { to = "y" } } }
      rig:run()
    end

    local function seen()
      local states = {}
      for key, state in pairs(rig.host:read "keyed") do states[key] = state.seen end
      return states
    end

    after_each(function() rig:close() end)

    it("holds its partitions while it is retried, and runs on once it can be told", function()
      start(RETRY)
      assert.same({ x = "1" }, seen())
      assert.equal("RUNNING", rig:state "keyed")
      for _, row in ipairs(rig:undelivered()) do assert.same({ "FAILED", 1 }, { row.status, row.unresolved }) end
      rig:script(keyed(RETRY, ""))
      rig:accept()
      rig:reopen()
      rig:run()
      assert.same({ x = "1" }, seen())
      rig.host:advance "11m"
      rig:run()
      assert.same({}, rig:undelivered())
      assert.same({ x = "1 3", y = "2 4" }, seen())
    end)

    it("holds nothing once it is a DEAD_LETTER", function()
      start(ONCE .. ', on_error = "dead_letter"')
      assert.same({ x = "1 3", y = "4" }, seen())
      assert.equal(kit.partitions, #rig:undelivered())
    end)

    it("holds its partitions as the dead letter of a key that nobody knows", function()
      start(ONCE .. ', on_error = "dead_letter_key"')
      rig:restart()
      rig:run()
      assert.same({ x = "1" }, seen())
      assert.equal("RUNNING", rig:state "keyed")
    end)

    it("is skipped for every key", function()
      start(ONCE .. ', on_error = "skip"')
      assert.same({ x = "1 3", y = "4" }, seen())
      assert.same({}, rig:undelivered())
    end)
  end)
end)

-- SQLite has one writer, so that no message alone can be in another one's way.
dialect.servers(function(database)
  describe("a message that conflicts with another transaction each time", function()
    local rig

    after_each(function() rig:close() end)

    it("counts as failed after ten runs alone, and its neighbours are applied once", function()
      rig = kit.new { database = database, files = FILES, handlers = handlers(RETRY, "") }
      rig:trigger { name = "in_the_way", on = "ledger", at = "BEFORE INSERT", only = "NEW.position = 2",
        conflicts = "somebody is in the way" }
      rig:append_all(STREAM)
      local met = 0
      while not pcall(rig.run, rig) do met = met + 1 end
      assert.equal(3 + 9, met) -- the page three times, then the message alone, until it is no conflict any more
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
      local row = rig:undelivered()[1]
      assert.equal(1, row.failures)
      assert.matches("^conflict: 10 times in a row: .*somebody is in the way", row.reason)
      assert.same({ "A:1", "C:3", "A:5" }, rig:ledger())
      rig:drop_trigger "in_the_way"
      rig.host:advance "11m"
      rig:run()
      assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger())
    end)
  end)
end)
