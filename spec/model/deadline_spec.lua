-- Deadlines of sagas: set in the saga's transaction, fired once by who holds the
-- saga's partition, and of no effect on any other instance of its id.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local moontide = require "moontide"

-- An order that is to be paid in time. What its handlers saw is emitted.
local ORDER = [[
  local function note(saga, ctx, what, more)
    local seen = more or {}
    seen.what = what
    ctx:emit("spec.Seen", seen, { key = saga.id })
  end
  local MANY = 200 -- firings that a handler asks for, one at once after the other
  return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" }, %s
    initial = function(id) return { paid = 0, late = 0 } end,
    on = {
      ["spec.Placed"] = function(saga, event, ctx)
        note(saga, ctx, "placed")
        saga:deadline("payment", event.payload.within or "15m", event.payload.carry)
      end,
      ["spec.Moved"] = function(saga, event, ctx)
        saga:deadline("payment", event.payload.within)
      end,
      ["spec.Paid"] = function(saga, event, ctx)
        saga.state.paid = saga.state.paid + 1
        note(saga, ctx, "paid")
        if event.payload.fails then error "refused" end
        saga:cancel "payment"
      end,
      ["spec.Closed"] = function(saga) saga:complete() end,
      ["payment"] = function(saga, event, ctx) note(saga, ctx, "event") end,
    },
    deadlines = {
      payment = function(saga, deadline, ctx)
        saga.state.late = saga.state.late + 1
        note(saga, ctx, "late", { name = deadline.name, carry = deadline.payload, attempt = ctx.attempt })
        local payload = deadline.payload or {}
        if payload.fails and ctx.attempt <= payload.fails then error "not yet" end
        if payload.gives_up then error(moontide.permanent "never") end
        if payload.again then saga:deadline("payment", "1m") end
        if payload.at_once and saga.state.late < MANY then
          saga:deadline(payload.name or "payment", payload.at_once, payload)
        end
        if payload.closes then saga:complete() end
      end,
      other = function(saga, deadline, ctx)
        note(saga, ctx, "other")
        saga.state.late = saga.state.late + 1
        if deadline.payload and saga.state.late < MANY then saga:deadline("payment", 0, deadline.payload) end
      end,
    } }]]

dialect.each(function(database)
  describe("a deadline", function()
    local rig

    local function start(more, settings)
      rig = kit.start(database, ORDER:format(more or ""), settings)
    end

    after_each(function() rig:close() end)

    local function place(id, payload)
      payload = payload or {}
      payload.order = id
      rig:append(id, "spec.Placed", payload)
    end

    local function send(id, event_type, payload)
      payload = payload or {}
      payload.order = id
      rig:append(id, event_type, payload)
    end

    local function seen()
      local list = {}
      for i, event in ipairs(rig.host:emitted "spec.Seen") do list[i] = event.key .. " " .. event.payload.what end
      return list
    end

    local function later(duration)
      rig.host:advance(duration)
      rig:run()
    end

    -- "saga name STATUS attempts"
    local function rows()
      local list = {}
      for i, row in ipairs(rig:query "SELECT * FROM SAGA_DEADLINES ORDER BY due_at, id") do
        list[i] = ("%s %s %s %d"):format(row.saga_id, row.name, row.status, row.attempts)
      end
      return list
    end

    local function state(id)
      local row = rig:query("SELECT * FROM SAGA_INSTANCES WHERE saga_id = ?", id)[1]
      return moontide.json.decode(row.state_json)
    end

    it("fires once, when it is due and not before", function()
      start()
      place "A"
      rig:run()
      later "14m"
      assert.same({ "A placed" }, seen())
      assert.same({ "A payment PENDING 0" }, rows())
      later "61s"
      assert.same({ "A placed", "A late" }, seen())
      assert.same({}, rows())
      later "1h"
      assert.same({ "A placed", "A late" }, seen())
      assert.equal(1, state("A").late)
    end)

    it("is not set by a handler that fails", function()
      start(nil, { on_error = "dead_letter", retry = { attempts = 1 } })
      rig:script(ORDER:format(""):gsub('event.payload.carry%)', 'event.payload.carry); error "no"', 1))
      rig:reopen()
      place "A"
      rig:run()
      assert.same({}, rows())
      assert.same({}, seen())
    end)

    it("is cancelled, and moved by setting it again", function()
      start()
      place "A"
      place "B"
      place "C"
      rig:run()
      send("A", "spec.Paid")
      send("B", "spec.Moved", { within = "1h" })
      rig:run()
      assert.same({ "C payment PENDING 0", "B payment PENDING 0" }, rows())
      later "16m"
      assert.same({ "A placed", "B placed", "C placed", "A paid", "C late" }, seen())
      later "45m"
      assert.same({ "A placed", "B placed", "C placed", "A paid", "C late", "B late" }, seen())
    end)

    it("is due at a point in time, too", function()
      start()
      place("A", { within = "2031-01-31T12:00:00Z" })
      rig:run()
      assert.match("^2031%-01%-31.12:00:00", rig:query("SELECT * FROM SAGA_DEADLINES")[1].due_at)
      assert.same({ "A payment PENDING 0" }, rows())
      place("B", { within = "2001-01-31T12:00:00Z" }) -- past: at once
      rig:run()
      assert.same({ "A placed", "B placed", "B late" }, seen())
    end)

    it("goes with its saga, also in the same page", function()
      start()
      place "A"
      place "B"
      rig:run()
      send("A", "spec.Closed")
      place "C"
      send("C", "spec.Closed")
      rig:run()
      assert.same({ "B payment PENDING 0" }, rows())
      later "1h"
      assert.same({ "A placed", "B placed", "C placed", "B late" }, seen())
    end)

    it("may complete its saga, which takes its other deadlines along", function()
      start()
      place("A", { carry = { closes = true } })
      rig:run()
      rig:query [[INSERT INTO SAGA_DEADLINES (id, saga_type, saga_id, name, instance_id, due_at, next_retry_at,
        partition_no) SELECT 'ffffffff-0000-7000-8000-000000000001', saga_type, saga_id, 'other', instance_id,
        due_at, next_retry_at, partition_no FROM SAGA_DEADLINES]]
      later "16m"
      assert.same({ "A placed", "A late" }, seen())
      assert.same({}, rows())
      assert.is_not_nil(rig:query("SELECT * FROM SAGA_INSTANCES")[1].completed_at)
    end)

    it("may set itself again while it fires", function()
      start()
      place("A", { carry = { again = true } })
      rig:run()
      local first = rig:query("SELECT * FROM SAGA_DEADLINES")[1].id
      later "16m"
      local second = rig:query("SELECT * FROM SAGA_DEADLINES")[1].id
      assert.are_not.equal(first, second)
      assert.same({ "A placed", "A late" }, seen())
      later "61s"
      assert.same({ "A placed", "A late", "A late" }, seen())
    end)

    it("that a deadline's handler sets is due a second later at the earliest, and said to be", function()
      start(nil, { log = { level = "warn" } })
      place("A", { carry = { at_once = 0 } })
      place("B", { carry = { at_once = "2001-01-31T12:00:00Z" } })
      place("C", { carry = { at_once = 0, name = "other" } })
      rig:run()
      later "16m"
      local late = state("A").late
      assert.is_true(late < 50)
      assert.is_true(state("B").late < 50)
      assert.is_true(state("C").late < 50)
      assert.equal(3, #rows())
      for id, name in pairs { A = "payment", B = "payment", C = "other" } do
        assert.matches(("deadline '%s' of saga %%p*%s%%p* was set by the handler of 'payment' to be due at once")
          :format(name, id), rig:log())
      end
      later "2s"
      assert.is_true(state("A").late > late)
    end)

    it("is told apart from an event of its name", function()
      start()
      place("A", { within = "1m", carry = { order = "A" } })
      rig:run()
      send("A", "payment", { order = "A" })
      rig:run()
      assert.same({ "A placed", "A event" }, seen())
      later "61s"
      assert.same({ "A placed", "A event", "A late" }, seen())
    end)

    it("brings its name, its payload and where it comes from", function()
      start()
      place("A", { carry = { amount = 3, list = moontide.array {}, none = moontide.null } })
      rig:run()
      later "16m"
      local placed, late = unpack(rig.host:emitted "spec.Seen")
      assert.same({ what = "late", name = "payment", attempt = 1,
        carry = { amount = 3, list = {}, none = moontide.null } }, late.payload)
      assert.equal(placed.metadata.correlation_id, late.metadata.correlation_id)
      assert.are_not.equal(placed.metadata.causation_id, late.metadata.causation_id)
    end)

    it("does nothing to a later instance of its saga's id, however the first one went", function()
      start()
      place "A"
      rig:run()
      rig:query "DELETE FROM SAGA_INSTANCES" -- by hand, which no host does
      rig:query "UPDATE SAGA_DEADLINES SET name = 'other'" -- or it were moved
      place("A", { within = "2h" })
      rig:run()
      assert.same({ "A other PENDING 0", "A payment PENDING 0" }, rows())
      later "16m"
      assert.same({ "A placed", "A placed" }, seen())
      assert.same({ "A payment PENDING 0" }, rows())
      assert.equal(0, state("A").late)
    end)

    it("comes after the messages that were there when it was found due", function()
      start()
      place "A"
      place "B"
      rig:run()
      rig.host:advance "16m"
      send("A", "spec.Paid")
      rig:run()
      assert.same({ "A placed", "B placed", "A paid", "B late" }, seen())
    end)

    it("waits while a message of its saga does", function()
      start(nil, { retry = { attempts = 3, delay = "1h", factor = 1, jitter = 0 } })
      place "A"
      place "B"
      rig:run()
      send("A", "spec.Paid", { fails = true })
      rig:run()
      later "16m"
      assert.same({ "A placed", "B placed", "B late" }, seen())
      assert.same({ "A payment PENDING 0" }, rows())
      assert.match("waits for a message of its saga", rig:query("SELECT * FROM SAGA_DEADLINES")[1].failure_reason)
      later "6s" -- held once more, which is no failure either
      assert.same({ "A payment PENDING 0" }, rows())
      rig:query "UPDATE SAGA_DEADLINES SET status = 'FAILED'"
      assert.equal(0, rig.app:json("status").deadlines[1].failed)
      rig:query "UPDATE SAGA_DEADLINES SET attempts = 1"
      assert.equal(1, rig.app:json("status").deadlines[1].failed)
    end)

    it("waits while its partition does for a message whose saga cannot be told", function()
      start(nil, { retry = { attempts = 1 }, on_error = "dead_letter_key" })
      place "A"
      rig:run()
      rig:append_all { { "X", "spec.Paid", {} }, { "A", "spec.Paid", { order = "A" } } }
      rig:run()
      assert.same({ "A placed" }, seen())
      later "16m"
      later "6s"
      assert.same({ "A placed" }, seen())
      assert.same({ "A payment PENDING 0" }, rows())
      assert.match("a message whose saga cannot be told", rig:query("SELECT * FROM SAGA_DEADLINES")[1].failure_reason)
      rig.app:ok("dead-letters", "delete", "2")
      later "6s"
      assert.same({ "A placed", "A paid" }, seen())
      assert.same({}, rows())
    end)

    it("fires in the order of due times, whatever the transaction takes", function()
      start(nil, { batch = 7 })
      local list, wanted = {}, {}
      for i = 1, 30 do
        local id = ("S%02d"):format(i)
        list[i] = { id, "spec.Placed", { order = id, within = 1000 - 10 * i } }
      end
      for i = 30, 1, -1 do wanted[#wanted + 1] = ("S%02d late"):format(i) end
      rig:append_all(list)
      rig:run()
      later "1h"
      local found = {}
      for _, text in ipairs(seen()) do
        if text:find "late" then found[#found + 1] = text end
      end
      assert.same(wanted, found)
    end)

    describe("whose handler fails", function()
      local SOON = { attempts = 3, delay = "1m", factor = 2, jitter = 0 }

      it("is tried again by the saga's policy, and leaves nothing of the attempt", function()
        start(nil, { retry = SOON })
        place("A", { carry = { fails = 2 } })
        place "B"
        rig:run()
        later "16m"
        assert.same({ "A placed", "B placed", "B late" }, seen())
        assert.same({ "A payment FAILED 1" }, rows())
        assert.match("spec.lua:%d+: not yet", rig:query("SELECT * FROM SAGA_DEADLINES")[1].failure_reason)
        assert.equal(0, state("A").late)
        later "61s"
        assert.same({ "A payment FAILED 2" }, rows())
        later "61s"
        assert.same({ "A payment FAILED 2" }, rows())
        later "61s"
        assert.same({}, rows())
        assert.equal(1, state("A").late)
        assert.equal(3, rig.host:emitted("spec.Seen")[4].payload.attempt)
      end)

      it("is told by status, when it is tried again and why it failed", function()
        start(nil, { retry = SOON })
        place("A", { carry = { fails = 99 } })
        place "B"
        rig:run()
        local function status() return rig.app:json("status") end
        assert.same(moontide.null, status().deadlines[1].last_error)
        assert.is_nil(rig.app:ok("status"):find("last error", 1, true))
        later "16m"
        local report = status()
        local last = report.deadlines[1].last_error
        assert.same({ "A", "payment", "FAILED", 1 }, { last.saga_id, last.name, last.status, last.attempts })
        assert.match("spec.lua:%d+: not yet", last.reason)
        assert.is_string(last.next_retry_at)
        assert.match("^saga 'order' has 1 failed deadline, the last of them 'payment' of saga 'A', .* after 1 attempt: "
          .. ".*spec.lua:%d+: not yet.*; `moontide deadlines list order %-%-status FAILED` lists them$",
          report.problems[1])
        assert.match("next at +last error\norder .* error: .*spec.lua", rig.app:ok("status"))
        for _ = 1, 6 do later "5m" end
        report = status()
        last = report.deadlines[1].last_error
        assert.same({ "A", "DEAD_LETTER", 3, moontide.null },
          { last.saga_id, last.status, last.attempts, last.next_retry_at })
        assert.equal(1, #report.problems)
        assert.match("has 1 dead deadline, the last of them 'payment' of saga 'A': ", report.problems[1], 1, true)
      end)

      it("is a dead letter in the end, and what follows is applied", function()
        start(nil, { retry = SOON })
        place("A", { carry = { fails = 99 } })
        rig:run()
        for _ = 1, 6 do later "5m" end
        assert.same({ "A payment DEAD_LETTER 3" }, rows())
        assert.is_nil(rig:query("SELECT * FROM SAGA_DEADLINES")[1].next_retry_at)
        send("A", "spec.Paid", { fails = false })
        rig:run()
        assert.same({}, rows()) -- cancelled
        assert.equal("RUNNING", rig:state "order")
      end)

      it("is one at once when it says that it fails for good", function()
        start(nil, { retry = SOON })
        place("A", { carry = { gives_up = true } })
        rig:run()
        later "16m"
        assert.same({ "A payment DEAD_LETTER 1" }, rows())
      end)

      it("is one when the saga has no handler for it any more", function()
        start(nil, { retry = { attempts = 1 } })
        place "A"
        rig:run()
        rig:query "UPDATE SAGA_DEADLINES SET name = 'gone'"
        later "16m"
        assert.same({ "A gone DEAD_LETTER 1" }, rows())
        assert.match("no handler for its deadline 'gone'",
          rig:query("SELECT * FROM SAGA_DEADLINES")[1].failure_reason)
      end)
    end)

    it("of a paused saga stays, and fires once that is resumed", function()
      start()
      place "A"
      rig:run()
      rig.host:pause "order"
      later "1h"
      assert.same({ "A placed" }, seen())
      assert.same({ "A payment PENDING 0" }, rows())
      rig.host:resume "order"
      rig:run()
      assert.same({ "A placed", "A late" }, seen())
    end)

    it("survives a start of the host, and fires what came due meanwhile", function()
      start()
      place "A"
      rig:run()
      rig.host:advance "1h"
      rig:restart()
      rig:run()
      assert.same({ "A placed", "A late" }, seen())
    end)
  end)
end)
