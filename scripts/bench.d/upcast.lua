-- The bank's event types, three revisions later: what is stored as revision 0 is
-- led to the newest by declared steps, and is there what it was at first, so that
-- the projection beside it is the same with them and without.
local moontide = require "moontide"

local function changed(event_type)
  return moontide.event_type(event_type) {
    revision = 3,
    upcast = {
      [0] = { rename = { amount = "cents" } },
      [1] = { default = { currency = "EUR", tags = moontide.array() } },
      [2] = { rename = { cents = "amount" }, remove = { "currency", "tags" } },
    },
  }
end

return {
  changed "account.Opened",
  changed "account.Deposited",
  changed "account.Withdrawn",
  changed "account.Closed",
}
