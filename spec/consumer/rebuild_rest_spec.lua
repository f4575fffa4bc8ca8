-- What a rebuild leaves: of history that is gone, and of a topic that its
-- consumer reads no more.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local function sums(rest, body)
  return ([[
    return moontide.projection "sums" { %s
      initial = function() return { total = 0 } end,
      on = { ["spec.Put"] = function(state, event, ctx)
        %s
        state.total = state.total + event.payload.n
      end } }]]):format(rest, body or "")
end

dialect.each(function(database)
  describe("a rebuild", function()
    local rig

    local function start(rest, body, events)
      rig = kit.start(database, sums(rest, body))
      rig:append_all(events)
      rig:run()
    end

    local function totals() return rig:totals "sums" end

    local function ended()
      return rig:value "SELECT count(replay_through) AS value FROM CONSUMER_CHECKPOINTS" == 0
    end

    after_each(function() rig:close() end)

    describe("over history that is gone", function()
      -- The key function fails once, in the replay, so that the replay stands
      -- still in the middle with a host that goes on by itself.
      local PAUSES = [[retry = { attempts = 3, delay = "10s", jitter = 0 },
        key = function(event)
          if event.payload.pauses then
            calls = calls + 1
            if calls == 2 then error "not now" end
          end
          return event.key
        end,]]

      it("deletes nothing when another host has met the gap while this one was past it", function()
        rig = kit.start(database, "local calls = 0\n" .. sums(PAUSES))
        rig:append_all { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } },
          { "C", "spec.Put", { n = 3, pauses = true } }, { "D", "spec.Put", { n = 4 } } }
        rig:run()
        rig:query "DELETE FROM EVENT_STORE WHERE aggregate_id = 'A'"
        rig.host:rebuild "sums"
        rig:run()
        assert.equal(kit.partitions, #rig:waiting())
        assert.same({ 3, 3 }, { rig:checkpoints "sums" })
        assert.is_false(ended())
        rig:query "UPDATE CONSUMER_CHECKPOINTS SET incomplete_through = 1"
        rig.host:advance "11s"
        rig:run()
        assert.is_true(ended())
        assert.same({ A = 1, B = 2, C = 3, D = 4 }, totals())
      end)

      it("begins anew what fails in the replay, whenever it is tried again, and counts nothing twice", function()
        local events = { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } }, { "B", "spec.Put", { n = 4 } },
          { "C", "spec.Put", { n = 8 } }, { "C", "spec.Put", { n = 16 } } }
        start('on_error = "dead_letter",', "", events)
        rig:query "UPDATE CONSUMER_CHECKPOINTS SET incomplete_through = 1"
        rig:query "DELETE FROM EVENT_STORE WHERE aggregate_id = 'A'"
        rig:script(sums('retry = { attempts = 2, delay = "10s", jitter = 0 }, on_error = "dead_letter",',
          'if ctx.attempt == 1 and event.payload.n == 2 or event.payload.n == 8 and ctx.replaying then error "no" end'))
        rig:reopen()
        rig.host:rebuild "sums"
        rig:run()
        assert.is_true(ended())
        assert.same({ "2 B FAILED", "3 B WAITING", "4 C FAILED", "5 C WAITING" }, rig:waiting())
        assert.same({ A = 1 }, totals()) -- which nothing can make again
        rig.host:advance "11s"
        rig:run()
        assert.same({}, rig:waiting())
        assert.same({ A = 1, B = 6, C = 24 }, totals())
      end)

      it("keeps what the replay has made behind a dead letter, and lets that follow", function()
        local events = { { "B", "spec.Put", { n = 2 } }, { "B", "spec.Put", { n = 4 } } }
        start('on_error = "dead_letter", retry = { attempts = 1 },', "", events)
        rig:query "UPDATE CONSUMER_CHECKPOINTS SET incomplete_through = 1"
        rig:script(sums('on_error = "dead_letter", retry = { attempts = 1 },',
          'if event.payload.n == 2 and ctx.replaying then error "no" end'))
        rig:reopen()
        rig.host:rebuild "sums"
        rig:run()
        assert.same({ "1 B DEAD_LETTER" }, rig:waiting())
        assert.same({ B = 4 }, totals())
        rig.host:retry { consumer = "sums" }
        rig:run()
        assert.same({ B = 6 }, totals())
      end)
    end)

    it("of a consumer that reads another topic now forgets what it could not apply of the former one", function()
      start('retry = { attempts = 1 }, on_error = function(event) return event.payload.how end,',
        'if event.payload.how then error "no" end', { { "A", "spec.Put", { n = 1 } },
          { "B", "spec.Put", { n = 2, how = "dead_letter_key" } }, { "B", "spec.Put", { n = 3 } },
          { "C", "spec.Put", { n = 4, how = "skip" } } })
      rig:query("UPDATE CONSUMER_CHECKPOINTS SET position = 3 WHERE partition_no = ?", kit.partitions - 1)
      local function left()
        return rig:value [[SELECT (SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES) * 10
          + (SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES) AS value]]
      end
      assert.equal(21, left())
      rig.host:emit("spec.Put", { n = 5 }, { key = "A" })
      rig:script(sums 'source = "event-capture",')
      rig:reopen()
      rig:run()
      assert.equal("HALTED DECLARATION_CHANGED", rig:state "sums")
      assert.equal(21, left())
      rig.host:rebuild "sums"
      rig:run()
      assert.equal(0, left())
      assert.same({ A = 5 }, totals())
      assert.same({ 1, 4 }, { rig:checkpoints "sums" }) -- the former topic's stay until it is unsubscribed from it
      rig.app:ok("unsubscribe", "sums", "--source", "event-store", "--force")
      rig:run()
      assert.equal(kit.partitions, rig:value "SELECT count(*) AS value FROM CONSUMER_CHECKPOINTS")
      assert.equal("RUNNING", rig:state "sums")
      rig.host:emit("spec.Put", { n = 5 }, { key = "A" })
      rig:run()
      assert.same({ A = 10 }, totals())
    end)

    it("counts for the checkpoints of a topic that came after it, too", function()
      start("", "", { { "A", "spec.Put", { n = 1 } } })
      rig.host:rebuild "sums"
      rig:run()
      rig.host:emit("spec.Put", { n = 5 }, { key = "A" })
      rig:script(sums 'source = "event-capture",')
      rig:reopen()
      rig.app:ok("resume", "sums", "--accept")
      rig:reopen()
      rig:run()
      assert.same({ A = 6 }, totals())
      assert.same({ { epoch = 1, many = 2 * kit.partitions } },
        rig:query "SELECT epoch, count(*) AS many FROM CONSUMER_CHECKPOINTS GROUP BY epoch")
    end)

    it("of a consumer that is paused in the middle of one says that it waits, and begins again where that is said",
      function()
        start("", "", { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } } })
        rig.host:rebuild "sums"
        rig.host:pause "sums"
        local said = rig.app:ok("rebuild", "sums")
        assert.matches("is paused in the middle of a rebuild: resumed it replays the rest", said, 1, true)
        assert.equal("PAUSED", rig:state "sums")
        assert.matches("is PAUSED and replays no further", rig.app:fails(1, "rebuild", "sums", "--wait"), 1, true)
        assert.equal("PAUSED", rig:state "sums")
        rig.app:ok("rebuild", "sums", "--restart")
        assert.equal("RUNNING", rig:state "sums")
        assert.equal(2, rig:consumer("sums").epoch)
        rig:run()
        assert.same({ A = 1, B = 2 }, totals())
        assert.is_true(ended())
      end)

    describe("of a consumer that has not begun to read its topic", function()
      local TWO = { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } } }

      it("replaces what it left when it was unsubscribed", function()
        start("", "", TWO)
        rig.host:unsubscribe("sums", { force = true })
        rig:restart()
        assert.equal(2, rig.host:rebuild("sums").replay_through)
        assert.same({ A = 1, B = 2 }, totals()) -- until the replay comes to them
        rig:append("B", "spec.Put", { n = 4 })
        rig:run()
        assert.same({ A = 1, B = 6 }, totals())
        assert.is_true(ended())
      end)

      it("empties what was derived from another topic at once where this one is empty", function()
        local events = {}
        for i = 1, 2100 do events[i] = { "K" .. i, "spec.Put", { n = 1 } } end
        start("", "", events)
        rig:query("INSERT INTO sums (read_model_id, message_id, state) VALUES (?, ?, ?)",
          "X", "0190b3c0-0000-7000-8000-00000000000b", '{"total":7}') -- past the projection
        rig:script(sums 'source = "event-capture",')
        rig:reopen()
        assert.is_nil(rig.host:rebuild("sums").replay_through)
        assert.same({ X = 7 }, totals())
        assert.equal(0, rig:value "SELECT count(*) AS value FROM READ_MODEL_EPOCHS")
        rig.host:emit("spec.Put", { n = 5 }, { key = "K1" })
        rig:run()
        assert.same({ K1 = 5, X = 7 }, totals())
      end)

      it("replaces what was derived from another topic by the read models that it reads now", function()
        local others = [[
          local others = moontide.projection "others" { topic = true,
            on = { ["spec.Put"] = function(state, event) state.n = (state.n or 0) + 10 * event.payload.n end } }
          %s return { others, sums }]]
        local function both(rest, changed)
          local text = sums(rest):gsub("return moontide", "local sums = moontide"):gsub("spec.Put", changed)
          return others:format(text)
        end
        rig = kit.start(database, both("", "spec.Put"))
        rig:append_all(TWO)
        rig:run()
        assert.same({ A = 1, B = 2 }, totals())
        rig:script(both('source = "read-model:others",', "read-model.Changed"))
        rig:reopen()
        assert.equal(2, rig.host:rebuild("sums").replay_through)
        rig:append("A", "spec.Put", { n = 2 })
        rig:run()
        assert.same({ A = 10 + 30, B = 20 }, totals())
      end)
    end)
  end)
end)
