-- Where every order stands, for those who ask.
local moontide = require "moontide"
local t = moontide.types

local ENDS = { completed = true, cancelled = true }

--- What was heard last, until the order has ended: an answer may come after that.
local function becomes(status)
  return function(state)
    if not ENDS[state.status] then state.status = status end
  end
end

return moontide.projection "order-status" {
  key = function(event) return event.payload.order_id end,
  fields = {
    status = t.enum { "placed", "paid", "reserved", "shipped", "completed", "cancelled" },
    total = t.integer { optional = true },
  },
  on = {
    ["order.Placed"] = function(_, event) return { status = "placed", total = event.payload.total } end,
    ["payment.Authorized"] = becomes "paid",
    ["stock.Reserved"] = becomes "reserved",
    ["shipment.Accepted"] = becomes "shipped",
    ["order.Completed"] = becomes "completed",
    ["order.Cancelled"] = becomes "cancelled",
  },
}
