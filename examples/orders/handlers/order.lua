-- What an order allows: placed once, then completed or cancelled, not both.
local moontide = require "moontide"

local function is_cents(value)
  return type(value) == "number" and value > 0 and value % 1 == 0
end

--- Ends an open order with such an event; an order that has ended so stays as it is.
local function ends(state, event_type)
  return function(order, args)
    if order.state == state then return {} end
    if order.state ~= "open" then return moontide.reject("the order is " .. order.state) end
    return { moontide.event(event_type, { order_id = order.id, reason = args.reason }) }
  end
end

return moontide.aggregate "shop.order" {
  initial = function(id) return { id = id, state = "new" } end,

  commands = {
    place = function(order, args)
      if order.state ~= "new" then return moontide.reject("the order is " .. order.state) end
      if type(args.customer) ~= "string" then return moontide.reject("an order needs a customer") end
      if type(args.item) ~= "string" then return moontide.reject("an order needs an item") end
      if not is_cents(args.total) then return moontide.reject("the total must be a positive number of cents") end
      return { moontide.event("order.Placed", {
        order_id = order.id, customer = args.customer, item = args.item, total = args.total,
      }) }
    end,

    complete = ends("completed", "order.Completed"),
    cancel = ends("cancelled", "order.Cancelled"),
  },

  apply = {
    ["order.Placed"] = function(order) order.state = "open" end,
    ["order.Completed"] = function(order) order.state = "completed" end,
    ["order.Cancelled"] = function(order) order.state = "cancelled" end,
  },
}
