-- Consumers whose source is the capture topic.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local SEEN = [[
  return moontide.projection "seen" { source = "event-capture", %s
    on = { ["spec.Put"] = function(state, event)
      if event.payload.fails then error "refused" end
      state.at = (state.at and state.at .. " " or "") .. event.position
      state.topic, state.sequence, state.aggregate = event.topic, event.sequence, event.aggregate_id
    end } }]]

dialect.each(function(database)
  describe("a projection of the capture topic", function()
    local rig

    local function start(rest, settings)
      rig = kit.start(database, SEEN:format(rest or ""), settings)
    end

    local function emit(keys)
      for _, key in ipairs(keys) do rig.host:emit("spec.Put", {}, { key = key ~= "" and key or nil }) end
    end

    local function at(key)
      local state = rig.host:read("seen", key)
      return state and state.at
    end

    after_each(function() rig:close() end)

    it("applies what was emitted, key by key, and nothing of the event store", function()
      start()
      rig:append("A", "spec.Put", {})
      emit { "A", "B", "A" }
      rig:run()
      assert.same({ at = "1 3", topic = "event-capture" }, rig.host:read("seen", "A"))
      assert.equal("2", at "B")
      emit { "B" }
      rig:restart()
      rig:run()
      assert.equal("2 4", at "B")
    end)

    it("passes over events without a key", function()
      start()
      emit { "", "A", "" }
      rig:run()
      assert.equal("2", at "A")
      local keys = {}
      for key in pairs(rig.host:read "seen") do keys[#keys + 1] = key end
      assert.same({ "A" }, keys)
      assert.same({}, rig.host:undelivered())
    end)

    it("may give them a key of its own", function()
      start "key = function(event) return event.key or 'none' end,"
      emit { "", "A", "" }
      rig:run()
      assert.equal("1 3", at "none")
      assert.equal("2", at "A")
    end)

    it("keeps a failing one with its copy, and the key's later ones behind it", function()
      start("retry = { attempts = 1 }, on_error = 'dead_letter_key',")
      rig.host:emit("spec.Put", { fails = true }, { key = "A", metadata = { correlation_id = "C" } })
      emit { "A", "B" }
      rig:run()
      assert.equal("3", at "B")
      assert.is_nil(at "A")
      local letter = rig.host:dead_letters({ consumer = "seen" })[1]
      assert.equal("A", letter.key)
      assert.equal(1, letter.position)
    end)

    it("is rebuilt from the topic", function()
      start()
      emit { "A", "B" }
      rig:run()
      rig.host:rebuild "seen"
      rig:run()
      assert.equal("1", at "A")
      assert.equal("2", at "B")
    end)

    it("holds retention until it has read, and no longer", function()
      start("", { capture = { max_rows = 2 } })
      emit { "A", "A", "A", "A", "A" }
      rig.host:pause "seen"
      rig:run()
      assert.equal(5, #rig.host:emitted())
      rig.host:resume "seen"
      rig:run()
      assert.equal("1 2 3 4 5", at "A")
      rig.host:advance "1m"
      rig:run()
      rig.host:advance "1m"
      rig:run()
      assert.equal(2, #rig.host:emitted())
    end)

    it("is halted when forced retention has passed it, before it applies anything", function()
      start("", { capture = { max_rows = 2, force = true } })
      emit { "A" }
      rig:run()
      rig.host:pause "seen"
      emit { "A", "A", "A", "A" }
      rig.host:advance "1m"
      rig:run()
      assert.equal(2, #rig.host:emitted())
      rig.host:resume "seen"
      rig:run()
      assert.equal("HALTED MISSING_HISTORY", rig:state "seen")
      assert.equal("1", at "A")
      rig.host:resume("seen", { accept = true })
      rig:run()
      assert.equal("1 4 5", at "A")
    end)
  end)
end)
