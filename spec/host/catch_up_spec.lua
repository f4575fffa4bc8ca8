-- A host that is killed while it catches up with much: at whatever moment, no
-- checkpoint has passed what is not done.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local EVENTS, KEYS, KILLS = 3000, 60, 6

-- Each event takes a while.
local HANDLER = ledger.HANDLER:gsub("event.position%)\n", [[%0
      local n = 0
      for i = 1, 20000 do n = n + i %% 7 end
]])
assert(HANDLER:find("20000", 1, true))

-- What lies at or below the lowest checkpoint and was neither applied nor kept
-- to be tried again.
local PASSED = [[
  SELECT count(*) FROM EVENT_STORE e
   WHERE e.global_position <= (SELECT min(coalesce(position, 0)) FROM CONSUMER_CHECKPOINTS)
     AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.position = e.global_position)
     AND NOT EXISTS (SELECT 1 FROM CONSUMER_UNDELIVERED_MESSAGES u WHERE u.message_position = e.global_position)]]

local TWICE = "SELECT count(*) - count(DISTINCT position) FROM ledger"

dialect.each(function(database)
  describe("a host that is killed again and again while it catches up", function()
    local app

    after_each(function() app:close() end)

    it("has never passed an event that is not done, and ends with each applied once", function()
      app = application.new { database = database, config = ("partitions = 12, workers = %d, batch = 50, "):format(
        database.name == "sqlite" and 1 or 2) .. "retry = { attempts = 1000, delay = '10ms', factor = 1, jitter = 0 }" }
      ledger.add(app)
      app:write("handlers/ledger.lua", HANDLER)
      app:ok("run", "--until-idle")
      app.db:execute "CREATE INDEX ledger_by_position ON ledger (position)"
      local events, total, before = {}, 0, 0
      for i = 1, EVENTS do events[i] = { aggregate_id = "K-" .. i % KEYS } end
      local function more()
        app:append(events)
        total = total + EVENTS
      end
      more()

      local kills = 0
      while kills < KILLS do -- one that comes when all is done is none
        local host = app:start "run"
        process.wait_until(function() return ledger.count(app) > before end, 60, function() return host:err() end)
        process.pause(math.random(300))
        -- at times one of its workers first, and the others go on for a moment
        if kills % 2 == 1 then
          process.signal(host:workers()[1], "KILL")
          process.pause(math.random(200))
        end
        host:signal_all "KILL"
        host:wait(30)
        before = ledger.count(app)
        assert.equal("0", app.db:value(PASSED))
        assert.equal("0", app.db:value(TWICE))
        if before < total then kills = kills + 1 else more() end
      end

      local host = app:start "run"
      process.wait_until(function() return ledger.count(app) == total end, 120, function() return host:err() end)
      assert.same({}, ledger.faults(app))
      host:signal "TERM"
      assert.equal(0, host:wait(30).code, host:err())
    end)
  end)
end)
