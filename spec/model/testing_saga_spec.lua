-- testing.saga: a saga driven step by step, and the assertions about it.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local moontide = require "moontide"
local testing = require "moontide.testing"

local ORDER = [[
local moontide = require "moontide"
return {
  moontide.publisher "payments" { to = "kafka:payments" },
  moontide.saga "order" { id = moontide.by "order_id", starts = { "order.Placed" }, %s
    on = {
      ["order.Placed"] = function(saga, event, ctx)
        saga.state.total = event.payload.total
        ctx:publish("payments", "payment.Authorize", { amount = saga.state.total })
        saga:deadline("payment", "30m", { try = 1 })
      end,
      ["payment.Authorized"] = function(saga, event, ctx)
        saga.state.cause = event.metadata.causation_id
        saga.state.paid = (saga.state.paid or 0) + 1
        saga:cancel("payment")
        if event.payload.fails then error "no such card" end
        if event.payload.last then saga:complete() end
      end,
    },
    deadlines = { payment = function(saga, deadline, ctx)
      ctx:emit("order.Abandoned", { try = deadline.payload.try }, { key = saga.id })
      saga:complete()
    end } },
}]]

dialect.each(function(database)
  describe("testing.saga", function()
    local app, saga

    local function open(options, more, text)
      app = application.new { database = database, config = "partitions = 12" }
      app:write("handlers/order.lua", text or ORDER:format(more or ""))
      options = options or {}
      options.database = app.db.url
      saga = testing.saga(dofile(app.path .. "/handlers/order.lua")[2], options)
    end

    local function placed(total)
      return moontide.event("order.Placed", { total = total or 10 })
    end

    after_each(function()
      if saga then saga:close() end
      app:close()
      saga = nil
    end)

    it("shows what the start has caused: messages, deadlines, state", function()
      open()
      saga:start(placed())
      assert.equal("S-1", saga.id)
      assert.published(saga, "payments", "payment.Authorize", { payload = { amount = 10 }, count = 1 })
      assert.scheduled_in(saga, "payment", "30m", { payload = { try = 1 } })
      assert.is_not.scheduled_in(saga, "payment", "31m")
      assert.is_not.scheduled_in(saga, "shipment")
      assert.saga_state(saga, { total = 10 })
      assert.is_not.ended(saga)
      assert.equal("S-1", saga:published()[1].metadata.saga_id)
    end)

    it("takes the id that the event has", function()
      open()
      saga:start(moontide.event("order.Placed", { order_id = "O-7", total = 1 }))
      assert.equal("O-7", saga.id)
      assert.saga_state(saga, { total = 1 })
    end)

    it("answers the newest message, once or twice", function()
      open()
      saga:start(placed()):reply "payment.Authorized"
      assert.saga_state(saga, { total = 10, paid = 1, cause = saga:published()[1].id })
      assert.same({}, saga:deadlines())
      saga:duplicate()
      assert.equal(2, saga:state().paid)
      saga:reply("payment.Authorized", { last = true })
      assert.ended(saga)
    end)

    it("lets time pass", function()
      open()
      saga:start(placed()):advance "29m"
      assert.is_not.ended(saga)
      saga:advance "2m"
      assert.ended(saga)
      assert.emitted(saga, "order.Abandoned", { payload = { try = 1 }, count = 1 })
    end)

    describe("whose deadline sets itself again", function()
      local function beat(again)
        open(nil, nil, ([[
          local moontide = require "moontide"
          return { moontide.publisher "payments" { to = "kafka:payments" },
            moontide.saga "order" { id = moontide.by "order_id", starts = { "order.Placed" },
              on = { ["order.Placed"] = function(saga) saga:deadline("beat", "30d") end },
              deadlines = { beat = function(saga)
                saga.state.beats = (saga.state.beats or 0) + 1
                saga:deadline("beat", %q)
              end } } }]]):format(again))
        saga:start(placed())
      end

      it("lets time pass from one to the next", function()
        beat "30d"
        saga:advance "365d"
        assert.saga_state(saga, { beats = 12 })
        assert.scheduled_in(saga, "beat", "30d")
        saga:advance "29d"
        assert.saga_state(saga, { beats = 13 })
      end)

      it("ends all the same when it does so at once", function()
        beat "0"
        local good, why = pcall(saga.advance, saga, "31d")
        assert.is_false(good)
        assert.matches("saga 'order' had 1000 deadlines in less than 31d", why)
      end)
    end)

    it("answers late, behind the deadline", function()
      open()
      saga:start(placed()):late "payment.Authorized"
      assert.ended(saga)
      assert.saga_state(saga, { total = 10 })
    end)

    it("changes nothing by a delivery that comes again, or a start of the host", function()
      open()
      saga:start(placed()):redeliver():restart()
      assert.published(saga, "payments", "payment.Authorize", { count = 1 })
      assert.equal(1, #saga:deadlines())
    end)

    it("reads events of the capture topic", function()
      open({}, 'source = "event-capture",')
      saga:start(placed()):reply("payment.Authorized", { last = true })
      assert.ended(saga)
    end)

    it("raises with the reason of a handler that fails", function()
      open()
      saga:start(placed())
      local good, why = pcall(saga.reply, saga, "payment.Authorized", { fails = true })
      assert.is_false(good)
      assert.matches("handlers/order.lua:%d+: no such card", why)
    end)

    it("says what was wrong of a call", function()
      open()
      for text, call in pairs {
        ["does not start with order.Paid"] = function() saga:start(moontide.event "order.Paid") end,
        ["is for the saga O%-2, not for S%-1"] = function()
          saga:start(placed()):reply("payment.Authorized", { order_id = "O-2" })
        end,
        ["has published no payment.Void"] = function() saga:reply("payment.Voided", {}, { to = "payment.Void" }) end,
        ["unknown word key_of"] = function() saga:reply("payment.Authorized", {}, { key_of = 1 }) end,
        ["takes a declaration of moontide.saga"] = function() testing.saga {} end,
      } do
        local good, why = pcall(call)
        assert.is_false(good)
        assert.matches(text, why)
      end
    end)

    it("shows in a failed assertion what there is", function()
      open()
      saga:start(placed())
      local _, why = pcall(assert.scheduled_in, saga, "shipment", "1h")
      assert.matches("no deadline 'shipment' in 1h.*payment at %d", tostring(why))
      _, why = pcall(assert.saga_state, saga, { total = 11 })
      assert.matches('remembers {"total":10}, not {"total":11}', tostring(why))
      _, why = pcall(assert.ended, saga)
      assert.matches("the saga 'S%-1' goes on", tostring(why))
    end)
  end)
end)
