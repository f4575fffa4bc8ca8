local moontide = require "moontide"
local testing = require "moontide.testing"

local watch = require "handlers.delivery_watch"

describe("the watch over a delivery", function()
  local saga

  before_each(function()
    saga = testing.saga(watch, { database = testing.database() })
    saga:start(moontide.event("order.Completed", {}))
  end)

  after_each(function() saga:close() end)

  it("is content when the parcel arrives in a week, and asks for a review", function()
    assert.scheduled_in(saga, "delivery", "7d")
    saga:reply "parcel.Delivered"
    assert.published(saga, "mail", "mail.AskForReview", { count = 1 })
    assert.ended(saga)
    assert.is_not.scheduled_in(saga, "delivery")
  end)

  it("asks the carrier each week, three times, and then a person", function()
    for question = 1, 3 do
      saga:advance "169h"
      assert.published(saga, "carrier", "parcel.Trace", { key = "S-1", count = question })
      assert.saga_state(saga, { asked = question })
      assert.scheduled_in(saga, "delivery", "7d")
    end
    saga:advance "169h"
    assert.emitted(saga, "delivery.Overdue", { payload = { order_id = "S-1", asked = 3 }, count = 1 })
    assert.ended(saga)
  end)

  it("hears of a parcel that arrives late", function()
    saga:late("parcel.Delivered", {})
    assert.published(saga, "carrier", "parcel.Trace", { count = 1 })
    assert.published(saga, "mail", "mail.AskForReview", { count = 1 })
    assert.ended(saga)
  end)
end)
