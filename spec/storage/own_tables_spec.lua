local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local ID = "01890a5d-ac96-774b-bcce-b302099a8057"

local CONFIG = [[schema = { aggregates = {
    ["bank.account"] = { events = "account_events", snapshots = "account_snapshots" },
    ["bank.card"] = { events = "card_events" },
  } }]]

local function account(fields)
  fields.aggregate_type = "bank.account"
  return fields
end

local function card(fields)
  fields.aggregate_type = "bank.card"
  return fields
end

dialect.each(function(database)
  describe("an aggregate type with tables of its own", function()
    local app

    before_each(function()
      app = application.new { database = database, config = CONFIG }
    end)

    after_each(function()
      app:close()
    end)

    it("keeps its events there and nowhere else", function()
      app:append { account {}, {}, card {}, account {} }
      assert.equal(2, app:count "account_events")
      assert.equal(1, app:count "card_events")
      assert.equal(1, app:count "EVENT_STORE")
    end)

    it("draws positions from the one counter, so all is read in one order", function()
      local events = {}
      for i = 1, 60 do
        local make = ({ account, card, function(fields) return fields end })[i % 3 + 1]
        events[i] = make { aggregate_id = "K-" .. i % 4, payload = tostring(i) }
      end
      app:append(events, "--batch", "7")
      local found = app:events()
      assert.equal(60, #found)
      for i, event in ipairs(found) do
        assert.equal(i, event.position)
        assert.equal(i, event.payload)
      end
      assert.same({ 31, 32, 33 }, app:positions("--after", "30", "--limit", "3"))
    end)

    it("is read in position order when the ids say another one", function()
      local events = {}
      for i = 1, 30 do
        local make = i % 2 == 0 and account or card
        events[i] = make { id = ("01890a5d-ac96-774b-bcce-%012x"):format(1000 - i), payload = tostring(i) }
      end
      app:append(events)
      local expected = {}
      for i = 1, 30 do expected[i] = i end
      assert.same(expected, app:positions())
      assert.same({ 11, 12, 13, 14 }, app:positions("--after", "10", "--limit", "4"))
    end)

    it("is filtered like all others", function()
      app:append { account { aggregate_id = "X" }, { aggregate_id = "X" }, card { aggregate_id = "Y", type = "T" } }
      assert.same({ 1, 2 }, app:positions("--aggregate", "X"))
      assert.same({ 3 }, app:positions("--type", "T"))
    end)

    it("has its own sequence per stream", function()
      app:append { account {}, {}, account {} }
      app:append { account { expected = 1 } }
      assert.matches("expected sequence number 1", app:refuses({ account { expected = 1 } }, 3), 1, true)
    end)

    it("has ids that no other table takes a second time", function()
      app:append { account { id = ID } }
      assert.equal(1, app:append({ account { id = ID } }).repeated)
      assert.matches("another aggregate_type", app:refuses({ { id = ID } }, 3), 1, true)
      assert.matches("another aggregate_type", app:refuses({ card { id = ID } }, 3), 1, true)
      assert.equal(0, app:count "EVENT_STORE")
    end)

    it("is read by its consumers in position order", function()
      app:write("handlers/log.lua", [[
        local moontide = require "moontide"
        return moontide.projection "log" {
          key = function() return "all" end,
          initial = function() return { seen = moontide.array() } end,
          on = { ["thing.Happened"] = function(state, event) state.seen[#state.seen + 1] = event.payload end },
        }]])
      app:append { account { payload = "1" }, { payload = "2" }, card { payload = "3" }, account { payload = "4" } }
      app:ok("run", "--until-idle")
      assert.same({ 1, 2, 3, 4 }, app:json("read", "log", "all")[1].state.seen)
    end)

    it("never gets a position again that any table has had", function()
      app:append { account {}, account {}, {} }
      app.db:execute "DELETE FROM account_events"
      app.db:execute "DELETE FROM EVENT_STORE"
      assert.equal(4, app:append({ card {} }).first_position)
    end)

    it("is refused while the shared table has its events, and keeps them", function()
      app:configure ""
      app:append { account { payload = "1" } }
      app:configure(CONFIG)
      assert.matches("EVENT_STORE has events of 'bank.account' already", app:fails(3, "schema", "upgrade"), 1, true)
      app:configure ""
      assert.same({ "1" }, app:payloads())
    end)
  end)
end)
