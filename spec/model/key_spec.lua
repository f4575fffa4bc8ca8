-- Key functions: which read models a message is for.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- `key` is Lua text: what the key function does with the event.
local function keyed(key)
  return ([[
    return moontide.projection "keyed" {
      key = function(event) %s end,
      on = { ["spec.Set"] = function(state, event)
        state.seen = state.seen or moontide.array()
        state.seen[#state.seen + 1] = event.position
      end } }]]):format(key)
end

dialect.each(function(database)
  describe("a key function", function()
    local rig

    local function start(key, settings)
      local options = { database = database, handlers = keyed(key) }
      for name, value in pairs(settings or {}) do options[name] = value end
      rig = kit.new(options)
    end

    after_each(function() rig:close() end)

    local function seen()
      local list = {}
      for key, state in pairs(rig.host:read "keyed") do list[key] = table.concat(state.seen, " ") end
      return list
    end

    it("may take the key from the payload", function()
      start "return event.payload.to"
      rig:append_all { { "A", "spec.Set", { to = "x" } }, { "B", "spec.Set", { to = "x" } },
        { "A", "spec.Set", { to = "y" } } }
      rig:run()
      assert.same({ x = "1 2", y = "3" }, seen())
    end)

    it("may give several keys, each of which is applied once", function()
      start "return event.payload.from, event.payload.to, event.payload.from"
      rig:append_all { { "A", "spec.Set", { from = "x", to = "y" } }, { "B", "spec.Set", { from = "y", to = "x" } } }
      rig:run()
      assert.same({ x = "1 2", y = "1 2" }, seen())
    end)

    it("may give no key, and the message is done", function()
      start "if event.payload.to then return event.payload.to end"
      rig:append_all { { "A", "spec.Set", {} }, { "B", "spec.Set", { to = "x" } }, { "A", "spec.Set", {} } }
      local _, failed = rig:run()
      assert.equal(0, failed)
      assert.same({ x = "2" }, seen())
      assert.equal(3, (rig:checkpoints "keyed"))
    end)

    it("may give nil among its keys, which counts as no key", function()
      start "return nil, event.payload.to, nil"
      rig:append_all { { "A", "spec.Set", { to = "x" } }, { "A", "spec.Set", {} } }
      rig:run()
      assert.same({ x = "1" }, seen())
      assert.equal("RUNNING", rig:state "keyed")
    end)

    it("may give an integer, which is the key in decimal", function()
      start "return event.payload.to"
      rig.app:append {
        { type = "spec.Set", payload = '{"to":7}' }, { type = "spec.Set", payload = '{"to":"7"}' },
        { type = "spec.Set", payload = '{"to":9007199254740993}' },
      }
      rig:run()
      assert.same({ ["7"] = "1 2", ["9007199254740993"] = "3" }, seen())
    end)

    it("decides the partition by its key and not by the message's", function()
      start("return event.payload.to", { batch = 2 })
      local hash = { ["café-42"] = 6, ["order-1"] = 1, ["Ünïcode"] = 3, ["日本-7"] = 5 }
      rig:script [[
        return moontide.projection "keyed" { key = function(event) return event.payload.to end,
          on = { ["spec.Set"] = function(state, event, ctx) state.partition = ctx.partition end } }]]
      rig:reopen()
      for key in pairs(hash) do rig:append("A", "spec.Set", { to = key }) end
      rig:run()
      for key, partition in pairs(hash) do
        assert.equal(partition, rig.host:read("keyed", key).partition)
      end
    end)

    -- What is no key: documented values mean "none", all else is an error.
    for _, case in ipairs {
      { "false", "false", "boolean" },
      { "an empty table", "{}", "table" },
      { "a table", '{ "x" }', "table" },
      { "an empty string", '""', "empty string" },
      { "a fraction", "1.5", "no exact integer" },
      { "NaN", "0 / 0", "no exact integer" },
      { "true", "true", "boolean" },
      { "null", "moontide.null", "" },
      { "NUL in a string", '"a\\0b"', "NUL" },
      { "invalid UTF-8", '"\\255"', "not valid UTF-8" },
      { "256 characters", '("é"):rep(256)', "255 characters" },
      { "256 characters of four bytes", '("😀"):rep(256)', "255 characters" },
    } do
      it("that gives " .. case[1] .. " fails the message as unresolved", function()
        start(("if event.payload.bad then return %s end return event.payload.to"):format(case[2]))
        rig:append_all { { "A", "spec.Set", { to = "x" } }, { "A", "spec.Set", { bad = true } },
          { "B", "spec.Set", { to = "y" } } }
        rig:run()
        assert.same({ x = "1" }, seen())
        local rows = rig:undelivered()
        assert.equal(kit.partitions, #rows)
        for i, row in ipairs(rows) do
          assert.same({ 2, i - 1, 1, "", "HALTED", 1 },
            { row.position, row.partition, row.unresolved, row.key, row.status, row.failures })
          assert.matches("^key: handlers/spec.lua:%d+: ", row.reason)
          assert.matches(case[3], row.reason, 1, true)
        end
        assert.equal("HALTED APPLY_ERROR", rig:state "keyed")
      end)
    end

    it("may give 255 characters of any length in bytes", function()
      start "return event.payload.c:rep(255)"
      for _, c in ipairs { "x", "é", "€", "😀" } do rig:append("A", "spec.Set", { c = c }) end
      rig:run()
      assert.same({ [("x"):rep(255)] = "1", [("é"):rep(255)] = "2", [("€"):rep(255)] = "3", [("😀"):rep(255)] = "4" },
        seen())
    end)

    it("that raises holds everything after its message, also on later starts", function()
      start 'if event.payload.bad then error("no idea whose this is") end return event.payload.to'
      rig:append_all { { "A", "spec.Set", { to = "x" } }, { "A", "spec.Set", { bad = true } },
        { "B", "spec.Set", { to = "y" } } }
      rig:run()
      local reason = rig:undelivered()[1].reason
      assert.matches("^error: handlers/spec.lua:%d+: no idea whose this is$", reason)
      rig:append("C", "spec.Set", { to = "z" })
      for _ = 1, 2 do
        rig:reopen()
        rig:run()
        assert.same({ x = "1" }, seen())
        local rows = rig:undelivered()
        assert.equal(kit.partitions, #rows)
        for _, row in ipairs(rows) do assert.same({ "HALTED", 1 }, { row.status, row.failures }) end
        assert.equal("HALTED APPLY_ERROR", rig:state "keyed")
      end
    end)

    it("that is mended lets the message and all after it pass, in order", function()
      start('if event.payload.bad then error("no") end return event.payload.to', { batch = 2 })
      rig:append_all { { "A", "spec.Set", { to = "x" } }, { "A", "spec.Set", { bad = true, to = "x" } },
        { "B", "spec.Set", { to = "x" } }, { "B", "spec.Set", { to = "y" } } }
      rig:run()
      assert.same({ x = "1" }, seen())
      rig:script(keyed "return event.payload.to")
      rig:accept()
      rig:reopen()
      assert.equal(3, (rig:run())) -- the message counts once, however many rows it had
      assert.same({ x = "1 2 3", y = "4" }, seen())
      assert.same({}, rig:undelivered())
      assert.equal("RUNNING", rig:state "keyed")
    end)

    it("that is mended to several keys applies each once, whatever fails", function()
      -- all keys in one partition, so that one row stands for them
      rig = kit.new { database = database, partitions = 1, handlers = keyed 'error("no")' }
      rig:append_all { { "A", "spec.Set", { keys = { "x", "y", "z" } } }, { "A", "spec.Set", { keys = { "x", "y" } } } }
      rig:run()
      local function mended(poison)
        return ([[
          return moontide.projection "keyed" {
            key = function(event) return unpack(event.payload.keys) end,
            on = { ["spec.Set"] = function(state, event, ctx)
              if ctx.key == %q and event.position == 1 then error "poison" end
              state.seen = state.seen or moontide.array()
              state.seen[#state.seen + 1] = event.position
            end } }]]):format(poison)
      end
      rig:script(mended "y")
      rig:accept()
      rig:reopen()
      rig:run()
      assert.same({ x = "1", z = "1" }, seen())
      assert.same({ "1 y HALTED" }, rig:waiting())
      assert.equal(0, rig:undelivered()[1].unresolved)
      rig:reopen()
      rig:run()
      assert.same({ x = "1", z = "1" }, seen())
      rig:script(mended "")
      rig:reopen()
      rig:run()
      assert.same({ x = "1 2", y = "1 2", z = "1" }, seen())
      assert.same({}, rig:undelivered())
    end)

    it("sees the payload as it was stored", function()
      start "return event.payload.to"
      rig.app:ok("append", { stdin = application.ndjson {
        { type = "spec.Set", payload = '{ "to" : "spaced" }' } } })
      rig:run()
      assert.same({ spaced = "1" }, seen())
    end)
  end)
end)
