-- A rebuild of one read model that must not count a message twice, mix two
-- declarations, or lose what cannot be made again.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local function sums(rest)
  return ([[
    return moontide.projection "sums" { %s
      initial = function() return { total = 0 } end,
      on = { ["spec.Put"] = function(state, event) state.total = state.total + event.payload.n end } }]]):format(rest)
end

dialect.each(function(database)
  describe("a rebuild of one key", function()
    local rig

    local function start(rest, settings)
      rig = kit.start(database, sums(rest), settings)
    end

    local function declare(rest)
      rig:script(sums(rest))
      rig:reopen()
    end

    local function totals() return rig:totals "sums" end

    -- What is refused leaves everything as it is.
    local function refused(key, why)
      local before = totals()
      assert.error_matches(function() rig.host:rebuild("sums", { key = key }) end, why)
      assert.same(before, totals())
    end

    after_each(function() rig:close() end)

    local KEY = [[retry = { attempts = 1 }, on_error = "%s",
      key = function(event) %s return event.key end,]]

    local HELD = { A = 1 }

    for policy, before in pairs { dead_letter = { A = 101, B = 1000 }, dead_letter_key = HELD, halt = HELD } do
      it("leaves a message whose keys could not be told to its retry, with on_error = " .. policy, function()
        start(KEY:format(policy, 'if event.payload.bad then error "no" end'))
        rig:append_all { { "A", "spec.Put", { n = 1 } }, { "A", "spec.Put", { n = 10, bad = true } },
          { "A", "spec.Put", { n = 100 } }, { "B", "spec.Put", { n = 1000 } } }
        rig:run()
        assert.equal(kit.partitions, #rig:waiting())
        assert.same(before, totals())

        assert.equal(before.A == 1 and 1 or 2, rig.host:rebuild("sums", { key = "A" }).messages) -- by any key function
        rig:script(sums(KEY:format(policy, "")))
        rig:accept()
        rig:reopen()
        rig.host:rebuild("sums", { key = "A" })
        assert.equal(before.A, totals().A)
        assert.equal(kit.partitions, #rig:waiting())
        if policy ~= "halt" then rig.host:retry { consumer = "sums" } end -- a start has done it
        rig:run()
        assert.same({ A = 111, B = 1000 }, totals())
        assert.same({}, rig:waiting())
        assert.equal("RUNNING", rig:state "sums")
      end)
    end

    for _, word in ipairs { "continue", "halt" } do
      it("is refused where its topic has lost messages, with on_missing_history = " .. word, function()
        start(('source = "event-capture", on_missing_history = "%s",'):format(word))
        for i = 1, 3 do rig.host:emit("spec.Put", { n = i }, { key = i < 3 and "A" or "B" }) end
        rig:run()
        assert.equal(2, rig.host:rebuild("sums", { key = "A" }).messages)
        rig:query "DELETE FROM EVENT_CAPTURE_RECORDS WHERE global_position < 2"
        rig:query "UPDATE HIGH_WATER_MARK_STORE SET topic_start = 1 WHERE topic_name = 'event-capture'"
        for _, key in ipairs { "A", "B" } do
          refused(key, "'event%-capture' no longer holds positions up to 1, so '" .. key .. "' of projection 'sums'")
        end
        assert.same({ A = 3, B = 3 }, totals())
      end)
    end

    for part, change in pairs {
      ["key"] = 'fields = { total = t.integer() }, key = function(event) return event.key:lower() end,',
      ["shape"] = 'fields = { total = t.integer { optional = true } },',
      ["sources"] = 'fields = { total = t.integer() }, aggregates = { "spec.thing" },',
    } do
      it("is refused when the declaration has changed in its " .. part .. ", halted or not yet", function()
        start "fields = { total = t.integer() },"
        rig:append_all { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } } }
        rig:run()
        declare(change)
        assert.equal("HALTED DECLARATION_CHANGED", rig:state "sums")
        local function all_refused()
          assert.error_matches(function() rig.host:rebuild("sums", { key = "A" }) end,
            "was derived by another declaration: .* `moontide rebuild sums` without %-%-key")
        end
        all_refused()
        rig:query "UPDATE CONSUMERS SET state = NULL, halt_reason = NULL"
        all_refused()
        assert.equal(2, rig:value "SELECT count(*) AS value FROM READ_MODEL_EPOCHS")
        rig.host:rebuild "sums"
        rig:run()
        local key = part == "key" and "a" or "A"
        assert.equal(1, rig.host:rebuild("sums", { key = key }).messages)
        assert.equal(1, totals()[key])
      end)
    end

    it("uses changed code at once", function()
      start ""
      rig:append_all { { "A", "spec.Put", { n = 1 } }, { "B", "spec.Put", { n = 2 } } }
      rig:run()
      rig:script((sums(""):gsub("total %+ event", "total + 10 * event")))
      rig:reopen()
      rig.host:rebuild("sums", { key = "A" })
      assert.same({ A = 10, B = 2 }, totals())
    end)

    it("lets a message that halted the consumer go, and a resume let it run on", function()
      start "retry = { attempts = 1 },"
      rig:append_all { { "A", "spec.Put", {} }, { "A", "spec.Put", { n = 2 } }, { "B", "spec.Put", { n = 4 } } }
      rig:run()
      assert.equal("HALTED APPLY_ERROR", rig:state "sums")
      assert.same({ "1 A HALTED", "2 A WAITING" }, rig:waiting())
      local script = sums("retry = { attempts = 1 },"):gsub("event.payload.n", "(event.payload.n or 0)")
      rig.app:write("handlers/spec.lua", 'local moontide = require "moontide"\n' .. script)
      rig.app:ok("rebuild", "sums", "--key", "A") -- by the scripts as they are saved
      assert.equal("HALTED APPLY_ERROR", rig:state "sums")
      assert.same({}, rig:waiting())
      rig.app:ok("resume", "sums")
      rig:reopen()
      rig:append("A", "spec.Put", { n = 10 })
      rig:run()
      assert.same({ A = 12, B = 4 }, totals())
    end)
  end)
end)
