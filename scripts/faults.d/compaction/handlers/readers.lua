-- A read model with a topic, whose keys come and go, and two consumers of the
-- topic: one that is left behind, and one that is rebuilt.
local moontide = require "moontide"
local t = moontide.types

local function reader(name)
  return moontide.projection(name) {
    source = "read-model:models",
    fields = { last = t.integer() },
    on = {
      ["read-model.Changed"] = function(state, event) state.last = event.payload.last end,
      ["read-model.Deleted"] = function() return moontide.delete end,
    },
  }
end

return {
  moontide.projection "models" {
    aggregates = { "hosts.thing" },
    topic = true,
    fields = { last = t.integer() },
    on = {
      ["hosts.Put"] = function(model, event)
        if event.payload.n % 5 == 0 then return moontide.delete end
        model.last = event.payload.n
      end,
    },
  },
  reader "behind",
  reader "rebuilt",
}
