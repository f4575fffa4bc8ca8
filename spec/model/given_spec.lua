-- testing.given: the pure check of an aggregate's decisions.
local application = require "spec.support.application"
local moontide = require "moontide"
local testing = require "moontide.testing"

local function money(amount) return moontide.event("purse.Filled", { amount = amount }) end

-- Made in a spec: its functions run here.
local here = moontide.aggregate "spec.purse" {
  initial = function() return { sum = 0 } end,
  commands = {
    fill = function(_, args) return moontide.event("purse.Filled", { amount = args.amount }) end,
    drain = function(purse, args)
      if args.amount > purse.sum then return moontide.reject("too much", { missing = args.amount - purse.sum }) end
      return {}
    end,
    spoil = function(purse) purse.sum = 7 end,
    forget = function() return moontide.event("purse.Lost") end,
  },
  apply = { ["purse.Filled"] = function(purse, event) purse.sum = purse.sum + event.payload.amount end },
}

local TEXT = [[
local moontide = require "moontide"
return { moontide.event_type "purse.Filled" { revision = 1, fields = { amount = moontide.types.integer() },
  upcast = { [0] = { rename = { cents = "amount" } } } },
  moontide.aggregate "spec.purse" {
    initial = function() return { sum = 0 } end,
    commands = {
      fill = function(_, args, ctx)
        return moontide.event("purse.Filled", { amount = args.amount }, { metadata = { by = ctx.metadata.by } })
      end,
      drain = function(purse, args)
        if args.amount > purse.sum then return moontide.reject("too much", { missing = args.amount - purse.sum }) end
        return {}
      end,
      spoil = function(purse) purse.sum = 7 end,
      forget = function() return moontide.event("purse.Lost") end,
    },
    apply = { ["purse.Filled"] = function(purse, event) purse.sum = purse.sum + event.payload.amount end },
  } }
]]

local function problem(fn, ...)
  local good, why = pcall(fn, ...)
  assert.is_false(good)
  return why
end

local function given(declaration, events) return testing.given(declaration, events) end

for _, where in ipairs { "in a file", "in a spec" } do
  describe("given, when, then of an aggregate declared " .. where, function()
    local app, purse

    before_each(function()
      app = application.new {}
      purse = here
      if where == "in a file" then
        app:write("handlers/purse.lua", TEXT)
        purse = setmetatable({ file = app.path .. "/handlers/purse.lua" }, { __index = here })
      end
    end)

    after_each(function() app:close() end)

    it("accepts what is so", function()
      given(purse, { money(3), money(4) }):when("drain", { amount = 9 }):rejects("too much", { missing = 2 })
      given(purse, {}):when("fill", { amount = 5 }):emits(money(5)):leaves { sum = 5 }
        :when("drain", { amount = 5 }):accepts():emits_nothing()
    end)

    it("says what is instead", function()
      local rejected = given(purse, {}):when("drain", { amount = 9 })
      assert.matches([['drain' rejects with "too much" {"missing":9}; expected that it accepts]],
        problem(rejected.accepts, rejected), 1, true)
      assert.matches('expected that it rejects with "to much"', problem(rejected.rejects, rejected, "to much"), 1, true)
      assert.matches("expected details.missing = 8, not 9", problem(rejected.rejects, rejected, "too much",
        { missing = 8 }), 1, true)
      local filled = given(purse, {}):when("fill", { amount = 5 })
      assert.matches("expected event 1 with payload.amount = 6, not 5", problem(filled.emits, filled, money(6)), 1,
        true)
      assert.matches("expected 2 events", problem(filled.emits, filled, money(5), money(5)), 1, true)
      assert.matches("expected state.sum = 6, not 5", problem(filled.leaves, filled, { sum = 6 }), 1, true)
      assert.matches("accepts without an event", problem(filled.emits_nothing, filled), 1, true)
    end)

    it("finds a command that changes the state, and an event without apply", function()
      local check = given(purse, {})
      assert.matches("command 'spoil' changes the state", problem(check.when, check, "spoil"), 1, true)
      assert.matches('has no apply for "purse.Lost"', problem(check.when, check, "forget"), 1, true)
      assert.matches("has no command 'spil'", problem(check.when, check, "spil"), 1, true)
    end)

    it("is what the assertions take", function()
      assert.rejected(given(purse, {}):when("drain", { amount = 9 }), "too much", { missing = 9 })
      assert.is_not.rejected(given(purse, {}):when("drain", { amount = 0 }))
      assert.emitted(given(purse, {}):when("fill", { amount = 5 }), "purse.Filled", { amount = 5 })
      assert.is_not.emitted(given(purse, {}):when("fill", { amount = 5 }), "purse.Filled", { amount = 6 })
    end)

    if where == "in a file" then
      it("reads what is given by the steps of its types, and checks what is emitted", function()
        given(purse, { moontide.event("purse.Filled", { cents = 3 }, { revision = 0 }) })
          :when("fill", { amount = 1 }, { metadata = { by = "me" } }):leaves { sum = 4 }
          :emits(moontide.event("purse.Filled", { amount = 1 }, { revision = 1 }))
        local check = given(purse, {})
        assert.matches("payload.amount: expected an integer", problem(check.when, check, "fill", { amount = "x" }), 1,
          true)
      end)
    end
  end)
end
