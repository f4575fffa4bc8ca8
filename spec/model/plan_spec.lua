-- A read model that is being built was never analyzed: what a batch reads must
-- depend on the batch, and not on what is there already.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local KEYS, GONE, BATCH = 20000, 600, 20

local HANDLERS = [[
  local moontide = require "moontide"
  return moontide.projection "counts" { on = {
    ["spec.Put"] = function(state) state.n = (state.n or 0) + 1 end,
    ["spec.Gone"] = function() return moontide.delete end } }]]

dialect.each(function(database)
  if database.name ~= "postgres" then return end -- whose plans are kept

  describe("a batch on tables that nobody has analyzed", function()
    local app

    after_each(function() app:close() end)

    local function append(event_type, count)
      local events = {}
      for i = 1, count do events[i] = { aggregate_id = "key-" .. i, type = event_type, payload = "{}" } end
      app:append(events)
    end

    -- A session's figures are there when it has ended.
    local function rows_read(name)
      local row = app.db:query(([[SELECT seq_tup_read + idx_tup_fetch AS n, n_tup_del AS gone
        FROM pg_stat_user_tables WHERE relname = '%s' AND schemaname = current_schema()]]):format(name))[1]
      return tonumber(row[1] or row.n), tonumber(row[2] or row.gone)
    end

    it("reads the epochs of read models that go, and no others", function()
      app = application.new { database = database, config = "partitions = 12",
        handlers = { ["spec.lua"] = HANDLERS } }
      app:ok("run", "--until-idle")
      app.db:command "ALTER TABLE read_model_epochs SET (autovacuum_enabled = off)"
      append("spec.Put", KEYS)
      app:ok("run", "--until-idle")
      app:configure("partitions = 12, batch = " .. BATCH)
      append("spec.Gone", GONE)
      app:ok("run", "--until-idle")
      local read
      process.wait_until(function()
        local gone
        read, gone = rows_read "read_model_epochs"
        return gone == GONE
      end, 20, function() return "the figures of a session that has ended" end)
      assert.is_true(read < 4 * GONE, ("%d rows were read to delete %d"):format(read, GONE))
    end)
  end)
end)
