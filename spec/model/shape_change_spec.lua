-- A declaration that no longer fits what is stored: noticed at the start.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

dialect.each(function(database)
  describe("a projection's table", function()
    local rig

    local function handlers(name, field)
      return ([[
        return moontide.projection "models" { table = "%s", fields = { f = %s }, on = {
          ["spec.Put"] = function(state, event) state.f = event.payload.f end } }]]):format(name, field)
    end

    local function start(field, value)
      rig = kit.new { database = database, handlers = handlers("models", field) }
      rig:append("A", "spec.Put", { f = value })
      rig:run()
      assert.equal(value, rig.host:read("models", "A").f)
    end

    local function reopen(name, field)
      if rig.host then rig.host:close() end
      rig.host = nil
      rig:script(handlers(name, field))
      local good, problem = pcall(rig.open, rig)
      return not good and tostring(problem) or nil
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    for _, change in ipairs {
      { "t.decimal(8, 2)", "5.50", "t.decimal(8, 3)" },
      { "t.decimal(8, 2)", "5.50", "t.decimal(9, 2)" },
      { "t.date()", "2024-02-29", "t.timestamp()" },
      { "t.boolean()", true, "t.integer()" },
      { "t.uuid()", "01890a5d-ac96-774b-bcce-b302099a8057", "t.text()" },
    } do
      it(("of %s is refused to %s"):format(change[1], change[3]), function()
        start(change[1], change[2])
        assert.matches('column "f"', reopen("models", change[3]) or "it was taken", 1, true)
      end)
    end

    it("of a decimal is taken by one with fewer digits of the same scale", function()
      start("t.decimal(8, 2)", "5.50")
      assert.is_nil(reopen("models", "t.decimal(6, 2)"))
    end)

    it("is not made anew, empty, once the projection has read", function()
      start("t.text()", "x")
      local problem = reopen("other", "t.text()")
      assert.matches("has read up to position 1", problem, 1, true)
      for statement in problem:gmatch "DELETE [^;]+;" do rig.app.db:execute(statement) end
      assert.is_nil(reopen("other", "t.text()"))
      rig:run()
      assert.equal("x", rig.host:read("models", "A").f)
    end)
  end)
end)
