-- The operator's verbs: what each does to a consumer's rows and to what is
-- applied afterwards. Their use beside running hosts is spec/cli/operator_spec.
local dialect = require "spec.support.dialect"
local folder = require "spec.support.folder"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

-- `notes` fails where the payload says bad; `others` takes everything.
local function handlers(poison)
  return kit.LEDGER .. ([[
    return {
      moontide.sql_projection "notes" { tables = "sql/ledger.sql", reset = function() end, on = {
        ["spec.Put"] = function(event, ctx)
          ledger("notes", event, ctx)
          if event.payload.bad then %s end
        end,
        ["spec.Other"] = function(event, ctx) ledger("notes", event, ctx) end } },
      moontide.sql_projection "others" { tables = "sql/ledger.sql", on = {
        ["spec.Put"] = function(event, ctx) ledger("others", event, ctx) end } },
    }]]):format(poison or 'error("no good for " .. ctx.key)')
end

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

-- The table of transitions in the manual: by state and verb.
local function manual()
  local text = assert(process.read_file(folder.source "docs/operations.md"))
  local head, rows = text:match "\n| state |([^\n]*)|\n|[- |]+|\n(.-)\n\n"
  local verbs, transitions = {}, {}
  for verb in head:gmatch "([^|]+)" do verbs[#verbs + 1] = verb:match "^%s*(.-)%s*$" end
  for line in rows:gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "|([^|]+)" do cells[#cells + 1] = cell:match "^%s*(.-)%s*$" end
    transitions[#transitions + 1] = { state = cells[1] }
    for i, verb in ipairs(verbs) do transitions[#transitions][verb] = assert(cells[i + 1]) end
  end
  return transitions, verbs
end

local STATES = { "RUNNING", "PAUSED", "HALTED MISSING_HISTORY", "HALTED APPLY_ERROR", "HALTED DECLARATION_CHANGED",
  "REBUILDING" }

local VERBS = {
  ["pause"] = function(host, name) return host:pause(name) end,
  ["resume"] = function(host, name) return host:resume(name) end,
  ["resume --accept"] = function(host, name) return host:resume(name, { accept = true }) end,
  ["resume --past"] = function(host, name) return host:resume(name, { past = true }) end,
  ["rebuild"] = function(host, name) return host:rebuild(name) end,
  ["rebuild --cancel"] = function(host, name) return host:rebuild(name, { cancel = true }) end,
  ["unsubscribe"] = function(host, name) return host:unsubscribe(name) end,
  ["unsubscribe --force"] = function(host, name) return host:unsubscribe(name, { force = true }) end,
}

describe("the manual's table of transitions", function()
  it("has every state and every verb", function()
    local transitions, verbs = manual()
    local states, known = {}, {}
    for i, row in ipairs(transitions) do states[i] = row.state end
    assert.same(STATES, states)
    for verb in pairs(VERBS) do known[verb] = true end
    for _, verb in ipairs(verbs) do
      assert.is_true(known[verb], verb)
      known[verb] = nil
    end
    assert.same({}, known)
  end)
end)

dialect.each(function(database)
  describe("an operator's verb", function()
    local rig

    local function start(settings, poison)
      local options = { database = database, files = FILES, handlers = handlers(poison) }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function() rig:close() end)

    local function set_state(name, words)
      local state, reason = words:match "^(%S+) ?(%S*)$"
      rig:query("UPDATE CONSUMERS SET state = ?, halt_reason = ? WHERE consumer_name = ?",
        state ~= "RUNNING" and state or nil, reason ~= "" and reason or nil, name)
    end

    -- The status of an undelivered message, as its handler's policy would set it.
    local function set_status(position, status, failures, next_retry_at)
      rig:query([[UPDATE CONSUMER_UNDELIVERED_MESSAGES SET status = ?, failure_count = ?, next_retry_at = ?
        WHERE message_position = ?]], status, failures, next_retry_at, position)
    end

    local function skips()
      local list = {}
      for i, row in ipairs(rig:query [[
          SELECT s.message_position AS position, s.resolved_key AS "key", s.every_key AS "all"
            FROM CONSUMER_SKIPPED_MESSAGES s ORDER BY s.message_position, s.resolved_key]]) do
        local every = row.all == true or row.all == 1
        list[i] = ("%d %s%s"):format(row.position, row.key, every and " every key" or "")
      end
      return list
    end

    local function count(name, table_name)
      return rig:value(([[SELECT count(*) AS value FROM %s t JOIN CONSUMERS c ON c.id = t.consumer_id
        WHERE c.consumer_name = ?]]):format(table_name), name)
    end

    local STREAM = {
      { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} },
      { "B", "spec.Put", {} }, { "A", "spec.Put", {} }, { "B", "spec.Put", {} },
    }

    local function start_halted(settings, poison)
      start(settings, poison)
      rig:append_all(STREAM)
      rig:run()
      assert.equal("HALTED APPLY_ERROR", rig:state "notes")
      assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
    end

    local function rows()
      return rig:query "SELECT * FROM CONSUMERS ORDER BY consumer_name"
    end

    -- Runs a verb on `notes` and compares with what the manual says.
    local function check(state, verb, wanted)
      local what = ("%s when %s"):format(verb, state)
      set_state("notes", state)
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 1, replay_through = NULL" -- as before a rebuild
      rig.host:advance "1h"
      local before = rows()
      local good, result = pcall(VERBS[verb], rig.host, "notes")
      if wanted == "refused" then
        assert.is_false(good, what)
        assert.matches("projection 'notes' is ", result, 1, true)
        assert.same(before, rows(), what)
        return
      end
      assert.is_true(good, what .. ": " .. tostring(result))
      if wanted == "no change" then
        assert.is_false(result.changed, what)
        assert.same(before, rows(), what)
      elseif wanted == "gone" then
        assert.is_true(result.gone, what)
        assert.is_nil(rig:consumer "notes", what)
      else
        assert.is_true(result.changed, what)
        assert.same({ wanted, wanted }, { result.state, rig:state "notes" }, what)
        assert.is_true(rig:consumer("notes").state_since > before[1].state_since, what)
      end
      -- and again: nothing is left to change
      before = rows()
      assert.is_false(VERBS[verb](rig.host, "notes").changed, what)
      assert.same(before, rows(), what)
    end

    for _, transition in ipairs((manual())) do
      it("does what the manual says when its consumer is " .. transition.state .. ", and once", function()
        start()
        rig:append("A", "spec.Put", {})
        rig:run()
        for verb in pairs(VERBS) do
          check(transition.state, verb, transition[verb])
          if rig:consumer "notes" == nil then rig:restart() end
        end
        assert.equal("RUNNING", rig:state "others")
      end)
    end

    it("names the nearest consumer when there is none of that name", function()
      start()
      for word, verb in pairs(VERBS) do
        assert.has_error(function() verb(rig.host, "note") end, word:find "^rebuild"
          and "no script declares a consumer 'note', so nothing can rebuild it; did you mean 'notes'?; "
            .. "`moontide check` lists what is declared"
          or "no consumer is called 'note'; did you mean 'notes'?; moontide status lists them")
      end
      assert.has_error(function() rig.host:retry { consumer = "other" } end,
        "no consumer is called 'other'; did you mean 'others'?; moontide status lists them")
    end)

    describe("pause", function()
      it("lets nothing be applied, and resume lets all of it, once", function()
        start()
        rig:append("A", "spec.Put", {})
        rig:run()
        rig.host:pause "notes"
        rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", {} } }
        rig:run()
        assert.same({ "A:1" }, rig:ledger "notes")
        assert.same({ "A:1", "A:2", "B:3" }, rig:ledger "others")
        assert.equal(1, (rig:checkpoints "notes"))
        rig.host:resume "notes"
        rig:run()
        assert.same({ "A:1", "A:2", "B:3" }, rig:ledger "notes")
      end)

      it("outlives a restart", function()
        start()
        rig.host:pause "notes"
        rig:append("A", "spec.Put", {})
        rig:reopen()
        rig:run()
        assert.same({}, rig:ledger "notes")
        assert.equal("PAUSED", rig:state "notes")
      end)
    end)

    it("pause lets nothing be retried either, and resume lets it when its time has come", function()
      start({ retry = { attempts = 3, delay = "10s", jitter = 0 } }, 'if ctx.attempt == 1 then error "once" end')
      rig:append_all(STREAM)
      rig:run()
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
      rig.host:pause "notes"
      rig.host:advance "20s"
      rig:run()
      assert.same({ "2 B FAILED", "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
      rig.host:resume "notes"
      rig:run()
      assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger "notes")
    end)

    it("on dead letters leaves the checkpoints alone, however often it is done", function()
      start({ on_error = "dead_letter" })
      local list = {}
      for i = 1, 60 do list[i] = { "k" .. i % 9, "spec.Put", { bad = i % 3 == 0 or nil } } end
      rig:append_all(list)
      rig:run()
      local function checkpoints()
        return rig:query "SELECT * FROM CONSUMER_CHECKPOINTS ORDER BY consumer_id, partition_no"
      end
      local before = checkpoints()
      for round = 1, 2 do
        assert.equal(20, rig.host:retry({ all = true }).retried, round)
        rig:run()
        assert.same(before, checkpoints())
        assert.equal(20, #rig.host:dead_letters { status = "DEAD_LETTER" })
      end
      rig.host:delete { all = true }
      rig:run()
      assert.same(before, checkpoints())
      assert.equal(40, #rig:ledger "notes")
    end)

    describe("resume", function()
      it("gives what halted the consumer a fresh budget, due at once, and it comes before what waits", function()
        start_halted(nil, 'if ctx.attempt > 0 and not event.metadata then error "no" end')
        rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_count = 5 WHERE message_position = 2"
        local result = rig.host:resume "notes"
        assert.same({ true, 1, "HALTED", "APPLY_ERROR", "RUNNING" },
          { result.changed, result.retried, result.state_before, result.halt_reason_before, result.state })
        local row = rig:undelivered "notes"[1]
        assert.same({ 2, "FAILED", 0 }, { row.position, row.status, row.failures })
        assert.matches("no", row.reason, 1, true)
        rig:script(handlers "")
        rig:reopen()
        rig:run()
        assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger "notes")
        assert.same({}, rig:waiting())
      end)

      it("halts again when the message still fails, with one failure", function()
        start_halted()
        rig.host:resume "notes"
        rig:run()
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
        assert.equal(1, rig:undelivered "notes"[1].failures)
        assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
      end)

      it("--past deletes the message, records one skip for its key, and its key goes on", function()
        start_halted()
        local result = rig.host:resume("notes", { past = true })
        assert.same({ 1, 1 }, { result.undelivered_removed, result.skips })
        assert.same({ "2 B" }, skips())
        assert.same({ "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
        rig:run()
        assert.same({ "A:1", "C:3", "A:5", "B:4", "B:6" }, rig:ledger "notes")
        assert.equal("RUNNING", rig:state "notes")
        rig:append("B", "spec.Put", {})
        rig:run()
        assert.equal("B:7", rig:ledger "notes"[6])
      end)

      it("--past passes every message that halted the consumer", function()
        start()
        rig:append_all { { "A", "spec.Put", { bad = true } }, { "B", "spec.Put", { bad = true } },
          { "A", "spec.Put", {} }, { "B", "spec.Put", {} } }
        rig:run()
        assert.equal(2, rig.host:resume("notes", { past = true }).skips)
        assert.same({ "1 A", "2 B" }, skips())
        rig:run()
        assert.same({ "A:3", "B:4" }, rig:ledger "notes")
      end)

      it("--accept goes on behind missing history and marks every row of that read", function()
        start()
        rig:append_all(STREAM)
        rig.host:pause "notes"
        rig:query "UPDATE HIGH_WATER_MARK_STORE SET topic_start = 4 WHERE topic_name = 'event-store'"
        set_state("notes", "HALTED MISSING_HISTORY")
        local result = rig.host:resume("notes", { accept = true })
        assert.equal(4, result.incomplete_through)
        local row = rig:query([[
          SELECT count(*) AS n, count(k.incomplete_through) AS marked, min(k.incomplete_through) AS low,
                 max(k.incomplete_through) AS high, min(k.position) AS position
            FROM CONSUMER_CHECKPOINTS k JOIN CONSUMERS c ON c.id = k.consumer_id WHERE c.consumer_name = 'notes']])[1]
        assert.same({ n = kit.partitions, marked = kit.partitions, low = 4, high = 4, position = 4 }, row)
        assert.equal(0, rig:value [[SELECT count(k.incomplete_through) AS value FROM CONSUMER_CHECKPOINTS k
            JOIN CONSUMERS c ON c.id = k.consumer_id WHERE c.consumer_name = 'others']])
        rig:run()
        assert.same({ "A:5", "B:6" }, rig:ledger "notes")
      end)

      it("--accept never lowers a checkpoint or an older mark", function()
        start()
        rig:append_all(STREAM)
        rig:script(handlers "")
        rig:reopen()
        rig:run()
        rig:query "UPDATE CONSUMER_CHECKPOINTS SET incomplete_through = 5"
        rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 2 WHERE partition_no = 0"
        rig:query "UPDATE HIGH_WATER_MARK_STORE SET topic_start = 4 WHERE topic_name = 'event-store'"
        set_state("notes", "HALTED MISSING_HISTORY")
        rig.host:resume("notes", { accept = true })
        local row = rig:query([[
          SELECT min(k.incomplete_through) AS mark, min(k.position) AS low, max(k.position) AS high
            FROM CONSUMER_CHECKPOINTS k JOIN CONSUMERS c ON c.id = k.consumer_id WHERE c.consumer_name = 'notes']])[1]
        assert.same({ mark = 5, low = 4, high = 6 }, row)
      end)
    end)

    describe("of a message with several keys", function()
      local KEYED = [[
        return moontide.projection "keyed" {
          key = function(event)
            if event.payload.blind then error "cannot see" end
            return event.payload.from, event.payload.to
          end,
          on = { ["spec.Move"] = function(state, event, ctx)
            if event.payload.bad == ctx.key then error "bad" end
            state.seen = (state.seen or "") .. event.position .. " "
          end } }]]

      local function start_keyed(list)
        rig = kit.new { database = database, handlers = KEYED }
        rig:append_all(list)
        rig:run()
      end

      local function seen()
        local states = {}
        for key, state in pairs(rig.host:read "keyed") do states[key] = state.seen end
        return states
      end

      it("resume --past skips it for the key that failed only", function()
        start_keyed { { "1", "spec.Move", { from = "x", to = "y", bad = "y" } },
          { "2", "spec.Move", { from = "y", to = "z" } } }
        assert.same({ x = "1 ", z = "2 " }, seen())
        rig.host:resume("keyed", { past = true })
        assert.same({ "1 y" }, skips())
        rig:run()
        assert.same({ x = "1 ", y = "2 ", z = "2 " }, seen())
      end)

      it("resume --past --every-key drops what it left waiting for other keys as well", function()
        start_keyed {
          { "1", "spec.Move", { from = "x", bad = "x" } },
          { "2", "spec.Move", { from = "x", to = "y", bad = "y" } },
          { "3", "spec.Move", { from = "x", to = "y" } },
        }
        assert.same({ "1 x HALTED", "2 x WAITING", "2 y HALTED", "3 x WAITING", "3 y WAITING" }, (function()
          local list = rig:waiting()
          table.sort(list)
          return list
        end)())
        local result = rig.host:resume("keyed", { past = true, every_key = true })
        assert.equal(3, result.undelivered_removed)
        assert.same({ "1 x every key", "2 y every key" }, skips())
        rig:run()
        assert.same({ x = "3 ", y = "3 " }, seen())
      end)

      it("resume --past skips one whose keys cannot be told for every key, in all partitions", function()
        start_keyed { { "1", "spec.Move", { blind = true } }, { "2", "spec.Move", { from = "x", to = "y" } } }
        local letters = rig.host:dead_letters()
        assert.equal(1, #letters)
        assert.is_true(letters[1].unresolved)
        assert.equal(kit.partitions, #letters[1].partitions)
        local result = rig.host:resume("keyed", { past = true })
        assert.equal(1, result.skips)
        assert.equal(kit.partitions, result.undelivered_removed)
        assert.same({}, rig:waiting())
        rig:run()
        assert.same({ x = "2 ", y = "2 " }, seen())
        -- whoever meets it again, and can tell its keys by then, passes over it
        rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = NULL"
        rig:query "DELETE FROM keyed"
        rig:query [[INSERT INTO CONSUMER_SKIPPED_MESSAGES (id, consumer_id, source_name, partition_no, message_position,
            resolved_key, every_key)
          SELECT '0190b3c0-0000-7000-8000-00000000000c', id, 'event-store', 0, 1, '', TRUE FROM CONSUMERS
           WHERE NOT EXISTS (SELECT 1 FROM CONSUMER_SKIPPED_MESSAGES)]]
        rig:script((KEYED:gsub("if event.payload.blind then error \"cannot see\" end",
          "if event.payload.blind then return \"w\" end")))
        rig:accept()
        rig:reopen()
        rig:run()
        assert.same({ x = "2 ", y = "2 " }, seen())
      end)

      it("retry and delete take one whose keys cannot be told as one message, by any of its rows", function()
        start_keyed { { "1", "spec.Move", { blind = true } } }
        local ids = rig:query "SELECT id FROM CONSUMER_UNDELIVERED_MESSAGES ORDER BY partition_no DESC"
        assert.equal(1, rig.host:retry { id = ids[1].id }.retried)
        for _, row in ipairs(rig:undelivered()) do assert.same({ "FAILED", 0 }, { row.status, row.failures }) end
        assert.equal(1, rig.host:delete { id = ids[3].id }.deleted)
        assert.same({}, rig:waiting())
      end)
    end)

    describe("dead-letters", function()
      -- One message in each status: A FAILED and due later, B HALTED with one
      -- that waits, C DEAD_LETTER_KEY with one dead behind it, D DEAD_LETTER.
      local function start_all()
        start()
        rig:append_all {
          { "A", "spec.Put", { bad = true } }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", { bad = true } },
          { "D", "spec.Put", { bad = true } }, { "B", "spec.Put", {} }, { "C", "spec.Other", {} },
        }
        rig:run()
        set_status(1, "FAILED", 2, rig.app.db:moment "2999-01-01T00:00:00.000000Z")
        set_status(3, "DEAD_LETTER_KEY", 5)
        set_status(4, "DEAD_LETTER", 5)
        set_status(6, "DEAD_LETTER_KEY", 0)
      end

      local ALL = { "1 A FAILED", "2 B HALTED", "3 C DEAD_LETTER_KEY", "4 D DEAD_LETTER", "5 B WAITING",
        "6 C DEAD_LETTER_KEY" }

      local function found(filter)
        local list = {}
        for i, letter in ipairs(rig.host:dead_letters(filter)) do list[i] = letter.position end
        return list
      end

      it("finds what failed itself, by any filter, and what waits only when it is named", function()
        start_all()
        assert.same(ALL, rig:waiting())
        assert.same({ 1, 2, 3, 4 }, found())
        assert.same({ 1, 2, 3, 4 }, found { consumer = "notes" })
        assert.same({}, found { consumer = "others" })
        assert.same({ 2 }, found { key = "B" })
        assert.same({ 5 }, found { key = "B", status = "WAITING" })
        assert.same({ 3 }, found { status = "DEAD_LETTER_KEY" })
        assert.same({ 4 }, found { status = "DEAD_LETTER" })
        assert.same({ 3 }, found { error = "good for C" })
        assert.same({}, found { error = "good.for" })
        assert.same({ 1, 2, 3, 4 }, found { type = "spec.Put" })
        assert.same({}, found { type = "spec.Other" })
        assert.same({ 6 }, found { position = 6 })
        assert.same({}, found { position = 6, key = "B" })
        local ids = rig:query "SELECT id FROM CONSUMER_UNDELIVERED_MESSAGES WHERE message_position = 6"
        assert.same({ 6 }, found { id = ids[1].id })
        assert.same({ 6 }, found { id = rig.host:dead_letters { position = 6 }[1].message.id })
      end)

      it("filters by age", function()
        start_all()
        rig.host:advance "1h"
        rig:append("E", "spec.Put", { bad = true })
        set_state("notes", "RUNNING")
        rig:reopen { clock_offset = "2h" }
        rig:run()
        local last = rig:query "SELECT max(message_position) AS value FROM CONSUMER_UNDELIVERED_MESSAGES"[1].value
        assert.same({ last }, found { newer_than = "30m" })
        assert.same({ last }, found { newer_than = 1800, key = "E" })
        assert.same({ 1, 3, 4 }, (function()
          local list = found { older_than = "30m" }
          for i = #list, 1, -1 do if list[i] == 2 then table.remove(list, i) end end
          return list
        end)())
        assert.same({}, found { older_than = "30m", newer_than = "30m" })
      end)

      it("shows the message, its payload and the error with the script's line", function()
        start_all()
        local letter = rig.host:dead_letters { position = 3 }[1]
        assert.same({ bad = true }, letter.message.payload)
        assert.same({ "spec.Put", "C", kit.aggregate, 0 },
          { letter.message.type, letter.message.key, letter.message.aggregate_type, letter.message.sequence })
        assert.matches("^error: handlers/spec.lua:%d+: no good for C$", letter.reason)
        assert.same({ "notes", "event-store", 3, "C", "DEAD_LETTER_KEY", 5, false }, { letter.consumer, letter.topic,
          letter.position, letter.key, letter.status, letter.failures, letter.unresolved })
      end)

      it("shows what no longer has a copy, or one that cannot be read", function()
        start_all()
        rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET message_copy = NULL WHERE message_position = 1"
        rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET message_copy = 'broken' WHERE message_position = 2"
        for position = 1, 2 do
          local letter = rig.host:dead_letters { position = position }[1]
          assert.equal("", letter.type)
          assert.is_true(type(letter.message) ~= "table")
        end
        assert.same({ 3, 4 }, found { type = "spec.Put" })
      end)

      it("retry rewrites only what failed itself, and a repeat changes nothing", function()
        start_all()
        local result = rig.host:retry { all = true }
        assert.same({ 4, 0, 0 }, { result.retried, result.due, result.waiting })
        assert.same({ "1 A FAILED", "2 B FAILED", "3 C FAILED", "4 D FAILED", "5 B WAITING", "6 C DEAD_LETTER_KEY" },
          rig:waiting())
        for _, row in ipairs(rig:query "SELECT * FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'FAILED'") do
          assert.equal(0, row.failure_count)
          assert.is_nil(row.next_retry_at)
        end
        local before = rig:query "SELECT * FROM CONSUMER_UNDELIVERED_MESSAGES ORDER BY message_position"
        result = rig.host:retry { all = true }
        assert.same({ 0, 4, 0 }, { result.retried, result.due, result.waiting })
        assert.same(before, rig:query "SELECT * FROM CONSUMER_UNDELIVERED_MESSAGES ORDER BY message_position")
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
      end)

      it("retry of what only waits changes nothing and says so", function()
        start_all()
        local result = rig.host:retry { position = 5 }
        assert.same({ 0, 1 }, { result.retried, result.waiting })
        assert.same(ALL, rig:waiting())
      end)

      it("delete removes the row, records a skip for its key, and a repeat changes nothing", function()
        start_all()
        assert.equal(1, rig.host:delete { position = 4 }.deleted)
        assert.same({ "4 D" }, skips())
        assert.equal(0, rig.host:delete { position = 4 }.deleted)
        assert.equal(2, rig.host:delete({ error = "no good", consumer = "notes", status = "HALTED" }).deleted
          + rig.host:delete { key = "C" }.deleted)
        assert.same({ "2 B", "3 C", "4 D" }, skips())
        assert.same({ "1 A FAILED", "5 B WAITING", "6 C DEAD_LETTER_KEY" }, rig:waiting())
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
      end)

      it("delete of what waits removes that alone", function()
        start_all()
        rig.host:delete { position = 5 }
        assert.same({ "5 B" }, skips())
        rig:script(handlers "")
        rig:reopen()
        rig:run()
        local last = {}
        for _, entry in ipairs(rig:ledger "notes") do last[entry] = true end
        assert.is_true(last["B:2"])
        assert.is_nil(last["B:5"])
      end)

      it("want to be told which messages are meant", function()
        start_all()
        for _, verb in ipairs { "retry", "delete" } do
          assert.has_error(function() rig.host[verb](rig.host, {}) end,
            "say which messages: an id, a filter, or all = true")
        end
        assert.same(ALL, rig:waiting())
      end)

      it("delete of all acts on several consumers at once", function()
        start_all()
        rig:query [[UPDATE CONSUMER_UNDELIVERED_MESSAGES SET consumer_id =
          (SELECT id FROM CONSUMERS WHERE consumer_name = 'others') WHERE message_position = 4]]
        local result = rig.host:delete { all = true }
        assert.equal(4, result.deleted)
        local names = {}
        for _, entry in ipairs(result.consumers) do names[entry.consumer] = entry.deleted end
        assert.same({ notes = 3, others = 1 }, names)
      end)
    end)

    describe("unsubscribe", function()
      it("removes skips, undelivered messages, checkpoints and the row, of that consumer only", function()
        start_halted()
        rig:append("D", "spec.Put", { bad = true })
        rig.host:delete { position = 2 }
        rig.host:resume "notes"
        rig:run()
        assert.is_true(count("notes", "CONSUMER_UNDELIVERED_MESSAGES") > 0)
        local others = rig:query [[SELECT * FROM CONSUMER_CHECKPOINTS k JOIN CONSUMERS c ON c.id = k.consumer_id
          WHERE c.consumer_name = 'others' ORDER BY k.partition_no]]
        local result = rig.host:unsubscribe("notes", { force = true })
        assert.is_true(result.gone)
        assert.equal(kit.partitions, result.checkpoints_removed)
        assert.is_nil(rig:consumer "notes")
        assert.equal(0, rig:value "SELECT count(*) AS value FROM CONSUMER_UNDELIVERED_MESSAGES")
        assert.equal(0, rig:value "SELECT count(*) AS value FROM CONSUMER_SKIPPED_MESSAGES")
        assert.same(others, rig:query [[SELECT * FROM CONSUMER_CHECKPOINTS k JOIN CONSUMERS c ON c.id = k.consumer_id
          WHERE c.consumer_name = 'others' ORDER BY k.partition_no]])
      end)

      it("from one of several sources keeps the row and the other source's rows", function()
        start()
        rig:append("A", "spec.Put", {})
        rig:run()
        rig:query([[INSERT INTO CONSUMER_CHECKPOINTS (consumer_id, source_name, partition_no, position)
          SELECT id, 'elsewhere', 0, 7 FROM CONSUMERS WHERE consumer_name = 'notes']])
        local result = rig.host:unsubscribe("notes", { source = "elsewhere", force = true })
        assert.same({ false, 1, "RUNNING" }, { result.gone, result.checkpoints_removed, result.state })
        assert.equal(kit.partitions, count("notes", "CONSUMER_CHECKPOINTS"))
        assert.has_error(function() rig.host:unsubscribe("notes", { source = "event-stor", force = true }) end,
          "projection 'notes' has no checkpoints on topic 'event-stor'; it reads 'event-store'")
      end)

      it("of what no script declares needs neither pause nor force", function()
        start()
        rig:query "UPDATE CONSUMERS SET consumer_name = 'old' WHERE consumer_name = 'notes'"
        assert.is_true(rig.host:unsubscribe("old").gone)
      end)
    end)

    describe("of a name that was another type's before", function()
      -- the projection's rows stay when a listener is declared in its place
      local function replace()
        rig = kit.new { database = database, handlers = [[
          return moontide.projection "p" { on = { ["spec.Put"] = function(state) state.n = 1 end } }]] }
        rig:script [[return moontide.listener "p" { start = "beginning", on = { ["spec.Put"] = function(event, ctx)
          ctx:emit("spec.Told", {}, { key = event.key }) end } }]]
        rig:reopen()
      end

      local function states()
        local list = {}
        for i, row in ipairs(rig:query "SELECT consumer_type, state FROM CONSUMERS ORDER BY consumer_type") do
          list[i] = row.consumer_type .. " " .. (row.state or "RUNNING")
        end
        return list
      end

      it("means what is declared", function()
        replace()
        assert.equal("listener", rig.host:pause("p").type)
        rig:append("A", "spec.Put", {})
        rig:run()
        assert.equal(0, rig:value "SELECT count(*) AS value FROM EVENT_CAPTURE_RECORDS")
        assert.same({ "listener PAUSED", "projection RUNNING" }, states())
        rig.host:resume "p"
        rig:run()
        assert.equal(1, rig:value "SELECT count(*) AS value FROM EVENT_CAPTURE_RECORDS")
      end)

      it("unsubscribes what was left, then what is declared", function()
        replace()
        assert.is_true(rig.host:unsubscribe("p").gone)
        assert.same({ "listener RUNNING" }, states())
        assert.has_error(function() rig.host:unsubscribe "p" end)
        assert.same({ "listener RUNNING" }, states())
      end)
    end)
  end)
end)
