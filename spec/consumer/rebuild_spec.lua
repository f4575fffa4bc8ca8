-- Rebuild in place: what counts as absent, what goes at the end, what a crash
-- or a failure in the middle leaves.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- A sum per key; `from` is the first event type that counts.
local function sums(body, rest)
  return ([[
    return moontide.projection "sums" { %s
      fields = { total = t.integer() },
      initial = function() return { total = 0, seen = moontide.array() } end,
      on = { ["spec.Put"] = function(state, event, ctx)
        %s
      end, ["spec.Gone"] = function() return moontide.delete end } }]]):format(rest or "", body)
end

local ADD = [[
  state.total = state.total + event.payload.n
  state.seen[#state.seen + 1] = event.position .. (ctx.replaying and "r" or "")]]
local TWICE = ADD:gsub("event.payload.n", "2 * event.payload.n", 1)

local EVENTS = {
  { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } }, { "A", "spec.Put", { n = 3 } },
  { "C", "spec.Put", { n = 4 } }, { "C", "spec.Gone", {} }, { "D", "spec.Put", { n = 5 } },
}

dialect.each(function(database)
  describe("a rebuild", function()
    local rig

    local function start(handlers, settings)
      local options = { database = database, handlers = handlers }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
      rig:append_all(EVENTS)
      rig:run()
    end

    local function totals() return rig:totals "sums" end

    local function epochs()
      local list = {}
      for _, row in ipairs(rig:query [[SELECT read_model_key AS "key", epoch FROM READ_MODEL_EPOCHS]]) do
        list[row.key] = row.epoch
      end
      return list
    end

    local function replay_through()
      return rig:value "SELECT max(replay_through) AS value FROM CONSUMER_CHECKPOINTS"
    end

    after_each(function() rig:close() end)

    it("derives everything anew with the handlers of today, once, and says that it replays", function()
      start(sums(ADD))
      assert.same({ A = 4, B = 2, D = 5 }, totals())
      rig:script(sums(TWICE))
      rig:reopen()
      local result = rig.host:rebuild "sums"
      assert.is_true(result.changed)
      assert.equal(1, result.epoch)
      assert.equal(6, result.replay_through)
      assert.equal(6, replay_through())
      rig:run()
      assert.same({ A = 8, B = 4, D = 10 }, totals())
      assert.same({ "1r", "3r" }, { unpack(rig.host:read("sums", "A").seen) })
      assert.is_nil(replay_through())
      assert.same({ A = 1, B = 1, D = 1 }, epochs())
      assert.equal(1, rig:consumer("sums").epoch)
      assert.equal("RUNNING", rig:state "sums")
    end)

    it("goes on live behind its end", function()
      start(sums(ADD))
      rig.host:rebuild "sums"
      rig:append("A", "spec.Put", { n = 10 })
      rig:append("E", "spec.Put", { n = 20 })
      rig:run()
      assert.same({ A = 14, B = 2, D = 5, E = 20 }, totals())
      assert.same({ "1r", "3r", "7" }, { unpack(rig.host:read("sums", "A").seen) })
      assert.equal(0, epochs().E) -- created outside the rebuild
    end)

    it("deletes at its end what it did not make anew, and nothing that was written past the projection", function()
      start(sums(ADD))
      rig:query("INSERT INTO sums (read_model_id, message_id, state, total) VALUES (?, ?, ?, ?)",
        "X", "0190b3c0-0000-7000-8000-00000000000b", '{"total":7}', 7)
      rig:script(sums("if event.key == 'B' then return moontide.delete end " .. ADD))
      rig:reopen()
      rig.host:rebuild "sums"
      rig:run()
      assert.same({ A = 4, D = 5, X = 7 }, totals())
      assert.same({ A = 1, D = 1 }, epochs())
    end)

    it("leaves readers what was there until the replay has come to it", function()
      start(sums(ADD), { batch = 1 })
      rig.host:rebuild "sums"
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("forgets undelivered and skipped messages, and meets them again", function()
      start(sums("if event.payload.n == 2 then error 'no' end " .. ADD, 'on_error = "dead_letter",'))
      assert.same({ "2 B DEAD_LETTER" }, rig:waiting())
      rig:script(sums(ADD))
      rig:reopen()
      rig.host:rebuild "sums"
      assert.same({}, rig:waiting())
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("of a halted consumer makes it run", function()
      start(sums("if event.payload.n == 2 then error 'no' end " .. ADD))
      assert.equal("HALTED APPLY_ERROR", rig:state "sums")
      rig:script(sums(ADD))
      rig.host:rebuild "sums"
      assert.equal("RUNNING", rig:state "sums")
      rig:reopen()
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("asked for again changes nothing while it replays, and begins again when that is said", function()
      start(sums(ADD))
      rig.host:rebuild "sums"
      assert.is_false(rig.host:rebuild("sums").changed)
      assert.equal(1, rig:consumer("sums").epoch)
      local again = rig.host:rebuild("sums", { restart = true })
      assert.equal(2, again.epoch)
      assert.equal(6, again.replay_through) -- although nothing was read in between
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
      assert.same({ A = 2, B = 2, D = 2 }, epochs())
    end)

    it("goes on after a restart at any batch", function()
      start(sums(ADD), { batch = 1 })
      rig.host:rebuild "sums"
      for _ = 1, 4 do
        rig:redeliver() -- commits a batch, loses the answer, runs on
        rig:restart()
      end
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
      assert.same({ "1r", "3r" }, { unpack(rig.host:read("sums", "A").seen) })
    end)

    it("is reset by the next host when whoever asked died before that", function()
      start(sums(ADD))
      rig:query "UPDATE CONSUMERS SET state = 'REBUILDING'"
      rig:run()
      assert.equal("RUNNING", rig:state "sums")
      assert.equal(1, rig:consumer("sums").epoch)
      assert.same({ A = 4, B = 2, D = 5 }, totals())
      assert.same({ A = 1, B = 1, D = 1 }, epochs())
    end)

    it("can be taken back until its progress is reset, and not after", function()
      start(sums(ADD))
      rig:query "UPDATE CONSUMERS SET state = 'REBUILDING'"
      assert.is_true(rig.host:rebuild("sums", { cancel = true }).changed)
      assert.equal("RUNNING", rig:state "sums")
      assert.is_false(rig.host:rebuild("sums", { cancel = true }).changed)
      rig.host:rebuild "sums"
      assert.error_matches(function() rig.host:rebuild("sums", { cancel = true }) end, "has begun to replay")
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("can be paused in the middle and goes on from there", function()
      start(sums(ADD), { batch = 2 })
      rig.host:rebuild "sums"
      rig.host:pause "sums"
      rig:run()
      assert.equal(6, replay_through())
      rig.host:resume "sums"
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("does not delete what history that is gone has made", function()
      start(sums(ADD))
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET incomplete_through = 1"
      rig:query "DELETE FROM EVENT_STORE WHERE aggregate_id = 'B'"
      rig.host:rebuild "sums"
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
      assert.same({ A = 1, B = 0, D = 1 }, epochs())
      assert.equal(1, rig:value "SELECT min(incomplete_through) AS value FROM CONSUMER_CHECKPOINTS")
    end)

    it("waits for a message that is tried again, and makes its read model when it is applied", function()
      local fails = sums("if event.payload.n == 2 and ctx.attempt < 2 then error 'no' end " .. ADD,
        'retry = { attempts = 3, delay = "10s", jitter = 0 },')
      start(fails)
      rig.host:advance "11s"
      rig:run()
      rig.host:rebuild "sums"
      rig:run()
      assert.same({ A = 4, D = 5 }, totals())
      rig.host:advance "11s"
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("of a consumer that has read nothing has nothing to replay", function()
      rig = kit.new { database = database, handlers = sums(ADD) }
      rig:run()
      assert.is_nil(rig.host:rebuild("sums").replay_through)
      rig:append_all(EVENTS)
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("counts above what a consumer of its name has left that was unsubscribed", function()
      start(sums(ADD))
      rig.host:rebuild "sums"
      rig:run()
      rig.host:unsubscribe("sums", { force = true })
      rig:restart()
      rig:run() -- everything once more, onto what is there
      assert.same({ A = 8, B = 4, D = 10 }, totals())
      assert.equal(2, rig.host:rebuild("sums").epoch)
      rig:run()
      assert.same({ A = 4, B = 2, D = 5 }, totals())
    end)

    it("deletes more than one batch of what is left", function()
      rig = kit.new { database = database, handlers = sums(ADD) }
      local list = {}
      for i = 1, 2300 do list[i] = { "K" .. i, "spec.Put", { n = 1 } } end
      rig:append_all(list)
      rig:run()
      rig:script(sums("if event.position <= 2290 then return moontide.delete end " .. ADD))
      rig:reopen()
      rig.host:rebuild "sums"
      rig:run()
      local count = 0
      for _ in pairs(totals()) do count = count + 1 end
      assert.equal(10, count)
    end)

    describe("of one key", function()
      it("makes that read model anew at once and leaves the others", function()
        start(sums(ADD))
        rig:query "UPDATE sums SET total = 99, state = '{\"total\":99,\"seen\":[]}' WHERE read_model_id IN ('A', 'B')"
        local result = rig.host:rebuild("sums", { key = "A" })
        assert.equal(2, result.messages)
        assert.same({ A = 4, B = 99, D = 5 }, totals())
        rig:append("A", "spec.Put", { n = 1 })
        rig:run()
        assert.equal(5, totals().A)
      end)

      it("takes its undelivered messages along", function()
        start(sums("if event.payload.n == 2 then error 'no' end " .. ADD, 'on_error = "dead_letter_key",'))
        rig:append("B", "spec.Put", { n = 7 })
        rig:run()
        rig:script(sums(ADD))
        rig:reopen()
        rig.host:rebuild("sums", { key = "B" })
        assert.same({}, rig:waiting())
        assert.equal(9, totals().B)
        rig:append("B", "spec.Put", { n = 1 })
        rig:run()
        assert.equal(10, totals().B)
      end)

      it("removes the read model when its messages make none", function()
        start(sums(ADD))
        rig:query("INSERT INTO sums (read_model_id, message_id, state, total) VALUES (?, ?, ?, ?)",
          "C", "0190b3c0-0000-7000-8000-00000000000b", '{"total":7}', 7)
        rig.host:rebuild("sums", { key = "C" })
        assert.is_nil(totals().C)
      end)

      it("changes nothing when a handler fails", function()
        start(sums(ADD))
        rig:script(sums("if event.position == 3 then error 'no' end " .. ADD))
        rig:reopen()
        assert.error_matches(function() rig.host:rebuild("sums", { key = "A" }) end, "position 3 .*: no")
        assert.same({ A = 4, B = 2, D = 5 }, totals())
      end)

      it("finds the messages of a key function", function()
        start(sums(ADD, "key = function(event) return 'all', event.key end,"))
        rig:query "UPDATE sums SET total = 1 WHERE read_model_id = 'all'"
        assert.equal(6, rig.host:rebuild("sums", { key = "all" }).messages)
        assert.equal(5, totals().all)
      end)
    end)
  end)

  describe("a rebuild of an SQL projection", function()
    local rig
    local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

    local function notes(reset, body)
      return kit.LEDGER .. ([[
        return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s
          on = { ["spec.Put"] = function(event, ctx) %s ledger("notes", event, ctx) end } }]]):format(reset, body or "")
    end

    local function start(reset, body)
      rig = kit.new { database = database, files = FILES, handlers = notes(reset, body) }
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", {} } }
      rig:run()
    end

    after_each(function() rig:close() end)

    it("empties its tables by reset and fills them anew", function()
      start 'reset = function(ctx) ctx:execute "DELETE FROM ledger" end,'
      rig.host:rebuild "notes"
      assert.same({}, rig:ledger())
      rig:run()
      assert.same({ "A:1", "B:2" }, rig:ledger())
      assert.is_nil(rig:value "SELECT max(replay_through) AS value FROM CONSUMER_CHECKPOINTS")
    end)

    it("is refused without reset, and says what to write", function()
      start ""
      assert.error_matches(function() rig.host:rebuild "notes" end, "has no reset: give it reset = function")
      assert.same({ "A:1", "B:2" }, rig:ledger())
      assert.equal("RUNNING", rig:state "notes")
    end)

    for what, body in pairs {
      ["raises"] = 'error "cannot"', ["has a bad statement"] = 'ctx:execute "DELETE FROM nowhere"',
    } do
      it("changes nothing when reset " .. what .. ", and can be asked again or taken back", function()
        start("reset = function(ctx) " .. body .. " end,")
        assert.error_matches(function() rig.host:rebuild "notes" end,
          "the reset of 'notes' failed: .*handlers/spec.lua:%d+")
        assert.same({ "A:1", "B:2" }, rig:ledger())
        assert.equal("REBUILDING", rig:state "notes")
        rig.host:rebuild("notes", { cancel = true })
        rig:append("A", "spec.Put", {})
        rig:run()
        assert.same({ "A:1", "B:2", "A:3" }, rig:ledger())
      end)
    end

    it("that is taken back gives the message that had halted the consumer a fresh budget", function()
      start("reset = function() error 'not now' end, retry = { attempts = 1 },",
        "if event.payload.bad then error 'no' end")
      rig:append("A", "spec.Put", { bad = true })
      rig:run()
      assert.same({ "3 A HALTED" }, rig:waiting())
      assert.error_matches(function() rig.host:rebuild "notes" end, "not now")
      assert.equal("REBUILDING", rig:state "notes")
      rig.host:rebuild("notes", { cancel = true })
      assert.same({ "FAILED", 0 }, { rig:undelivered()[1].status, rig:undelivered()[1].failures })
      rig:run() -- fails as before, and halts as before
      assert.equal("HALTED APPLY_ERROR", rig:state "notes")
      assert.same({ "3 A HALTED" }, rig:waiting())
    end)
  end)
end)
