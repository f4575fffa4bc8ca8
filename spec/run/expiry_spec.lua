-- Rows that are kept for a set age go by themselves when it is over, wherever a
-- host runs.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local HANDLERS = { ["none.lua"] = [[
  local moontide = require "moontide"
  return moontide.projection "none" { on = { ["spec.Put"] = function() end } }]] }
local CONFIG = 'commands = { keep = "1h" }'
local LONG = 30 -- seconds

dialect.each(function(database)
  describe("results of commands", function()
    local app

    after_each(function() app:close() end)

    -- So many results that are older than commands.keep, and one that is not.
    local function results(count)
      local function insert(number, years)
        local time = ("%d-02-28%s00:00:00%s"):format(2024 + years, database.name == "sqlite" and "T" or " ",
          database.name == "sqlite" and ".000000Z" or "")
        app.db:execute(([[INSERT INTO COMMAND_RESULTS (id, aggregate_type, aggregate_id, name, outcome, created_at)
          VALUES ('0190f3a2-0000-7000-8000-%012d', 'a', 'b', 'c', '{}', '%s')]]):format(number, time))
      end
      for number = 1, count do insert(number, 0) end
      insert(count + 1, 1000)
    end

    local function left()
      return tonumber(app.db:value "SELECT count(*) FROM COMMAND_RESULTS")
    end

    it("go by themselves when a host runs to its end", function()
      app = application.new { database = database, handlers = HANDLERS, config = CONFIG }
      app:ok("run", "--until-idle")
      results(3)
      app:ok("run", "--until-idle")
      assert.equal(1, left())
    end)

    it("go while a host with workers runs", function()
      app = application.new { database = database, handlers = HANDLERS, config = CONFIG }
      app:ok("run", "--until-idle")
      results(2)
      local host = app:start("run", "--workers", "1")
      process.wait_until(function() return left() == 1 end, LONG, "the results to be gone")
      host:stop()
    end)
  end)
end)
