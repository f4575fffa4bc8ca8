local moontide = require "moontide"
local testing = require "moontide.testing"

local order = require "handlers.order"

local WANTED = { customer = "Ada", item = "tea", total = 450 }
local placed = moontide.event("order.Placed", { order_id = "O-1", customer = "Ada", item = "tea", total = 450 })

describe("an order", function()
  it("is placed once, with all that it needs", function()
    testing.given(order, {}, "O-1"):when("place", WANTED):emits(placed)
      :when("place", WANTED):rejects "the order is open"
    testing.given(order, {}, "O-1"):when("place", { item = "tea", total = 450 }):rejects "an order needs a customer"
    testing.given(order, {}, "O-1"):when("place", { customer = "Ada", total = 450 }):rejects "an order needs an item"
    testing.given(order, {}, "O-1"):when("place", { customer = "Ada", item = "tea", total = 0.5 })
      :rejects "the total must be a positive number of cents"
  end)

  it("is completed or cancelled, and saying so again changes nothing", function()
    testing.given(order, { placed }, "O-1"):when("complete", {})
      :emits(moontide.event("order.Completed", { order_id = "O-1" }))
      :when("complete", {}):emits_nothing():when("cancel", {}):rejects "the order is completed"
    testing.given(order, { placed }, "O-1"):when("cancel", { reason = "no stock" })
      :emits(moontide.event("order.Cancelled", { order_id = "O-1", reason = "no stock" }))
      :when("complete", {}):rejects "the order is cancelled"
    testing.given(order, {}, "O-1"):when("complete", {}):rejects "the order is new"
  end)
end)
