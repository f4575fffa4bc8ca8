-- Keyed projections: what handlers do to states, and what is stored of it.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local COUNTER = [[
return moontide.projection "counters" {
  fields = { total = t.integer { optional = true } },
  initial = function(key) return { total = 0, of = key } end,
  on = {
    ["spec.Added"] = function(state, event) state.total = state.total + event.payload.by end,
    ["spec.Replaced"] = function(state, event) return { total = event.payload.by, was = state.total } end,
    ["spec.Removed"] = function() return moontide.delete end,
  } }
]]

dialect.each(function(database)
  describe("a keyed projection", function()
    local rig

    local function start(handlers, settings)
      local options = { database = database, handlers = handlers or COUNTER }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function epochs()
      local list = {}
      for i, row in ipairs(rig:query [[
          SELECT projection, read_model_key, epoch FROM READ_MODEL_EPOCHS ORDER BY read_model_key]]) do
        list[i] = ("%s %s %d"):format(row.projection, row.read_model_key, row.epoch)
      end
      return list
    end

    local function message_id(key)
      return rig:value("SELECT message_id AS value FROM counters WHERE read_model_id = ?", key)
    end

    it("stores what the handler changed in place", function()
      start()
      rig:append("A", "spec.Added", { by = 2 })
      rig:append("A", "spec.Added", { by = 3 })
      rig:run()
      assert.same({ total = 5, of = "A" }, rig.host:read("counters", "A"))
      assert.equal(5, rig:value "SELECT total AS value FROM counters")
    end)

    it("stores the table that the handler returned instead of the state", function()
      start()
      rig:append("A", "spec.Added", { by = 2 })
      rig:append("A", "spec.Replaced", { by = 9 })
      rig:run()
      assert.same({ total = 9, was = 2 }, rig.host:read("counters", "A"))
    end)

    it("starts a key from what `initial` gives for it", function()
      start()
      rig:append("Zoë", "spec.Added", { by = 1 })
      rig:run()
      assert.same({ total = 1, of = "Zoë" }, rig.host:read("counters", "Zoë"))
    end)

    it("starts a key from an empty table when there is no `initial`", function()
      start [[
        return moontide.projection "counters" { on = { ["spec.Added"] = function(state)
          assert(next(state) == nil)
          state.seen = true
        end } }]]
      rig:append("A", "spec.Added", {})
      rig:run()
      assert.same({ seen = true }, rig.host:read("counters", "A"))
    end)

    it("goes on from the stored state after a restart", function()
      start()
      rig:append("A", "spec.Added", { by = 2 })
      rig:run()
      rig:reopen()
      rig:append("A", "spec.Added", { by = 3 })
      rig:run()
      assert.same({ total = 5, of = "A" }, rig.host:read("counters", "A"))
    end)

    it("tells keys apart byte by byte", function()
      start()
      for _, key in ipairs { "a-1", "A-1", "a-1 ", " a-1", "á-1", "a\204\129-1" } do
        rig:append(key, "spec.Added", { by = 1 })
      end
      rig:run()
      local count = 0
      for key, state in pairs(rig.host:read "counters") do
        assert.equal(1, state.total)
        assert.equal(key, state.of)
        count = count + 1
      end
      assert.equal(6, count)
    end)

    it("removes the read model that the handler deletes, and its epoch row", function()
      start()
      rig:append("A", "spec.Added", { by = 1 })
      rig:append("B", "spec.Added", { by = 1 })
      rig:run()
      assert.same({ "counters A 0", "counters B 0" }, epochs())
      rig:append("A", "spec.Removed")
      rig:run()
      assert.is_nil(rig.host:read("counters", "A"))
      assert.same({ "counters B 0" }, epochs())
    end)

    it("takes over an epoch row that a dropped table has left behind", function()
      start()
      rig:query "INSERT INTO READ_MODEL_EPOCHS VALUES ('counters', 'A', 3)"
      rig:append("A", "spec.Added", { by = 1 })
      rig:run()
      assert.same({ total = 1, of = "A" }, rig.host:read("counters", "A"))
      assert.same({ "counters A 0" }, epochs())
    end)

    it("starts anew from `initial` after a delete, in one batch", function()
      start()
      rig:append_all {
        { "A", "spec.Added", { by = 7 } }, { "A", "spec.Removed" }, { "A", "spec.Added", { by = 1 } },
      }
      rig:run()
      assert.same({ total = 1, of = "A" }, rig.host:read("counters", "A"))
      assert.same({ "counters A 0" }, epochs())
    end)

    it("starts anew from `initial` after a delete, over batches", function()
      start(COUNTER, { batch = 1 })
      rig:append_all {
        { "A", "spec.Added", { by = 7 } }, { "A", "spec.Removed" }, { "A", "spec.Added", { by = 1 } },
      }
      rig:run()
      assert.same({ total = 1, of = "A" }, rig.host:read("counters", "A"))
      assert.same({ "counters A 0" }, epochs())
    end)

    it("re-creates a stored read model within one batch", function()
      start()
      rig:append("A", "spec.Added", { by = 7 })
      rig:run()
      rig:append_all { { "A", "spec.Removed" }, { "A", "spec.Added", { by = 1 } } }
      rig:run()
      assert.same({ total = 1, of = "A" }, rig.host:read("counters", "A"))
      assert.same({ "counters A 0" }, epochs())
    end)

    it("writes nothing for a read model that comes and goes in one batch", function()
      start()
      rig:append_all { { "A", "spec.Added", { by = 7 } }, { "A", "spec.Removed" } }
      rig:run()
      assert.same({}, rig.host:read "counters")
      assert.same({}, epochs())
    end)

    it("deletes what is not there without a fault", function()
      start()
      rig:append("A", "spec.Removed")
      local _, failed = rig:run()
      assert.equal(0, failed)
      assert.same({}, rig.host:read "counters")
    end)

    it("writes a key once per batch, with its last state", function()
      start()
      rig:query [[CREATE TABLE written (state TEXT)]]
      for _, event in ipairs { "INSERT", "UPDATE" } do
        rig:trigger { name = "note_" .. event, at = "AFTER " .. event, on = "counters",
          body = "INSERT INTO written VALUES (NEW.state)" }
      end
      local list = {}
      for i = 1, 20 do list[i] = { "A", "spec.Added", { by = i } } end
      rig:append_all(list)
      rig:run()
      local first = message_id "A"
      rig:append_all(list)
      rig:reopen() -- or its next batch may be a smaller one, where the first took long
      rig:run()
      assert.same({ { state = '{"of":"A","total":210}' }, { state = '{"of":"A","total":420}' } },
        rig:query "SELECT state FROM written")
      assert.not_equal(first, message_id "A")
    end)

    it("gives a read model a new message id with every batch that changed it, and no other", function()
      start()
      rig:append("A", "spec.Added", { by = 1 })
      rig:append("B", "spec.Added", { by = 1 })
      rig:run()
      local a, b = message_id "A", message_id "B"
      assert.matches("^%x+%-%x+%-7%x+%-[89ab]%x+%-%x+$", a)
      assert.not_equal(a, b)
      rig:append("A", "spec.Added", { by = 1 })
      rig:run()
      assert.is_true(message_id "A" > a) -- later ids sort later
      assert.equal(b, message_id "B")
    end)

    for _, case in ipairs { { "overwrites", "spec.Added" }, { "deletes", "spec.Removed" } } do
      it(case[1] .. " nothing that another writer put there since it was read", function()
        start(([[
          return moontide.projection "counters" { on = {
            ["spec.Put"] = function(state) state.total = 1 end,
            ["spec.Added"] = function(state, _, ctx)
              ctx:query "%s"
              state.total = state.total + 1
            end,
            ["spec.Removed"] = function(_, _, ctx)
              ctx:query "%s"
              return moontide.delete
            end } }]]):format(database.intrusion, database.intrusion))
        rig:append_all { { "A", "spec.Put" }, { "B", "spec.Put" } }
        rig:run()
        rig:reopen() -- one that was slow would write each of them by itself
        rig:intrude { on = "counters", key = "A",
          body = ("UPDATE counters SET message_id = %s WHERE read_model_id = 'B'"):format(database.fresh_id) }
        rig:append_all { { "A", case[2] }, { "B", case[2] } }
        assert.has_error(function() rig:run() end)
        assert.equal(1, rig.host:read("counters", "A").total)
        assert.equal(1, rig.host:read("counters", "B").total)
        assert.equal(2, (rig:checkpoints "counters"))
        assert.same({}, rig:undelivered()) -- it is no fault of the messages
        rig:end_intrusion()
        rig:run()
        local b = rig.host:read("counters", "B")
        assert.equal(case[2] == "spec.Added" and 2 or nil, b and b.total)
      end)
    end

    it("fails the message whose state is too large, alone, and tells size and limit", function()
      local handlers = [[
        return moontide.projection "texts" { on = { ["spec.Set"] = function(state, event)
          state.text = ("x"):rep(event.payload.n)
        end } }]]
      local frame = #'{"text":""}'
      start(handlers, { limits = { payload = 1000 } })
      rig:append_all {
        { "under", "spec.Set", { n = 999 - frame } },
        { "at", "spec.Set", { n = 1000 - frame } },
        { "over", "spec.Set", { n = 1001 - frame } },
        { "after", "spec.Set", { n = 1 } },
      }
      rig:run()
      assert.equal(999 - frame, #rig.host:read("texts", "under").text)
      assert.equal(1000 - frame, #rig.host:read("texts", "at").text)
      assert.equal(1, #rig.host:read("texts", "after").text)
      assert.is_nil(rig.host:read("texts", "over"))
      assert.same({ "3 over HALTED" }, rig:waiting())
      local reason = rig:undelivered()[1].reason
      assert.matches("^limit: ", reason)
      assert.matches("1001", reason, 1, true)
      assert.matches("1000", reason, 1, true)
      assert.equal("HALTED APPLY_ERROR", rig:state "texts")
      rig:reopen { limits = { payload = 1001 } }
      rig:run()
      assert.equal(1001 - frame, #rig.host:read("texts", "over").text)
      assert.same({}, rig:waiting())
    end)

    it("keeps empty arrays, null, exact integers and texts of a state as they are", function()
      start [[
        return moontide.projection "states" { on = {
          ["spec.Set"] = function(_, event) return event.payload end,
          ["spec.Touched"] = function(state) state.touched = true end,
        } }]]
      local payload = [[{"a":[],"b":{},"c":[[],{}],"d":[1,null,3,null],"e":null,"f":9007199254740993,]]
        .. [["g":0.1,"h":"é\u0000\n","i":-9223372036854775808}]]
      rig.app:ok("append", { stdin = application.ndjson {
        { aggregate_id = "A", type = "spec.Set", payload = payload },
        { aggregate_id = "A", type = "spec.Touched" } } })
      rig:run()
      rig:append("A", "spec.Touched")
      rig:run()
      local state = rig:value "SELECT state AS value FROM states"
      assert.equal(payload:gsub("}$", ',"touched":true}'), state)
    end)
  end)

  describe("unique fields", function()
    local rig

    local ACCOUNTS = [[
      return moontide.projection "accounts" {
        fields = { iban = t.text { unique = true, optional = true } },
        on = {
          ["spec.Set"] = function(state, event) state.iban, state.n = event.payload.iban, (state.n or 0) + 1 end,
          ["spec.Cleared"] = function(state) state.iban = nil end,
          ["spec.Removed"] = function() return moontide.delete end,
        } }]]

    local function start(settings)
      local options = { database = database, handlers = ACCOUNTS }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function() rig:close() end)

    local function ibans()
      local list = {}
      for key, state in pairs(rig.host:read "accounts") do list[key] = state.iban or "-" end
      return list
    end

    it("fail the message that would repeat a value, and no other of its page", function()
      start()
      rig:append_all {
        { "A", "spec.Set", { iban = "X" } }, { "B", "spec.Set", { iban = "Y" } },
        { "C", "spec.Set", { iban = "X" } }, { "D", "spec.Set", { iban = "Z" } },
        { "C", "spec.Set", { iban = "X" } }, { "A", "spec.Set", { iban = "X" } },
      }
      rig:run()
      assert.same({ A = "X", B = "Y", D = "Z" }, ibans())
      assert.equal(2, rig.host:read("accounts", "A").n)
      assert.same({ "3 C HALTED", "5 C WAITING" }, rig:waiting())
      local reason = rig:undelivered()[1].reason
      assert.matches("^unique: ", reason)
      assert.matches("iban", reason, 1, true)
    end)

    it("let the waiting messages in once the value is free", function()
      start()
      rig:append_all { { "A", "spec.Set", { iban = "X" } }, { "B", "spec.Set", { iban = "X" } } }
      rig:run()
      assert.same({ "2 B HALTED" }, rig:waiting())
      rig:append("A", "spec.Removed")
      rig:reopen()
      rig:run() -- the retry comes before A's removal and fails again
      assert.same({ "2 B HALTED" }, rig:waiting())
      assert.same({ A = "X" }, ibans())
      rig:query "UPDATE accounts SET iban = 'free'"
      rig:reopen()
      rig:run()
      assert.same({ B = "X" }, ibans())
      assert.same({}, rig:waiting())
    end)

    it("may change hands between two keys within one batch", function()
      start()
      rig:append_all { { "B", "spec.Set", { iban = "Y" } }, { "A", "spec.Set", { iban = "X" } } }
      rig:run()
      rig:append_all { { "B", "spec.Cleared" }, { "A", "spec.Cleared" }, { "B", "spec.Set", { iban = "X" } } }
      rig:run()
      assert.same({ A = "-", B = "X" }, ibans())
      rig:append_all { { "B", "spec.Removed" }, { "C", "spec.Set", { iban = "X" } } }
      rig:run()
      assert.same({ A = "-", C = "X" }, ibans())
      assert.same({}, rig:waiting())
    end)

    it("may be swapped between two keys within one batch", function()
      start()
      rig:append_all { { "A", "spec.Set", { iban = "X" } }, { "B", "spec.Set", { iban = "Y" } } }
      rig:run()
      rig:append_all {
        { "A", "spec.Cleared" }, { "B", "spec.Set", { iban = "X" } }, { "A", "spec.Set", { iban = "Y" } },
      }
      rig:run()
      assert.same({ A = "Y", B = "X" }, ibans())
      assert.equal(2, rig.host:read("accounts", "A").n)
      assert.same({}, rig:waiting())
    end)

    it("do not count read models without a value", function()
      start()
      rig:append_all { { "A", "spec.Cleared" }, { "B", "spec.Cleared" }, { "C", "spec.Set" , { iban = "X" } } }
      rig:run()
      assert.same({ A = "-", B = "-", C = "X" }, ibans())
    end)
  end)
end)
