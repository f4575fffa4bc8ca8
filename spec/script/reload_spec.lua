-- What a reload takes live and what it refuses, in the process of the spec:
-- host:reload() does between two batches what a running host does when a file
-- is saved. How saving gets there: spec/cli/reload_spec.lua.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local HEAD = [[
local moontide = require "moontide"
local t = moontide.types
]]

local function totals(change)
  return HEAD .. ([[
return moontide.projection "totals" { %s
  initial = function() return { total = 0 } end,
  on = { ["spec.Added"] = function(state, event) state.total = state.total + %s event.payload.by end } }
]]):format(change and change.fields or "", change and change.factor or "")
end

local function days(column)
  return ([[CREATE TABLE IF NOT EXISTS days (day VARCHAR(40) PRIMARY KEY, n INTEGER NOT NULL%s);
]]):format(column or "")
end

local DAYS = HEAD .. [[
return moontide.sql_projection "days" { tables = "sql/days.sql", %s
  reset = function(ctx) ctx:execute("DELETE FROM days") end,
  on = { ["spec.Added"] = function(event, ctx)
    ctx:upsert("days", { day = ctx.key }, { n = moontide.add(1) })
  end } }
]]

dialect.each(function(database)
  describe("a reload", function()
    local rig

    local function open(files, options)
      local all = { database = database, files = files, batch = 3 }
      for key, value in pairs(options or {}) do all[key] = value end
      rig = kit.new(all)
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function save(name, text) rig.app:write(name, text) end

    local function reload(options) return rig.host:reload(options) end

    local function refused(options)
      local good, problem = pcall(reload, options)
      assert.is_false(good, "the reload should have been refused")
      return tostring(problem)
    end

    local function added(by, id)
      rig:append(id or "A", "spec.Added", { by = by or 1 })
      return rig:run()
    end

    local function total(id)
      local state = rig.host:read("totals", id or "A")
      return state and state.total
    end

    it("applies what comes by the new code, and leaves what came before", function()
      open { ["handlers/totals.lua"] = totals() }
      added(1)
      save("handlers/totals.lua", totals { factor = "10 *" })
      added(1)
      assert.equal(2, total())
      local report = reload()
      assert.is_true(report.changed)
      assert.equal("handlers/totals.lua changed; projection 'totals' changed", report.changes)
      assert.equal(3, (added(1)))
      assert.equal(12, total())
      assert.equal("RUNNING", rig:state "totals")
    end)

    it("of the same files does nothing, and one of other bytes is another version", function()
      open { ["handlers/totals.lua"] = totals() }
      local first = reload()
      assert.same({ false, "" }, { first.changed, first.changes })
      save("handlers/totals.lua", totals() .. "-- a comment\n")
      local second = reload()
      assert.is_true(second.changed)
      assert.not_equal(first.version, second.version)
      assert.equal("handlers/totals.lua changed", second.changes)
      save("handlers/totals.lua", totals())
      assert.equal(first.version, reload().version)
    end)

    it("moves no checkpoint, repeats nothing and leaves nothing out", function()
      open({ ["handlers/ledger.lua"] = HEAD .. kit.LEDGER .. [[
return moontide.sql_projection "kept" { tables = "sql/ledger.sql",
  on = { ["spec.Added"] = function(event, ctx) ledger("kept", event, ctx) end } }]],
        ["sql/ledger.sql"] = kit.LEDGER_SQL })
      local wanted = {}
      for round = 1, 6 do
        local list = {}
        for i = 1, 10 do
          local key = ("k%d"):format(i % 4)
          list[i] = { key, "spec.Added", { by = i } }
          wanted[#wanted + 1] = ("%s:%d"):format(key, #wanted + 1)
        end
        rig:append_all(list)
        if round % 2 == 0 then rig:run() end
        save("handlers/ledger.lua", rig.app:read("handlers/ledger.lua") .. "-- " .. round .. "\n")
        assert.is_true(reload().changed)
        if round == 3 then rig:redeliver() end
      end
      rig:run()
      local seen = rig:ledger()
      table.sort(seen)
      table.sort(wanted)
      assert.same(wanted, seen)
    end)

    describe("is refused and changes nothing", function()
      local BAD = {
        { what = "when a file does not compile", text = totals() .. "end", says = "handlers/totals%.lua:%d+: .*<eof>" },
        { what = "when a file raises", text = 'error("not today")', says = "handlers/totals%.lua:1: not today" },
        { what = "when a file returns nothing",
          text = HEAD .. "moontide.projection 'totals' { on = { x = print } }",
          says = "handlers/totals%.lua:3: .*not returned" },
        { what = "when a declaration is wrong", text = (totals():gsub("initial", "inital")),
          says = "handlers/totals%.lua.*did you mean" },
        { what = "when two declare the same name", name = "handlers/twice.lua", text = totals(),
          says = "twice%.lua:3" },
        { what = "when a required file is missing", text = 'require "lib.gone"\n' .. totals(),
          says = "handlers/totals%.lua:1: .*lib%.gone" },
        { what = "when a table of another shape is in the way", name = "handlers/z.lua",
          text = totals({ fields = "fields = { f = t.text() }," }):gsub('"totals"', '"taken"'),
          says = "handlers/z%.lua:3: .*taken" },
        { what = "when the SQL of a table is wrong", name = "handlers/z.lua", sql = "CREATE TABLE nonsense (",
          text = DAYS:format "", says = "handlers/z%.lua:3: .*sql/days%.sql" },
      }
      for _, bad in ipairs(BAD) do
        it(bad.what, function()
          open { ["handlers/totals.lua"] = totals() }
          added(1)
          rig:query "CREATE TABLE taken (id INTEGER)"
          local version = reload().version
          save(bad.name or "handlers/totals.lua", bad.text)
          if bad.sql then save("sql/days.sql", bad.sql) end
          assert.matches(bad.says, refused())
          added(1)
          assert.equal(2, total())
          rig.app:exec("rm", "-f", bad.name or "handlers/totals.lua")
          save("handlers/totals.lua", totals())
          assert.same({ false, version }, { reload().changed, reload().version })
        end)
      end

      it("when the scripts folder is gone for a moment", function()
        open { ["handlers/totals.lua"] = totals() }
        rig.app:exec("mv", "handlers", "aside")
        assert.matches("handlers", refused(), 1, true)
        added(1)
        assert.equal(1, total())
        rig.app:exec("mv", "aside", "handlers")
        assert.is_false(reload().changed)
      end)
    end)

    describe("that would halt a consumer", function()
      local CHANGES = {
        { word = "its source, aggregates or event types", fields = 'aggregates = { "spec.thing" },' },
        { word = "its key or number of partitions", fields = "key = function(event) return event.key:lower() end," },
        { word = "its stored shape (fields, tables)", fields = "fields = { total = t.integer() }," },
      }
      for _, change in ipairs(CHANGES) do
        it("is refused with the place: " .. change.word, function()
          open { ["handlers/totals.lua"] = totals() }
          added(1)
          save("handlers/totals.lua", totals { fields = change.fields, factor = "10 *" })
          local problem = refused()
          assert.matches("handlers/totals.lua:3: projection 'totals' would be halted", problem, 1, true)
          assert.matches(change.word, problem, 1, true)
          added(1)
          assert.equal(2, total())
          assert.equal("RUNNING", rig:state "totals")
        end)

        it("rebuilds where on_change says so: " .. change.word, function()
          open { ["handlers/totals.lua"] = totals() }
          added(1)
          added(2)
          save("handlers/totals.lua", totals { fields = 'on_change = "rebuild", ' .. change.fields, factor = "10 *" })
          assert.is_true(reload().changed)
          added(3)
          local key = change.word:find "key" and "a" or "A"
          assert.equal(60, total(key))
          assert.same({ "RUNNING", 1 }, { rig:state "totals", rig:consumer("totals").epoch })
        end)
      end

      it("goes on with what it has when the operator accepts it", function()
        open { ["handlers/totals.lua"] = totals() }
        added(1)
        save("handlers/totals.lua", totals { fields = CHANGES[1].fields, factor = "10 *" })
        assert.is_true(reload({ accept = true }).changed)
        added(1)
        assert.same({ "RUNNING", 11 }, { rig:state "totals", total() })
        rig:restart() -- and it is the declaration from now on
        added(1)
        assert.same({ "RUNNING", 21 }, { rig:state "totals", total() })
      end)

      it("is taken once the consumer is paused, was rebuilt by its saved form, or is as before", function()
        open { ["handlers/totals.lua"] = totals() }
        added(1)
        save("handlers/totals.lua", totals { fields = CHANGES[2].fields, factor = "10 *" })
        refused()
        rig.app:ok("rebuild", "totals")
        assert.is_true(reload().changed)
        rig:run()
        assert.equal(10, total "a")
        rig.host:pause "totals"
        save("handlers/totals.lua", totals())
        assert.is_true(reload().changed)
        assert.equal("PAUSED", rig:state "totals")
      end)

      it("does not keep others from what they have", function()
        open { ["handlers/totals.lua"] = totals() }
        added(1)
        save("handlers/totals.lua", totals { fields = CHANGES[2].fields })
        save("handlers/days.lua", DAYS:format "")
        save("sql/days.sql", days())
        assert.matches("totals", refused())
        added(1)
        assert.equal(2, total())
        assert.is_nil(rig:consumer "days")
      end)
    end)

    it("halts nobody by a changed SQL file unless it is accepted, or rebuilds", function()
      open { ["handlers/days.lua"] = DAYS:format "", ["sql/days.sql"] = days() }
      added(1)
      save("sql/days.sql", days ", more INTEGER")
      assert.matches("handlers/days.lua:3: sql_projection 'days' would be halted", refused(), 1, true)
      save("handlers/days.lua", DAYS:format 'on_change = "rebuild",')
      rig:query "DROP TABLE days"
      local report = reload()
      assert.equal("handlers/days.lua changed, sql/days.sql changed; sql_projection 'days' changed", report.changes)
      rig:run()
      assert.same({ { day = "A", n = 1 } }, rig:query "SELECT day, n FROM days")
      rig:query "SELECT more FROM days"
    end)

    it("starts what is new from the beginning, and what comes back where it stood", function()
      open { ["handlers/totals.lua"] = totals() }
      added(1)
      added(2)
      save("handlers/more.lua", (totals():gsub('"totals"', '"more"')))
      assert.equal("handlers/more.lua added; projection 'more' added", reload().changes)
      rig:run()
      assert.equal(3, rig.host:read("more", "A").total)
      rig.app:exec("rm", "handlers/totals.lua")
      assert.equal("handlers/totals.lua removed; projection 'totals' removed", reload().changes)
      added(10)
      save("handlers/totals.lua", totals())
      assert.equal("handlers/totals.lua added; projection 'totals' added", reload().changes)
      added(20)
      assert.equal(33, total())
      assert.equal(33, rig.host:read("more", "A").total)
    end)

    it("changes all that require a changed file", function()
      local text = HEAD .. [[
local factor = require "lib.factor"
return moontide.projection "%s" { initial = function() return { total = 0 } end,
  on = { ["spec.Added"] = function(state, event) state.total = state.total + factor * event.payload.by end } }]]
      open { ["handlers/a.lua"] = text:format "totals", ["handlers/b.lua"] = text:format "others",
        ["handlers/lib/factor.lua"] = "return 1" }
      added(1)
      save("handlers/lib/factor.lua", "return 100")
      assert.equal("handlers/lib/factor.lua changed; projection 'totals' changed, projection 'others' changed",
        reload().changes)
      added(1)
      assert.same({ 101, 101 }, { total(), rig.host:read("others", "A").total })
    end)

    it("is what a late require sees, not what was saved since", function()
      open { ["handlers/totals.lua"] = HEAD .. [[
return moontide.projection "totals" { initial = function() return { total = 0 } end,
  on = { ["spec.Added"] = function(state, event)
    state.total = state.total + require("lib.factor") * event.payload.by
  end } }]], ["handlers/lib/factor.lua"] = "return 1" }
      save("handlers/lib/factor.lua", "return (")
      added(1)
      assert.equal(1, total())
      assert.matches("lib/factor.lua:1", refused(), 1, true)
      save("handlers/lib/factor.lua", "return 100")
      reload()
      added(1)
      assert.equal(101, total())
    end)

    it("does not let a handler load a file that is no part of it", function()
      open { ["handlers/totals.lua"] = HEAD .. [[
return moontide.projection "totals" { on = { ["spec.Added"] = function(state)
  state.total = require("lib." .. "factor")
end } }]], ["handlers/lib/factor.lua"] = "return 1" }
      added(1)
      assert.matches("no part of the loaded version", rig:undelivered()[1].reason, 1, true)
    end)

    it("tries what a handler failed on again, by the new code", function()
      open({ ["handlers/totals.lua"] = totals { factor = "nil *" }, ["handlers/more.lua"] =
        totals({ factor = "nil *" }):gsub('"totals"', '"more"') }, { retry = { attempts = 1 } })
      added(1)
      assert.equal("HALTED APPLY_ERROR", rig:state "totals")
      save("handlers/totals.lua", totals())
      reload()
      assert.equal("RUNNING", rig:state "totals")
      assert.equal("HALTED APPLY_ERROR", rig:state "more") -- nothing of it has changed
      rig:run()
      assert.equal(1, total())
      assert.same({}, rig:undelivered "totals")
    end)

    it("lets a message that waits for its retry be retried by the new code", function()
      open({ ["handlers/totals.lua"] = totals { factor = "nil *" } }, { retry = { attempts = 5, delay = "1s" } })
      added(1)
      assert.equal("FAILED", rig:undelivered()[1].status)
      save("handlers/totals.lua", totals())
      reload()
      rig.host:advance "2s"
      added(2)
      assert.same({ 3, {} }, { total(), rig:undelivered() })
    end)

    it("in the middle of a replay replays the rest by the new code", function()
      open { ["handlers/totals.lua"] = totals() }
      for i = 1, 4 do rig:append("A" .. i, "spec.Added", { by = 1 }) end
      rig:run()
      rig.host:rebuild "totals"
      save("handlers/totals.lua", totals { factor = "10 *" })
      reload()
      rig:run()
      for i = 1, 4 do assert.equal(10, total("A" .. i)) end
      assert.equal("RUNNING", rig:state "totals")
    end)

    it("counts on, and a hundred of them cost no memory", function()
      open { ["handlers/totals.lua"] = totals() }
      added(1)
      local function resident()
        local handle = assert(io.open "/proc/self/statm")
        local pages = handle:read "*a":match "%d+ (%d+)"
        handle:close()
        return tonumber(pages) * 4
      end
      local function many(n)
        for i = 1, n do
          save("handlers/totals.lua", totals { factor = tostring(i % 7 + 1) .. " *" })
          reload()
        end
        collectgarbage()
        return resident()
      end
      local before = many(30)
      local after = many(100)
      -- a sanitizer keeps what was freed, and looks for leaks itself
      local maps = assert(io.open "/proc/self/maps")
      local allowed = maps:read "*a":find "libasan" and 64000 or 4000
      maps:close()
      assert.is_true(after - before < allowed, ("%d KB more"):format(after - before))
      assert.equal(2, (added(1)))
    end)
  end)
end)
