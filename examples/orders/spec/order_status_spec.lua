local moontide = require "moontide"
local testing = require "moontide.testing"

local status = require "handlers.order_status"

local function told(id, event_type, payload)
  payload = payload or {}
  payload.order_id = id
  return moontide.event(event_type, payload, {
    aggregate_type = "shop." .. event_type:match "^%w+", aggregate_id = id, -- shop.order, shop.payment ...
  })
end

describe("the status of orders", function()
  it("is what was heard last, and stays when the order has ended", function()
    local states = testing.project(status, {
      told("O-1", "order.Placed", { total = 450 }), told("O-2", "order.Placed", { total = 100 }),
      told("O-1", "payment.Authorized"), told("O-2", "order.Cancelled"), told("O-1", "stock.Reserved"),
      told("O-1", "shipment.Accepted"), told("O-1", "order.Completed"),
      told("O-2", "payment.Authorized"),
    })
    assert.same({ status = "completed", total = 450 }, states["O-1"])
    assert.same({ status = "cancelled", total = 100 }, states["O-2"])
  end)
end)
