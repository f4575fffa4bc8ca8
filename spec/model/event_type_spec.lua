-- Event types: what handlers see of events that were stored with an older or a
-- newer revision, and what is refused at append.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- Keeps what the handler saw of each event.
local WATCH = [[
  moontide.projection "watch" {
    on = { ["spec.Named"] = function(state, event)
      state.seen = state.seen or moontide.array()
      state.seen[#state.seen + 1] = { revision = event.revision, payload = event.payload, part = event.part }
    end } }]]

local function named(members)
  return ('return { moontide.event_type "spec.Named" { %s }, %s }'):format(members, WATCH)
end

local RENAMING = [[revision = 2, upcast = {
  [0] = { rename = { n = "name" }, default = { tags = moontide.array() } },
  [1] = function(payload) payload.name = { first = payload.name } return payload end }]]

-- Events of one type that are split into two, and a projection of each part.
local SPLITTING = [[
  return {
    moontide.event_type "spec.Changed" { revision = 1, into = { "spec.Renamed", "spec.Moved" },
      upcast = { [0] = function(payload)
        local parts = {}
        if payload.name then parts[1] = moontide.event("spec.Renamed", { name = payload.name }) end
        for _, place in ipairs(payload.places or {}) do
          parts[#parts + 1] = moontide.event("spec.Moved", { to = place })
        end
        return moontide.split(parts)
      end } },
    moontide.projection "names" {
      on = { ["spec.Renamed"] = function(state, event)
        state.name, state.part, state.position = event.payload.name, event.part, event.position
      end } },
    moontide.projection "places" {
      key = function(event) return event.payload.to end,
      on = { ["spec.Moved"] = function(state, event)
        state.parts = state.parts or moontide.array()
        state.parts[#state.parts + 1] = event.part
        if event.payload.to == "nowhere" then error "no such place" end
      end } } }]]

dialect.each(function(database)
  describe("an event type", function()
    local rig

    local function start(handlers, settings)
      local options = { database = database, handlers = handlers }
      for name, value in pairs(settings or {}) do options[name] = value end
      rig = kit.new(options)
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function seen()
      return rig.host:read("watch", "A").seen
    end

    it("leads an event from its stored revision to the newest when a handler reads it", function()
      start(named(RENAMING))
      rig:append_all { { "A", "spec.Named", { n = "x" }, { revision = 0 } },
        { "A", "spec.Named", { name = "y", tags = { "t" } }, { revision = 1 } },
        { "A", "spec.Named", { name = { first = "z" }, tags = { "u" } }, { revision = 2 } } }
      rig:run()
      assert.same({
        { revision = 2, part = 1, payload = { name = { first = "x" }, tags = {} } },
        { revision = 2, part = 1, payload = { name = { first = "y" }, tags = { "t" } } },
        { revision = 2, part = 1, payload = { name = { first = "z" }, tags = { "u" } } },
      }, seen())
    end)

    it("renames, then fills defaults, then removes", function()
      start(named [[revision = 1, upcast = { [0] = {
        rename = { a = "b", b = "a" }, default = { a = 7, c = 8 }, remove = { "old" } } }]])
      rig:append_all { { "A", "spec.Named", { a = 1, old = true }, { revision = 0 } },
        { "A", "spec.Named", { a = 1, b = 2, c = 3 }, { revision = 0 } } }
      rig:run()
      assert.same({ b = 1, a = 7, c = 8 }, seen()[1].payload)
      assert.same({ b = 1, a = 2, c = 3 }, seen()[2].payload)
    end)

    it("gives an event that is appended without a revision the newest one", function()
      start(named(RENAMING))
      rig:append("A", "spec.Named", { name = { first = "x" } })
      assert.equal(2, rig:value "SELECT event_revision AS value FROM EVENT_STORE")
    end)

    it("changes no stored event", function()
      start(named(RENAMING))
      rig:append("A", "spec.Named", { n = "x" }, { revision = 0 })
      rig:run()
      local row = rig:query("SELECT event_revision AS revision, payload FROM EVENT_STORE")[1]
      assert.same({ revision = 0, payload = '{"n":"x"}' }, row)
    end)

    it("lets an event of a newer revision wait, without a handler and without an attempt", function()
      start(named "revision = 1", { retry = { attempts = 1, delay = "1s" }, log = { level = "warn" } })
      rig:append_all { { "A", "spec.Named", { from = "later" }, { revision = 2 } }, { "A", "spec.Named", { x = 1 } },
        { "B", "spec.Named", { x = 2 } } }
      rig:run()
      assert.matches("update the scripts; no attempt is counted, it is looked at again in %d", rig:log())
      for _ = 1, 4 do
        rig.host:advance "1h"
        rig:run()
      end
      assert.same({ "1 A FAILED", "2 A WAITING" }, rig:waiting "watch")
      assert.matches("^revision: newer revision: spec.Named is stored with revision 2, and this script knows up to 1",
        rig:undelivered()[1].reason)
      assert.is_nil(rig.host:read("watch", "A"))
      assert.equal("RUNNING", rig:state "watch")
      rig:script(named "revision = 2, upcast = { [1] = { default = { y = 1 } } }")
      rig:reopen()
      rig.host:advance "6h"
      rig:run()
      assert.same({ { from = "later" }, { x = 1, y = 1 } }, { seen()[1].payload, seen()[2].payload })
      assert.same({}, rig:undelivered())
    end)

    it("says in status that an event of a newer revision holds a consumer with keys, and not its function", function()
      start(([[return { moontide.event_type "spec.Named" { revision = 1 }, moontide.projection "keyed" {
        key = moontide.by "x", on = { ["spec.Named"] = function() end } } }]]), { retry = { attempts = 1 } })
      rig:append_all { { "A", "spec.Named", { x = "1" }, { revision = 2 } }, { "B", "spec.Named", { x = "2" } } }
      rig:run()
      local problem = rig.app:json("status").problems[1]
      assert.matches("^projection 'keyed' cannot read 1 message and applies nothing behind in %d+ partitions?: newer "
        .. "revision: spec.Named is stored with revision 2, and this script knows up to 1 %(.-:%d+%); it waits for a "
        .. "script that knows it: update the scripts, or `moontide dead%-letters delete 1 %-%-consumer keyed` skips "
        .. "the message$", problem)
    end)

    it("fails an event that is older than its first step", function()
      start(named "revision = 1", { retry = { attempts = 1 }, on_error = "dead_letter" })
      rig:append("A", "spec.Named", {}, { revision = 0 })
      rig:run()
      assert.matches("^revision: spec.Named is stored with revision 0, and the first step of its upcast starts from 1",
        rig:undelivered()[1].reason)
    end)

    it("applies a corrected step to a dead letter, which keeps the stored bytes", function()
      local function step(body)
        return named("revision = 1, upcast = { [0] = function(payload) " .. body .. " end }")
      end
      start(step "error 'wrong step'", { retry = { attempts = 1 }, on_error = "dead_letter" })
      rig:append("A", "spec.Named", { n = "x" }, { revision = 0 })
      rig:run()
      assert.matches("handlers/spec.lua:%d+: wrong step", rig:undelivered()[1].reason)
      assert.matches([["revision":0]], rig:copy(1), 1, true)
      assert.matches([[{\"n\":\"x\"}]], rig:copy(1), 1, true)
      rig:script(step "payload.n = payload.n .. '!'")
      rig:reopen()
      rig.host:retry { all = true }
      rig:run()
      assert.same({ n = "x!" }, seen()[1].payload)
    end)

    it("is used by a rebuild", function()
      start(named(RENAMING))
      rig:append("A", "spec.Named", { n = "x" }, { revision = 0 })
      rig:run()
      local before = seen()
      rig.host:rebuild "watch"
      rig:run()
      assert.same(before, seen())
    end)

    it("fails a message of which a step makes no payload, and says what it made", function()
      for result, shown in pairs { ["payload.n == 1"] = "true (a boolean)", ["print"] = "a function",
        ["moontide.delete"] = "a userdata", ["moontide.reject 'no'"] = "a table",
        ["coroutine.create(print)"] = "a thread" } do
        start(named(("revision = 1, upcast = { [0] = function(payload) return %s end }"):format(result)),
          { retry = { attempts = 1 } })
        rig:append("A", "spec.Named", { n = 1 }, { revision = 0 })
        rig:run()
        assert.matches(('handlers/spec.lua:3: event type "spec.Named": upcast[0] returned %s; change the payload')
          :format(shown), rig:undelivered()[1].reason, 1, true)
        rig:close()
        rig = nil
      end
    end)

    it("stops a step that runs for ever, like a handler", function()
      start(named "revision = 1, upcast = { [0] = function() while true do end end }",
        { retry = { attempts = 1 }, on_error = "dead_letter", limits = { time = "1s" } })
      rig:append("A", "spec.Named", {}, { revision = 0 })
      rig:run()
      assert.matches("^timeout:", rig:undelivered()[1].reason)
    end)

    describe("that is split", function()
      it("is handed over part by part, which share position and are numbered", function()
        start(SPLITTING)
        rig:append("A", "spec.Changed", { name = "x", places = { "here", "there", "here" } }, { revision = 0 })
        rig:run()
        assert.same({ name = "x", part = 1, position = 1 }, rig.host:read("names", "A"))
        assert.same({ here = { parts = { 2, 4 } }, there = { parts = { 3 } } }, rig.host:read "places")
      end)

      it("leaves consumers alone that no part is for", function()
        start(SPLITTING)
        rig:append_all { { "A", "spec.Changed", { places = { "here" } }, { revision = 0 } },
          { "B", "spec.Changed", { whatever = true } }, { "C", "spec.Changed", {}, { revision = 0 } } }
        rig:run()
        assert.same({}, rig.host:read "names")
        assert.same({ here = { parts = { 1 } } }, rig.host:read "places")
        assert.same({}, rig:undelivered())
        assert.equal(3, (rig:checkpoints "names"))
      end)

      it("waits with a part of a newer revision than the script knows, like an event that is stored so", function()
        local function splitting(moved)
          return ([[return {
            moontide.event_type "spec.Moved" { %s },
            moontide.event_type "spec.Changed" { revision = 1, into = { "spec.Moved" },
              upcast = { [0] = function(payload)
                return moontide.split { moontide.event("spec.Moved", payload, { revision = 2 }) }
              end } },
            moontide.projection "whole" { on = { ["spec.Moved"] = function(state, event)
              state.moved = event.revision
            end } },
            moontide.projection "places" { key = moontide.by "to", on = { ["spec.Moved"] = function(state, event)
              state.moved = event.revision
            end } } }]]):format(moved)
        end
        start(splitting "revision = 1", { retry = { attempts = 1, delay = "1s" }, on_error = "dead_letter" })
        rig:append("A", "spec.Changed", { to = "here" }, { revision = 0 })
        rig:run()
        for _ = 1, 4 do
          rig.host:advance "1h"
          rig:run()
        end
        assert.same({ "1 A FAILED" }, rig:waiting "whole")
        assert.equal(kit.partitions, #rig:undelivered "places") -- whose key could not be asked for
        for _, row in ipairs(rig:undelivered()) do
          assert.equal("FAILED", row.status)
          assert.equal(0, row.failures)
          assert.matches("^revision: newer revision: spec.Moved comes out of a split with revision 2, and this script "
            .. "knows up to 1 %(.-handlers/spec.lua:%d+%); it waits for a script that knows it", row.reason)
        end
        rig:script(splitting "revision = 2, upcast = { [1] = function() end }")
        rig:reopen()
        rig.host:advance "6h"
        rig:run()
        assert.same({ moved = 2 }, rig.host:read("whole", "A"))
        assert.same({ moved = 2 }, rig.host:read("places", "here"))
        assert.same({}, rig:undelivered())
      end)

      it("fails as one for a key", function()
        start(SPLITTING, { retry = { attempts = 1 }, on_error = "dead_letter" })
        rig:append("A", "spec.Changed", { places = { "nowhere", "here", "nowhere" } }, { revision = 0 })
        rig:run()
        assert.same({ here = { parts = { 2 } } }, rig.host:read "places")
        local rows = rig:undelivered()
        assert.equal(1, #rows)
        assert.equal("nowhere", rows[1].key)
      end)
    end)

    describe("with fields", function()
      local FIELDS = [[return { moontide.event_type "spec.Placed" { revision = 1, fields = {
        items = t.list(t.record { sku = t.text(), price = t.decimal(6, 2) }), colours = t.set(t.text()),
        note = t.text { optional = true }, at = t.timestamp { optional = true } } } }]]

      local function refused(payload)
        local good, problem = pcall(rig.append, rig, "A", "spec.Placed", payload)
        assert.is_false(good)
        assert.equal(0, rig:value "SELECT count(*) AS value FROM EVENT_STORE")
        return problem
      end

      it("takes a payload of its shape, and others as they are", function()
        start(FIELDS)
        rig:append("A", "spec.Placed", { items = { { sku = "a", price = "1.50" } }, colours = { "red" }, note = "n" })
        rig:append("A", "spec.Placed", { anything = 1 }, { revision = 0 })
        rig:append("A", "spec.Other", { anything = 1 })
        assert.equal(3, rig:value "SELECT count(*) AS value FROM EVENT_STORE")
      end)

      it("names the path of what is wrong", function()
        start(FIELDS)
        local array = require("moontide").array
        local function placed(price)
          return { items = array { { sku = "a", price = "1" }, { sku = "b", price = price } }, colours = array() }
        end
        assert.matches("payload.items[2].price: expected a decimal as a string, got 3", refused(placed(3)), 1, true)
        assert.matches("payload.items[2].price", refused(placed(nil)), 1, true)
        local payload = placed "1"
        payload.colours = array { "red", "blue", "red" }
        assert.matches("payload.colours[3] is there as item 1 already", refused(payload), 1, true)
        payload.colours = { a = 1 }
        assert.matches("payload.colours: expected a list, got an object", refused(payload), 1, true)
        payload = placed "1"
        payload.nota = "x"
        assert.matches('payload has no field nota; did you mean "note"?', refused(payload), 1, true)
        assert.matches('event type "spec.Placed" (handlers/spec.lua:3) says what it is', refused(payload), 1, true)
        payload = placed "1"
        payload.at = "yesterday"
        assert.matches("payload.at: expected an RFC 3339 time", refused(payload), 1, true)
      end)

      it("takes times as fine as a nanosecond, keeps them as they are, and no finer ones", function()
        start(FIELDS)
        local array = require("moontide").array
        local function at(time) return { items = array(), colours = array(), at = time } end
        for _, time in ipairs { "2024-02-29T23:59:59.123456789Z", "2024-02-29T23:59:59.1234567+01:00",
          "2024-02-29T23:59:59.5z", "2024-02-29T23:59:59Z" } do
          rig:append("A", "spec.Placed", at(time))
        end
        assert.same({ "2024-02-29T23:59:59.123456789Z", "2024-02-29T23:59:59.1234567+01:00" },
          { rig.app:events()[1].payload.at, rig.app:events()[2].payload.at })
        for _, time in ipairs { "2024-02-29T23:59:59.1234567891Z", "2024-02-29T23:59:59.123456789",
          "2024-02-30T23:59:59.123456789Z", "2024-02-29T23:59:59.Z", "2024-02-29T23:59:59.123.456789Z", 5 } do
          local good, problem = pcall(rig.append, rig, "A", "spec.Placed", at(time))
          assert.is_false(good)
          assert.matches("payload.at: expected an RFC 3339 time, with at most nine digits behind the point, got",
            problem, 1, true)
        end
        assert.equal(4, rig:value "SELECT count(*) AS value FROM EVENT_STORE")
      end)

      it("takes no field for another one that a NUL cuts short, and tells sets of any values", function()
        start([[return moontide.event_type "spec.Placed" { fields = { note = t.text { optional = true },
          places = t.set(t.record { x = t.integer() }), numbers = t.set(t.integer()) } }]])
        local array = require("moontide").array
        local function placed(x, number)
          return { places = array { { x = 1 }, { x = x } }, numbers = array { 2 ^ 53, number } }
        end
        rig:append("A", "spec.Placed", placed(2, 1))
        local payload = placed(2, 1)
        payload["note\0d"] = "x"
        local good, problem = pcall(rig.append, rig, "A", "spec.Placed", payload)
        assert.is_false(good)
        assert.matches("payload has no field note?d", problem, 1, true)
        for path, wrong in pairs { ["places[2]"] = placed(1, 1), ["numbers[2]"] = placed(2, 2 ^ 53) } do
          good, problem = pcall(rig.append, rig, "A", "spec.Placed", wrong)
          assert.is_false(good)
          assert.matches(("payload.%s is there as item 1 already"):format(path), problem, 1, true)
        end
        local file = [[{"aggregate_type":"spec.thing","aggregate_id":"A","type":"spec.Placed",]]
          .. [["payload":{"places":[],"numbers":[%s]}}]]
        problem = rig.app:refuses(file:format "9223372036854775807,9223372036854775807", 1)
        assert.matches("payload.numbers[2] is there as item 1 already", problem, 1, true)
      end)

      it("looks at a set of any size in the time that reading it takes", function()
        start(FIELDS, { limits = { time = "20s" } }) -- a look at each pair would take far longer
        local colours = require("moontide").array()
        for i = 1, 200000 do colours[i] = "c" .. i end
        rig:append("A", "spec.Placed", { items = require("moontide").array(), colours = colours })
        assert.equal(1, rig:value "SELECT count(*) AS value FROM EVENT_STORE")
      end)

      it("holds for `moontide append`, which names the line", function()
        start(FIELDS)
        local good = { aggregate_type = "spec.thing", type = "spec.Placed", payload = '{"items":[],"colours":[]}' }
        local bad = { aggregate_type = "spec.thing", type = "spec.Placed", payload = '{"items":[]}' }
        local problem = rig.app:refuses({ good, bad }, 1)
        assert.matches("standard input:2: payload.colours: missing; expected a list", problem, 1, true)
        assert.matches("nothing was appended", problem, 1, true)
        rig.app:append { good }
        assert.equal(1, rig:value "SELECT event_revision AS value FROM EVENT_STORE")
      end)
    end)
  end)
end)
