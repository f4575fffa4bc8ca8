-- Sagas under way whose steps another script declares in another order, or
-- with others before and behind them.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local STEPS = {
  payment = [[{ name = "payment", to = "log", command = "payment.Authorize", timeout = "10m",
    succeeds = "payment.Authorized", fails = "payment.Declined",
    compensate = { command = "payment.Void", succeeds = "payment.Voided" } }]],
  stock = [[{ name = "stock", to = "log", command = "stock.Reserve", timeout = "5m",
    succeeds = "stock.Reserved", fails = "stock.Unavailable",
    compensate = { command = "stock.Release", succeeds = "stock.Released", timeout = "2m" } }]],
  fraud = [[{ name = "fraud", to = "log", command = "fraud.Check", timeout = "10m",
    succeeds = "fraud.Checked", fails = "fraud.Found", compensate = false }]],
}

local function order(...)
  local list = {}
  for i, name in ipairs { ... } do list[i] = STEPS[name] end
  return [[return { moontide.publisher "log" { to = "stdout:" },
    moontide.saga "order" { id = moontide.by "order", starts = { "order.Placed" },
      steps = { ]] .. table.concat(list, ",") .. [[ },
      on_end = function(saga, outcome, ctx) ctx:emit("order." .. outcome, { order = saga.id }) end } }]]
end

dialect.each(function(database)
  describe("a saga under way whose steps are declared otherwise", function()
    local rig

    local function start(...) rig = kit.start(database, order(...)) end

    after_each(function() rig:close() end)

    local function declare(...)
      rig:script(order(...))
      rig:reopen()
    end

    local function tell(...)
      for _, event_type in ipairs { ... } do
        rig:append("O-1", event_type, { order = "O-1" })
        rig:run()
        assert.same({}, rig:undelivered())
      end
    end

    local function sent()
      local types = {}
      for i, message in ipairs(rig.host:published()) do types[i] = message.type end
      table.sort(types)
      return table.concat(types, " ")
    end

    local function steps()
      local list = {}
      for i, row in ipairs(rig:query "SELECT * FROM SAGA_STEPS ORDER BY step_name, round") do
        list[i] = ("%s %d %s"):format(row.step_name, tonumber(row.round), row.state)
      end
      return list
    end

    it("sends none a second time when they change places", function()
      start("payment", "stock")
      tell("order.Placed", "payment.Authorized")
      declare("stock", "payment", "fraud")
      tell "stock.Reserved"
      assert.equal("fraud.Check payment.Authorize stock.Reserve", sent())
      tell "fraud.Checked"
      assert.same({ "fraud 1 SUCCEEDED", "payment 1 SUCCEEDED", "stock 1 SUCCEEDED" }, steps())
      assert.equal(1, #rig.host:emitted "order.Completed")
    end)

    it("undoes what was done when they change places", function()
      start("payment", "stock")
      tell("order.Placed", "payment.Authorized")
      declare("stock", "payment")
      tell("stock.Unavailable", "payment.Voided")
      assert.same({ "payment 1 COMPENSATED", "stock 1 FAILED" }, steps())
      assert.equal(1, #rig.host:emitted "order.Cancelled")
    end)

    it("goes on with new ones behind what it has reached, not with those before", function()
      start "payment"
      tell "order.Placed"
      declare("stock", "payment", "fraud")
      tell("payment.Authorized", "fraud.Found", "payment.Voided")
      assert.same({ "fraud 1 FAILED", "payment 1 COMPENSATED" }, steps())
      assert.equal(1, #rig.host:emitted "order.Cancelled")
    end)

    it("takes a late success once, though the steps before it are declared no more", function()
      start("payment", "stock")
      tell("order.Placed", "payment.Authorized")
      rig.host:advance "5m"
      rig:run()
      tell("stock.Released", "payment.Voided")
      declare "stock"
      tell("stock.Reserved", "stock.Reserved")
      assert.same({ "payment 1 COMPENSATED", "stock 1 COMPENSATED", "stock 2 COMPENSATING" }, steps())
      tell("stock.Released", "stock.Reserved", "stock.Released")
      assert.same({ "payment 1 COMPENSATED", "stock 1 COMPENSATED", "stock 2 COMPENSATED" }, steps())
      assert.equal("payment.Authorize payment.Void stock.Release stock.Release stock.Reserve", sent())
      assert.equal(1, #rig.host:emitted "order.Cancelled")
    end)
  end)
end)
