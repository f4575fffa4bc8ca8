-- The same messages as state per key, folded before the transaction opens.
local moontide = require "moontide"
local t = moontide.types

return moontide.projection "things" {
  aggregates = { "hosts.thing" },
  fields = { count = t.integer(), last = t.integer(), disorder = t.integer() },
  initial = function() return { count = 0, last = 0, disorder = 0 } end,
  on = {
    ["hosts.Put"] = function(thing, event)
      thing.count = thing.count + 1
      if event.payload.n ~= thing.last + 1 then thing.disorder = thing.disorder + 1 end
      thing.last = event.payload.n
    end,
  },
}
