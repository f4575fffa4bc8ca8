-- A consumer whose table is gone, or lacks what is declared, blames no message
-- and stands still: the status says so first, and what to do.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local KEYED = [[
local moontide = require "moontide"
return {
  moontide.projection "counts" { fields = { n = moontide.types.integer() },
    on = { ["spec.Put"] = function(state) state.n = (state.n or 0) + 1 end } },
  moontide.projection "others" { on = { ["spec.Put"] = function(state, event) state.n = event.position end } },
}
]]
local SQL = [[
local moontide = require "moontide"
return moontide.sql_projection "notes" { tables = "sql/notes.sql", %s
  on = { ["spec.Put"] = function(event, ctx) ctx:execute("INSERT INTO Notes VALUES (?)", event.position) end } }
]]
local DDL = [[
-- create table nobody (place INTEGER);
CREATE TABLE IF NOT EXISTS Notes (place INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS seen (place INTEGER PRIMARY KEY, text VARCHAR(50) DEFAULT 'create table no');
]]

dialect.each(function(database)
  describe("the status of a consumer", function()
    local app

    after_each(function() app:close() end)

    local function append() app:append { { aggregate_id = "A", type = "spec.Put" } } end

    local function start(handlers, ddl)
      app = application.new { database = database, config = "partitions = 4", handlers = handlers }
      if ddl then app:write("sql/notes.sql", ddl) end
      append()
      app:ok("run", "--until-idle")
      assert.same({}, app:json "status".problems)
    end

    local function first_problem() return app:json "status".problems[1] end

    it("says first that the table of a projection is missing, with nothing to apply, too", function()
      start { ["counts.lua"] = KEYED }
      app:ok("pause", "others")
      app.db:execute "DROP TABLE counts"
      local said = "projection 'counts' stands still, or will with the next message: its table 'counts' is missing; "
        .. "`moontide rebuild counts` makes it anew and a running host fills it from the topic, or bring it back"
      assert.equal(said, first_problem())
      append()
      assert.equal(said, first_problem())
      assert.matches("problem: " .. said, app:ok "status", 1, true)
      app:ok("rebuild", "counts")
      app:ok("run", "--until-idle")
      assert.matches("'others' is paused", first_problem())
    end)

    it("says first which column the table of a projection lacks", function()
      start { ["counts.lua"] = KEYED }
      app.db:execute(database.name == "mysql" and "DROP INDEX idx_counts_n ON counts" or "DROP INDEX idx_counts_n")
      app.db:execute "ALTER TABLE counts DROP COLUMN n"
      append()
      assert.matches("^projection 'counts' stands still, or will with the next message: .*\"counts\".*\"n\"",
        first_problem())
    end)

    it("tells of the first table that is missing of those that the file of an SQL projection creates", function()
      start({ ["notes.lua"] = SQL:format "reset = function(ctx) ctx:execute 'DELETE FROM Notes' end," }, DDL)
      app.db:execute "DROP TABLE seen"
      assert.equal("projection 'notes' stands still, or will with the next message: its table 'seen' is missing; bring "
        .. "it back, or `moontide rebuild notes` makes it anew by sql/notes.sql and derives it from the topic",
        first_problem())
      app:ok("rebuild", "notes")
      app:ok("run", "--until-idle")
      assert.is_nil(first_problem())
    end)

    it("tells that a table of an SQL projection without a reset cannot be derived anew", function()
      start({ ["notes.lua"] = SQL:format "" }, DDL)
      app.db:execute "DROP TABLE Notes"
      assert.matches("its table 'Notes' is missing; bring it back: made anew by sql/notes.sql it lacks what was "
        .. "applied before", first_problem(), 1, true)
    end)
  end)
end)
