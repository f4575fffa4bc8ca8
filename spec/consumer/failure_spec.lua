-- Messages that cannot be applied: what is recorded, and what goes on.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- Two consumers: `notes` runs the text `poison` where the payload says bad,
-- `others` takes everything.
local function handlers(poison)
  return kit.LEDGER .. ([[
    return {
      moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
        ["spec.Put"] = function(event, ctx)
          ledger("notes", event, ctx)
          if event.payload.bad then
            %s
          end
        end } },
      moontide.sql_projection "others" { tables = "sql/ledger.sql", on = {
        ["spec.Put"] = function(event, ctx) ledger("others", event, ctx) end } },
    }]]):format(poison)
end

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

-- The line of handlers/spec.lua that `poison` is on.
local LINE = 2 + 4 + 6

dialect.each(function(database)
  describe("a failing message", function()
    local rig

    local function start(poison, settings)
      local options = { database = database, files = FILES, handlers = handlers(poison) }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function() rig:close() end)

    local STREAM = {
      { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} },
      { "B", "spec.Put", {} }, { "A", "spec.Put", {} }, { "B", "spec.Put", {} },
    }

    it("leaves its page's other keys applied once and its own key's later messages waiting in order", function()
      start 'error "no"'
      rig:append_all(STREAM)
      rig:run()
      assert.same({ "A:1", "C:3", "A:5" }, rig:ledger "notes")
      assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
      assert.equal(6, (rig:checkpoints "notes"))
    end)

    it("is recorded with its reason, one failure, no time of retry, its partition and the hash of its key", function()
      start 'error "no"'
      rig:append_all(STREAM)
      rig:run()
      local rows = rig:query [[
        SELECT source_name, partition_no, key_hash, failure_count, failure_reason, next_retry_at, recorded_at,
               CASE WHEN unresolved THEN 1 ELSE 0 END AS unresolved
          FROM CONSUMER_UNDELIVERED_MESSAGES ORDER BY message_position]]
      local failed, waits = rows[1], rows[2]
      assert.equal("error: handlers/spec.lua:" .. LINE .. ": no", failed.failure_reason)
      assert.same({ 1, nil, 0, "event-store" },
        { failed.failure_count, failed.next_retry_at, failed.unresolved, failed.source_name })
      assert.same({ 0, nil, nil, 0 },
        { waits.failure_count, waits.next_retry_at, waits.failure_reason, waits.unresolved })
      local stored = rig:query "SELECT partition_key FROM EVENT_STORE WHERE aggregate_id = 'B'"[1].partition_key
      for _, row in ipairs(rows) do
        assert.equal(stored, row.partition_no)
        assert.equal(failed.key_hash, row.key_hash)
        assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$", row.recorded_at)
      end
    end)

    it("is kept as a copy that has all of the message, byte for byte", function()
      start 'error "no"'
      local payload = '{ "bad" : true, "n":9007199254740993, "t":"\\u0000\\ud83d\\ude00é" , "a":[ ] }'
      local metadata = '{ "trace" : "x" }'
      rig.app:append { { aggregate_id = "B", type = "spec.Put", payload = payload, metadata = metadata, revision = 3,
        id = "0190b3c0-0000-7000-8000-00000000000b", occurred_at = "2024-02-29T12:34:56.789012Z" } }
      rig:run()
      local row = rig:undelivered()[1]
      local copy = application.json.decode(rig:copy(1))
      assert.equal(payload, copy.payload)
      assert.equal(metadata, copy.metadata)
      copy.payload, copy.metadata = nil, nil
      assert.same({ aggregate_id = "B", aggregate_type = kit.aggregate, id = "0190b3c0-0000-7000-8000-00000000000b",
        key = "B", occurred_at = "2024-02-29T12:34:56.789012Z", partition = row.partition, position = 1, revision = 3,
        sequence = 0, type = "spec.Put" }, copy)
    end)

    it("is tried again from its copy when its topic no longer has it", function()
      start 'error "no"'
      rig:append_all(STREAM)
      rig:run()
      rig:query "DELETE FROM EVENT_STORE WHERE aggregate_id = 'B'"
      rig:script(handlers "")
      rig:reopen()
      rig:run()
      assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger "notes")
    end)

    it("applies nothing when its copy is empty, and is done", function()
      start 'error "no"'
      rig:append_all(STREAM)
      rig:run()
      rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET message_copy = NULL WHERE message_position = 2"
      rig:reopen()
      rig:run()
      assert.same({ "A:1", "C:3", "A:5", "B:4", "B:6" }, rig:ledger "notes")
      assert.same({}, rig:waiting())
    end)

    it("halts its consumer with APPLY_ERROR, since when, and no other consumer", function()
      start 'error "no"'
      rig:append("A", "spec.Put", {})
      rig:run()
      local before = rig:consumer("notes").state_since
      rig.host:advance "1h"
      rig:append("B", "spec.Put", { bad = true })
      rig:run()
      rig:append("C", "spec.Put", {})
      rig:run()
      assert.equal("HALTED APPLY_ERROR", rig:state "notes")
      assert.is_true(rig:consumer("notes").state_since > before)
      assert.equal(2, (rig:checkpoints "notes"))
      assert.same({ "A:1" }, rig:ledger "notes")
      assert.equal("RUNNING", rig:state "others")
      assert.same({ "A:1", "B:2", "C:3" }, rig:ledger "others")
    end)

    it("is tried first by the next start, then what waits behind it, in order, then what is new", function()
      start 'error "no"'
      rig:append_all(STREAM)
      rig:run()
      rig:append("B", "spec.Put", {})
      rig:script(handlers "")
      rig:reopen()
      rig:run()
      assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6", "B:7" }, rig:ledger "notes")
      assert.same({}, rig:waiting())
      assert.equal("RUNNING", rig:state "notes")
      assert.is_nil(rig:consumer("notes").halt_reason)
    end)

    it("drains what waits behind it however small the batches are", function()
      start 'error "no"'
      local list = { { "B", "spec.Put", { bad = true } } }
      for i = 2, 30 do list[i] = { i % 5 == 0 and "A" or "B", "spec.Put", {} } end
      rig:append_all(list)
      rig:run()
      rig:script(handlers "")
      rig:reopen { batch = 2 }
      rig:run()
      local last = 0
      local count = 0
      for _, entry in ipairs(rig:ledger "notes") do
        local key, position = entry:match "^(.*):(%d+)$"
        if key == "B" then
          assert.is_true(tonumber(position) > last)
          last, count = tonumber(position), count + 1
        end
      end
      assert.equal(24, count)
      assert.same({}, rig:waiting())
      assert.equal("RUNNING", rig:state "notes")
    end)

    it("that still fails halts its consumer again, with a fresh count and the new reason", function()
      start 'error "no"'
      rig:append_all(STREAM)
      rig:run()
      local since = rig:consumer("notes").state_since
      for round = 1, 2 do
        rig:script(handlers(("error 'still %d'"):format(round)))
        rig:reopen { clock_offset = ("%dh"):format(round) }
        rig:run()
        assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
        local row = rig:undelivered()[1]
        assert.equal(1, row.failures)
        assert.matches("still " .. round, row.reason, 1, true)
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
        assert.is_true(rig:consumer("notes").state_since > since)
        since = rig:consumer("notes").state_since
      end
      assert.same({ "A:1", "C:3", "A:5" }, rig:ledger "notes")
    end)

    it("of several in one page halts for each of them, and each holds its own key", function()
      start 'error(ctx.key)'
      rig:append_all {
        { "A", "spec.Put", { bad = true } }, { "B", "spec.Put", { bad = true } }, { "A", "spec.Put", {} },
        { "C", "spec.Put", {} }, { "B", "spec.Put", { bad = true } },
      }
      rig:run()
      assert.same({ "C:4" }, rig:ledger "notes")
      assert.same({ "1 A HALTED", "2 B HALTED", "3 A WAITING", "5 B WAITING" }, rig:waiting "notes")
    end)

    it("of a page with one good retry and one bad one keeps what was good", function()
      start 'error(ctx.key)'
      rig:append_all {
        { "A", "spec.Put", { bad = true } }, { "B", "spec.Put", { bad = true } }, { "A", "spec.Put", {} },
        { "B", "spec.Put", {} },
      }
      rig:run()
      rig:script(handlers 'if ctx.key == "B" then error "no" end')
      rig:reopen()
      rig:run()
      assert.same({ "A:1", "A:3" }, rig:ledger "notes")
      assert.same({ "2 B HALTED", "4 B WAITING" }, rig:waiting "notes")
    end)

    it("counts its attempts for the handler", function()
      start 'error("attempt " .. ctx.attempt)'
      rig:append("B", "spec.Put", { bad = true })
      rig:run()
      assert.matches("attempt 1", rig:undelivered()[1].reason, 1, true)
      rig:reopen()
      rig:run()
      assert.matches("attempt 1", rig:undelivered()[1].reason, 1, true) -- the budget is fresh
    end)

    it("holds keys one by one when a message has several", function()
      rig = kit.new { database = database, files = FILES, handlers = kit.LEDGER .. [[
        return moontide.sql_projection "notes" { tables = "sql/ledger.sql",
          key = function(event) return unpack(event.payload.keys) end,
          on = { ["spec.Put"] = function(event, ctx)
            ledger("notes", event, ctx)
            if ctx.key == event.payload.bad then error "no" end
          end } }]] }
      rig:append_all {
        { "-", "spec.Put", { keys = { "A", "B" }, bad = "B" } }, { "-", "spec.Put", { keys = { "B", "C" } } },
        { "-", "spec.Put", { keys = { "A", "C" } } },
      }
      rig:run()
      assert.same({ "A:1", "C:2", "A:3", "C:3" }, rig:ledger())
      assert.same({ "1 B HALTED", "2 B WAITING" }, rig:waiting())
    end)

    -- what: what is raised or done · the class and text of the reason
    for _, case in ipairs {
      { "error('text')", "^error: handlers/spec.lua:%d+: text$" },
      { "error('bare', 0)", "^error: .*bare" },
      { "error(nil)", "^error: .*nil" },
      { "error(false)", "^error: .*false" },
      { "error(42)", "^error: .*42" },
      { "error({ code = 7 })", "^error: .*table" },
      { "error(setmetatable({}, { __tostring = function() return 'a story' end }))", "^error: .*a story" },
      { "error(setmetatable({}, { __tostring = function() error('again') end }))", "^error: ." },
      { "error(setmetatable({}, { __tostring = function() return {} end }))", "^error: ." },
      { "error(setmetatable({}, { __tostring = function() while true do end end }))", "^%l+: ." },
      { "error(moontide.array())", "^error: ." },
      { "error(event)", "^error: ." },
      { "error(moontide.permanent('for good'))", "^error: handlers/spec.lua:%d+: for good" },
      { "local x = nil; x.y = 1", "^error: handlers/spec.lua:%d+: .*index" },
      { "surprise = 1", "^error: handlers/spec.lua:%d+: .*surprise" },
      { "coroutine.yield()", "^error: ." },
      { "while true do end", "^timeout: .*handlers/spec.lua:%d+" },
      { "while true do pcall(function() while true do end end) end", "^timeout: ." },
      { "local t = {}; for i = 1, 1e9 do t[i] = ('x'):rep(1e5) .. i end", "^memory: ." },
      { "local function deep() return 1 + deep() end; deep()", "^error: .*stack overflow" },
      { ("ctx:execute('%s')"):format(database:endless()), "^timeout: handlers/spec.lua:%d+: " },
      { ("ctx:query('%s')"):format(database:endless()), "^timeout: handlers/spec.lua:%d+: " },
      { "ctx:execute('DELETE FROM no_such_table')", "^sql: handlers/spec.lua:%d+: .*no_such_table" },
      { "ctx:execute('INSERT INTO ledger VALUES (?)')", "^%l+: handlers/spec.lua:%d+: " },
      { "ctx:execute('COMMIT')", "^%l+: handlers/spec.lua:%d+: " },
    } do
      it("is recorded when the handler does " .. case[1], function()
        -- only what never ends is to meet it, on a busy machine, too
        local ends = not (case[1]:find "while true" or case[2]:find "^%^timeout")
        start(case[1], { limits = { time = ends and "1m" or "150ms", memory = "24MiB" } })
        rig:append_all(STREAM)
        rig:run()
        assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting "notes")
        assert.matches(case[2], rig:undelivered()[1].reason)
        assert.same({ "A:1", "C:3", "A:5" }, rig:ledger "notes")
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
        assert.equal(6, #rig:ledger "others")
        rig:script(handlers "")
        rig:reopen()
        rig:run()
        assert.same({ "A:1", "C:3", "A:5", "B:2", "B:4", "B:6" }, rig:ledger "notes")
      end)
    end

    it("is recorded shortened to 1,000 characters and as valid text", function()
      start([[error(("é"):rep(2.5e6), 0)]])
      rig:append_all(STREAM)
      rig:run()
      local reason = rig:undelivered()[1].reason
      local _, length = reason:gsub("[^\128-\191]", "")
      assert.is_true(length <= 1000 and length >= 400)
      assert.equal("", (reason:gsub("^error: handlers/spec.lua:%d+: ", ""):gsub("é", ""):gsub("%.%.%.$", "")))
    end)

    it("is recorded when its error has NUL and invalid UTF-8", function()
      start([[error("before\0after \255\254 \237\160\128 end", 0)]])
      rig:append_all(STREAM)
      rig:run()
      local row = rig:undelivered()[1]
      assert.matches("^error: handlers/spec.lua:%d+: before", row.reason)
      assert.matches("after .* end", row.reason)
      assert.is_nil(row.reason:find("[%z\255\254]"))
      assert.same({ "A:1", "C:3", "A:5" }, rig:ledger "notes")
    end)

    for _, case in ipairs {
      { "a number", "return 7" }, { "true", "return true" }, { "text", "return 'done'" },
      { "null", "return moontide.null" }, { "a function", "return print or error" },
    } do
      it("is one whose handler returns " .. case[1] .. " where a state belongs", function()
        rig = kit.new { database = database, handlers = ([[
          return moontide.projection "states" { on = { ["spec.Put"] = function(state, event)
            state.n = (state.n or 0) + 1
            if event.payload.bad then %s end
          end } }]]):format(case[2]) }
        rig:append_all(STREAM)
        rig:run()
        assert.same({ A = { n = 2 }, C = { n = 1 } }, rig.host:read "states")
        assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
        assert.matches("^state: handlers/spec.lua:%d+: .*moontide.delete", rig:undelivered()[1].reason)
      end)
    end

    for _, case in ipairs {
      { "NaN", "state.n = 0 / 0", "state.n" }, { "a function", "state.f = function() end", "state.f" },
      { "a cycle", "state.me = { state }", "state.me" }, { "a hole", "state.list = { 1, nil, 3 }", "state.list" },
    } do
      it("is one whose state has " .. case[1] .. ", named by its path", function()
        rig = kit.new { database = database, handlers = ([[
          return moontide.projection "states" { on = { ["spec.Put"] = function(state, event)
            state.count = (state.count or 0) + 1
            if event.payload.bad then %s end
          end } }]]):format(case[2]) }
        rig:append_all(STREAM)
        rig:run()
        assert.same({ A = { count = 2 }, C = { count = 1 } }, rig.host:read "states")
        assert.same({ "2 B HALTED", "4 B WAITING", "6 B WAITING" }, rig:waiting())
        local reason = rig:undelivered()[1].reason
        assert.matches("^state: ", reason)
        assert.matches(case[3], reason, 1, true)
      end)
    end
  end)

  describe("a message whose payload cannot be read", function()
    local rig

    after_each(function() rig:close() end)

    -- what is wrong · the SQL of the payload · how its copy has it · whether
    -- the database takes it: written around the host, which would refuse them
    for _, case in ipairs {
      { "is nested too deeply", ("'%s%s'"):format(("["):rep(3000), ("]"):rep(3000)), ("["):rep(3000), true },
      { "is cut off", [['{"n":1,']], [["payload":"{\"n\":1,"]], database.keeps_broken_json },
      { "is empty", "''", [["payload":""]], database.keeps_broken_json },
      { "is no UTF-8", database:text_of_bytes "7b2261223a22ff227d", [["payload_hex":"7b2261223a22ff227d"]],
        database.keeps_broken_text },
    } do
      local change = ("UPDATE EVENT_STORE SET payload = %s WHERE global_position = 2"):format(case[2])

      if not case[4] then
        it("and " .. case[1] .. " is refused by the database itself", function()
          rig = kit.new { database = database, files = FILES, handlers = handlers "" }
          rig:append_all { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } } }
          assert.has_error(function() rig:query(change) end)
        end)
      else it("and " .. case[1] .. " fails only where a handler looks at it", function()
        rig = kit.new { database = database, files = FILES, handlers = kit.LEDGER .. [[
          return {
            moontide.sql_projection "looks" { tables = "sql/ledger.sql", on = { ["spec.Put"] = function(event, ctx)
              ledger("looks", event, ctx)
              local _ = event.payload.n
            end } },
            moontide.sql_projection "passes" { tables = "sql/ledger.sql", on = { ["spec.Put"] = function(event, ctx)
              ledger("passes", event, ctx)
            end } } }]] }
        rig:append_all { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } }, { "C", "spec.Put", { n = 3 } },
          { "B", "spec.Put", { n = 4 } } }
        rig:query(change)
        rig:run()
        assert.same({ "A:1", "B:2", "C:3", "B:4" }, rig:ledger "passes")
        assert.equal("RUNNING", rig:state "passes")
        assert.same({ "A:1", "C:3" }, rig:ledger "looks")
        assert.same({ "2 B HALTED", "4 B WAITING" }, rig:waiting "looks")
        assert.matches("^decode: .*payload", rig:undelivered("looks")[1].reason)
        -- the next start reads it back from its copy, and meets the same
        rig:reopen()
        rig:run()
        assert.same({ "2 B HALTED", "4 B WAITING" }, rig:waiting "looks")
        assert.matches("^decode: .*payload", rig:undelivered("looks")[1].reason)
        assert.same({ "A:1", "C:3" }, rig:ledger "looks")
        assert.matches(case[3], rig:copy(2), 1, true) -- the bytes are kept
        rig:script(kit.LEDGER .. [[
          return moontide.sql_projection "looks" { on = { ["spec.Put"] = function(event, ctx)
            local good, problem = pcall(function() return event.payload end)
            ctx:execute([=[INSERT INTO ledger (consumer, "key", position, attempt) VALUES ('told', ?, ?, 1)]=],
              good and "good" or problem:match "payload", event.position)
          end } }]])
        rig:accept()
        rig:reopen()
        rig:run()
        assert.equal("RUNNING", rig:state "looks")
        assert.same({ "payload:2", "good:4" }, rig:ledger "told")
      end) end
    end

    it("because its copy was damaged fails in its turn, behind an earlier one of its key", function()
      rig = kit.new { database = database, files = FILES, handlers = handlers 'error "no"' }
      rig:append_all {
        { "A", "spec.Put", { bad = true } }, { "B", "spec.Put", {} }, { "A", "spec.Put", {} }, { "A", "spec.Put", {} },
      }
      rig:run()
      rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET message_copy = '{\"position\":' WHERE message_position = 3"
      rig:script(handlers "")
      rig:reopen()
      rig:run()
      assert.same({ "B:2", "A:1" }, rig:ledger "notes")
      assert.same({ "3 A HALTED", "4 A WAITING" }, rig:waiting "notes")
    end)

    it("because its copy was damaged fails alone, and its key waits", function()
      rig = kit.new { database = database, files = FILES, handlers = handlers 'error "no"' }
      rig:append_all {
        { "A", "spec.Put", { bad = true } }, { "B", "spec.Put", { bad = true } },
        { "A", "spec.Put", {} }, { "B", "spec.Put", {} },
      }
      rig:run()
      rig:query "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET message_copy = '{\"position\":' WHERE message_position = 1"
      rig:script(handlers "")
      rig:reopen()
      rig:run()
      assert.same({ "B:2", "B:4" }, rig:ledger "notes")
      assert.same({ "1 A HALTED", "3 A WAITING" }, rig:waiting "notes")
      assert.matches("^decode: .*copy is damaged", rig:undelivered()[1].reason)
    end)

    it("is none of those whose read models are gone: the consumer stands still until they are there", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "sums" { on_error = "skip",
          on = { ["spec.Put"] = function(state) state.n = (state.n or 0) + 1 end } }]] }
      rig:append("A", "spec.Put", {})
      rig:run()
      rig:query "ALTER TABLE sums RENAME TO elsewhere"
      rig:append("A", "spec.Put", {})
      assert.error_matches(function() rig:run() end, "its read models cannot be read")
      assert.same({}, rig:undelivered())
      assert.equal("RUNNING", rig:state "sums")
      rig:query "ALTER TABLE elsewhere RENAME TO sums"
      rig:run()
      assert.equal(2, rig.host:read("sums", "A").n)
    end)
  end)
end)
