-- One read model computed from its messages, beside the one that is stored.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local null = require("moontide").null

local HANDLERS = [[
local moontide = require "moontide"
return {
  moontide.projection "totals" {
    fields = { sum = moontide.types.integer() },
    initial = function() return { sum = 0, by = {} } end,
    on = {
      ["shop.Paid"] = function(state, event)
        if event.payload.amount == moontide.null then error("no amount") end
        state.sum = state.sum + event.payload.amount * FACTOR
        state.by[event.payload.who or "nobody"] = event.payload.amount
      end,
      ["shop.Closed"] = function() return moontide.delete end,
    },
  },
  moontide.projection "payers" {
    key = function(event) return event.payload.who end,
    on = { ["shop.Paid"] = function(state) state.n = (state.n or 0) + 1 end },
  },
  moontide.projection "seen" {
    source = "event-capture",
    on = { ["shop.Seen"] = function(state) state.n = (state.n or 0) + 1 end },
  },
}]]

dialect.each(function(database)
  local app

  local function handlers(factor)
    app:write("handlers/shop.lua", (HANDLERS:gsub("FACTOR", factor)))
  end

  before_each(function()
    app = application.new { database = database, config = "partitions = 12" }
    handlers "1"
  end)

  after_each(function()
    app:close()
  end)

  local function paid(id, amount, who)
    return { aggregate_type = "shop.order", aggregate_id = id, type = "shop.Paid",
      payload = ('{"amount":%s,"who":"%s"}'):format(amount, who or "ann") }
  end

  local function closed(id)
    return { aggregate_type = "shop.order", aggregate_id = id, type = "shop.Closed", payload = "{}" }
  end

  local function materialize(code, projection, key)
    local result = app:expect(code, "read", projection, key, "--materialize", "--json")
    return application.json.decode(result.out)[1], result
  end

  describe("a materialized read model", function()
    it("is what its messages give, those too that no host has applied", function()
      app:append { paid("a", 5), paid("b", 7), paid("a", 6, "bob") }
      app:ok("run", "--until-idle")
      app:append { paid("a", 1, "cid"), paid("b", 1) }
      local model = materialize(0, "totals", "a")
      assert.same({ sum = 12, by = { ann = 5, bob = 6, cid = 1 } }, model.state)
      assert.same({ sum = 11, by = { ann = 5, bob = 6 } }, model.stored)
      assert.same({ 3, 5, 3, true, {} }, { model.messages, model.position, model.stored_position, model.compared,
        model.differences })
    end)

    it("says where the stored one differs, member by member, and ends with 3", function()
      app:append { paid("a", 5), paid("a", 6, "bob") }
      app:ok("run", "--until-idle")
      handlers "2"
      app:append { paid("a", 1) }
      local model, result = materialize(3, "totals", "a")
      assert.same({ sum = 24, by = { ann = 1, bob = 6 } }, model.state)
      assert.same({ { path = "sum", stored = 11, computed = 22 } }, model.differences)
      assert.matches("moontide rebuild totals --key", result.err, 1, true)
      local text = app:expect(3, "read", "totals", "a", "--materialize")
      assert.matches("sum%s+11%s+22", text.out)
      assert.matches("computed from 3 messages up to position 3", text.err, 1, true)
      app:ok("rebuild", "totals", "--key", "a")
      materialize(0, "totals", "a")
    end)

    it("is one that a foreign hand has changed or deleted, too", function()
      app:append { paid("a", 5), paid("b", 5) }
      app:ok("run", "--until-idle")
      app.db:execute [[UPDATE totals SET state = '{"by":{"ann":5,"eve":1},"sum":5}' WHERE read_model_id = 'a']]
      app.db:execute "DELETE FROM totals WHERE read_model_id = 'b'"
      assert.same({ { path = "by.eve", stored = 1, computed = null } },
        materialize(3, "totals", "a").differences)
      local model = materialize(3, "totals", "b")
      assert.same({ null, "" }, { model.stored, model.differences[1].path })
    end)

    it("of a key function is found by asking every message", function()
      app:append { paid("a", 1, "ann"), paid("b", 1, "bob"), paid("c", 1, "ann") }
      app:ok("run", "--until-idle")
      local model = materialize(0, "payers", "ann")
      assert.same({ { n = 2 }, 2, true }, { model.state, model.messages, model.compared })
    end)

    it("that was deleted by its last message is none, and ends with 1", function()
      app:append { paid("a", 1), closed "a" }
      app:ok("run", "--until-idle")
      local model, result = materialize(1, "totals", "a")
      assert.same({ null, {}, 2 }, { model.state, model.differences, model.messages })
      assert.matches("give no read model", result.err, 1, true)
      materialize(1, "totals", "nobody")
    end)

    it("goes through many pages, starts anew behind a deletion, and writes nothing", function()
      local events = {}
      for i = 1, 12000 do events[i] = paid("a", 1) end
      events[2500] = closed "a"
      app:append(events)
      local model = materialize(0, "totals", "a")
      assert.same({ 9500, 12000, false, "no host has run the projection yet, or not since it was unsubscribed" },
        { model.state.sum, model.messages, model.compared, model.reason })
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMERS")
    end)

    it("leaves out what was skipped, and is not compared while messages wait", function()
      app:append { paid("a", 1), paid("a", "null"), paid("a", 2) }
      app:expect(1, "run", "--until-idle")
      local result = app:expect(1, "read", "totals", "a", "--materialize")
      assert.matches("the message at position 2 cannot be applied: .*shop.lua:%d+: no amount", result.err)
      app:write("handlers/shop.lua", (HANDLERS:gsub("FACTOR", "1"):gsub("error%b()", "return")))
      local model = materialize(0, "totals", "a")
      assert.same({ false, 3 }, { model.compared, model.state.sum })
      assert.matches("could not be delivered yet", model.reason, 1, true)
      handlers "1"
      app:ok("resume", "totals", "--past")
      app:ok("run", "--until-idle")
      model = materialize(0, "totals", "a")
      assert.same({ true, 2, 3 }, { model.compared, model.messages, model.state.sum })
    end)

    it("of captured events is not compared when older ones are gone", function()
      app:ok("emit", { stdin = ('{"type":"shop.Seen","key":"k","payload":{}}\n'):rep(4) })
      app:ok("run", "--until-idle")
      assert.same({ n = 4 }, materialize(0, "seen", "k").state)
      app:configure "partitions = 12, capture = { max_rows = 1 }"
      app:ok("run", "--until-idle")
      local model = materialize(0, "seen", "k")
      assert.same({ 1, false, "the messages up to position 3 are gone" },
        { model.state.n, model.compared, model.reason })
    end)

    it("is asked for by key, and by nothing else", function()
      assert.matches("give its key", app:fails(64, "read", "totals", "--materialize"), 1, true)
      assert.matches("do not go with it", app:fails(64, "read", "totals", "a", "--materialize", "--limit", "1"), 1,
        true)
    end)
  end)
end)
