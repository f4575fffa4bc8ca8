-- A consumer that has not read what its topic no longer holds.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local function seen(rest)
  return ([[
    return moontide.projection "seen" { %s
      on = { ["spec.Put"] = function(state, event)
        state.at = (state.at and state.at .. " " or "") .. event.position
      end } }]]):format(rest or "")
end

dialect.each(function(database)
  describe("history that is missing", function()
    local rig

    local function start(rest)
      rig = kit.new { database = database, handlers = seen(rest) }
      rig:append_all { { "A", "spec.Put", {} }, { "A", "spec.Put", {} }, { "A", "spec.Put", {} } }
    end

    -- As retention would: rows gone, and the topic's start behind them.
    local function forget(upto)
      rig:query("DELETE FROM EVENT_STORE WHERE global_position <= ?", upto)
      rig:query("UPDATE HIGH_WATER_MARK_STORE SET topic_start = ? WHERE topic_name = 'event-store'", upto)
    end

    local function gaps()
      return rig:query([[
        SELECT min(incomplete_through) AS low, max(incomplete_through) AS high FROM CONSUMER_CHECKPOINTS]])[1]
    end

    local function at(key)
      local state = rig.host:read("seen", key)
      return state and state.at
    end

    after_each(function() rig:close() end)

    it("halts the consumer, which has then read nothing behind it", function()
      start()
      forget(1)
      rig:run()
      assert.equal("HALTED MISSING_HISTORY", rig:state "seen")
      assert.is_nil(at "A")
      assert.matches("no longer holds positions up to 1 ", rig:log())
      rig:restart()
      rig:run()
      assert.equal("HALTED MISSING_HISTORY", rig:state "seen") -- a start mends nothing
      assert.error_matches(function() rig.host:resume "seen" end, "%-%-accept")
      rig.host:resume("seen", { accept = true })
      rig:run()
      assert.equal("2 3", at "A")
      assert.same({ low = 1, high = 1 }, gaps())
      assert.equal("RUNNING", rig:state "seen")
    end)

    it("is no matter for one that has read it", function()
      start()
      rig:run()
      forget(3)
      rig:append("A", "spec.Put", {})
      rig:run()
      assert.equal("1 2 3 4", at "A")
      assert.same({}, gaps())
    end)

    it("holds positions above the topic's start that nobody ever had", function()
      start()
      rig:query "DELETE FROM EVENT_STORE WHERE global_position = 2"
      rig:run()
      assert.equal("1 3", at "A")
      assert.equal("RUNNING", rig:state "seen")
    end)

    it("is passed by a consumer that is declared so, and stays marked", function()
      start 'on_missing_history = "continue",'
      forget(2)
      rig:run()
      assert.equal("3", at "A")
      assert.same({ low = 2, high = 2 }, gaps())
      rig:append("A", "spec.Put", {})
      rig:restart()
      rig:run()
      assert.equal("3 4", at "A")
      assert.same({ low = 2, high = 2 }, gaps())
    end)

    it("is met again by a rebuild, which deletes nothing then", function()
      start 'on_missing_history = "continue",'
      rig:append("B", "spec.Put", {})
      rig:run()
      rig:query "DELETE FROM EVENT_STORE WHERE aggregate_id = 'A'"
      forget(3)
      rig.host:rebuild "seen"
      rig:run()
      assert.equal("1 2 3", at "A") -- it cannot be made again
      assert.equal("4", at "B")
      assert.same({ low = 3, high = 3 }, gaps())
    end)
  end)
end)
