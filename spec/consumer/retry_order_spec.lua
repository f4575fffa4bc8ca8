-- What an operator has tried again although later messages of its key failed,
-- too: it comes before them, whatever they wait for, and they go on holding
-- what lies behind them.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

-- A message fails as its payload says, and becomes what it says there.
local function handlers(body)
  return kit.LEDGER .. ([[
    return moontide.sql_projection "notes" { tables = "sql/ledger.sql",
      retry = { attempts = 5, delay = "100s", factor = 1, jitter = 0 },
      on_error = function(event) return event.payload.how end,
      on = { ["spec.Put"] = function(event, ctx)
        ledger("notes", event, ctx)
        %s
      end } }]]):format(body)
end

local FAILS = [[
  if event.payload.how == "retry" then error "not yet" end
  if event.payload.how then error(moontide.permanent "no") end]]

dialect.each(function(database)
  describe("a dead letter that is tried again, of a key that a later message holds,", function()
    local rig

    local function start(list, batch)
      rig = kit.new { database = database, files = FILES, handlers = handlers(FAILS), batch = batch }
      for i, item in ipairs(list) do list[i] = { item[1], "spec.Put", { how = item[2] } } end
      rig:append_all(list)
      rig:run()
    end

    local function mend(body)
      rig:script(handlers(body or ""))
      rig:reopen()
    end

    after_each(function() rig:close() end)

    it("is applied although that one is the key's dead letter, which holds the key on", function()
      start { { "B", "dead_letter" }, { "B" }, { "B", "dead_letter_key" }, { "B" } }
      mend()
      assert.equal(1, rig.host:retry({ position = 1 }).retried)
      rig:run()
      assert.same({ "B:2", "B:1" }, rig:ledger())
      rig:append("B", "spec.Put", {})
      rig:append("C", "spec.Put", {})
      rig:run()
      assert.same({ "B:2", "B:1", "C:6" }, rig:ledger())
      assert.same({ "3 B DEAD_LETTER_KEY", "4 B DEAD_LETTER_KEY", "5 B DEAD_LETTER_KEY" }, rig:waiting())
      rig.host:retry { position = 3 }
      rig:run()
      assert.same({ "B:2", "B:1", "C:6", "B:3", "B:4", "B:5" }, rig:ledger())
    end)

    it("does not wait for the next attempt of that one, nor makes it sooner", function()
      start { { "B", "dead_letter" }, { "B", "retry" }, { "B" } }
      mend()
      rig.host:advance "40s"
      rig.host:retry { position = 1 }
      rig:run()
      assert.same({ "B:1" }, rig:ledger())
      rig:append("B", "spec.Put", {})
      rig:run()
      assert.same({ "2 B FAILED", "3 B WAITING", "4 B WAITING" }, rig:waiting())
      rig.host:advance "61s"
      rig:run()
      assert.same({ "B:1", "B:2", "B:3", "B:4" }, rig:ledger())
    end)

    it("comes first of those that are tried again with it, and holds them when it fails", function()
      start { { "B", "dead_letter" }, { "B", "dead_letter" }, { "B", "retry" }, { "B" } }
      mend 'if event.position == 2 then error "once more" end'
      rig.host:retry { status = "DEAD_LETTER" }
      rig:run()
      assert.same({ "B:1" }, rig:ledger())
      assert.same({ "2 B FAILED", "3 B FAILED", "4 B WAITING" }, rig:waiting())
      mend()
      rig.host:advance "101s"
      rig:run()
      assert.same({ "B:1", "B:2", "B:3", "B:4" }, rig:ledger())
    end)

    it("is applied with those of many other keys, in batches smaller than all of them", function()
      local list, expected = {}, {}
      for i = 1, 5 do
        list[#list + 1] = { "K" .. i, "dead_letter" }
        expected[i] = ("K%d:%d"):format(i, #list)
        list[#list + 1] = { "K" .. i, i % 2 == 0 and "dead_letter_key" or "retry" }
        list[#list + 1] = { "K" .. i }
      end
      start(list, 2)
      mend()
      rig.host:retry { status = "DEAD_LETTER" }
      rig:run()
      assert.same(expected, rig:ledger())
      assert.equal(10, #rig:undelivered())
    end)
  end)

  describe("a message without keys that is tried again before another one", function()
    it("is applied, and the later one holds its partitions on", function()
      local function keyed(body)
        return ([[
          return moontide.projection "keyed" { on_error = function(event) return event.payload.how end,
            key = function(event) %s return "x" end,
            on = { ["spec.Set"] = function(state, event)
              state.seen = (state.seen and state.seen .. " " or "") .. event.position
            end } }]]):format(body)
      end
      local rig = kit.new { database = database, handlers = keyed 'if event.payload.how then error "no" end' }
      finally(function() rig:close() end)
      rig:append_all { { "A", "spec.Set", { how = "dead_letter" } }, { "A", "spec.Set", {} },
        { "A", "spec.Set", { how = "dead_letter_key" } }, { "A", "spec.Set", {} } }
      rig:run()
      assert.same({ seen = "2" }, rig.host:read("keyed", "x"))
      rig:script(keyed "")
      rig:accept()
      rig:reopen()
      rig.host:retry { position = 1 }
      rig:run()
      assert.same({ seen = "2 1" }, rig.host:read("keyed", "x"))
      assert.equal(kit.partitions, #rig:undelivered())
      rig.host:retry { position = 3 }
      rig:run()
      assert.same({ seen = "2 1 3 4" }, rig.host:read("keyed", "x"))
    end)
  end)
end)
