-- Aggregates: commands that decide on events, snapshots, repeated commands.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local moontide = require "moontide"

local ID = "01890a5d-ac96-774b-bcce-b302099a8057"

-- `more` are members of the aggregate, `others` declarations beside it.
local function account(more, others)
  return ([[return { moontide.aggregate "spec.account" {
    initial = function(id) return { id = id, balance = 0, count = 0 } end,
    commands = {
      deposit = function(state, args) return { moontide.event("account.Deposited", { amount = args.amount }) } end,
      withdraw = function(state, args)
        if args.amount > state.balance then
          return moontide.reject("insufficient funds", { missing = args.amount - state.balance })
        end
        return moontide.event("account.Withdrawn", { amount = args.amount })
      end,
      nothing = function() end,
      state = function(state) return moontide.reject("as asked", state) end,
      transfer = function(state, args)
        return { moontide.event("account.Withdrawn", { amount = args.amount }),
          moontide.event("account.Deposited", { amount = args.amount }, { aggregate_id = args.to }) }
      end,
      unknown = function() return { moontide.event("account.Forgotten", {}) } end,
      number = function() return 7 end,
      forever = function() while true do end end,
      context = function(state, args, ctx)
        return moontide.event("account.Noted", { now = ctx:now(), id = ctx.command_id, by = ctx.metadata.by },
          { metadata = { own = true } })
      end,
      wrong = function(state, args, ctx) return ctx:query("SELECT 1") end,
    },
    apply = {
      ["account.Deposited"] = function(state, event)
        state.balance, state.count = state.balance + event.payload.amount, state.count + 1
      end,
      ["account.Withdrawn"] = function(state, event)
        state.balance, state.count = state.balance - event.payload.amount, state.count + 1
      end,
      ["account.Noted"] = function(state) state.count = state.count + 1 end,
    }, %s }, %s }]]):format(more or "", others or "")
end

dialect.each(function(database)
  describe("an aggregate", function()
    local rig

    local function start(handlers, settings)
      local options = { database = database, handlers = handlers or account() }
      for name, value in pairs(settings or {}) do options[name] = value end
      rig = kit.new(options)
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function command(name, args, options)
      return rig.host:command("spec.account", "A-1", name, args, options)
    end

    local function state()
      local outcome = command "state"
      return outcome.details, outcome
    end

    local function deposits(count)
      local events = {}
      for i = 1, count do events[i] = moontide.event("account.Deposited", { amount = i }) end
      rig.host:append("spec.account", "A-1", events)
    end

    local function refused(...)
      local good, problem = pcall(command, ...)
      assert.is_false(good)
      return problem
    end

    local function count(table_name)
      return rig:value("SELECT count(*) AS value FROM " .. (table_name or "EVENT_STORE"))
    end

    it("decides on what its events say, and appends what it decides", function()
      start()
      assert.equal("accepted", command("deposit", { amount = 10 }).outcome)
      local outcome = command("withdraw", { amount = 3 })
      assert.equal(1, #outcome.events)
      assert.equal("account.Withdrawn", outcome.events[1].type)
      assert.equal(1, outcome.events[1].sequence)
      assert.equal(1, outcome.version)
      assert.same({ id = "A-1", balance = 7, count = 2 }, (state()))
      assert.equal(2, count())
    end)

    it("rejects with a reason and details, and appends nothing", function()
      start()
      local outcome = command("withdraw", { amount = 3 })
      assert.equal("rejected", outcome.outcome)
      assert.equal("insufficient funds", outcome.reason)
      assert.same({ missing = 3 }, outcome.details)
      assert.equal(0, count())
    end)

    it("may accept without an event", function()
      start()
      local outcome = command "nothing"
      assert.equal("accepted", outcome.outcome)
      assert.same({}, outcome.events)
    end)

    it("appends events of several aggregates in one transaction", function()
      start()
      command("deposit", { amount = 10 })
      local outcome = command("transfer", { amount = 4, to = "B-1" })
      assert.same({ "A-1", "B-1" }, { outcome.events[1].aggregate_id, outcome.events[2].aggregate_id })
      assert.equal(6, state().balance)
      assert.equal(4, rig.host:command("spec.account", "B-1", "state").details.balance)
    end)

    it("refuses an event that it could not apply", function()
      start()
      assert.matches('aggregate "spec.account" has no apply for "account.Forgotten"', refused "unknown", 1, true)
      assert.equal(0, count())
      rig:append("A-1", "account.Forgotten", {}, { aggregate_type = "spec.account" })
      assert.matches("has no apply", refused "nothing", 1, true)
    end)

    it("names the command that gives no decision", function()
      start()
      assert.matches('handlers/spec.lua:%d+: command "number" returned 7', refused "number")
    end)

    it("has a ctx with the time, the command's id and metadata, and no more", function()
      start()
      local outcome = command("context", nil, { id = ID, metadata = { by = "me", correlation_id = "c" } })
      local event = outcome.events[1]
      assert.same({ now = event.occurred_at, id = ID, by = "me" }, event.payload)
      assert.same({ by = "me", own = true, correlation_id = "c", causation_id = ID }, event.metadata)
      assert.matches('the ctx of a command has no "query"', refused "wrong", 1, true)
    end)

    it("stops a command that runs for ever", function()
      start(account(), { limits = { time = "1s" } })
      assert.matches("^.*timeout:", refused "forever")
    end)

    it("does not know another command, and names the nearest", function()
      start()
      assert.matches("no command 'depositt'; did you mean 'deposit'?", refused "depositt", 1, true)
      local good, problem = pcall(rig.host.command, rig.host, "spec.acount", "A-1", "deposit")
      assert.is_false(good)
      assert.matches("no aggregate is called 'spec.acount'; did you mean 'spec.account'?", problem, 1, true)
    end)

    it("reads old events by the steps of their types, and stamps new ones", function()
      start(account("", [[moontide.event_type "account.Deposited" { revision = 1, fields = { amount = t.integer() },
        upcast = { [0] = { rename = { cents = "amount" } } } }]]))
      rig:append("A-1", "account.Deposited", { cents = 5 }, { aggregate_type = "spec.account", revision = 0 })
      assert.equal(5, state().balance)
      assert.equal(1, command("deposit", { amount = 1 }).events[1].revision)
      assert.matches("payload.amount: expected an integer, got \"x\"", refused("deposit", { amount = "x" }), 1, true)
      assert.equal(2, count())
    end)

    describe("command with an id", function()
      it("is done once and gives the first outcome again", function()
        start()
        local first = command("deposit", { amount = 10 }, { id = ID })
        local second = command("deposit", { amount = 10 }, { id = ID })
        assert.is_false(first.repeated)
        assert.is_true(second.repeated)
        assert.same(first.events, second.events)
        assert.equal(first.version, second.version)
        assert.equal(1, count())
      end)

      it("stays rejected, and stays accepted without an event, whatever happens in between", function()
        start()
        local other = "01890a5d-ac96-774b-bcce-b302099a8058"
        command("withdraw", { amount = 3 }, { id = ID })
        command("nothing", nil, { id = other })
        command("deposit", { amount = 10 })
        local again = command("withdraw", { amount = 3 }, { id = ID })
        assert.same({ "rejected", "insufficient funds", { missing = 3 }, true },
          { again.outcome, again.reason, again.details, again.repeated })
        assert.same({}, command("nothing", nil, { id = other }).events)
        assert.equal(1, count())
      end)

      it("refuses to stand for another command", function()
        start()
        command("nothing", nil, { id = ID })
        assert.matches(ID .. " stands for 'nothing' of spec.account \"A-1\" already",
          refused("deposit", { amount = 1 }, { id = ID }), 1, true)
      end)

      it("is forgotten after its time", function()
        start(account(), { commands = { keep = "1h" } })
        command("withdraw", { amount = 3 }, { id = ID })
        rig.host:advance "2h"
        command "nothing"
        assert.equal(1, count "COMMAND_RESULTS")
        command("deposit", { amount = 3 })
        assert.is_false(command("withdraw", { amount = 3 }, { id = ID }).repeated)
      end)
    end)

    describe("with snapshots", function()
      local function snapshots(version, every)
        return account(("snapshot = { every = %d, version = %d }"):format(every or 60, version or 1))
      end

      it("begins to read after the latest", function()
        start(snapshots())
        deposits(60)
        assert.equal(60, command("nothing").loaded)
        assert.equal(1, count "AGGREGATE_SNAPSHOTS")
        deposits(40)
        local found, outcome = state()
        assert.equal(40, outcome.loaded)
        assert.equal(59, outcome.snapshot)
        assert.same({ id = "A-1", balance = 1830 + 820, count = 100 }, found)
      end)

      it("comes to the same without them", function()
        start(snapshots(1, 7))
        for _ = 1, 5 do
          deposits(6)
          command("withdraw", { amount = 1 })
        end
        local with, outcome = state()
        assert.is_true(outcome.snapshot > 0)
        rig:query "DELETE FROM AGGREGATE_SNAPSHOTS"
        local without, fresh = state()
        assert.is_nil(fresh.snapshot)
        assert.same(without, with)
      end)

      it("reads everything when the version is another", function()
        start(snapshots())
        deposits(60)
        command "nothing"
        deposits(40)
        rig:script(snapshots(2))
        rig:reopen()
        local found, outcome = state()
        assert.equal(100, outcome.loaded)
        assert.equal(2650, found.balance)
        assert.equal(2, rig:value "SELECT max(snapshot_version) AS value FROM AGGREGATE_SNAPSHOTS")
      end)

      it("keeps two versions of a script apart that run side by side, whichever stores one", function()
        start(snapshots(1, 3))
        rig.app:exec("mkdir", "-p", "newer/handlers")
        rig.app:exec("cp", "moontide.conf.lua", "newer/")
        local text = rig.app:read "handlers/spec.lua"
        rig.app:write("newer/handlers/spec.lua",
          (text:gsub("version = 1", "version = 2"):gsub("state.count %+ 1", "state.count + 100")))
        local function newer(...)
          return moontide.json.decode(rig.app:moontide("--json", "--config", "newer/moontide.conf.lua", "command",
            "spec.account", "A-1", ...).out)
        end
        deposits(5)
        for round = 1, 3 do
          local old = command("deposit", { amount = 1 })
          local new = newer("deposit", '{"amount":1}')
          assert.equal(old.version + 1, new.version)
          assert.equal(5 * round + 2, (state()).count)
          assert.equal(100 * (5 * round + 2), newer("state").details.count)
          deposits(3)
        end
        assert.same({ { version = 1 }, { version = 2 } },
          rig:query "SELECT snapshot_version AS version FROM AGGREGATE_SNAPSHOTS ORDER BY snapshot_version")
        assert.same({ balance = 15 + 6 + 18, count = 20, id = "A-1" }, (state()))
      end)

      it("leaves one aside that is ahead of the stream, or no state, and says so", function()
        start(snapshots(1, 1000), { log = { level = "warn" } })
        deposits(100)
        local function plant(sequence, payload)
          rig:query("DELETE FROM AGGREGATE_SNAPSHOTS")
          rig:query(([[INSERT INTO AGGREGATE_SNAPSHOTS
            (id, aggregate_id, aggregate_type, sequence_no, snapshot_version, payload)
            VALUES ('%s', 'A-1', 'spec.account', %d, 1, '%s')]]):format(ID, sequence, payload))
          local found, outcome = state()
          assert.equal(100, outcome.loaded)
          assert.equal(5050, found.balance)
        end
        plant(150, '{"balance":1,"count":1}')
        plant(50, '"no state"')
      end)

      it("keeps none of what a command has done to its state", function()
        start(([[return moontide.aggregate "spec.account" {
          commands = { spoil = function(state) state.total = 1000000 end,
            state = function(state) return moontide.reject("as asked", state) end },
          apply = { ["account.Deposited"] = function(state, event) state.total = (state.total or 0) + 1 end },
          snapshot = { every = 3 } }]]))
        deposits(5)
        command "spoil"
        assert.equal(1, count "AGGREGATE_SNAPSHOTS")
        assert.same({ total = 5 }, (state()))
      end)
    end)

    it("keeps events and snapshots in tables of its own, when the configuration names them", function()
      start(account "snapshot = { every = 2 }", { schema = { aggregates = {
        ["spec.account"] = { events = "account_events", snapshots = "account_snapshots" } } } })
      deposits(2)
      command("withdraw", { amount = 3 })
      assert.equal(3, count "account_events")
      assert.equal(1, count "account_snapshots")
      assert.equal(0, count "EVENT_STORE")
      assert.equal(0, count "AGGREGATE_SNAPSHOTS")
      assert.equal(0, state().balance)
    end)

    it("decides one command after the other when many are sent at the same time", function()
      start()
      command("deposit", { amount = 3 })
      rig.host:close()
      local children, codes = {}, {}
      for i = 1, 8 do
        children[i] = rig.app:start("command", "spec.account", "A-1", "withdraw", '{"amount":1}')
      end
      for i, child in ipairs(children) do codes[i] = child:wait().code end
      table.sort(codes)
      rig:open()
      assert.same({ 0, 0, 0, 3, 3, 3, 3, 3 }, codes)
      assert.same({ id = "A-1", balance = 0, count = 4 }, (state()))
    end)
  end)
end)
