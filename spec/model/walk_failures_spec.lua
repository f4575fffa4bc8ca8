-- testing.walk_failures: a good saga passes every scenario, and each kind of
-- wrong one fails in a scenario that the message names.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ffi = require "ffi"
local moontide = require "moontide"
local testing = require "moontide.testing"

ffi.cdef [[
  int setenv(const char *name, const char *value, int overwrite);
  int unsetenv(const char *name);
]]

local ORDER = [[
local moontide = require "moontide"
local saga = moontide.saga "order" { id = %(id)s, starts = { "order.Placed" },
  retry = { attempts = 3, delay = "1m", jitter = 0 }, on_error = "halt",
  steps = {
    { name = "payment", to = "bank", command = "payment.Authorize", timeout = "10m",
      message = function(saga, event) %(message)s return { order_id = saga.id, amount = event.payload.total } end,
      succeeds = "payment.Authorized", fails = { "payment.Declined", "payment.Blocked" },
      compensate = { command = "payment.Void", succeeds = "payment.Voided",
        message = function(saga) %(back)s return { order_id = saga.id } end } },
    { name = "stock", to = "store", command = "stock.Reserve", timeout = "5m", succeeds = "stock.Reserved",
      compensate = { command = "stock.Release", succeeds = "stock.Released" } },
    { name = "note", to = "store", command = "note.Write", compensate = false },
    { name = "shipment", to = "carrier", command = "shipment.Request", pivot = true, timeout = "1h",
      succeeds = "shipment.Accepted", fails = { "shipment.Rejected" } },
    { name = "invoice", to = "bank", command = "invoice.Write", retriable = true, timeout = "1h",
      succeeds = "invoice.Written", fails = { "invoice.Refused" } },
    { name = "confirm", to = "mail", command = "mail.Confirm", retriable = true } },
  on_end = function(saga, outcome, ctx) %(on_end)s ctx:emit("order." .. outcome, {}, { key = saga.id }) end }
local list = { saga }
for _, name in ipairs { "bank", "store", "carrier", "mail" } do
  list[#list + 1] = moontide.publisher(name) { to = "stdout:" }
end
return list]]

local placed = moontide.event("order.Placed", { total = 120 })

dialect.each(function(database)
  describe("walk_failures", function()
    local app, before

    setup(function()
      before = os.getenv "DATABASE_URL"
    end)

    before_each(function()
      app = application.new { database = database, config = "partitions = 3" }
      if database.name == "sqlite" then -- in memory
        ffi.C.unsetenv "DATABASE_URL"
      else
        ffi.C.setenv("DATABASE_URL", app.db.url, 1)
      end
    end)

    after_each(function()
      if before then ffi.C.setenv("DATABASE_URL", before, 1) else ffi.C.unsetenv "DATABASE_URL" end
      app:close()
    end)

    local function order(changes)
      local parts = { id = 'moontide.by "order_id"', message = "", back = "", on_end = "" }
      for name, text in pairs(changes or {}) do parts[name] = text end
      app:write("handlers/order.lua", (ORDER:gsub("%%%((.-)%)s", parts)))
      return dofile(app.path .. "/handlers/order.lua")[1]
    end

    local function problem(saga, options)
      options.start = options.start or placed
      local good, why = pcall(testing.walk_failures, saga, options)
      assert.is_false(good)
      return tostring(why)
    end

    it("takes a good saga through every single point of failure", function()
      local outcomes = {}
      local names = testing.walk_failures(order(), { start = placed, check = function(saga, outcome)
        assert.emitted(saga, outcome == "completed" and "order.Completed" or "order.Cancelled", { count = 1 })
        outcomes[outcome] = (outcomes[outcome] or 0) + 1
      end })
      local text = table.concat(names, "\n")
      for _, name in ipairs {
        "nothing fails", "the start comes twice", "the worker is killed after the start",
        'step "payment" is declined by payment.Declined',
        'step "payment" is declined by payment.Blocked', 'the worker is killed after the timeout of step "payment"',
        'step "payment" times out, its command is lost',
        'step "payment" times out, its answer is lost', 'step "payment" is answered late',
        'step "payment" is done and answered only after the end', 'step "payment" is answered twice',
        'the worker is killed after the answer to step "stock"', 'step "invoice" is declined',
        'step "shipment" times out, its command is lost', 'the compensation of step "stock" is lost',
        'the compensation of step "payment" is not answered', 'the compensation of step "payment" is confirmed late',
        'the compensation of step "payment" is confirmed twice',
        'the worker is killed after the compensation of step "payment"',
      } do
        assert.truthy(text:find(name, 1, true), name)
      end
      assert.same({ #names, true, true }, { outcomes.completed + outcomes.cancelled, outcomes.completed > 10,
        outcomes.cancelled > 10 })
    end)

    it("names the scenario and the line of a message function that raises", function()
      assert.matches("when nothing fails: .*handlers/order.lua:6: no price", problem(order {
        message = 'if event.type == "order.Placed" then error "no price" end' }, {}))
      assert.matches('when step "payment" times out, its command is lost: .*handlers/order.lua:9: what was it',
        problem(order { back = 'error "what was it"' }, {}))
    end)

    it("fails for an on_end that raises", function()
      assert.matches('when step "payment" is declined by payment.Declined: .*not cancelled', problem(order {
        on_end = 'if outcome == "Cancelled" then error "not cancelled" end' }, {}))
    end)

    it("fails for a receiver that does a command as often as it comes", function()
      local why = problem(order(), { receivers = { bank = function(message)
        local answers = { ["payment.Authorize"] = "payment.Authorized", ["payment.Void"] = "payment.Voided",
          ["invoice.Write"] = "invoice.Written" }
        return moontide.event(answers[message.type]), true
      end }, only = "compensation" })
      assert.matches('when the compensation of step "payment" is not answered: the compensation of step "payment" in '
        .. "round 1 took effect twice: payment.Void .* has to know a command by its id", why)
    end)

    it("fails for a receiver that never confirms", function()
      assert.matches('not come to an end: the compensation of step "payment" was sent %d+ times', problem(order(), {
        receivers = { bank = function(message)
          if message.type == "payment.Void" then return end
          return moontide.event(message.type == "invoice.Write" and "invoice.Written" or "payment.Authorized")
        end } }))
    end)

    it("fails when what the user checks does", function()
      assert.matches("when nothing fails: .*not so", problem(order(), { check = function() error "not so" end }))
    end)

    it("tells what happened up to there", function()
      assert.matches("what happened:\n  order.Placed comes\n  payment.Authorize goes to bank\n", problem(order(), {
        check = function() error "not so" end }))
    end)

    it("says how to walk what failed alone", function()
      local function check(_, outcome)
        if outcome == "cancelled" then error "not so" end
      end
      local why = problem(order(), { check = check })
      local only = why:match "\nthis walk alone: only = '(.*)'$"
      assert.equal('step "payment" is declined by payment.Declined', only)
      assert.equal(why, problem(order(), { check = check, only = only }))
    end)

    it("takes payloads of answers, and says where the id of the saga is missing", function()
      local saga = order { id = "function(event) return event.payload.order end", message = "saga.state.o = saga.id" }
      local start = moontide.event("order.Placed", { order = "O-1", total = 1 })
      assert.matches("when nothing fails: .*payment.Authorized", problem(saga, { start = start }))
      local replies = setmetatable({}, { __index = function() return { order = "O-1" } end })
      assert.equal(4, #testing.walk_failures(saga, { start = start, replies = replies, only = "declined" }))
    end)

    it("says what it takes", function()
      assert.matches("takes a declaration of moontide.saga with steps", problem({}, {}))
      assert.matches("takes the event that begins the saga", select(2, pcall(testing.walk_failures, order(), {})))
      assert.matches("no scenario's name has", problem(order(), { only = "nobody" }))
      assert.matches("DATABASE_URL names the server", problem(order(), { database = "sqlite::memory:" }))
    end)
  end)
end)
