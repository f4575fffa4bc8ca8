-- moontide sagas: which sagas there are, and one of them; and what check says.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local SAGAS = [[
  local function note(saga, event)
    saga.state.note = event.payload.note
    saga:deadline("late", "2d", { why = event.payload.note })
  end
  return {
    moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" }, start = "now",
      unknown = "dead_letter",
      deadlines = { late = function() end },
      on = { ["spec.Placed"] = note, ["spec.Shipped"] = function(saga) saga:complete() end } },
    moontide.saga "other" { id = moontide.by "order", starts = { "spec.Placed" },
      deadlines = { late = function() end }, on = { ["spec.Placed"] = note } },
  }]]

dialect.each(function(database)
  describe("sagas", function()
    local rig

    before_each(function()
      rig = kit.new { database = database, handlers = SAGAS }
      rig:append_all { { "x", "spec.Placed", { order = "A", note = "é" } }, { "x", "spec.Placed", { order = "B" } },
        { "x", "spec.Shipped", { order = "B" } } }
      rig:run()
    end)

    after_each(function() rig:close() end)

    local function listed(...)
      local found = {}
      for i, saga in ipairs(rig.app:json("sagas", "list", ...).sagas) do
        found[i] = ("%s %s %s"):format(saga.type, saga.id, saga.state)
      end
      return found
    end

    it("list says which there are, and narrows that down", function()
      local all = { "order A active", "order B completed", "other A active", "other B active" }
      assert.same(all, listed())
      assert.same({ all[1], all[2] }, listed "order")
      assert.same({ all[1], all[2] }, listed("--type", "order"))
      assert.same({ all[4] }, listed("other", "B"))
      assert.same({ all[2] }, listed("--state", "completed"))
      assert.same({ all[1], all[3], all[4] }, listed("--state", "active"))
      assert.same({}, listed "none")
      local some = rig.app:json("sagas", "--limit", "3")
      assert.equal(3, #some.sagas)
      assert.equal(4, some.total)
      local text = rig.app:ok("sagas", "--limit", "3")
      assert.matches("saga +id +state +begun at +completed at", text)
      assert.matches("order +A +active +%d%d%d%d%-", text)
      assert.matches("order +B +completed +%d%d%d%d%-.* %d%d%d%d%-", text)
    end)

    it("show prints one with its state and deadlines", function()
      local shown = rig.app:json("sagas", "show", "order", "A")
      assert.same({ note = "é" }, shown.data)
      assert.equal("active", shown.state)
      -- all digits of a number that a double does not keep
      assert.equal(tostring(rig:value [[SELECT CAST(version AS CHAR(20)) AS value FROM SAGA_INSTANCES
        WHERE saga_type = 'order' AND saga_id = 'A']]):gsub(" ", ""), shown.version)
      assert.equal("late", shown.deadlines[1].name)
      assert.same({ why = "é" }, shown.deadlines[1].payload)
      assert.equal(rig:value "SELECT id AS value FROM SAGA_INSTANCES WHERE saga_type = 'order' AND saga_id = 'A'",
        shown.instance)
      local text = rig.app:ok("sagas", "show", "order", "A")
      assert.matches("deadline +late, due at .*, PENDING", text)
      assert.matches('data +{"note":"é"}', text)
      shown = rig.app:json("sagas", "show", "order", "B")
      assert.equal("completed", shown.state)
      assert.is_string(shown.completed_at)
      assert.same({}, shown.deadlines)
    end)

    it("delete removes one that is completed, and with --force one that is under way", function()
      assert.same({ type = "order", id = "B", state = "completed", deadlines = 0, steps = 0, outbox = 0,
        instance = rig:value "SELECT id AS value FROM SAGA_INSTANCES WHERE saga_type = 'order' AND saga_id = 'B'" },
        rig.app:json("sagas", "delete", "order", "B"))
      assert.matches("saga 'A' of type 'order' is under way, and what it has done stays as it is: nothing was deleted; "
        .. "with %-%-force it is", rig.app:fails(3, "sagas", "delete", "order", "A"))
      assert.same({ "order A active", "other A active", "other B active" }, listed())
      assert.matches("saga 'A' of type 'order' deleted, with 1 deadline and 0 rows of steps\n",
        rig.app:ok("sagas", "delete", "order", "A", "--force"))
      assert.same({ "other A active", "other B active" }, listed())
      assert.same({ "other", "other" }, { rig:query("SELECT saga_type AS t FROM SAGA_DEADLINES")[1].t,
        rig:query("SELECT saga_type AS t FROM SAGA_DEADLINES")[2].t })
      assert.matches("there is no saga 'A' of type 'order'", rig.app:fails(1, "sagas", "delete", "order", "A"))
      assert.matches("sagas delete needs to know which: TYPE ID",
        rig.app:fails(64, "sagas", "delete", "order"), 1, true)
      assert.matches("--force is for sagas delete",
        rig.app:fails(64, "sagas", "show", "order", "A", "--force"), 1, true)
    end)

    it("begin anew under the id of one that was deleted", function()
      local before = rig.app:json("sagas", "show", "order", "A")
      rig.app:ok("sagas", "delete", "order", "A", "--force")
      rig:append("x", "spec.Shipped", { order = "A" })
      rig:run()
      assert.same({}, listed("order", "A"))
      rig:append("x", "spec.Placed", { order = "A", note = "again" })
      rig:run()
      local after = rig.app:json("sagas", "show", "order", "A")
      assert.not_equal(before.instance, after.instance)
      assert.same({ note = "again" }, after.data)
      assert.equal(1, #after.deadlines)
    end)

    it("refuse what is not there", function()
      assert.matches("there is no saga 'C' of type 'order'; moontide sagas lists them",
        rig.app:fails(1, "sagas", "show", "order", "C"), 1, true)
      assert.matches("sagas show needs to know which: TYPE ID", rig.app:fails(64, "sagas", "show", "order"), 1, true)
      assert.matches("'order' and --type do not go together",
        rig.app:fails(64, "sagas", "list", "order", "--type", "order"), 1, true)
      assert.matches("active", rig.app:fails(64, "sagas", "--state", "activ"))
    end)

    it("are declared as check says", function()
      local declared = rig.app:json("check").declarations[1]
      assert.same({ "spec.Placed" }, declared.starts)
      assert.equal("dead_letter", declared.unknown)
      assert.same({ "late" }, declared.deadlines)
      assert.equal("now", declared.start)
      local text = rig.app:ok "check"
      assert.matches("saga order %(handlers/spec.lua:%d+%)", text)
      assert.matches("    begun by spec.Placed\n", text, 1, true)
      assert.matches("    an event that finds none is a dead letter\n", text, 1, true)
      assert.matches("    deadlines late\n    starts now\n", text, 1, true)
    end)
  end)
end)
