-- Hosts with different scripts, as when a new version is rolled out: a host that
-- gets the sagas of another one must know the steps that they are in.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local STEP = [[
  { name = "%s", to = "out", command = "%s.Do", timeout = "1h", succeeds = "%s.Done", compensate = false },]]

local function trip(...)
  local steps = {}
  for i, name in ipairs { ... } do steps[i] = (STEP:gsub("%%s", name)) end
  return ([[
local moontide = require "moontide"
return { moontide.publisher "out" { to = "stdout:" },
  moontide.saga "trip" { id = moontide.by "trip", starts = { "trip.Booked" }, steps = { %s } } }]])
    :format(table.concat(steps, "\n"))
end

-- Nobody dies here, and who stands for a while on a busy machine is not dead.
local LEASE = 'lease = { duration = "20s", heartbeat = "200ms", rebalance = "200ms" }'

dialect.each(function(database)
  describe("a host that takes over sagas whose step it does not know", function()
    local app, older, newer

    after_each(function() app:close() end)

    local function said() return older:err() .. (newer and newer:err() or "") end

    local function wait(condition) process.wait_until(condition, 30, said) end

    local function number(sql) return tonumber(app.db:value(sql)) end

    local function append(event_type)
      local events = {}
      for i = 1, 20 do
        local id = "T-" .. i
        events[i] = { aggregate_id = id, type = event_type, payload = ('{"trip":"%s"}'):format(id) }
      end
      app:append(events)
    end

    local function hosts()
      return number [[SELECT count(DISTINCT instance_id) FROM PARTITION_OWNERSHIP WHERE consumer_name = 'trip']]
    end

    it("stands still, and leaves their answers to one that does", function()
      app = application.new { database = database,
        config = 'partitions = 12, workers = 1, poll = { max_interval = "20ms" }, ' .. LEASE,
        handlers = { ["trip.lua"] = trip("one", "two") } }
      app:ok("run", "--until-idle")
      older = app:start("run", "--workers", "0") -- which takes no saved scripts
      wait(function() return hosts() == 1 end)
      app:write("handlers/trip.lua", trip "two")
      newer = app:start("run", "--workers", "0")
      wait(function() return hosts() == 2 end)
      append "trip.Booked"
      wait(function() return number "SELECT count(*) FROM SAGA_STEPS" == 20 end)
      local waiting = number "SELECT count(*) FROM SAGA_STEPS WHERE step_name = 'one' AND state = 'SENT'"
      assert.is_true(waiting > 0 and waiting < 20, waiting .. " await the first step")
      older:signal "TERM"
      assert.equal(0, older:wait(30).code, older:err())
      append "one.Done"
      wait(function() return newer:err():find "stands still: handlers/trip.lua:3: step 'one' of saga 'T%-" end)
      app:write("handlers/trip.lua", trip("one", "two"))
      older = app:start("run", "--workers", "0")
      wait(function()
        return number "SELECT count(*) FROM SAGA_STEPS WHERE step_name = 'one' AND state = 'SUCCEEDED'" == waiting
      end)
      for _, host in ipairs { older, newer } do
        host:signal "TERM"
        assert.equal(0, host:wait(30).code, host:err())
      end
    end)
  end)
end)
