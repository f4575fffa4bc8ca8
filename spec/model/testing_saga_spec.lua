-- testing.saga: a saga driven step by step, and the assertions about it.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local moontide = require "moontide"
local process = require "spec.support.process"
local testing = require "moontide.testing"
local time_of = require "moontide.testing_time"

local ORDER = [[
local moontide = require "moontide"
return {
  moontide.publisher "payments" { to = "kafka:payments" },
  moontide.saga "order" { id = moontide.by "order_id", starts = { "order.Placed" }, %s
    on = {
      ["order.Placed"] = function(saga, event, ctx)
        saga.state.total = event.payload.total
        ctx:publish("payments", "payment.Authorize", { amount = saga.state.total })
        saga:deadline("payment", "30m", { try = 1 })
      end,
      ["payment.Authorized"] = function(saga, event, ctx)
        saga.state.cause = event.metadata.causation_id
        saga.state.paid = (saga.state.paid or 0) + 1
        saga:cancel("payment")
        if event.payload.fails then error "no such card" end
        if event.payload.last then saga:complete() end
      end,
    },
    deadlines = { payment = function(saga, deadline, ctx)
      ctx:emit("order.Abandoned", { try = deadline.payload.try }, { key = saga.id })
      saga:complete()
    end } },
}]]

dialect.each(function(database)
  describe("testing.saga", function()
    local app, saga

    local function open(options, more, text)
      app = application.new { database = database, config = "partitions = 12" }
      app:write("handlers/order.lua", text or ORDER:format(more or ""))
      options = options or {}
      options.database = app.db.url
      saga = testing.saga(dofile(app.path .. "/handlers/order.lua")[2], options)
    end

    local function placed(total)
      return moontide.event("order.Placed", { total = total or 10 })
    end

    after_each(function()
      if saga then saga:close() end
      app:close()
      saga = nil
    end)

    it("shows what the start has caused: messages, deadlines, state", function()
      open()
      saga:start(placed())
      assert.equal("S-1", saga.id)
      assert.published(saga, "payments", "payment.Authorize", { payload = { amount = 10 }, count = 1 })
      assert.scheduled_in(saga, "payment", "30m", { payload = { try = 1 } })
      assert.is_not.scheduled_in(saga, "payment", "31m")
      assert.is_not.scheduled_in(saga, "shipment")
      assert.saga_state(saga, { total = 10 })
      assert.is_not.ended(saga)
      assert.equal("S-1", saga:published()[1].metadata.saga_id)
    end)

    it("takes the id that the event has", function()
      open()
      saga:start(moontide.event("order.Placed", { order_id = "O-7", total = 1 }))
      assert.equal("O-7", saga.id)
      assert.saga_state(saga, { total = 1 })
    end)

    it("answers the newest message, once or twice", function()
      open()
      saga:start(placed()):reply "payment.Authorized"
      assert.saga_state(saga, { total = 10, paid = 1, cause = saga:published()[1].id })
      assert.same({}, saga:deadlines())
      saga:duplicate()
      assert.equal(2, saga:state().paid)
      saga:reply("payment.Authorized", { last = true })
      assert.ended(saga)
    end)

    it("lets time pass", function()
      open()
      saga:start(placed()):advance "29m"
      assert.is_not.ended(saga)
      saga:advance "2m"
      assert.ended(saga)
      assert.emitted(saga, "order.Abandoned", { payload = { try = 1 }, count = 1 })
    end)

    describe("whose deadline sets itself again", function()
      local function beat(again)
        open(nil, nil, ([[
          local moontide = require "moontide"
          return { moontide.publisher "payments" { to = "kafka:payments" },
            moontide.saga "order" { id = moontide.by "order_id", starts = { "order.Placed" },
              on = { ["order.Placed"] = function(saga) saga:deadline("beat", "30d") end },
              deadlines = { beat = function(saga)
                saga.state.beats = (saga.state.beats or 0) + 1
                saga:deadline("beat", %q)
              end } } }]]):format(again))
        saga:start(placed())
      end

      it("lets time pass from one to the next", function()
        beat "30d"
        saga:advance "365d"
        assert.saga_state(saga, { beats = 12 })
        assert.scheduled_in(saga, "beat", "30d")
        saga:advance "29d"
        assert.saga_state(saga, { beats = 13 })
      end)

      it("lets exactly that time pass, in one go or in many", function()
        for _, pace in ipairs { { "24h", "24d" }, { "1s", "24s" } } do
          beat(pace[1])
          saga:advance "30d"
          local beats = saga:state().beats
          saga:advance(pace[2])
          assert.equal(beats + 24, saga:state().beats)
          for i = 1, 24 do
            saga:advance(pace[1])
            assert.equal(beats + 24 + i, saga:state().beats)
          end
          saga:close()
          app:close()
        end
        beat "30d"
      end)

      it("ends all the same when it does so at once", function()
        beat "0"
        local good, why = pcall(saga.advance, saga, "31d")
        assert.is_false(good)
        assert.matches("saga 'order' had 1000 deadlines in less than 31d", why)
      end)
    end)

    describe("whose handlers tell the time", function()
      local function watch(lines)
        open(nil, nil, ([[
          local moontide = require "moontide"
          local function note(saga, ctx)
            saga.state.times = saga.state.times or moontide.array()
            saga.state.times[#saga.state.times + 1] = ctx:now()
          end
          return { moontide.publisher "payments" { to = "kafka:payments" },
            moontide.saga "order" { id = moontide.by "order_id", starts = { "order.Placed" },
              retry = { attempts = 5, delay = "10m", max_delay = "10m", jitter = 0 }, %s } }]]):format(lines))
        saga:start(placed())
      end

      local function minutes_of(times)
        local first, list = time_of(times[1]), {}
        for i, time in ipairs(times) do list[i] = (time_of(time) - first) / 60000000 end
        return list
      end

      it("gives each deadline the time when it is due", function()
        watch [[
          on = { ["order.Placed"] = function(saga, event, ctx)
            note(saga, ctx)
            saga:deadline("late", "90m")
            saga:deadline("early", "30m")
            saga:deadline("next", "1800.000006s")
          end },
          deadlines = { early = function(saga, deadline, ctx) note(saga, ctx) end,
            next = function(saga, deadline, ctx) note(saga, ctx) end,
            late = function(saga, deadline, ctx) note(saga, ctx) end }]]
        saga:advance "10h"
        assert.same({ 0, 30, 30.0000001, 90 }, minutes_of(saga:state().times))
      end)

      it("fires at each midnight when that is what they ask for", function()
        local midnight = [[saga:deadline("midnight",
          moontide.date.add(ctx:now():sub(1, 10), 1) .. "T00:00:00Z")]]
        watch(([[
          on = { ["order.Placed"] = function(saga, event, ctx) %s end },
          deadlines = { midnight = function(saga, deadline, ctx)
            note(saga, ctx)
            %s
          end }]]):format(midnight, midnight))
        saga:advance "24d"
        for _ = 1, 24 do saga:advance "24h" end
        local times = saga:state().times
        assert.equal(48, #times)
        for _, time in ipairs(times) do assert.equal("T00:00:00.000000Z", time:sub(11)) end
      end)

      it("tries a message again when its retry is due", function()
        watch [[on = {
          ["order.Placed"] = function(saga, event, ctx) note(saga, ctx) end,
          ["payment.Authorized"] = function(saga, event, ctx) note(saga, ctx) end }]]
        saga.host:fail("order", "payment.Authorized", 2)
        saga:reply "payment.Authorized"
        assert.retried(saga.host, "order", { failures = 1 })
        saga:advance "1h"
        assert.same({ 0, 20 }, minutes_of(saga:state().times))
      end)

      it("goes on from the retry that the host was taken to", function()
        watch [[on = {
          ["order.Placed"] = function(saga, event, ctx) note(saga, ctx) end,
          ["payment.Authorized"] = function(saga, event, ctx)
            note(saga, ctx)
            saga:deadline("beat", "24h")
          end },
          deadlines = { beat = function(saga, deadline, ctx)
            note(saga, ctx)
            saga:deadline("beat", "24h")
          end }]]
        saga.host:fail("order", "payment.Authorized")
        saga:reply "payment.Authorized"
        saga.host:advance_to_retry "order"
        saga:run():advance "24h"
        assert.same({ 0, 10, 10 + 24 * 60 }, minutes_of(saga:state().times))
      end)

      it("raises with the reason of a deadline that fails, and tries it again in time", function()
        watch [[
          on = { ["order.Placed"] = function(saga, event, ctx)
            note(saga, ctx)
            saga:deadline("beat", "30m", { good_at = 3 })
          end },
          deadlines = { beat = function(saga, deadline, ctx)
            if ctx.attempt < deadline.payload.good_at then error "not yet" end
            note(saga, ctx)
          end }]]
        local good, why = pcall(saga.advance, saga, "31m")
        assert.is_false(good)
        assert.matches("order could not fire the deadline 'beat' of 'S%-1': .*order.lua:%d+: not yet", why)
        assert.is_false(pcall(saga.advance, saga, "11m"))
        saga:advance "11m"
        assert.same({ 0, 50 }, minutes_of(saga:state().times))
      end)
    end)

    it("lets the clock of a host that is its own go on when it is closed", function()
      open()
      local host = saga.host
      local second = testing.saga(saga.declaration, { host = host })
      local stood = host:now()
      assert.equal(stood, host:now())
      second:close()
      process.wait_until(function() return host:now() > stood end, 10, "a clock that goes on")
    end)

    it("answers late, behind the deadline", function()
      open()
      saga:start(placed()):late "payment.Authorized"
      assert.ended(saga)
      assert.saga_state(saga, { total = 10 })
    end)

    it("changes nothing by a delivery that comes again, or a start of the host", function()
      open()
      saga:start(placed()):redeliver():restart()
      assert.published(saga, "payments", "payment.Authorize", { count = 1 })
      assert.equal(1, #saga:deadlines())
    end)

    it("reads events of the capture topic", function()
      open({}, 'source = "event-capture",')
      saga:start(placed()):reply("payment.Authorized", { last = true })
      assert.ended(saga)
    end)

    for source, id in pairs { ["event-store"] = "event.aggregate_id", ["event-capture"] = "event.key" } do
      it("fills in what the id is taken from where that is the stream, of " .. source, function()
        local text = ORDER:format(("source = %q,"):format(source))
        text = text:gsub('moontide.by "order_id"', ("function(event) return event.payload.of or %s end"):format(id))
        open({ id = "O-9" }, nil, text)
        saga:start(placed())
        assert.equal("O-9", saga.id)
        saga:reply("payment.Authorized", { last = true })
        assert.ended(saga)

        saga:start(moontide.event("order.Placed", { total = 1, of = "P-1" }))
        assert.equal("P-1", saga.id)
        assert.published(saga, "payments", "payment.Authorize",
          { key = source == "event-store" and "P-1" or nil, count = 1 })
      end)
    end

    it("raises with the reason of a handler that fails", function()
      open()
      saga:start(placed())
      local good, why = pcall(saga.reply, saga, "payment.Authorized", { fails = true })
      assert.is_false(good)
      assert.matches("handlers/order.lua:%d+: no such card", why)
    end)

    it("says what was wrong of a call", function()
      open()
      for text, call in pairs {
        ["does not start with order.Paid"] = function() saga:start(moontide.event "order.Paid") end,
        ["is for the saga 'O%-2', not for 'S%-1'"] = function()
          saga:start(placed()):reply("payment.Authorized", { order_id = "O-2" })
        end,
        ["has published no payment.Void"] = function() saga:reply("payment.Voided", {}, { to = "payment.Void" }) end,
        ["unknown word key_of"] = function() saga:reply("payment.Authorized", {}, { key_of = 1 }) end,
        ["takes a declaration of moontide.saga"] = function() testing.saga {} end,
      } do
        local good, why = pcall(call)
        assert.is_false(good)
        assert.matches(text, why)
      end
    end)

    it("shows in a failed assertion what there is", function()
      open()
      saga:start(placed())
      local _, why = pcall(assert.scheduled_in, saga, "shipment", "1h")
      assert.matches("no deadline 'shipment' in 1h.*payment at %d", tostring(why))
      _, why = pcall(assert.saga_state, saga, { total = 11 })
      assert.matches('remembers {"total":10}, not {"total":11}', tostring(why))
      _, why = pcall(assert.ended, saga)
      assert.matches("the saga 'S%-1' goes on", tostring(why))
    end)
  end)
end)
