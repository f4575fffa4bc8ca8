-- A saga for each order, whose deadline does a little work on what it remembers.
local moontide = require "moontide"

return moontide.saga "order-saga" {
  id = moontide.by "order",
  starts = { "order.Placed" },
  initial = function() return { late = 0 } end,

  on = {
    ["order.Placed"] = function(saga, event)
      saga:deadline("payment", "1h", { step = event.payload.step })
    end,
  },

  deadlines = {
    payment = function(saga, deadline)
      saga.state.late = saga.state.late + deadline.payload.step
    end,
  },
}
