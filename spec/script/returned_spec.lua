-- What the functions of a script give back: what would be dropped in silence is
-- an error that says what and where.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local POLICY = 'start = "beginning", retry = { attempts = 1 }, on_error = "dead_letter",'

-- What each kind of declaration makes of an event, by the body of its handler.
local HANDLERS = {
  listener = [[moontide.listener "spec" { %s
    on = { ["spec.Put"] = function(event, ctx) %s end } }]],
  sql_projection = [[moontide.sql_projection "spec" { tables = "sql/t.sql", %s
    on = { ["spec.Put"] = function(event, ctx) %s end } }]],
  projection = [[moontide.projection "spec" { %s
    on = { ["spec.Put"] = function(state, event, ctx) %s end } }]],
  saga = [[moontide.saga "spec" { id = function(event) return event.key end, starts = { "spec.Put" }, %s
    on = { ["spec.Put"] = function(saga, event, ctx) %s end } }]],
}

local NOTHING = "it returns nothing: it acts through its ctx, and fails by error(\"why\")"
local OF_SAGA = "a saga's handler changes saga.state and returns nothing"
local OF_STATE = "return nothing, a table or moontide.delete"

dialect.each(function(database)
  describe("a function of a script", function()
    local rig

    local function start(handlers)
      rig = kit.new { database = database, handlers = handlers,
        files = { ["sql/t.sql"] = "CREATE TABLE spec_t (id INTEGER PRIMARY KEY)" } }
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function reason_of(kind, body)
      local policy = POLICY
      if kind ~= "listener" then policy = policy:gsub('start = "beginning", ', "") end
      start("return " .. HANDLERS[kind]:format(policy, body))
      rig:append("A", "spec.Put", {})
      rig:run()
      local row = rig:undelivered("spec")[1]
      rig:close()
      rig = nil
      return row and row.reason
    end

    it("is told when it returns what nothing is done with", function()
      for _, case in ipairs {
        { "listener", 'return moontide.event("spec.Seen", {})', "returned a table; " .. NOTHING },
        { "listener", "return false", "returned false (a boolean); " .. NOTHING },
        { "listener", 'return nil, "why"', "returned several values; " .. NOTHING },
        { "listener", 'return false, "why"', "returned several values; " .. NOTHING },
        { "listener", 'return { moontide.event("spec.Seen", {}) }', "returned a table; " .. NOTHING },
        { "listener", 'return moontide.reject "no"', "returned a table; " .. NOTHING },
        { "listener", 'return moontide.split { moontide.event("spec.Seen", {}) }', "returned a table; " .. NOTHING },
        { "sql_projection", "return moontide.add(1)", "returned a table; " .. NOTHING },
        { "sql_projection", "return moontide.delete", "returned a userdata; " .. NOTHING },
        { "saga", 'return nil, "why"', "returned several values; " .. OF_SAGA },
        { "projection", 'return nil, "why"', "returned several values; " .. OF_STATE },
        { "projection", "return {}, 1", "returned several values; " .. OF_STATE },
      } do
        local reason = reason_of(case[1], case[2])
        assert.matches("^state: handlers/spec.lua:%d: ", reason)
        assert.matches(case[3], reason, 1, true)
      end
    end)

    it("may return nothing, or as many nils", function()
      for kind in pairs(HANDLERS) do
        assert.is_nil(reason_of(kind, "return"))
        assert.is_nil(reason_of(kind, "return nil, nil"))
      end
    end)

    it("may end in a call of ctx", function()
      for _, kind in ipairs { "listener", "sql_projection" } do
        assert.is_nil(reason_of(kind, 'return ctx:query("SELECT 1 AS type, 2 AS payload")'))
        assert.is_nil(reason_of(kind, "return ctx:now()"))
      end
      assert.is_nil(reason_of("listener", 'return ctx:emit("spec.Seen", {})'))
      assert.is_nil(reason_of("sql_projection", 'return ctx:update("DELETE FROM spec_t")'))
    end)

    it("that gives a state or a payload to begin with gives one", function()
      start [[return {
        moontide.projection "state" { retry = { attempts = 1 }, on_error = "dead_letter",
          initial = function() return {}, "why" end,
          on = { ["spec.Put"] = function() end } },
        moontide.publisher "carrier" { to = "kafka:carrier" },
        moontide.saga "order" { id = function(event) return event.key end, starts = { "spec.Put" },
          retry = { attempts = 1 }, on_error = "dead_letter", steps = {
            { name = "shipment", to = "carrier", command = "shipment.Request", compensate = false, timeout = "1h",
              message = function() return {}, "why" end, succeeds = "shipment.Accepted" } } } }]]
      rig:append("A", "spec.Put", {})
      rig:run()
      assert.matches("^state: handlers/spec.lua:5: initial returned several values; it must return a table",
        rig:undelivered("state")[1].reason)
      assert.matches("^state: handlers/spec.lua:11: message returned several values; it returns the payload, a table",
        rig:undelivered("order")[1].reason)
    end)

    it("that decides on a failure returns one word", function()
      start [[return moontide.projection "spec" { retry = { attempts = 1 },
        on_error = function() return "dead_letter", "why" end,
        on = { ["spec.Put"] = function() error "wrong" end } }]]
      rig:append("A", "spec.Put", {})
      rig:run()
      assert.matches("on_error returned several values; it must return", rig:log(), 1, true)
      assert.equal("HALTED APPLY_ERROR", rig:state "spec")
    end)

    it("that applies an event to an aggregate returns one state", function()
      start [[return moontide.aggregate "spec.purse" {
        commands = { fill = function() return moontide.event("purse.Filled", {}) end },
        apply = { ["purse.Filled"] = function() return nil, "why" end } }]]
      local good, problem = pcall(rig.host.command, rig.host, "spec.purse", "A", "fill")
      assert.is_false(good)
      assert.matches("handlers/spec.lua:5: apply returned several values; change the state and return nothing", problem,
        1, true)
    end)

    it("that empties a projection's tables returns nothing", function()
      start [[return moontide.sql_projection "spec" { tables = "sql/t.sql",
        reset = function(ctx) return nil, "why" end,
        on = { ["spec.Put"] = function() end } }]]
      rig:append("A", "spec.Put", {})
      rig:run()
      local good, problem = pcall(rig.host.rebuild, rig.host, "spec")
      assert.is_false(good)
      assert.matches("handlers/spec.lua:4: the function returned several values; " .. NOTHING, problem, 1, true)
    end)

    it("that decides a command gives events with members that events have", function()
      start [[return moontide.aggregate "spec.purse" {
        commands = {
          list = function(_, args) return { args } end,
          one = function(_, args) return args end,
        },
        apply = { ["purse.Filled"] = function() end } }]]
      local function refused(command, args)
        local good, problem = pcall(rig.host.command, rig.host, "spec.purse", "A", command, args)
        assert.is_false(good)
        return problem
      end
      assert.matches('handlers/spec.lua:5: command "list" gives an event with "agregate_id" (did you mean '
        .. '"aggregate_id"?), which no event has', refused("list", { type = "purse.Filled", agregate_id = "B" }), 1,
        true)
      assert.matches('handlers/spec.lua:6: command "one" gives an event with "amount", which no event has',
        refused("one", { type = "purse.Filled", payload = {}, amount = 5 }), 1, true)
      assert.equal(0, rig:value "SELECT count(*) AS value FROM EVENT_STORE")
      rig.host:command("spec.purse", "A", "one", { type = "purse.Filled", payload = {}, metadata = { a = 1 },
        occurred_at = "2001-02-03T04:05:06Z", revision = 0, key = "B", id = "01890a5d-ac96-774b-bcce-b302099a8057" })
      assert.equal("B", rig:value "SELECT aggregate_id AS value FROM EVENT_STORE")
    end)

    describe("that leads an event to a newer revision", function()
      -- What is told of an event of revision 0, by the body of its step.
      local function told(body, more)
        start(([[return { moontide.event_type "spec.Put" { revision = 1, %s
          upcast = { [0] = function(payload) %s end } },
          moontide.projection "spec" { retry = { attempts = 1 }, on_error = "dead_letter",
            on = { ["spec.Put"] = function(state, event) state.payload = event.payload end } } }]]):format(
          more or "", body))
        rig:append("A", "spec.Put", { n = 1 }, { revision = 0 })
        rig:run()
        local row, state = rig:undelivered("spec")[1], rig.host:read("spec", "A")
        rig:close()
        rig = nil
        return row and row.reason or state.payload
      end

      it("returns no event for a payload", function()
        for body, more in pairs {
          ['return moontide.event("spec.Put", payload)'] = "",
          ['return { moontide.event("spec.Put", payload, { revision = 1 }) }'] = "",
          ['return moontide.event("spec.Moved", payload)'] = 'into = { "spec.Moved" },',
          ['return { { type = "spec.Moved", payload = payload } }'] = 'into = { "spec.Moved" },',
        } do
          assert.matches('handlers/spec.lua:3: event type "spec.Put": upcast[0] returned what moontide.event makes, '
            .. "which would be taken as the payload; return the payload alone, or moontide.split { "
            .. "moontide.event(...) }", told(body, more), 1, true)
        end
      end)

      it("returns a payload that only looks like an event", function()
        assert.same({ type = "other", payload = { n = 1 } }, told 'return { type = "other", payload = payload }')
        assert.same({ type = "spec.Put", payload = 1, n = 1 },
          told 'payload.type, payload.payload = "spec.Put", 1')
        assert.same({ type = "spec.Put", payload = "x" }, told('return { type = "spec.Put", payload = "x" }',
          "fields = { type = moontide.types.text(), payload = moontide.types.text() },"))
      end)

      it("returns one value", function()
        assert.matches("upcast[0] returned several values; change the payload", told 'return nil, "why"', 1, true)
      end)

      it("gives a part what a part has", function()
        assert.matches('event type "spec.Put": upcast[0] gives a part with "key"; a part has type, payload and '
          .. "revision, and all else of the stored event",
          told('return moontide.split { moontide.event("spec.Moved", payload, { key = "B" }) }',
            'into = { "spec.Moved" },'), 1, true)
      end)
    end)
  end)
end)
