-- Pays, reserves, ships and confirms an order; what was done is undone when the
-- carrier does not take the parcel. From then on it only goes forward.
local moontide = require "moontide"

return moontide.saga "order-fulfilment" {
  id = moontide.by "order_id",
  starts = { "order.Placed" },

  on = {
    -- What later messages need of an answer is remembered here.
    ["payment.Authorized"] = function(saga, event)
      saga.state.authorization = event.payload.authorization
    end,
  },

  steps = {
    { name = "payment", to = "payments", command = "payment.Authorize", timeout = "10m",
      message = function(saga, event)
        saga.state = { customer = event.payload.customer, item = event.payload.item, total = event.payload.total }
        return { order_id = saga.id, amount = saga.state.total }
      end,
      succeeds = "payment.Authorized", fails = { "payment.Declined" },
      compensate = { command = "payment.Void", succeeds = "payment.Voided",
        message = function(saga) return { order_id = saga.id, authorization = saga.state.authorization } end } },

    { name = "stock", to = "warehouse", command = "stock.Reserve", timeout = "5m",
      message = function(saga) return { order_id = saga.id, item = saga.state.item } end,
      succeeds = "stock.Reserved", fails = { "stock.SoldOut" },
      compensate = { command = "stock.Release", succeeds = "stock.Released" } },

    { name = "shipment", to = "carrier", command = "shipment.Request", pivot = true, timeout = "1h",
      message = function(saga) return { order_id = saga.id, customer = saga.state.customer } end,
      succeeds = "shipment.Accepted", fails = { "shipment.Rejected" } },

    { name = "confirmation", to = "mail", command = "mail.ConfirmOrder", retriable = true,
      message = function(saga) return { order_id = saga.id, customer = saga.state.customer } end },
  },

  on_end = function(saga, outcome, ctx)
    if outcome == "Completed" then
      ctx:dispatch("shop.order", saga.id, "complete", {})
    else
      ctx:dispatch("shop.order", saga.id, "cancel", { reason = "it could not be paid, reserved or shipped" })
    end
  end,
}
