-- Process managers: a saga per id, whose state, effects and checkpoint are one
-- transaction.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local moontide = require "moontide"

-- An order: begun by Placed, worked on by Paid, ended by Shipped.
local ORDER = [[
  return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" }, %s
    initial = function(id) return { id = id, steps = moontide.array() } end,
    on = {
      ["spec.Placed"] = function(saga, event, ctx)
        table.insert(saga.state.steps, "placed")
        ctx:emit("spec.Seen", { step = "placed" }, { key = saga.id })
      end,
      ["spec.Paid"] = function(saga, event, ctx)
        table.insert(saga.state.steps, "paid")
        ctx:emit("spec.Seen", { step = "paid" }, { key = saga.id })
        if event.payload.fails then error "refused" end
      end,
      ["spec.Shipped"] = function(saga) saga:complete() end,
    } }]]

dialect.each(function(database)
  describe("a saga", function()
    local rig

    local function start(handlers, settings)
      rig = kit.start(database, handlers, settings)
    end

    after_each(function() rig:close() end)

    local function order(id, event_type, payload, options)
      payload = payload or {}
      payload.order = id
      return { id, event_type, payload, options }
    end

    local function emitted()
      local list = {}
      for i, event in ipairs(rig.host:emitted "spec.Seen") do
        list[i] = event.key .. " " .. event.payload.step
      end
      return list
    end

    -- The stored sagas: id -> { state, completed, version, id }.
    local function sagas()
      local found = {}
      for _, row in ipairs(rig:query "SELECT * FROM SAGA_INSTANCES") do
        found[row.saga_id] = { state = moontide.json.decode(row.state_json), completed = row.completed_at ~= nil,
          version = row.version, id = row.id, type = row.saga_type }
      end
      return found
    end

    it("keeps a state per id, and causes effects", function()
      start(ORDER:format "")
      rig:append_all { order("A", "spec.Placed"), order("B", "spec.Placed"), order("A", "spec.Paid") }
      rig:run()
      local found = sagas()
      assert.same({ id = "A", steps = { "placed", "paid" } }, found.A.state)
      assert.same({ id = "B", steps = { "placed" } }, found.B.state)
      assert.equal("order", found.A.type)
      assert.is_false(found.A.completed)
      assert.same({ "A placed", "B placed", "A paid" }, emitted())
    end)

    it("is saved once for a page, and each save has the next version", function()
      start(ORDER:format "")
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Paid"), order("A", "spec.Paid") }
      rig:run()
      local first = sagas().A
      rig:append_all { order("A", "spec.Paid"), order("A", "spec.Paid") }
      rig:reopen() -- or its next page may be a smaller one, where the first took long
      rig:run()
      local second = sagas().A
      assert.same({ "placed", "paid", "paid", "paid", "paid" }, second.state.steps)
      assert.equal(first.id, second.id)
      assert.equal(first.version + 1, second.version)
    end)

    it("begins at a random version, as another instance each time", function()
      start(ORDER:format "")
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      local first = sagas().A
      rig:query "DELETE FROM SAGA_INSTANCES"
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      local second = sagas().A
      assert.are_not.equal(first.id, second.id)
      assert.are_not.equal(first.version, second.version)
    end)

    it("does nothing twice, also when an answer is lost or the host starts anew", function()
      start(ORDER:format "")
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Paid") }
      rig:redeliver()
      rig:append("A", "spec.Paid", { order = "A" })
      rig:restart()
      rig:run()
      assert.same({ "placed", "paid", "paid" }, sagas().A.state.steps)
      assert.same({ "A placed", "A paid", "A paid" }, emitted())
    end)

    it("applies a type that begins one to a live one by its handler", function()
      start(ORDER:format "")
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Placed") }
      rig:run()
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      assert.same({ "placed", "placed", "placed" }, sagas().A.state.steps)
    end)

    it("that is complete takes no event any more, in the same page and later", function()
      start(ORDER:format "")
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Shipped"), order("A", "spec.Paid"),
        order("A", "spec.Placed") }
      rig:run()
      rig:append("A", "spec.Paid", { order = "A" })
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      local found = sagas().A
      assert.same({ "placed" }, found.state.steps)
      assert.is_true(found.completed)
      assert.same({}, rig:undelivered "order")
      assert.same({ "A placed" }, emitted())
    end)

    describe("for an event that begins none and finds none", function()
      it("does nothing, unless it says otherwise", function()
        start(ORDER:format "")
        rig:append_all { order("A", "spec.Paid"), order("A", "spec.Shipped") }
        rig:run()
        assert.same({}, sagas())
        assert.same({}, emitted())
        assert.same({}, rig:undelivered "order")
      end)

      it("has it lie dead at once, whatever the policy for failures is", function()
        start(ORDER:format 'unknown = "dead_letter", on_error = "halt",')
        rig:append_all { order("A", "spec.Paid"), order("B", "spec.Placed") }
        rig:run()
        local rows = rig:undelivered "order"
        assert.equal(1, #rows)
        assert.equal("DEAD_LETTER", rows[1].status)
        assert.equal(1, rows[1].failures)
        assert.matches("unknown: handlers/spec.lua:3: there is no saga 'A' to take spec.Paid", rows[1].reason, 1, true)
        assert.same({ "B placed" }, emitted())
      end)

      it("counts it as a failed attempt, which may meet its saga yet", function()
        start(ORDER:format 'unknown = "error", retry = { attempts = 3, delay = "1s" },')
        rig:append("A", "spec.Paid", { order = "A" })
        rig:append("A", "spec.Placed", { order = "A" })
        rig:run()
        local rows = rig:undelivered "order"
        assert.matches('unknown = "error"', rows[1].reason, 1, true)
        assert.equal("FAILED", rows[1].status)
      end)
    end)

    it("leaves nothing of an event that fails, and goes on from what was before", function()
      start(ORDER:format 'retry = { attempts = 1 }, on_error = "dead_letter",')
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Paid"), order("A", "spec.Paid", { fails = true }),
        order("A", "spec.Paid"), order("B", "spec.Placed") }
      rig:run()
      assert.same({ "placed", "paid", "paid" }, sagas().A.state.steps)
      assert.same({ "A placed", "A paid", "A paid", "B placed" }, emitted())
      assert.equal(3, rig:undelivered("order")[1].position)
    end)

    it("has no deadline of an event that failed, and keeps the one from before", function()
      start([[return {
        moontide.event_type "spec.Seen" { fields = { n = t.integer() } },
        moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          deadlines = { late = function() end, soon = function() end },
          on = { ["spec.Placed"] = function(saga, event, ctx)
            saga:deadline("late", 1000, { n = event.payload.n })
            if event.payload.fails then
              saga:deadline("soon", 10)
              saga:complete()
              ctx:emit("spec.Seen", { n = "refused after the handler" })
            end
          end } } }]])
      rig:append_all { order("A", "spec.Placed", { n = 1 }), order("A", "spec.Placed", { n = 2, fails = true }) }
      rig:run()
      assert.same({ { name = "late", payload_json = '{"n":1}' } },
        rig:query "SELECT name, payload_json FROM SAGA_DEADLINES")
      assert.is_false(sagas().A.completed)
    end)

    it("asks for nothing inside a ctx:try that failed", function()
      start [[
        return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          deadlines = { pay = function() end, ship = function() end, call = function() end },
          on = {
            ["spec.Placed"] = function(saga, event, ctx)
              saga:deadline("pay", "1h", { from = "before" })
              ctx:try(function()
                saga:deadline("pay", "2h", { from = "inside" })
                saga:deadline("ship", "2h")
                error "undo"
              end)
              ctx:try(function() saga:deadline("call", "3h") end)
            end,
            ["spec.Paid"] = function(saga, event, ctx)
              ctx:try(function() saga:cancel "pay" saga:complete() error "undo" end)
              saga:cancel "call"
            end } }]]
      local function deadlines()
        return rig:query "SELECT name AS name, payload_json AS payload FROM SAGA_DEADLINES ORDER BY name"
      end
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      assert.same({ { name = "call" }, { name = "pay", payload = '{"from":"before"}' } }, deadlines())
      rig:append("A", "spec.Paid", { order = "A" })
      rig:run()
      assert.same({ { name = "pay", payload = '{"from":"before"}' } }, deadlines())
      assert.is_false(sagas().A.completed)
      assert.same({}, rig:undelivered())
    end)

    it("that fails with its first event does not come to be", function()
      start((ORDER:gsub('"spec.Placed" },', '"spec.Paid" },')):format
        'retry = { attempts = 1 }, on_error = "dead_letter",')
      rig:append_all { order("A", "spec.Paid", { fails = true }), order("B", "spec.Paid") }
      rig:run()
      assert.is_nil(sagas().A)
      assert.same({ "paid" }, sagas().B.state.steps)
    end)

    it("holds back the later events of its id while one is tried again", function()
      start([[
        return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 3, delay = "1s" },
          on = { ["spec.Placed"] = function(saga, event, ctx)
            if event.payload.until_attempt and ctx.attempt < event.payload.until_attempt then error "not yet" end
            saga.state.seen = (saga.state.seen or "") .. event.payload.n
          end } }]])
      rig:append_all { order("A", "spec.Placed", { n = 1, until_attempt = 2 }), order("A", "spec.Placed", { n = 2 }),
        order("B", "spec.Placed", { n = 3 }) }
      rig:run()
      assert.is_nil(sagas().A)
      assert.equal("3", sagas().B.state.seen)
      for _ = 1, 3 do
        rig.host:advance "1m"
        rig:run()
      end
      assert.equal("12", sagas().A.state.seen)
    end)

    it("undoes what a failed event wrote by SQL, also what ran at once", function()
      start([[
        return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Placed"] = function(saga, event, ctx)
            ctx:upsert("notes", { name = saga.id }, { number = moontide.add(1) })
            if event.payload.at_once then
              saga.state.count = ctx:update("UPDATE notes SET number = number + 10 WHERE name = ?", saga.id)
            end
            if event.payload.fails then error "refused" end
          end } }]])
      rig.app.db:execute(rig.app.db:ddl "CREATE TABLE notes (name TEXT NOT NULL PRIMARY KEY, number INTEGER NOT NULL)")
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Placed", { fails = true }),
        order("A", "spec.Placed", { at_once = true, fails = true }), order("A", "spec.Placed", { at_once = true }) }
      rig:run()
      assert.same({ { name = "A", number = 12 } }, rig:query "SELECT name, number FROM notes")
      assert.equal(1, sagas().A.state.count)
    end)

    it("fails at what is wrong with an emitted event, and keeps its state", function()
      start([[return {
        moontide.event_type "spec.Seen" { fields = { n = t.integer() } },
        moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Placed"] = function(saga, event, ctx)
            saga.state.n = event.payload.n
            ctx:emit("spec.Seen", { n = event.payload.n })
          end } } }]])
      rig:append_all { order("A", "spec.Placed", { n = 1 }), order("A", "spec.Placed", { n = "x" }) }
      rig:run()
      assert.equal(1, sagas().A.state.n)
      assert.matches("spec.Seen", rig:undelivered("order")[1].reason, 1, true)
      assert.equal(1, #rig.host:emitted "spec.Seen")
    end)

    it("keeps every kind of value exactly, up to the limit", function()
      start([[
        return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Placed"] = function(saga, event) saga.state = event.payload end } }]],
        { limits = { payload = "1MB" } })
      local payload = { list = moontide.array(), object = {}, null = moontide.null,
        nested = { { 1, { 2 } }, { a = {} } },
        big = 9007199254740993LL, text = "é\0\"" , half = 0.1, ["false"] = false }
      rig:append_all { order("A", "spec.Placed", payload), order("A", "spec.Placed", payload) }
      rig:run()
      rig:append("A", "spec.Placed", payload)
      rig:run()
      local stored = rig:value "SELECT state_json AS value FROM SAGA_INSTANCES"
      assert.equal(moontide.json.encode(payload), stored)
    end)

    it("refuses a state that is too large, is no table or is no JSON, by the line of the handler", function()
      start([[
        return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Placed"] = function(saga, event)
            local bad = { large = ("x"):rep(5000), none = nil, code = print, returned = 1 }
            if event.payload.bad == "returned" then return bad.returned end
            if event.payload.bad == "none" then saga.state = nil
            elseif event.payload.bad then saga.state.value = bad[event.payload.bad]
            else saga.state.value = "good" end
          end } }]], { limits = { payload = "4KB" } })
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Placed", { bad = "large" }),
        order("A", "spec.Placed", { bad = "none" }), order("A", "spec.Placed", { bad = "code" }),
        order("A", "spec.Placed", { bad = "returned" }) }
      rig:run()
      local rows = rig:undelivered "order"
      assert.equal(4, #rows)
      assert.matches("limit: handlers/spec.lua:5: the saga's state has %d+ bytes; limits.payload allows 4000",
        rows[1].reason)
      assert.matches("state: handlers/spec.lua:5: saga.state is nil; it must be a table", rows[2].reason, 1, true)
      assert.matches("state: handlers/spec.lua:5: state.value", rows[3].reason, 1, true)
      assert.matches("a saga's handler changes saga.state and returns nothing", rows[4].reason, 1, true)
      assert.same({ value = "good" }, sagas().A.state)
    end)

    it("is refused what a saga does not have, and its use outside of its handler", function()
      start([[
        local kept
        return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          deadlines = { payment = function() end },
          on = { ["spec.Placed"] = function(saga, event)
            local what = event.payload.what
            if what == "read" then return saga.stat
            elseif what == "write" then saga.total = 1
            elseif what == "id" then saga.id = "other"
            elseif what == "name" then saga:deadline("paymnt", "1m")
            elseif what == "when" then saga:deadline("payment", "soon")
            elseif what == "far" then saga:deadline("payment", "9999999999d")
            elseif what == "farther" then saga:deadline("payment", "3651d")
            elseif what == "negative" then saga:deadline("payment", "-5s")
            elseif what == "nothing" then saga:deadline("payment")
            elseif what == "late" then saga:complete(); saga:deadline("payment", "1m")
            elseif what == "kept" then kept:complete() end
            kept = saga
          end } }]])
      local cases = {
        { "read", 'a saga has no "stat"; did you mean "state"?' },
        { "write", 'a saga takes no "total"; what it remembers is kept in saga.state' },
        { "id", "saga.id is read only; what the saga remembers is kept in saga.state" },
        { "name", 'saga:deadline: no deadline is called "paymnt"; did you mean "payment"?' },
        { "when", 'saga:deadline: "soon" is neither a duration like "30m" nor a time' },
        { "far", 'saga:deadline: "9999999999d" is more than ten years ahead' },
        { "farther", 'saga:deadline: "3651d" is more than ten years ahead' },
        { "negative", 'saga:deadline: "-5s" is negative; a deadline is 0 seconds to ten years ahead' },
        { "nothing", "saga:deadline takes when it is due second" },
        { "late", "the saga is complete, and its deadlines are gone" },
        { "kept", "a saga is only usable inside its handler" },
      }
      rig:append("0", "spec.Placed", { order = "0" })
      local list = {}
      for i, case in ipairs(cases) do list[i] = order(("S%d"):format(i), "spec.Placed", { what = case[1] }) end
      rig:append_all(list)
      rig:run()
      local rows = rig:undelivered "order"
      for i, case in ipairs(cases) do
        assert.matches(case[2], rows[i].reason, 1, true)
        assert.matches("handlers/spec.lua:%d+: ", rows[i].reason)
      end
    end)

    it("shares its topic with sagas of other types, each with states of its own", function()
      start([[
        local function count(saga) saga.state.n = (saga.state.n or 0) + 1 end
        return {
          moontide.saga "by-order" { id = moontide.by "order", starts = { "spec.Placed" },
            on = { ["spec.Placed"] = count, ["spec.Paid"] = count } },
          moontide.saga "by-customer" { id = moontide.by "customer", starts = { "spec.Placed" },
            on = { ["spec.Placed"] = count } },
          moontide.saga "by-both" { starts = { "spec.Paid" },
            id = function(event) return event.payload.order, event.payload.customer end,
            on = { ["spec.Paid"] = count } },
        }]])
      rig:append_all { order("A", "spec.Placed", { customer = "C" }), order("B", "spec.Placed", { customer = "C" }),
        order("A", "spec.Paid", { customer = "C" }) }
      rig:run()
      local found = {}
      for _, row in ipairs(rig:query "SELECT saga_type, saga_id, state_json FROM SAGA_INSTANCES") do
        found[row.saga_type .. " " .. row.saga_id] = moontide.json.decode(row.state_json).n
      end
      assert.same({ ["by-order A"] = 2, ["by-order B"] = 1, ["by-customer C"] = 2, ["by-both A"] = 1,
        ["by-both C"] = 1 }, found)
    end)

    it("passes over an event without an id, and fails at one that is none", function()
      start([[
        return moontide.saga "order" { id = function(event) return event.payload.id end, starts = { "spec.Placed" },
          retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Placed"] = function(saga) saga.state.seen = true end } }]])
      rig:append("A", "spec.Placed", {})
      rig:append("A", "spec.Placed", { id = {} })
      rig:append("A", "spec.Placed", { id = 7 })
      rig:run()
      assert.same({ seen = true }, sagas()["7"].state)
      local rows = rig:undelivered "order"
      assert.equal(2, rows[1].position)
      assert.equal(rows[#rows].position, rows[1].position)
      assert.matches("key: handlers/spec.lua:3: the key function returned a table", rows[1].reason, 1, true)
    end)

    it("tells ids apart byte by byte", function()
      start(ORDER:format "")
      local ids = { "a", "A", "a ", "ä", "é", "e\204\129", ("ü"):rep(255) }
      for _, id in ipairs(ids) do rig:append("x", "spec.Placed", { order = id }) end
      rig:run()
      local found = sagas()
      for _, id in ipairs(ids) do assert.equal(id, found[id] and found[id].state.id) end
    end)

    it("reads captured events, whose key it does not need", function()
      start(ORDER:format 'source = "event-capture",')
      rig.host:emit("spec.Placed", { order = "A" })
      rig.host:emit("spec.Paid", { order = "A" }, { key = "elsewhere" })
      rig:run()
      assert.same({ "placed", "paid" }, sagas().A.state.steps)
    end)

    it("takes the parts of a split event, each by its own handler", function()
      start([[return {
        moontide.event_type "spec.Both" { revision = 2, into = { "spec.Placed", "spec.Paid" },
          upcast = { [1] = function(payload)
          return moontide.split {
            moontide.event("spec.Placed", { order = payload.order }),
            moontide.event("spec.Paid", { order = payload.order }),
            moontide.event("spec.Paid", { order = payload.other, fails = payload.fails }) }
        end } },
        ]] .. ORDER:format('retry = { attempts = 1 }, on_error = "dead_letter",'):gsub("return", "", 1) .. "}")
      rig:append("x", "spec.Both", { order = "A", other = "A" }, { revision = 1 })
      rig:append("x", "spec.Both", { order = "B", other = "B", fails = true }, { revision = 1 })
      rig:append("x", "spec.Both", { order = "C", other = "D" }, { revision = 1 })
      rig:run()
      local found = sagas()
      assert.same({ "placed", "paid", "paid" }, found.A.state.steps)
      assert.is_nil(found.B)
      assert.same({ "placed", "paid" }, found.C.state.steps)
      assert.is_nil(found.D)
      assert.equal(1, #rig:undelivered "order")
    end)

    it("goes on after a changed script as it stood", function()
      start(ORDER:format "")
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      rig:script((ORDER:format(""):gsub('"paid"', '"paid anew"')))
      rig:reopen()
      rig:append("A", "spec.Paid", { order = "A" })
      rig:run()
      assert.same({ "placed", "paid anew" }, sagas().A.state.steps)
    end)

    for words, declared in pairs { ["and no event types"] = "", ["and event types"] =
      'moontide.event_type "spec.Other" { fields = {} },' } do
      it("has an event fail that waits for a handler of before, with a script without it " .. words, function()
        local text = "return { " .. declared .. ORDER:format('retry = { attempts = 2, delay = "1s" },'
          .. ' on_error = "dead_letter",'):gsub("return", "", 1) .. " }"
        start(text)
        rig:append("A", "spec.Placed", { order = "A" })
        rig:append("A", "spec.Paid", { order = "A", fails = true })
        rig:run()
        rig:script((text:gsub('%["spec.Paid"%]', '["spec.Unpaid"]')))
        rig:reopen()
        rig.host:advance "1m"
        rig:run()
        local row = rig:undelivered("order")[1]
        assert.equal("DEAD_LETTER", row.status)
        assert.matches("handlers/spec.lua:%d+: the saga has no handler for spec.Paid", row.reason)
        assert.same({ "placed" }, sagas().A.state.steps)
      end)
    end

    it("gives commands to aggregates and reads read models", function()
      start([[return {
        moontide.projection "sums" { on = { ["spec.Placed"] = function(state) state.n = (state.n or 0) + 1 end } },
        moontide.aggregate "spec.purse" { apply = { ["purse.Filled"] = function() end },
          commands = { fill = function(_, args) return { moontide.event("purse.Filled", args) } end } },
        moontide.saga "order" { id = moontide.by "order", starts = { "spec.Paid" },
          on = { ["spec.Paid"] = function(saga, event, ctx)
            local made = ctx:dispatch("spec.purse", saga.id, "fill", { by = 2 })
            saga.state.sequence = made[1].sequence
            saga.state.known = ctx:read("sums", "A").n
            saga.state.key = ctx.key
            assert(ctx.delivery_id)
          end } } }]])
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      local id = rig:append("B", "spec.Paid", { order = "O" }).id
      rig:run()
      assert.same({ sequence = 0, known = 1, key = "O" }, sagas().O.state)
      local stream = rig.app:events("--type", "purse.Filled")
      assert.equal(id, stream[1].metadata.causation_id)
    end)

    it("is run to the end of what the commands of its deadlines lead to", function()
      start([[return {
        moontide.projection "sums" { on = { ["purse.Filled"] = function(state) state.n = (state.n or 0) + 1 end } },
        moontide.aggregate "spec.purse" { apply = { ["purse.Filled"] = function() end },
          commands = { fill = function(_, args) return { moontide.event("purse.Filled", args) } end } },
        moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
          on = { ["spec.Placed"] = function(saga) saga:deadline("late", "15m") end,
            ["purse.Filled"] = function() end },
          deadlines = { late = function(saga, _, ctx) ctx:dispatch("spec.purse", saga.id, "fill", { by = 2 }) end },
        } }]])
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      rig.host:advance "16m"
      rig:run()
      assert.equal(1, rig.host:read("sums", "A").n)
    end)

    it("begins at the beginning, or, if it says so, with what comes from now on", function()
      start [[return moontide.projection "other" { on = { ["spec.Placed"] = function() end } }]]
      rig:append("A", "spec.Placed", { order = "A" })
      rig:script(ORDER:format 'start = "now",' .. "")
      rig:reopen()
      rig:append("B", "spec.Placed", { order = "B" })
      rig:run()
      assert.same({ "B placed" }, emitted())
    end)

    it("is deleted some time after its end, with its deadlines and steps, and its id may begin anew", function()
      local text = ORDER:format "deadlines = { late = function() end },"
      start(text:gsub('table.insert%(saga.state.steps, "placed"%)', '%0 saga:deadline("late", "1d")'),
        { sagas = { keep = "2d" } })
      rig:append_all { order("A", "spec.Placed"), order("B", "spec.Placed"), order("A", "spec.Shipped") }
      rig:run()
      local first = sagas().A
      assert.is_true(first.completed)
      assert.same({ { saga_id = "B" } }, rig:query "SELECT saga_id FROM SAGA_DEADLINES")
      -- what an operator, or a script of before, has left
      rig:query([[INSERT INTO SAGA_STEPS (id, instance_id, saga_type, saga_id, step_no, step_name, state, command_id,
        sent_at, updated_at) SELECT id, id, 'order', 'A', 1, 'x', 'DONE', id, completed_at, completed_at
        FROM SAGA_INSTANCES WHERE completed_at IS NOT NULL]])
      rig:query [[UPDATE SAGA_DEADLINES SET saga_id = 'A']]
      rig.host:advance "1h"
      rig:run()
      assert.same(first.version, sagas().A.version)
      rig.host:advance "47h"
      rig:run()
      local left = sagas()
      assert.is_nil(left.A)
      assert.is_false(left.B.completed)
      assert.same({}, rig:query "SELECT id FROM SAGA_DEADLINES")
      assert.same({}, rig:query "SELECT id FROM SAGA_STEPS")
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      local second = sagas().A
      assert.same({ "placed" }, second.state.steps)
      assert.is_false(second.completed)
      assert.are_not.equal(first.id, second.id)
    end)

    it("stays while a step of it awaits an answer", function()
      start(ORDER:format "", { sagas = { keep = "1m" } })
      rig:append_all { order("A", "spec.Placed"), order("A", "spec.Shipped") }
      rig:run()
      rig:query([[INSERT INTO SAGA_STEPS (id, instance_id, saga_type, saga_id, step_no, step_name, state, command_id,
        sent_at, updated_at, deadline_at) SELECT id, id, 'order', 'A', 1, 'x', 'SENT', id, completed_at, completed_at,
        completed_at FROM SAGA_INSTANCES]])
      rig.host:advance "2d"
      rig:run()
      assert.is_true(sagas().A.completed)
      rig:query "UPDATE SAGA_STEPS SET deadline_at = NULL"
      rig.host:advance "2m"
      rig:run()
      assert.same({}, sagas())
    end)

    it("is paused, resumed and shown like any consumer, and never rebuilt", function()
      start(ORDER:format "")
      rig.host:pause "order"
      rig:append("A", "spec.Placed", { order = "A" })
      rig:run()
      assert.same({}, emitted())
      rig.host:resume "order"
      rig:run()
      assert.same({ "A placed" }, emitted())
      assert.error_matches(function() rig.host:rebuild "order" end, "is never rebuilt")
      local shown = rig.app:json("status").consumers[1]
      assert.equal("saga", shown.type)
      assert.equal("RUNNING", shown.state)
      assert.equal(0, shown.lag.messages)
    end)
  end)
end)
