local moontide = require "moontide"
local testing = require "moontide.testing"

local fulfilment = require "handlers.order_fulfilment"

local placed = moontide.event("order.Placed", { customer = "Ada", item = "tea", total = 450 }, {
  aggregate_type = "shop.order", -- the id is left out: every walk is another order
})

local function order_state(saga)
  local state = saga.host:read("order-status", saga.id)
  return state and state.status
end

--- The order is placed as in life: by its aggregate.
local function place(host, id)
  local outcome = host:command("shop.order", id, "place", { customer = "Ada", item = "tea", total = 450 })
  assert.equal("accepted", outcome.outcome)
  host:run()
end

describe("the fulfilment of an order", function()
  it("ends well, or undoes what it did, whatever fails", function()
    testing.walk_failures(fulfilment, {
      start = placed,
      replies = { ["payment.Authorized"] = { authorization = "A-7" } },
      check = function(saga, outcome)
        assert.equal(outcome, order_state(saga))
      end,
    })
  end)

  it("never keeps the money of an order that it cancels", function()
    local held, done = 0, {} -- cents; commands that the payments have done, by id
    testing.walk_failures(fulfilment, {
      start = placed,
      only = "payment",
      receivers = {
        payments = function(message)
          local first = not done[message.id]
          done[message.id] = true
          if message.type == "payment.Authorize" then
            held = first and held + message.payload.amount or held
            return moontide.event("payment.Authorized", { authorization = "A-7" }), first
          end
          held = first and 0 or held
          return moontide.event "payment.Voided", first
        end,
      },
      check = function(_, outcome)
        assert.equal(outcome == "completed" and 450 or 0, held)
        held, done = 0, {}
      end,
    })
  end)

  describe("step by step", function()
    local host, saga

    before_each(function()
      host = testing.host { database = testing.database() }
      saga = testing.saga(fulfilment, { host = host, id = "O-1" })
      place(host, "O-1")
    end)

    after_each(function() host:close() end)

    it("asks one service after the other", function()
      assert.published(saga, "payments", "payment.Authorize", { payload = { order_id = "O-1", amount = 450 } })
      saga:reply("payment.Authorized", { authorization = "A-7" })
      assert.published(saga, "warehouse", "stock.Reserve", { payload = { order_id = "O-1", item = "tea" } })
      saga:reply "stock.Reserved"
      assert.published(saga, "carrier", "shipment.Request", { payload = { order_id = "O-1", customer = "Ada" } })
      saga:reply "shipment.Accepted"
      assert.published(saga, "mail", "mail.ConfirmOrder", { count = 1 })
      assert.ended(saga)
      assert.dispatched(host, "shop.order", "O-1", "order.Completed", { count = 1 })
      assert.equal("completed", order_state(saga))
    end)

    it("releases the stock before it voids the payment when the carrier says no", function()
      saga:reply("payment.Authorized", { authorization = "A-7" }):reply "stock.Reserved"
      saga:reply "shipment.Rejected"
      assert.published(saga, "warehouse", "stock.Release", { count = 1 })
      assert.is_not.published(saga, "payments", "payment.Void")
      saga:reply "stock.Released"
      assert.published(saga, "payments", "payment.Void", { payload = { order_id = "O-1", authorization = "A-7" } })
      saga:reply "payment.Voided"
      assert.ended(saga)
      assert.equal("cancelled", order_state(saga))
    end)

    it("gives up when nobody says that it is paid, and voids what may have been", function()
      saga:advance "11m"
      assert.published(saga, "payments", "payment.Void", { count = 1 })
      saga:reply "payment.Voided"
      assert.equal("cancelled", order_state(saga))
    end)

    it("voids again a payment that was authorized after all", function()
      saga:late("payment.Authorized", { authorization = "A-7" }, { to = "payment.Authorize" })
      saga:reply("payment.Voided"):reply "payment.Voided"
      assert.published(saga, "payments", "payment.Void", { count = 2 })
      assert.ended(saga)
    end)
  end)
end)
