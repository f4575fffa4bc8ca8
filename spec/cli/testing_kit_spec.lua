-- The testing kit as an application's specs use it, through `moontide test`.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local MEMBERS = [[
local moontide = require "moontide"
return moontide.projection "members" {
  initial = function() return { visits = 0 } end,
  on = {
    ["member.Joined"] = function(m, e)
      m.joined, m.id, m.luck = e.occurred_at, e.id, math.random()
    end,
    ["member.Came"] = function(m, e)
      if e.payload.barred then error("may not come in") end
      m.visits = m.visits + 1
    end,
  },
}]]

local HEAD = [[
local moontide = require "moontide"
local testing = require "moontide.testing"
local joined, came = moontide.event("member.Joined", {}), moontide.event("member.Came", {})
local barred = moontide.event("member.Came", { barred = true })
]]

dialect.each(function(database)
  describe("the testing kit", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["members.lua"] = MEMBERS } }
    end)

    after_each(function()
      app:close()
    end)

    local function passes(text)
      app:write("spec/kit_spec.lua", HEAD .. text)
      app:ok("test", { env = { DATABASE_URL = app.db.url } })
    end

    it("says what was wrong of a call at the line of the spec", function()
      passes [[it("is told", function()
        local host = testing.host { database = testing.database() }
        local here = "spec/kit_spec.lua:%d+: "
        for text, call in pairs {
          ["configuration: unknown key 'retry.attemps'"] = function() testing.host { retry = { attemps = 3 } } end,
          ["emit: unknown word kye"] = function() host:emit("a", {}, { kye = 1 }) end,
          ["resume: unknown word kye"] = function() host:resume("members", { kye = 1 }) end,
          ["dead letters: unknown word kye"] = function() host:retry { kye = 1 } end,
          ["append: unknown word expectd"] = function() host:append("a", "b", { joined }, { expectd = 1 }) end,
          ["run: unknown word failurs"] = function() host:run { failurs = true } end,
          ["event: expected is \"any\", \"none\" or the sequence number"] = function()
            host:append("a", "b", { joined }, { expected = -1 })
          end,
          ["event: 'revision' must be a whole number from 0"] = function()
            host:append("a", "b", { moontide.event("a", {}, { revision = 2 ^ 32 }) })
          end,
          ["command: 'command_id' must be a string, not a number"] = function()
            host:command("a", "b", "c", {}, { id = 5 })
          end,
          ["payload of a: "] = function() host:emit("a", { print }) end,
          ["'3 parsecs' is not a valid duration"] = function() host:advance "3 parsecs" end,
        } do
          local good, why = pcall(call)
          assert.is_false(good)
          assert.matches("^" .. here .. text, why)
        end
        host:close()
      end)]]
    end)

    describe("project", function()
      it("gives events without id and time the same ones in every fold", function()
        passes [[it("is pure", function()
          local declaration = require "handlers.members"
          local events = testing.stream("club.member", "M-1", { joined, came })
          local states = testing.project(declaration, events)
          assert.equal(1, states["M-1"].visits)
          assert.is_string(states["M-1"].joined)
          assert.same(states, testing.project(declaration, events))
        end)]]
      end)

      it("does so for a declaration that the spec makes", function()
        passes [[it("is pure", function()
          local declaration = moontide.projection "here" { on = { ["member.Joined"] = function(m, e)
            m.joined, m.id, m.luck = e.occurred_at, e.id, math.random()
          end } }
          local states = testing.project(declaration, testing.stream("club.member", "M-1", { joined, joined }))
          assert.is_string(states["M-1"].joined)
          assert.is_string(states["M-1"].id)
        end)]]
      end)

      it("keeps what an empty array is, as host:append does", function()
        app:write("handlers/types.lua", [[
          local t = require("moontide").types
          return require("moontide").event_type "member.Tagged" { fields = {
            tags = t.list(t.text()), more = t.record { tags = t.list(t.text()) } } }]])
        app:write("handlers/tags.lua", [[
          return require("moontide").projection "tags" { on = {
            ["member.Tagged"] = function(s, e) s.tags = e.payload.tags end } }]])
        passes [[it("is a list", function()
          local payload = { tags = moontide.array(), more = { tags = moontide.array {} } }
          local events = testing.stream("club.member", "M-1", { moontide.event("member.Tagged", payload) })
          local states = testing.project(require "handlers.tags", events)
          assert.equal('{"tags":[]}', moontide.json.encode(states["M-1"]))
          states = testing.prove(require "handlers.tags", events)
          assert.equal('{"tags":[]}', moontide.json.encode(states["M-1"]))
        end)]]
      end)

      it("keeps the id and the time that an event has", function()
        passes [[it("keeps them", function()
          local id = "0190b3c0-0000-7000-8000-00000000000b"
          local event = moontide.event("member.Joined", {}, { id = id, occurred_at = "2025-01-02T03:04:05Z" })
          local states = testing.project(require "handlers.members", testing.stream("club.member", "M-1", { event }))
          assert.equal(id, states["M-1"].id)
          assert.equal("2025-01-02T03:04:05.000000Z", states["M-1"].joined)
        end)]]
      end)
    end)

    describe("host:run", function()
      it("raises as long as a failure that nobody asked for stands", function()
        passes [[it("raises again", function()
          local host = testing.host { log = { level = "error" } }
          host:append("club.member", "M-1", { joined, barred })
          assert.error_matches(function() host:run() end, "members could not apply .* position 2: .*may not come in")
          assert.error_matches(function() host:run() end, "may not come in")
          host:append("club.member", "M-2", { joined })
          assert.error_matches(function() host:run() end, "may not come in")
          host:restart()
          assert.error_matches(function() host:run() end, "may not come in")
          host:close()
        end)]]
      end)

      it("does not raise for what host:fail asked for, and counts what a restart applies", function()
        passes [[it("goes on", function()
          local host = testing.host {}
          host:append("club.member", "M-1", { joined, came })
          host:fail("members", "member.Came")
          host:run()
          host:run()
          assert.equal("HALTED", host:undelivered("members")[1].status)
          host:restart()
          assert.equal(1, host:run())
          assert.equal(1, host:read("members", "M-1").visits)
          host:close()
        end)]]
      end)
    end)

    describe("a failure that is asked for", function()
      before_each(function()
        app:configure "retry = { attempts = 3, delay = '1s', jitter = 0 }, on_error = 'dead_letter_key'"
      end)

      it("spreads over the attempts of a message, which advance_to_retry goes to", function()
        passes [[it("goes on", function()
          local host = testing.host {}
          host:append("club.member", "M-1", { joined, came, came })
          host:append("club.member", "M-2", { joined })
          assert.is_nil(host:next_retry())
          assert.error_matches(function() host:advance_to_retry "members" end, "no message of 'members' waits")
          host:fail("members", "member.Came", 2)
          local started = host:now()
          host:run()
          assert.retried(host, "members", { key = "M-1", position = 2, type = "member.Came", failures = 1, count = 1 })
          assert.waiting(host, "members", { key = "M-1", position = 3, count = 1 })
          assert.is_not.waiting(host, "members", { key = "M-2" })
          assert.is_not.dead_lettered(host, "members")
          assert.in_state(host, "members", "RUNNING")
          assert.equal(0, host:read("members", "M-1").visits)

          host:run() -- its time has not come
          assert.retried(host, "members", { failures = 1 })
          local first = host:next_retry "members"
          assert.is_true(first > started)
          assert.equal(first, host:advance_to_retry "members")
          assert.is_true(host:now() >= first)
          host:run()
          assert.retried(host, "members", { failures = 2, count = 1 })
          assert.is_true(host:advance_to_retry() > first)
          host:run()
          assert.is_not.retried(host, "members")
          assert.is_not.waiting(host, "members")
          assert.equal(2, host:read("members", "M-1").visits)
          host:close()
        end)]]
      end)

      it("leads to a dead letter when the budget is spent, and what lies behind it waits", function()
        passes [[it("goes on", function()
          local host = testing.host {}
          host:append("club.member", "M-1", { joined, came, came })
          host:fail("members", "member.Came", 3)
          host:run()
          for _ = 1, 2 do
            assert.is_not.dead_lettered(host, "members")
            host:advance_to_retry "members"
            host:run()
          end
          assert.dead_lettered(host, "members", { key = "M-1", status = "DEAD_LETTER_KEY", failures = 3, count = 1,
            error = "asked for by the test" })
          assert.waiting(host, "members", { status = "DEAD_LETTER_KEY", position = 3, type = "member.Came", count = 1 })
          host:delete { consumer = "members", all = true }
          host:run()
          assert.skipped(host, "members", { key = "M-1", position = 2, count = 1 })
          assert.is_not.dead_lettered(host, "members")
          assert.equal(1, host:read("members", "M-1").visits)
          host:close()
        end)]]
      end)
    end)

    describe("an assertion", function()
      it("that fails says what there is", function()
        passes [[
          local host

          before_each(function()
            host = testing.host {}
            host:append("club.member", "M-1", { joined, barred })
            host:run { failures = true }
          end)

          after_each(function() host:close() end)

          local function says(text, fn)
            local good, problem = pcall(fn)
            assert.is_false(good)
            assert.matches(text, tostring(type(problem) == "table" and problem.message or problem), 1, true)
          end

          it("about messages", function()
            says("'members' has 0 dead letters with key = \"M-1\"\nits undelivered messages:\n  2 M-1 HALTED, 1 "
              .. "failures: error: handlers/members.lua:9: may not come in",
              function() assert.dead_lettered(host, "members", { key = "M-1" }) end)
            says("'members' has 0 messages that wait behind another one",
              function() assert.waiting(host, "members") end)
            says("dead_lettered: unknown word 'kee'; known are key, type",
              function() assert.dead_lettered(host, "members", { kee = 1 }) end)
          end)

          it("about the state", function()
            assert.in_state(host, "members", "HALTED")
            assert.in_state(host, "members", "HALTED", "APPLY_ERROR")
            says("'members' is HALTED with APPLY_ERROR, not RUNNING",
              function() assert.in_state(host, "members", "RUNNING") end)
            assert.is_not.in_state(host, "members", "HALTED", "MISSING_HISTORY")
          end)]]
      end)
    end)

    describe("prove", function()
      local EVENTS = [[
        local events = {}
        for i = 1, 12 do
          for _, event in ipairs(testing.stream("club.member", "M-" .. i % 3, { i < 4 and joined or came })) do
            events[#events + 1] = event
          end
        end
      ]]

      --- fails_with(handlers, wanted): prove must raise a text that has these.
      local function fails_with(text, ...)
        app:write("handlers/members.lua", [[
          local moontide = require "moontide"
          ]] .. text)
        local wanted = {}
        for i, word in ipairs { ... } do wanted[i] = ("assert.matches(%q, problem)"):format(word) end
        passes(EVENTS .. ([[it("finds it", function()
          local good, problem = pcall(testing.prove, require "handlers.members", events, { seed = 7 })
          assert.is_false(good)
          %s
        end)]]):format(table.concat(wanted, "\n")))
      end

      it("is one line for a projection that is right, and gives its states", function()
        passes(EVENTS .. [[it("is proven", function()
          local states = testing.prove(require "handlers.members", events)
          assert.equal(3, states["M-0"].visits)
          assert.equal(3, states["M-1"].visits)
          assert.equal("00000000-0000-7000-8000-000000000001", states["M-1"].id)
        end)]])
      end)

      it("finds a projection that keeps something between its calls", function()
        fails_with([[local seen = { n = 0 }
          return moontide.projection "members" { on = { ["member.Came"] = function(m)
            seen.n = seen.n + 1
            m.place = seen.n
          end } }]], "projection 'members': key \"M%-%d\", member 'place' is %d+ in order and %d+ after a rebuild")
      end)

      it("finds one that does not start its read models anew in a rebuild", function()
        fails_with([[return moontide.projection "members" { on = { ["member.Came"] = function(m, _, ctx)
            m.n = (m.n or 0) + (ctx.replaying and 2 or 1)
          end } }]], "member 'n' is 3 in order and 6 after a rebuild")
      end)

      it("finds one that depends on how keys interleave, and names the order by its seed", function()
        fails_with([[return moontide.projection "members" { on = { ["member.Came"] = function(m, event)
            m.list = m.list or {}
            m.list[#m.list + 1] = { at = event.position }
          end } }]],
          "projection 'members': key \"M%-%d\", member 'list%[%d%]%.at' is %d+ in order and %d+ when keys interleave "
            .. "in another way and batches are delivered again %(seed = 7%)")
      end)

      it("finds a read model that is missing", function()
        fails_with([[return moontide.projection "members" { on = { ["member.Came"] = function(m, _, ctx)
            if ctx.replaying then return moontide.delete end
            m.n = 1
          end } }]], "the read model of key \"M%-%d\" is there in order and missing after a rebuild")
      end)

      it("raises the handler's own failure", function()
        fails_with([[return moontide.projection "members" { on = { ["member.Came"] = function() error "never" end } }]],
          "members could not apply the message at position 4: error: handlers/members.lua:%d+: never")
      end)

      it("keeps the order of events that meet in a key of the projection's own", function()
        app:write("handlers/members.lua", [[
          local moontide = require "moontide"
          return moontide.projection "members" { key = function() return "all" end,
            on = { ["member.Came"] = function(all, event)
              all.last = event.aggregate_id
            end } }]])
        passes(EVENTS .. [[it("is proven", function()
          assert.same({ all = { last = "M-0" } }, testing.prove(require "handlers.members", events, { shuffles = 5 }))
        end)]])
      end)

      it("takes an SQL projection when it is told what to compare", function()
        app:write("sql/visits.sql", app.db:ddl 'CREATE TABLE IF NOT EXISTS visits ("key" TEXT PRIMARY KEY, n INTEGER)')
        app:write("handlers/members.lua", [[
          local moontide = require "moontide"
          return moontide.sql_projection "members" {
            tables = "sql/visits.sql",
            reset = function(ctx) ctx:execute "DELETE FROM visits" end,
            on = {
              ["member.Joined"] = function(event, ctx)
                ctx:execute('INSERT INTO visits ("key", n) VALUES (?, 0)', event.key)
              end,
              ["member.Came"] = function(event, ctx)
                ctx:execute('UPDATE visits SET n = n + 1 WHERE "key" = ?', event.key)
              end,
            } }]])
        passes(EVENTS .. [[it("is proven", function()
          local rows = testing.prove(require "handlers.members", events, { read = function(host)
            return host:query 'SELECT "key", n FROM visits ORDER BY "key"'
          end })
          assert.same({ { key = "M-0", n = 3 }, { key = "M-1", n = 3 }, { key = "M-2", n = 3 } }, rows)
        end)]])
      end)

      it("proves a declaration that the spec makes", function()
        passes(EVENTS .. [[it("is proven", function()
          local kept = 0
          local right = moontide.projection "right" { on = { ["member.Came"] = function(m) m.n = (m.n or 0) + 1 end } }
          assert.equal(3, testing.prove(right, events)["M-2"].n)
          local wrong = moontide.projection "wrong" { on = { ["member.Came"] = function(m)
            kept = kept + 1
            m.n = kept
          end } }
          assert.error_matches(function() testing.prove(wrong, events) end,
            "member 'n' is %d+ in order and %d+ when it runs again")
        end)]])
      end)
    end)
  end)
end)
