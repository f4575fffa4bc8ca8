-- What one consumer's trouble may do to others, and a script to the host.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

dialect.each(function(database)
  describe("a consumer", function()
    local rig

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    it("whose page meets a lasting conflict does not stop the consumers after it", function()
      rig = kit.new { database = database, handlers = ([[
        local function count(state) state.n = (state.n or 0) + 1 end
        return {
          moontide.projection "first" { on = { ["spec.Put"] = count, ["spec.Met"] = function(state, _, ctx)
            ctx:query "%s"
            count(state)
          end } },
          moontide.projection "second" { on = { ["spec.Put"] = count, ["spec.Met"] = count } },
        }]]):format(database.intrusion) }
      rig:append_all { { "A", "spec.Put" }, { "B", "spec.Put" } }
      rig:run()
      rig:intrude { on = "first", key = "A",
        body = ("UPDATE first SET message_id = %s WHERE read_model_id = 'B'"):format(database.fresh_id) }
      rig:append_all { { "A", "spec.Met" }, { "B", "spec.Met" } }
      assert.has_error(function() rig:run() end)
      assert.equal(2, rig.host:read("second", "B").n)
      assert.equal(1, rig.host:read("first", "B").n)
      rig:end_intrusion()
      rig:run()
      assert.equal(2, rig.host:read("first", "A").n)
      assert.equal(2, rig.host:read("first", "B").n)
    end)

    it("cannot write the tables of the host, and may read them", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.sql_projection "meddler" { on = {
          ["spec.Put"] = function(event, ctx)
            ctx:update("UPDATE CONSUMER_CHECKPOINTS SET position = 99")
          end,
          ["spec.Look"] = function(event, ctx)
            assert(#ctx:query "SELECT * FROM CONSUMERS" == 1)
          end } }]] }
      rig:append("B", "spec.Look")
      rig:run()
      rig:append("A", "spec.Put")
      pcall(rig.run, rig)
      assert.same({ "2 A HALTED" }, rig:waiting())
      assert.matches("on a table of the host", rig:undelivered()[1].reason, 1, true)
    end)

    it("is refused when its checkpoint lies behind the end of its topic", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "p" { on = { ["spec.Put"] = function(state) state.n = 1 end } }]] }
      rig:append("A", "spec.Put")
      rig:run()
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 100 WHERE partition_no = 3"
      local good, problem = pcall(rig.restart, rig)
      assert.is_false(good)
      assert.matches("in partition 3 stands at 100", tostring(problem), 1, true)
      assert.matches("ends at position 1", tostring(problem), 1, true)
      rig.host = nil
    end)
  end)
end)
