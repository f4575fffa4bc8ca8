-- A start on tables that the server has not looked at yet, as after a large
-- import: the pages are read in the order of the index all the same.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

dialect.only("postgres", function(database)
  describe("a host that starts on a large table that was never analyzed", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["count.lua"] = [[
        local moontide = require "moontide"
        return moontide.projection "counts" { on = {
          ["thing.Happened"] = function(state) state.n = (state.n or 0) + 1 end } }]] } }
      app:ok("schema", "upgrade")
      app.db:execute "ALTER TABLE event_store SET (autovacuum_enabled = false)"
    end)

    after_each(function() app:close() end)

    local function append(count)
      local list = {}
      for i = 1, count do list[i] = { aggregate_id = "key-" .. i % 97, payload = ('{"n":%d}'):format(i) } end
      app:append(list)
    end

    local function known()
      return tonumber(app.db:value "SELECT reltuples FROM pg_class WHERE oid = 'event_store'::regclass")
    end

    it("has the server look at it once, and again when it has grown much", function()
      append(20)
      app:ok("run", "--until-idle")
      assert.equal(-1, known())
      append(4000)
      app:ok("run", "--until-idle")
      assert.equal(4020, known())
      append(1000)
      app:ok("run", "--until-idle")
      assert.equal(4020, known())
      local plan = app.db:value [[EXPLAIN (COSTS OFF) SELECT * FROM event_store
        WHERE global_position > 0 AND global_position <= 5020 ORDER BY global_position LIMIT 100]]
      assert.no.matches("Sort", plan)
    end)
  end)
end)
