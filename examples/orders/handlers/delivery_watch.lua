-- Sees to it that the parcel arrives: asks the carrier after a week, three times,
-- and then a person. Nobody commands this saga; it goes by what it hears.
local moontide = require "moontide"

local WAIT, QUESTIONS = "7d", 3

return moontide.saga "delivery-watch" {
  id = moontide.by "order_id",
  starts = { "order.Completed" },
  initial = function() return { asked = 0 } end,

  on = {
    ["order.Completed"] = function(saga)
      saga:deadline("delivery", WAIT)
    end,

    ["parcel.Delivered"] = function(saga, _, ctx)
      ctx:publish("mail", "mail.AskForReview", { order_id = saga.id })
      saga:complete()
    end,
  },

  deadlines = {
    delivery = function(saga, _, ctx)
      if saga.state.asked == QUESTIONS then
        ctx:emit("delivery.Overdue", { order_id = saga.id, asked = saga.state.asked }, { key = saga.id })
        saga:complete()
        return
      end
      saga.state.asked = saga.state.asked + 1
      ctx:publish("carrier", "parcel.Trace", { order_id = saga.id, question = saga.state.asked },
        { ordering_key = saga.id })
      saga:deadline("delivery", WAIT)
    end,
  },
}
