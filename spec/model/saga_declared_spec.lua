-- Steps that sagas under way need and that are not declared any more: their
-- answers are of no wanted type, so nothing may be applied until they are.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local STEP = [[{ name = "%s", to = "out", command = "%s.Do", timeout = "10m", succeeds = "%s.Done",
  fails = "%s.Declined", compensate = %s },]]
local UNDO = [[{ command = "%s.Undo", succeeds = "%s.Undone" }]]

local function step(name, compensate)
  return STEP:format(name, name, name, name, compensate or UNDO:format(name, name))
end

local PAYMENT, SHIPMENT = step "payment", step "shipment"

-- With these steps, or with none and a handler; and another consumer.
local function order(...)
  return ([[
  return { moontide.publisher "out" { to = "stdout:" },
    moontide.listener "others" { start = "beginning",
      on = { ["order.Placed"] = function() end, ["payment.Done"] = function() end } },
    moontide.saga "order" { id = moontide.by "order", starts = { "order.Placed" },
      %s } }]]):format(select("#", ...) > 0 and "steps = {" .. table.concat { ... } .. "}"
    or 'on = { ["order.Placed"] = function() end }')
end

dialect.each(function(database)
  describe("a saga whose step is not declared any more", function()
    local rig

    before_each(function()
      rig = kit.new { database = database, handlers = order(PAYMENT, SHIPMENT), log = { level = "error" } }
    end)

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function append(id, event_type) rig:append(id, event_type, { order = id }) end

    local function tell(id, event_type)
      append(id, event_type)
      rig:run()
    end

    local function fails(what, ...)
      local good, problem = pcall(...)
      assert.is_false(good)
      assert.matches(what, tostring(problem), 1, true)
    end

    local function run_fails(what) fails(what, rig.run, rig) end

    local function reload_fails(what, script)
      rig:script(script)
      fails(what, rig.host.reload, rig.host)
    end

    local function steps(id)
      local list = {}
      for i, row in ipairs(rig:query(("SELECT step_name, state FROM SAGA_STEPS WHERE saga_id = '%s' ORDER BY step_no")
        :format(id))) do list[i] = row.step_name .. " " .. row.state end
      return list
    end

    local function problems() return table.concat(rig.app:json("status").problems, "\n") end

    local SENT = [[step 'payment' of saga 'X-1' is SENT, and it is not declared any more; declare it again until the]]

    it("is refused by a reload, which says whose", function()
      tell("X-1", "order.Placed")
      reload_fails("saga 'order' would stand still: " .. SENT, order(SHIPMENT))
      reload_fails("saga 'order' would stand still: " .. SENT, order())
      tell("X-1", "payment.Done")
      assert.same({ "payment SUCCEEDED", "shipment SENT" }, steps "X-1")
      -- it may have to be undone
      reload_fails([[step 'payment' of saga 'X-1' is SUCCEEDED]], order(SHIPMENT))
      tell("X-1", "shipment.Done")
      rig.host:reload()
    end)

    it("stands still with the next start, passes nothing, and goes on when it is declared again", function()
      tell("X-1", "order.Placed")
      assert.equal("", problems())
      rig:script(order(SHIPMENT))
      rig:reopen()
      append("X-1", "payment.Done")
      append("X-2", "order.Placed")
      run_fails(SENT)
      assert.same({}, steps "X-2")
      assert.matches("saga 'order' stands still in a host that has loaded handlers/spec.lua:6: " .. SENT, problems(), 1,
        true)
      assert.equal(0, tonumber(rig:query([[SELECT count(*) AS n FROM SAGA_INSTANCES WHERE saga_id = 'X-2']])[1].n))
      rig:script(order(PAYMENT, SHIPMENT))
      rig.host:reload()
      rig:run()
      assert.same({ "payment SUCCEEDED", "shipment SENT" }, steps "X-1")
      assert.same({ "payment SENT" }, steps "X-2")
      assert.equal("", problems())
    end)

    it("stands still after a reload that was told to go on", function()
      tell("X-1", "order.Placed")
      rig:script(order(SHIPMENT))
      rig.host:reload { accept = true }
      append("X-1", "payment.Done")
      run_fails(SENT)
      rig:script(order(PAYMENT, SHIPMENT))
      rig.host:reload()
      rig:run()
      assert.same({ "payment SUCCEEDED", "shipment SENT" }, steps "X-1")
    end)

    it("needs its compensation while that awaits its confirmation", function()
      tell("X-1", "order.Placed")
      tell("X-1", "payment.Done")
      tell("X-1", "shipment.Declined")
      assert.same({ "payment COMPENSATING", "shipment FAILED" }, steps "X-1")
      local BACK = [[step 'payment' of saga 'X-1' is COMPENSATING, and its compensation is not declared any more]]
      reload_fails(BACK, order(step("payment", "false"), SHIPMENT))
      rig:reopen()
      append("X-1", "payment.Undone")
      rig.host:advance "1h"
      run_fails(BACK)
      rig:script(order(PAYMENT)) -- nobody needs the other one any more
      rig.host:reload()
      rig:run()
      assert.same({ "payment COMPENSATED", "shipment FAILED" }, steps "X-1")
    end)

    it("stands still by the rule when another host has sent it meanwhile", function()
      tell("X-2", "order.Placed")
      rig:script(order(step("payment"):gsub('"payment"', '"other"', 1), SHIPMENT))
      rig:query "UPDATE SAGA_STEPS SET step_name = 'other'"
      rig.host:reload()
      rig:run()
      rig:query "UPDATE SAGA_STEPS SET step_name = 'payment'"
      append("X-2", "payment.Done")
      run_fails [[step 'payment' of saga 'X-2' is SENT, and it is not declared any more]]
      rig:query "UPDATE SAGA_STEPS SET step_name = 'other'"
    end)
  end)
end)
