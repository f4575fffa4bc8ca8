-- Deadlines of one saga that come due together are fired in one transaction,
-- and mean what they would mean in one each.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- Each deadline does what its payload says.
local ORDER = [[
  local function act(saga, deadline, ctx)
    local does = deadline.payload or {}
    ctx:emit("spec.Fired", { name = deadline.name }, { key = saga.id })
    if does.writes then ctx:execute("INSERT INTO written (n) VALUES (?)", does.writes) end
    if does.cancels then saga:cancel(does.cancels) end
    if does.moves then saga:deadline(does.moves, "1h") end
    if does.sets_and_cancels then
      saga:deadline(does.sets_and_cancels, "1h")
      saga:cancel(does.sets_and_cancels)
    end
    if does.cancels_and_sets then
      saga:cancel(does.cancels_and_sets)
      saga:deadline(does.cancels_and_sets, "1h")
    end
    if does.completes then saga:complete() end
    if does.fails and ctx.attempt <= does.fails then error "not now" end
  end
  return moontide.saga "order" { id = moontide.by "order", starts = { "spec.Placed" },
    retry = { attempts = 3, delay = "1m", factor = 1, jitter = 0 },
    on = { ["spec.Placed"] = function(saga, event)
      for i, does in ipairs(event.payload.deadlines) do
        saga:deadline(("d%d"):format(i), ("%dm"):format(i), does)
      end
    end },
    deadlines = { d1 = act, d2 = act, d3 = act } }]]

dialect.each(function(database)
  describe("of deadlines of one saga that are due together", function()
    local rig

    before_each(function() rig = kit.start(database, ORDER) end)
    after_each(function() rig:close() end)

    local function later(duration)
      rig.host:advance(duration)
      rig:run()
    end

    -- One saga, all of whose deadlines are due.
    local function due(...)
      rig:append("A", "spec.Placed", { order = "A", deadlines = { ... } })
      rig:run()
      later "10m"
    end

    local function fired()
      local list = {}
      for i, event in ipairs(rig.host:emitted "spec.Fired") do list[i] = event.payload.name end
      return list
    end

    local function rows()
      local list = {}
      for i, row in ipairs(rig:query "SELECT * FROM SAGA_DEADLINES ORDER BY name") do
        list[i] = ("%s %s %d"):format(row.name, row.status, row.attempts)
      end
      return list
    end

    for _, does in ipairs { "cancels", "sets_and_cancels" } do
      it("one does not fire that one before it " .. does, function()
        due({ [does] = "d2" }, {}, {})
        assert.same({ "d1", "d3" }, fired())
        assert.same({}, rows())
        later "2h"
        assert.same({ "d1", "d3" }, fired())
      end)
    end

    for _, does in ipairs { "moves", "cancels_and_sets" } do
      it("one fires only at its new time that one before it " .. does, function()
        due({ [does] = "d2" }, {}, {})
        assert.same({ "d1", "d3" }, fired())
        assert.same({ "d2 PENDING 0" }, rows())
        later "2h"
        assert.same({ "d1", "d3", "d2" }, fired())
        assert.same({}, rows())
      end)
    end

    it("none fires behind one that completes the saga", function()
      due({ completes = true }, {}, {})
      assert.same({ "d1" }, fired())
      assert.same({}, rows())
    end)

    it("one fires that another wanted to cancel, and failed", function()
      due({ cancels = "d2", fails = 1 }, {}, {})
      assert.same({ "d2", "d3" }, fired())
      assert.same({ "d1 FAILED 1" }, rows())
      later "1m"
      assert.same({ "d2", "d3", "d1" }, fired())
      assert.same({}, rows())
    end)

    it("one that has failed is not tried again when one behind it cancels it", function()
      due({ fails = 1 }, { cancels = "d1" })
      assert.same({ "d2" }, fired())
      assert.same({}, rows())
    end)

    it("one that has failed begins anew when one behind it moves it", function()
      due({ fails = 1 }, { moves = "d1" })
      assert.same({ "d2" }, fired())
      assert.same({ "d1 PENDING 0" }, rows())
      later "2h"
      assert.same({ "d2", "d1" }, fired())
      assert.same({}, rows())
    end)

    it("one that has failed goes when one behind it completes the saga", function()
      due({ fails = 3 }, { completes = true }, {})
      assert.same({ "d2" }, fired())
      assert.same({}, rows())
    end)

    it("each means the same where the statement of one is refused", function()
      rig:query "CREATE TABLE written (n INTEGER NOT NULL PRIMARY KEY)"
      rig:query "INSERT INTO written (n) VALUES (7)"
      due({ cancels = "d2" }, {}, { writes = 7 })
      assert.same({ "d1" }, fired())
      assert.same({ "d3 FAILED 1" }, rows())
    end)
  end)
end)
