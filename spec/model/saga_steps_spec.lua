-- Orchestrated sagas: the host sends the commands of the steps, takes the
-- answers, and undoes what was done when one fails.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

local ORDER = [[
  local saga = moontide.saga "order" { id = moontide.by "order", starts = { "order.Placed" },
    retry = { attempts = 2, delay = "1m", max_delay = "10m", factor = 2, jitter = 0 },
    initial = function() return { total = 0 } end,
    on = { ["payment.Authorized"] = function(saga, event) saga.state.authorization = event.payload.authorization end },
    steps = {
      { name = "payment", to = "payments", command = "payment.Authorize", timeout = "10m",
        message = function(saga, event)
          saga.state.total = event.payload.total
          return { order = saga.id, amount = event.payload.total }
        end,
        succeeds = "payment.Authorized", fails = { "payment.Declined" },
        compensate = { command = "payment.Void", succeeds = "payment.Voided",
          message = function(saga) return { order = saga.id, authorization = saga.state.authorization } end } },
      { name = "stock", to = "warehouse", command = "stock.Reserve", timeout = "5m",
        succeeds = "stock.Reserved", fails = "stock.Unavailable",
        compensate = { command = "stock.Release", succeeds = "stock.Released", timeout = "2m" } },
      { name = "shipment", to = "carrier", command = "shipment.Request", pivot = true, timeout = "1h",
        succeeds = "shipment.Accepted", fails = { "shipment.Rejected" } },
      { name = "confirm", to = "mail", command = "mail.Confirm", retriable = true } },
    on_end = function(saga, outcome, ctx)
      ctx:emit("order." .. outcome, { order = saga.id, steps = #saga.history, total = saga.state.total })
    end }
  return { saga, moontide.publisher "payments" { to = "stdout:" }, moontide.publisher "warehouse" { to = "stdout:" },
    moontide.publisher "carrier" { to = "stdout:" }, moontide.publisher "mail" { to = "stdout:" } }]]

dialect.each(function(database)
  describe("an orchestrated saga", function()
    local rig

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function start(handlers, settings)
      rig = kit.start(database, handlers or ORDER, settings)
    end

    -- Events of the saga O-1, applied.
    local function tell(...)
      for _, event_type in ipairs { ... } do
        local payload = { order = "O-1" }
        if event_type == "order.Placed" then payload.total = 120 end
        if event_type == "payment.Authorized" then payload.authorization = "A-7" end
        rig:append("O-1", event_type, payload)
        rig:run()
      end
    end

    local function tell_of(event_type, metadata)
      rig:append("O-1", event_type, { order = "O-1" }, { metadata = metadata })
      rig:run()
    end

    -- Types of what was staged, in order.
    local function sent()
      local types = {}
      for i, message in ipairs(rig.host:published()) do types[i] = message.type end
      return types
    end

    local function message(event_type)
      for _, m in ipairs(rig.host:published()) do
        if m.type == event_type then return m end
      end
    end

    local function ended()
      local list = {}
      for _, outcome in ipairs { "Completed", "Cancelled" } do
        for _ = 1, #rig.host:emitted("order." .. outcome) do list[#list + 1] = outcome end
      end
      return list
    end

    local function steps()
      local list = {}
      for i, row in ipairs(rig:query [[SELECT step_name, round, state FROM SAGA_STEPS ORDER BY step_no, round]]) do
        list[i] = ("%s %d %s"):format(row.step_name, tonumber(row.round), row.state)
      end
      return list
    end

    local function deadlines()
      local list = {}
      for i, row in ipairs(rig:query "SELECT name FROM SAGA_DEADLINES") do list[i] = row.name end
      return list
    end

    -- A host looks now and then at what operators have made due.
    local function run_until(condition)
      process.wait_until(function()
        rig:run()
        return condition()
      end, 30)
    end

    for timeout, text in pairs { ["10m"] = "10 min", ["90s"] = "90 s", ["1500ms"] = "1500 ms" } do
      it("says how long it has waited for an answer in vain: " .. text, function()
        start((ORDER:gsub('timeout = "10m"', ("timeout = %q"):format(timeout))))
        tell "order.Placed"
        rig.host:advance(timeout)
        rig:run()
        assert.equal("no answer within " .. text, rig:value "SELECT failure_reason AS value FROM SAGA_STEPS")
      end)
    end

    it("sends one command after the other, up to its end", function()
      start()
      tell "order.Placed"
      assert.same({ "payment.Authorize" }, sent())
      assert.same({ order = "O-1", amount = 120 }, message("payment.Authorize").payload)
      assert.same({ "moontide:step" }, deadlines())
      tell "payment.Authorized"
      tell "stock.Reserved"
      assert.same({ "payment.Authorize", "stock.Reserve", "shipment.Request" }, sent())
      assert.same({ order = "O-1" }, message("stock.Reserve").payload)
      assert.same({}, ended())
      tell "shipment.Accepted"
      assert.same({ "payment.Authorize", "stock.Reserve", "shipment.Request", "mail.Confirm" }, sent())
      assert.same({ "Completed" }, ended())
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SUCCEEDED", "shipment 1 SUCCEEDED", "confirm 1 SUCCEEDED" },
        steps())
      assert.same({}, deadlines())
      assert.same({ order = "O-1", steps = 4, total = 120 }, rig.host:emitted("order.Completed")[1].payload)
      assert.is_not_nil(rig:query("SELECT completed_at FROM SAGA_INSTANCES")[1].completed_at)
    end)

    it("undoes the steps that were done, newest first, each when the one before is confirmed", function()
      start()
      tell("order.Placed", "payment.Authorized", "stock.Reserved", "shipment.Rejected")
      assert.same({ "payment.Authorize", "stock.Reserve", "shipment.Request", "stock.Release" }, sent())
      tell "payment.Voided" -- not its turn
      assert.equal(4, #sent())
      tell "stock.Released"
      assert.equal("payment.Void", sent()[5])
      assert.same({ order = "O-1", authorization = "A-7" }, message("payment.Void").payload)
      assert.same({}, ended())
      tell "payment.Voided"
      assert.same({ "Cancelled" }, ended())
      assert.same({ "payment 1 COMPENSATED", "stock 1 COMPENSATED", "shipment 1 FAILED" }, steps())
      assert.same({}, deadlines())
    end)

    it("takes each answer once, whatever comes again", function()
      start()
      tell("order.Placed", "order.Placed", "payment.Authorized", "payment.Authorized", "order.Placed")
      tell("payment.Declined", "stock.Unavailable", "stock.Unavailable", "payment.Authorized")
      assert.same({ "payment.Authorize", "stock.Reserve", "payment.Void" }, sent())
      tell("payment.Voided", "payment.Voided", "stock.Unavailable", "payment.Authorized", "order.Placed")
      assert.same({ "payment.Authorize", "stock.Reserve", "payment.Void" }, sent())
      assert.same({ "Cancelled" }, ended())
      assert.same({ "payment 1 COMPENSATED", "stock 1 FAILED" }, steps())
    end)

    it("undoes a step of which nothing was heard, for it may have been done", function()
      start()
      tell("order.Placed", "payment.Authorized")
      rig.host:advance "5m"
      rig:run()
      assert.same({ "payment.Authorize", "stock.Reserve", "stock.Release" }, sent())
      assert.same({ "payment 1 SUCCEEDED", "stock 1 COMPENSATING" }, steps())
      tell("stock.Released", "payment.Voided")
      assert.same({ "Cancelled" }, ended())
    end)

    it("undoes a late success in a round of its own, also after its end", function()
      start()
      tell("order.Placed", "payment.Authorized")
      rig.host:advance "5m"
      rig:run()
      tell("stock.Released", "payment.Voided")
      assert.same({ "Cancelled" }, ended())
      local first = message("stock.Release").id
      tell("stock.Reserved", "stock.Reserved")
      local messages = rig.host:published()
      assert.equal(5, #messages)
      assert.equal("stock.Release", messages[5].type)
      assert.not_equal(first, messages[5].id)
      assert.same({ "payment 1 COMPENSATED", "stock 1 COMPENSATED", "stock 2 COMPENSATING" }, steps())
      assert.same({ "moontide:step" }, deadlines())
      tell("stock.Released", "stock.Reserved", "stock.Released")
      assert.same({ "payment 1 COMPENSATED", "stock 1 COMPENSATED", "stock 2 COMPENSATED" }, steps())
      assert.same({}, deadlines())
      assert.same({ "Cancelled" }, ended())
    end)

    it("sends the pivot's command again under its id, and never undoes it for silence", function()
      start(nil, { log = { level = "warn" } })
      tell("order.Placed", "payment.Authorized", "stock.Reserved")
      local id = message("shipment.Request").id
      rig:query "UPDATE OUTBOX SET status = 'published'"
      rig.host:advance "1h"
      rig:run()
      local pending = rig:query "SELECT event_id, event_type FROM OUTBOX WHERE status = 'pending'"
      assert.equal(1, #pending)
      assert.equal(id, pending[1].event_id)
      assert.equal("shipment 1 OVERDUE", steps()[3])
      assert.matches("shipment.* of saga .*O%-1.* has no answer in time", rig:log())
      rig:query "DELETE FROM OUTBOX" -- what was published is not kept for ever
      rig.host:advance "1h"
      rig:run()
      assert.equal(id, message("shipment.Request").id)
      assert.same({ order = "O-1" }, message("shipment.Request").payload)
      tell "shipment.Accepted"
      assert.same({ "Completed" }, ended())
    end)

    it("sends a compensation again until it is confirmed, and says when it is stuck", function()
      start()
      tell("order.Placed", "payment.Authorized", "stock.Unavailable")
      for round = 1, 3 do
        rig:query "UPDATE OUTBOX SET status = 'published'"
        rig.host:advance "10m"
        rig:run()
        local pending = rig:query "SELECT event_type FROM OUTBOX WHERE status = 'pending'"
        assert.equal("payment.Void", pending[1].event_type)
        assert.equal(round >= 2 and "payment 1 STUCK" or "payment 1 COMPENSATING", steps()[1])
      end
      local _, alarms = rig:log():gsub("the compensation of step", "")
      assert.equal(1, alarms)
      tell "payment.Voided"
      assert.same({ "Cancelled" }, ended())
    end)

    it("tells receivers what a command is of, and takes answers by its id", function()
      start()
      tell("order.Placed")
      local command = message "payment.Authorize"
      local metadata = command.metadata
      assert.same({ saga_id = "O-1", saga_type = "order", step = "payment", kind = "command", round = 1 }, metadata)
      assert.equal("O-1", command.ordering_key)
      tell_of("payment.Authorized", { command_id = "018bcfe5-6804-7d58-9ebe-a5595a2782f2" })
      for _, id in ipairs { "", "payment-1", 7, command.id:sub(2) } do -- of somebody who counts otherwise
        tell_of("payment.Authorized", { command_id = id })
      end
      assert.same({ "payment 1 SENT" }, steps())
      tell_of("payment.Authorized", { command_id = command.id })
      assert.equal("stock.Reserve", sent()[2])
    end)

    it("does nothing twice when an answer is lost or the host starts anew", function()
      start()
      for _, event_type in ipairs { "order.Placed", "payment.Authorized", "stock.Unavailable", "payment.Voided" } do
        rig:append("O-1", event_type, { order = "O-1", total = 1 })
        rig:redeliver()
        rig:restart()
        rig:run()
      end
      assert.same({ "payment.Authorize", "stock.Reserve", "payment.Void" }, sent())
      assert.same({ "Cancelled" }, ended())
    end)

    it("leaves nothing of a step whose message cannot be made, and goes on when it can", function()
      start((ORDER:gsub("message = function%(saga%) return", 'message = function(saga) error "no way" return')))
      tell("order.Placed", "payment.Authorized")
      tell "stock.Unavailable"
      assert.same({ "payment.Authorize", "stock.Reserve" }, sent())
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SENT" }, steps())
      rig:script(ORDER)
      rig:reopen()
      rig.host:advance "30m"
      rig:run()
      rig:run()
      assert.same({ "payment.Authorize", "stock.Reserve", "payment.Void" },
        { sent()[1], sent()[2], sent()[#sent()] })
    end)

    it("leaves nothing of a failed event in the page of those before it", function()
      start((ORDER:gsub("message = function%(saga%) return", 'message = function(saga) error "no way" return')))
      rig:append_all { { "O-1", "order.Placed", { order = "O-1", total = 1 } },
        { "O-1", "payment.Authorized", { order = "O-1" } }, { "O-1", "stock.Unavailable", { order = "O-1" } } }
      rig:run()
      assert.same({ "payment.Authorize", "stock.Reserve" }, sent())
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SENT" }, steps())
      assert.same({ "moontide:step" }, deadlines())
    end)

    it("keeps its deadline when an order turns out to be about another step", function()
      start()
      tell "order.Placed"
      rig.app:ok("sagas", "retry", "order", "O-1")
      rig:query [[UPDATE SAGA_DEADLINES SET payload_json = '{"operator":"confirm","step":"stock"}']]
      run_until(function()
        return rig:query("SELECT payload_json FROM SAGA_DEADLINES")[1].payload_json:find "SENT"
      end)
      assert.same({ "payment 1 SENT" }, steps())
      assert.same({ "moontide:step" }, deadlines())
      rig.host:advance "10m"
      rig:run()
      assert.same({ "payment 1 COMPENSATING" }, steps())
    end)

    it("keeps its deadline when operators delete deadlines", function()
      start()
      tell "order.Placed"
      local id = rig:query("SELECT id FROM SAGA_DEADLINES")[1].id
      rig:query([[INSERT INTO SAGA_DEADLINES (id, saga_type, saga_id, name, instance_id, due_at, next_retry_at,
        partition_no) SELECT 'ffffffff-0000-7000-8000-000000000001', saga_type, saga_id, 'moontide', instance_id,
        due_at, next_retry_at, partition_no FROM SAGA_DEADLINES]])
      assert.matches("'moontide:step' is a deadline of the host and is not deleted: .*`moontide sagas retry TYPE ID`",
        rig.app:fails(64, "deadlines", "delete", "order", "O-1", "moontide:step"))
      assert.matches("is a deadline of the host and is not deleted", rig.app:fails(1, "deadlines", "delete", id))
      local told = rig.app:ok("deadlines", "delete", "order", "O-1")
      assert.matches("1 deadline deleted\n", told)
      assert.matches("1 deadline of the host left alone: .*`moontide sagas confirm TYPE ID STEP`", told)
      assert.same({ changed = 0, dead_letters = 0, of_host = 1 }, rig.app:json("deadlines", "delete", "--all"))
      assert.same({ "moontide:step" }, deadlines())
    end)

    it("gets its deadline back by an operator's order when somebody has deleted the row", function()
      start()
      tell "order.Placed"
      rig:query "DELETE FROM SAGA_DEADLINES"
      rig.app:ok("sagas", "retry", "order", "O-1")
      run_until(function() return tonumber(rig:query("SELECT sends FROM SAGA_STEPS")[1].sends) == 2 end)
      assert.same({ "moontide:step" }, deadlines())
      rig:query "DELETE FROM SAGA_DEADLINES"
      rig.app:ok("sagas", "confirm", "order", "O-1", "payment")
      run_until(function() return #steps() == 2 end)
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SENT" }, steps())
      assert.same({ "moontide:step" }, deadlines())
    end)

    it("goes on with its chain where silence leads it, and where an operator does", function()
      start()
      tell("order.Placed")
      local first = message("payment.Authorize")
      assert.is_string(first.correlation_id)
      rig.host:advance "10m"
      rig:run()
      local void = message("payment.Void")
      assert.equal(first.correlation_id, void.correlation_id)
      assert.not_equal(first.causation_id, void.causation_id)

      rig:append("O-2", "order.Placed", { order = "O-2", total = 1 }, { metadata = { correlation_id = "trip 7" } })
      rig:run()
      rig:query "DELETE FROM SAGA_DEADLINES"
      for _, id in ipairs { "O-1", "O-2" } do rig.app:ok("sagas", "retry", "order", id) end
      local made = {}
      for _, row in ipairs(rig:query "SELECT saga_id, metadata_json AS metadata FROM SAGA_DEADLINES") do
        made[row.saga_id] = row.metadata
      end
      assert.equal(('{"correlation_id":"%s","saga_id":"O-1","saga_type":"order"}'):format(first.correlation_id),
        made["O-1"])
      assert.equal('{"correlation_id":"trip 7","saga_id":"O-2","saga_type":"order"}', made["O-2"])
      rig:query "DELETE FROM SAGA_DEADLINES"
      rig:query "DELETE FROM OUTBOX"
      rig.app:ok("sagas", "retry", "order", "O-1")
      assert.equal('{"saga_id":"O-1","saga_type":"order"}',
        rig:query("SELECT metadata_json AS metadata FROM SAGA_DEADLINES")[1].metadata)
    end)

    it("sends again what its relay has given up, by itself and by an operator's word", function()
      start()
      tell("order.Placed", "payment.Authorized", "stock.Unavailable")
      local function park()
        rig:query [[UPDATE OUTBOX SET status = 'parked', attempts = 9, last_error = 'no broker',
          claim_token = '0190f6a0-0000-7000-8000-00000000000a']]
      end
      local function revived()
        local list = {}
        for i, row in ipairs(rig:query "SELECT * FROM OUTBOX WHERE status = 'pending'") do
          list[i] = ("%s %d %s"):format(row.event_type, tonumber(row.attempts), tostring(row.claim_token))
        end
        return list
      end
      park()
      rig.host:advance "10m"
      rig:run()
      assert.same({ "payment.Void 0 nil" }, revived())
      park()
      rig.app:ok("sagas", "retry", "order", "O-1")
      run_until(function() return #revived() > 0 end)
      assert.same({ "payment.Void 0 nil" }, revived())
    end)

    it("is deleted with its steps, and says what it leaves", function()
      start()
      tell("order.Placed", "payment.Authorized")
      rig:append("O-2", "order.Placed", { order = "O-2", total = 1 })
      rig:run()
      assert.matches("is under way, its step 'stock' is SENT, and nothing would undo what was done: nothing was dele",
        rig.app:fails(3, "sagas", "delete", "order", "O-1"))
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SENT" }, { steps()[1], steps()[3] })
      assert.matches("with 1 deadline and 2 rows of steps\n2 messages of it in the outbox, not sent yet, stay",
        rig.app:ok("sagas", "delete", "order", "O-1", "--force"))
      assert.same({ "payment 1 SENT" }, steps())
      assert.same({ "moontide:step" }, deadlines())
      tell("stock.Reserved", "order.Placed")
      assert.same({ "payment 1 SENT", "payment 1 SENT" }, steps())
      tell("payment.Declined")
      assert.same({ "Cancelled" }, ended())
      tell("payment.Authorized") -- it was, after all
      assert.matches("is completed, its step 'payment' is COMPENSATING",
        rig.app:fails(3, "sagas", "delete", "order", "O-1"))
      tell("payment.Voided")
      local gone = rig.app:json("sagas", "delete", "order", "O-1")
      assert.same({ "completed", 0, 2 }, { gone.state, gone.deadlines, gone.steps })
    end)

    it("goes by its id as it is, whatever that looks like", function()
      start()
      local ids = { "a b", "é☃", "'; DROP TABLE x", "moontide:step", ("x"):rep(255), "a\\b", '"q"', "a ", "A", "a" }
      local list, answers = {}, {}
      for i, id in ipairs(ids) do
        list[i] = { "x", "order.Placed", { order = id, total = i } }
        answers[i] = { "x", "payment.Authorized", { order = id } }
      end
      rig:append_all(list)
      rig:append_all(answers)
      rig:run()
      for i, id in ipairs(ids) do
        local shown = rig.app:json("sagas", "show", "order", id)
        assert.same({ i, "SUCCEEDED", "SENT" }, { shown.data.total, shown.steps[1].state, shown.steps[2].state })
        assert.equal(1, rig.app:json("sagas", "delete", "order", id, "--force").deadlines)
        assert.equal(#ids - i, #rig:query "SELECT saga_id FROM SAGA_INSTANCES")
      end
      assert.same({}, steps())
      assert.same({}, deadlines())
    end)

    it("is not said to be deletable by its deadline when that lies dead", function()
      start()
      tell "order.Placed"
      local function problem()
        return table.concat(rig.app:json("status").problems, "\n")
      end
      rig:query [[UPDATE SAGA_DEADLINES SET status = 'DEAD_LETTER', next_retry_at = NULL, failure_reason = 'no way']]
      assert.matches("with retry they are fired again; it is of the host and never deleted: `moontide sagas show order "
        .. "ID` tells what is awaited, and confirm takes it as done", problem(), 1, true)
      rig:query([[INSERT INTO SAGA_DEADLINES (id, saga_type, saga_id, name, instance_id, due_at, status, partition_no)
        SELECT 'ffffffff-0000-7000-8000-000000000001', saga_type, saga_id, 'moontide', instance_id, due_at, status,
        partition_no FROM SAGA_DEADLINES]])
      assert.matches("has 2 dead deadlines, .*; 1 of them is of the host and never deleted", problem())
      rig:query "DELETE FROM SAGA_DEADLINES WHERE name = 'moontide:step'"
      assert.matches("with retry they are fired again, with delete they never are", problem(), 1, true)
    end)

    it("shows operators its steps, and does what they say about what it awaits", function()
      start()
      tell("order.Placed", "payment.Authorized", "stock.Unavailable")
      local shown = rig.app:json("sagas", "show", "order", "O-1").steps
      assert.same({ "payment 1 COMPENSATING 1", "stock 1 FAILED 1" }, {
        ("%s %d %s %d"):format(shown[1].step, shown[1].round, shown[1].state, shown[1].compensation_sends),
        ("%s %d %s %d"):format(shown[2].step, shown[2].round, shown[2].state, shown[2].sends) })
      assert.equal("stock.Unavailable", shown[2].failure_reason)
      assert.equal(message("payment.Void").id, shown[1].compensation_id)
      local text = rig.app:ok("sagas", "show", "order", "O-1")
      assert.matches("payment +1 +COMPENSATING +2", text)
      -- the ids under which the outbox has what was sent
      assert.matches(("payment +1 +%s +%s\n"):format(shown[1].command_id, shown[1].compensation_id):gsub("%-", "%%-"),
        text)
      assert.matches(("stock +1 +%s *\n"):format(shown[2].command_id):gsub("%-", "%%-"), text)

      rig:query "UPDATE OUTBOX SET status = 'published'"
      assert.matches("the compensation of step 'payment' is sent again", rig.app:ok("sagas", "retry", "order", "O-1"))
      run_until(function() return #rig:query "SELECT id FROM OUTBOX WHERE status = 'pending'" > 0 end)
      assert.equal("payment.Void", rig:query("SELECT event_type FROM OUTBOX WHERE status = 'pending'")[1].event_type)
      assert.same({ "payment 1 COMPENSATING", "stock 1 FAILED" }, steps())

      assert.matches("awaits the answer of step 'payment', not of 'stock'",
        rig.app:fails(1, "sagas", "confirm", "order", "O-1", "stock"))
      assert.matches("no saga 'O%-2' of type 'order'", rig.app:fails(1, "sagas", "retry", "order", "O-2"))
      assert.matches("takes TYPE, ID and STEP", rig.app:fails(64, "sagas", "confirm", "order", "O-1"))
      assert.same({ step = "payment", round = 1, compensation = true },
        rig.app:json("sagas", "confirm", "order", "O-1", "payment"))
      run_until(function() return #ended() > 0 end)
      assert.same({ "payment 1 COMPENSATED", "stock 1 FAILED" }, steps())
      assert.same({ "Cancelled" }, ended())
      assert.matches("awaits no answer", rig.app:fails(1, "sagas", "retry", "order", "O-1"))
    end)

    it("is checked with its steps", function()
      start()
      assert.same({ "payment", "stock", "shipment", "confirm" }, rig.app:json("check").declarations[1].steps)
      assert.matches("steps payment, stock, shipment %(pivot%), confirm\n", rig.app:ok "check")
    end)

    it("is not undone by an operator's retry, and goes on when a command is taken as done", function()
      start()
      tell "order.Placed"
      rig.app:ok("sagas", "retry", "order", "O-1")
      run_until(function() return tonumber(rig:query("SELECT sends FROM SAGA_STEPS")[1].sends) == 2 end)
      assert.same({ "payment 1 SENT" }, steps())
      rig.app:ok("sagas", "confirm", "order", "O-1", "payment")
      tell "payment.Authorized" -- it comes before the order is carried out
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SENT" }, steps())
      assert.same({ "moontide:step" }, deadlines())
      rig.app:ok("sagas", "confirm", "order", "O-1", "stock")
      run_until(function() return #steps() == 3 end)
      assert.same({ "payment 1 SUCCEEDED", "stock 1 SUCCEEDED", "shipment 1 SENT" }, steps())
    end)

    it("is told of in the status while it has no answer", function()
      start(nil, { log = { level = "error" } })
      tell("order.Placed", "payment.Authorized", "stock.Reserved")
      assert.same({}, rig.app:json("status").sagas)
      rig.host:advance "1h"
      rig:run()
      local status = rig.app:json "status"
      assert.same({ { saga_type = "order", state = "OVERDUE", steps = 1, example = "O-1" } }, status.sagas)
      assert.matches("saga 'order': 1 command has no answer", table.concat(status.problems, "\n"))
      tell "shipment.Accepted"
      assert.same({}, rig.app:json("status").sagas)
    end)

    it("keeps many sagas of one page apart", function()
      start()
      local list = {}
      for i = 1, 40 do list[i] = { "O-" .. i, "order.Placed", { order = "O-" .. i, total = i } } end
      for i = 1, 40, 2 do list[#list + 1] = { "O-" .. i, "payment.Authorized", { order = "O-" .. i } } end
      for i = 1, 40, 4 do list[#list + 1] = { "O-" .. i, "stock.Unavailable", { order = "O-" .. i } } end
      rig:append_all(list)
      rig:run()
      local counts = {}
      for _, row in ipairs(rig:query
        "SELECT step_name, state, COUNT(*) AS n FROM SAGA_STEPS GROUP BY step_name, state") do
        counts[row.step_name .. " " .. row.state] = tonumber(row.n)
      end
      assert.same({ ["payment SENT"] = 20, ["payment SUCCEEDED"] = 10, ["payment COMPENSATING"] = 10,
        ["stock SENT"] = 10, ["stock FAILED"] = 10 }, counts)
    end)
  end)
end)
