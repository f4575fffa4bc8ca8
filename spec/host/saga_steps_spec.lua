-- Orchestrated sagas on hosts that are killed: progress is in the database, so
-- what was sent, answered and undone is so once.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local STEP = [[
    { name = "%s", to = "receivers", command = "%s.Do", timeout = "1h", succeeds = "%s.Done", fails = "%s.Declined",
      compensate = { command = "%s.Undo", succeeds = "%s.Undone", timeout = "%s" } },]]

local function saga(timeout)
  local steps = {}
  for i, name in ipairs { "one", "two", "three", "four" } do
    steps[i] = STEP:format(name, name, name, name, name, name, timeout)
  end
  return ([[
local moontide = require "moontide"
return { moontide.publisher "receivers" { to = "stdout:" },
  moontide.saga "trip" { id = moontide.by "trip", starts = { "trip.Booked" },
    retry = { attempts = 30, delay = "1ms", jitter = 0 }, -- each kill may count as one
    on_end = function(saga, outcome, ctx) ctx:emit("trip." .. outcome, { trip = saga.id }) end,
    steps = { %s } } }]]):format(table.concat(steps, "\n"))
end

-- One host at a time, which waits for what the one before has left.
local LONE = 'lease = { duration = "500ms", heartbeat = "100ms", rebalance = "100ms" }, '

dialect.each(function(database)
  describe("an orchestrated saga on hosts that are killed", function()
    local app, host

    local function start(timeout)
      app = application.new { database = database, config = LONE .. "workers = 0, partitions = 12",
        handlers = { ["trip.lua"] = saga(timeout) } }
      app:ok("run", "--until-idle") -- makes the host's tables
    end

    after_each(function() app:close() end)

    local function evidence() return host and host:err() or "" end

    local function append(list)
      local events = {}
      for i, item in ipairs(list) do
        events[i] = { aggregate_id = item[1], type = item[2], payload = ('{"trip":"%s"}'):format(item[1]) }
      end
      app:append(events)
    end

    -- What waits in the outbox, which is the receivers' then.
    local function take()
      local taken = {}
      for _, row in ipairs(app:json("outbox", "list", "--status", "pending").messages) do
        taken[#taken + 1] = { id = row.event_id, type = row.type, trip = row.ordering_key }
        app.db:command(("UPDATE OUTBOX SET status = 'published' WHERE event_id = '%s'"):format(row.event_id))
      end
      return taken
    end

    local function await()
      local taken
      process.wait_until(function()
        taken = take()
        return #taken > 0
      end, 60, evidence)
      return taken
    end

    it("undoes each step once per round, newest first, whenever it is killed", function()
      start "300ms"
      append { { "T-1", "trip.Booked" } }
      local effects, ids, silent = {}, {}, 0
      -- Receivers do each id once; four has no seat, and two does not hear of
      -- its first four compensations.
      local function receive(message)
        local name, what = message.type:match "^(%a+)%.(%a+)$"
        if not ids[message.id] then
          ids[message.id] = true
          effects[#effects + 1] = message.type
        end
        if message.type == "two.Undo" and silent < 4 then
          silent = silent + 1
        elseif what == "Undo" then
          append { { "T-1", name .. ".Undone" } }
        else
          append { { "T-1", name == "four" and "four.Declined" or name .. ".Done" } }
        end
        return message.type
      end
      local kills = 0
      repeat
        host = app:start "run"
        local last
        for _, message in ipairs(await()) do last = receive(message) end
        host:signal "KILL"
        host:wait()
        kills = kills + 1
      until last == "one.Undo"
      assert.is_true(kills >= 7 + 4, kills .. " kills")
      local undone = { "one.Do", "two.Do", "three.Do", "four.Do", "three.Undo", "two.Undo", "one.Undo" }
      assert.same(undone, effects)
      app:ok("run", "--until-idle")
      assert.equal("1", app.db:value "SELECT count(*) FROM EVENT_CAPTURE_RECORDS WHERE event_type = 'trip.Cancelled'")
      take() -- what a killed host has sent again, perhaps

      append { { "T-1", "four.Done" } } -- it found a seat after all
      app:ok("run", "--until-idle")
      undone[#undone + 1] = "four.Undo"
      for _, message in ipairs(take()) do receive(message) end
      append { { "T-1", "four.Done" } }
      app:ok("run", "--until-idle")
      for _, message in ipairs(take()) do receive(message) end
      assert.same(undone, effects)
      local shown = app:json("sagas", "show", "trip", "T-1")
      local steps = {}
      for i, row in ipairs(shown.steps) do steps[i] = ("%s %d %s"):format(row.step, row.round, row.state) end
      assert.same({ "one 1 COMPENSATED", "two 1 COMPENSATED", "three 1 COMPENSATED", "four 1 FAILED",
        "four 2 COMPENSATED" }, steps)
    end)

    it("goes on with answers that came while no host ran", function()
      start "1h"
      local booked, answers, sent = {}, {}, {}
      for i = 1, 10 do
        booked[i] = { "T-" .. i, "trip.Booked" }
        answers[i] = { "T-" .. i, "one.Done" }
        sent[i] = "two.Do T-" .. i
      end
      append(booked)
      host = app:start "run"
      local taken = 0
      process.wait_until(function()
        taken = taken + #take()
        return taken == 10
      end, 60, evidence)
      host:signal "KILL"
      host:wait()
      append(answers)
      host = app:start "run"
      local got = {}
      process.wait_until(function()
        for _, message in ipairs(take()) do got[#got + 1] = message.type .. " " .. message.trip end
        return #got >= 10
      end, 60, evidence)
      table.sort(got)
      table.sort(sent)
      assert.same(sent, got)
    end)
  end)
end)
