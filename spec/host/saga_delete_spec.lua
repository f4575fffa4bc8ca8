-- Sagas that an operator deletes while a host works on them: nothing of the
-- deleted one stays, comes back or reaches the next one of its id.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local SAGA = [[
local moontide = require "moontide"
return { moontide.publisher "receivers" { to = "stdout:" },
  moontide.saga "trip" { id = moontide.by "trip", starts = { "trip.Booked" },
    deadlines = { reminder = function(saga) saga.state.reminded = true end, ["much later"] = function() end },
    on = {
      ["trip.Booked"] = function(saga) saga:deadline("reminder", "30ms") saga:deadline("much later", "30d") end,
      ["trip.Looked"] = function(saga) saga.state.looks = (saga.state.looks or 0) + 1 end },
    steps = { { name = "seat", to = "receivers", command = "seat.Take", timeout = "20ms", succeeds = "seat.Taken",
      compensate = { command = "seat.Free", succeeds = "seat.Freed", timeout = "20ms" } } } } }]]

local ROUNDS = 12

dialect.each(function(database)
  describe("a saga that is deleted beside a running host", function()
    local app

    after_each(function() app:close() end)

    it("leaves nothing behind, and its id may begin anew", function()
      app = application.new { database = database, config = "workers = 0, partitions = 12",
        handlers = { ["trip.lua"] = SAGA } }
      app:ok("run", "--until-idle")
      local host = app:start "run"
      local function evidence() return host:err() end
      local function append(...)
        local events = {}
        for i, event_type in ipairs { ... } do
          events[i] = { aggregate_id = "T-1", type = event_type, payload = '{"trip":"T-1"}' }
        end
        app:append(events)
      end
      local function instance()
        return app.db:value "SELECT id FROM SAGA_INSTANCES" or ""
      end
      local seen, before = {}, ""
      for _ = 1, ROUNDS do
        append("trip.Booked", "trip.Looked")
        local now
        process.wait_until(function()
          now = instance()
          return now ~= "" and now ~= before
        end, 30, evidence)
        assert.is_nil(seen[now])
        seen[now], before = true, now
        append("trip.Looked", "trip.Looked", "trip.Looked", "trip.Looked", "trip.Looked")
        app:ok("sagas", "delete", "trip", "T-1", "--force")
      end
      append "trip.Booked"
      process.wait_until(function()
        return instance() > before and app.db:value "SELECT state_json FROM SAGA_INSTANCES" == '{"reminded":true}'
      end, 30, evidence)
      host:signal "TERM"
      host:wait()
      for _, what in ipairs { "SAGA_STEPS", "SAGA_DEADLINES" } do
        assert.equal("0", app.db:value(("SELECT count(*) FROM %s WHERE instance_id NOT IN "
          .. "(SELECT id FROM SAGA_INSTANCES)"):format(what)))
      end
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
    end)
  end)
end)
