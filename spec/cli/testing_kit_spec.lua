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
  end)
end)
