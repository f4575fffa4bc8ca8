local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local HANDLER = [[
local moontide = require "moontide"
return moontide.projection "things" {
  fields = { n = moontide.types.integer { optional = true } },
  on = { ["thing.Happened"] = function(state) state.n = (state.n or 0) + 1 end },
}]]

-- Every verb that opens the database.
local VERBS = {
  { "append", "events.ndjson" },
  { "events" },
  { "read", "things" },
  { "status" },
  { "run", "--until-idle" },
}

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = "partitions = 12", handlers = { ["things.lua"] = HANDLER } }
    app:write("events.ndjson", application.ndjson { {} })
  end)

  after_each(function()
    app:close()
  end)

  local function every_verb_fails(code, ...)
    for _, verb in ipairs(VERBS) do
      local err = app:fails(code, unpack(verb))
      for _, part in ipairs { ... } do assert.matches(part, err, 1, true) end
    end
  end

  local function rows(name)
    return app.db:value("SELECT count(*) FROM " .. name)
  end

  describe("schema upgrade", function()
    it("creates what is missing, says so, and then finds nothing to do", function()
      local first = app:json("schema", "upgrade").changes
      assert.is_true(#first > 10)
      assert.matches("nothing to do", app:json("schema", "upgrade").changes[1], 1, true)
    end)

    it("creates again the one table that is missing and keeps all rows", function()
      app:append { {}, {} }
      app.db:execute "DROP TABLE SAGA_STEPS"
      local changes = table.concat(app:json("schema", "upgrade").changes, "\n")
      assert.matches("SAGA_STEPS", changes, 1, true)
      assert.is_nil(changes:find("EVENT_STORE", 1, true))
      assert.equal("0", rows "SAGA_STEPS")
      assert.equal(2, app:count())
    end)

    it("creates the same tables as the scripts that schema print gives", function()
      app:ok("schema", "upgrade")
      local tables = app.db:tables()
      local other = database:create(app, "printed.db")
      other:execute(app:ok("schema", "print"))
      assert.same(tables, other:tables())
      assert.same(app.db:shape(), other:shape())
    end)

    it("runs with schema.create = false, too: it was asked for", function()
      app:configure "partitions = 12, schema = { create = false }"
      app:ok("schema", "upgrade")
      app:append { {} }
    end)

    it("takes no options of schema print", function()
      app:fails(64, "schema", "upgrade", "--raw")
      app:fails(64, "schema", "upgrade", "--dialect", database.name)
    end)
  end)

  describe("schema print", function()
    it("with --raw has a placeholder for every table, and no name", function()
      local raw = app:ok("schema", "print", "--raw")
      assert.matches("CREATE TABLE IF NOT EXISTS ${event_store_table}", raw, 1, true)
      assert.is_nil(raw:find("CREATE TABLE IF NOT EXISTS %u"))
    end)

    it("is what schema does without a word", function()
      assert.equal(app:ok("schema", "print"), app:ok "schema")
    end)

    it("fills in prefix and table names", function()
      app:configure [[schema = { prefix = "ACME_", tables = { EVENT_STORE = "EVENTS", consumers = "READERS" } }]]
      local out = app:ok("schema", "print")
      for _, name in ipairs { "ACME_EVENTS", "ACME_READERS", "ACME_HIGH_WATER_MARK_STORE" } do
        assert.matches("CREATE TABLE IF NOT EXISTS " .. name .. " ", out, 1, true)
      end
      assert.is_nil(out:find("${", 1, true))
      assert.is_nil(out:find("EXISTS EVENT_STORE", 1, true))
    end)

    it("gives the DDL as JSON", function()
      local found = app:json("schema", "print")
      assert.equal(database.name, found.dialect)
      assert.equal(app:ok("schema", "print"), found.ddl)
    end)

    it("needs no database", function()
      app:ok("schema", "print")
      assert.is_false(app.db:made())
    end)

    it("refuses a dialect that has no scripts", function()
      assert.matches("oracle", app:fails(64, "schema", "print", "--dialect", "oracle"), 1, true)
    end)
  end)

  describe("table names", function()
    it("with a prefix and own names work from append to read", function()
      app:configure [[partitions = 12,
        schema = { prefix = "acme_", tables = { EVENT_STORE = "evts", CONSUMERS = "readers" } }]]
      app:append { {}, {} }
      app:ok("run", "--until-idle")
      assert.equal(2, app:json("read", "things")[1].state.n)
      assert.equal("2", rows "acme_evts")
      assert.equal("1", rows "acme_readers")
      for _, name in ipairs(app.db:tables()) do
        name = name:lower()
        assert.is_true(name:sub(1, 5) == "acme_" or name == "things", name)
      end
    end)

    it("with two prefixes keep two applications in one database apart", function()
      app:append { {} }
      app:configure [[partitions = 5, schema = { prefix = "B_" }]]
      app:append { {}, {} }
      assert.equal(1, app:count())
      assert.equal(2, app:count "B_EVENT_STORE")
    end)

    local refused = {
      ["a blank"] = { [[prefix = "AC ME"]], "is not a name" },
      ["SQL"] = { [[prefix = 'x"; DROP TABLE y; --']], "is not a name" },
      ["a digit at the start"] = { [[prefix = "1x_"]], "is not a name" },
      ["an umlaut"] = { [[prefix = "Ä_"]], "is not a name" },
      ["64 characters"] = { ([[tables = { EVENT_STORE = "%s" }]]):format(("x"):rep(64)), "63" },
      ["a prefix that makes a name too long"] = { ([[prefix = "%s"]]):format(("x"):rep(60)), "63" },
      ["a word of SQL"] = { [[tables = { EVENT_STORE = "select" }]], "word of SQL" },
      ["the name of another table"] = { [[tables = { EVENT_STORE = "CONSUMERS" }]], "two tables have one name" },
      ["another case of the name of another table"] = { [[tables = { EVENT_STORE = "consumers" }]],
        "two tables have one name" },
      ["a table that is not there"] = { [[tables = { EVENT_STOR = "x" }]], 'did you mean "EVENT_STORE"' },
      ["no name at all"] = { [[tables = { EVENT_STORE = "" }]], "empty" },
      ["own tables without an events table"] = { [[aggregates = { ["a"] = { snapshots = "s" } }]], "events" },
      ["own tables that share a name"] = { [[aggregates = { a = { events = "e" }, b = { events = "e" } }]],
        "two tables have one name" },
    }
    for what, case in pairs(refused) do
      it("are refused with " .. what, function()
        app:configure("schema = { " .. case[1] .. " }")
        assert.matches(case[2], app:fails(78, "append", "events.ndjson"), 1, true)
        assert.is_false(app.db:made())
      end)
    end
  end)

  describe("the number of partitions", function()
    it("is fixed when the schema is created; another one stops every verb", function()
      app:append { {} }
      app:configure "partitions = 16"
      every_verb_fails(3, "created with 12 partitions", "the configuration says 16", "set partitions = 12")
      app:fails(3, "schema", "upgrade")
      assert.equal(1, app:count())
      app:configure "partitions = 12"
      app:append { {} }
    end)
  end)

  describe("a schema", function()
    it("newer than the program stops every verb and is not touched", function()
      app:append { {} }
      app.db:execute "UPDATE MOONTIDE_SCHEMA SET version = 99"
      every_verb_fails(3, "version 99", "newer moontide")
      app:fails(3, "schema", "upgrade")
      assert.equal("99", app.db:value "SELECT version FROM MOONTIDE_SCHEMA")
      assert.equal(1, app:count())
    end)

    it("older than the program is refused with schema.create = false, until it is upgraded", function()
      app:append { {} }
      app:ok("run", "--until-idle")
      app.db:execute "UPDATE MOONTIDE_SCHEMA SET version = 0"
      app:configure "partitions = 12, schema = { create = false }"
      every_verb_fails(3, "version 0", "moontide schema upgrade")
      assert.matches("version 1", table.concat(app:json("schema", "upgrade").changes), 1, true)
      assert.equal("1", app.db:value "SELECT version FROM MOONTIDE_SCHEMA")
      app:append { {} }
      assert.equal(2, app:count())
    end)

    it("older than the program is refused by verbs that only read", function()
      app:append { {} }
      app.db:execute "UPDATE MOONTIDE_SCHEMA SET version = 0"
      assert.matches("moontide schema upgrade", app:fails(3, "events"), 1, true)
      assert.matches("moontide schema upgrade", app:fails(3, "status"), 1, true)
      assert.equal("0", app.db:value "SELECT version FROM MOONTIDE_SCHEMA")
    end)

    it("that is not there is made by append and run, and only by them", function()
      for _, words in ipairs { { "events" }, { "status" }, { "read", "things" } } do
        local result = app:moontide(unpack(words))
        assert.equal(database.name == "sqlite" and 69 or 3, result.code, result.err)
        assert.is_false(app.db:made())
      end
      app:ok("run", "--until-idle")
      assert.same({}, app:events())
    end)

    it("that is not there in a database of others is refused by verbs that only read", function()
      app.db:execute(app.db:ddl "CREATE TABLE mine (x INTEGER)")
      assert.matches("has no tables of moontide", app:fails(3, "events"), 1, true)
      assert.matches("has no tables of moontide", app:fails(3, "status"), 1, true)
      assert.same({ "mine" }, { app.db:tables()[1]:lower(), app.db:tables()[2] })
    end)

    it("is made once when several programs start at once", function()
      local started = {}
      for i = 1, 6 do started[i] = app:start("append", "events.ndjson") end
      for i = 1, 6 do
        local result = started[i]:wait(60)
        assert.equal(0, result.code, result.err)
      end
      assert.equal(6, app:count())
      assert.equal("1", rows "MOONTIDE_SCHEMA")
      assert.equal("1", rows "PARTITION_METADATA")
      assert.equal("1", rows "EVENT_STORE_GLOBAL_POSITION")
    end)
  end)

  describe("with schema.create = false", function()
    local CONFIG = "partitions = 12, schema = { create = false }"

    it("a missing table stops the start, with its name and its script", function()
      app:append { {} }
      app.db:execute "DROP TABLE CONSUMER_CHECKPOINTS"
      app:configure(CONFIG)
      local err = app:fails(78, "run", "--until-idle")
      assert.matches("CONSUMER_CHECKPOINTS", err, 1, true)
      assert.matches("sql/" .. database.name .. "/schema/", err, 1, true)
      assert.is_false(pcall(rows, "CONSUMER_CHECKPOINTS"))
    end)

    it("nothing is created in an empty database", function()
      app:configure(CONFIG)
      app:fails(78, "append", "events.ndjson")
      assert.same({}, app.db:tables())
    end)

    it("the printed scripts are enough, and the seed rows come by themselves", function()
      app.db:execute(app:ok("schema", "print"))
      app:configure(CONFIG)
      app:append { {} }
      assert.equal("12", app.db:value "SELECT partitions FROM PARTITION_METADATA")
      assert.equal(1, app:count())
    end)

    it("a missing query table stops the run with the statement that creates it", function()
      app:ok("schema", "upgrade")
      app:configure(CONFIG)
      local err = app:fails(78, "run", "--until-idle")
      assert.matches('table "things" is missing', err, 1, true)
      assert.matches("handlers/things.lua:2", err, 1, true)
      local statements = assert(err:match "(CREATE TABLE.*)$")
      app.db:client(statements)
      app:append { {} }
      app:ok("run", "--until-idle")
      assert.equal(1, app:json("read", "things")[1].state.n)
    end)
  end)

  describe("a table of another shape", function()
    it("stops every verb, with table and column", function()
      app:append { {} }
      app.db:execute "ALTER TABLE CONSUMERS RENAME COLUMN state TO phase"
      every_verb_fails(3, "table CONSUMERS has no column state")
    end)

    it("may have more columns", function()
      app:append { {} }
      app.db:execute "ALTER TABLE EVENT_STORE ADD COLUMN note TEXT"
      app:append { {} }
      assert.same({ 1, 2 }, app:positions())
    end)
  end)

  describe("seed rows", function()
    it("that are missing come back at the next start", function()
      app:append { {}, {} }
      app:ok("run", "--until-idle")
      app.db:execute "DELETE FROM MOONTIDE_SCHEMA"
      app:append { {} }
      assert.equal("1", app.db:value "SELECT version FROM MOONTIDE_SCHEMA")
      assert.same({ 1, 2, 3 }, app:positions())
    end)

    it("a counter below the stored positions stops everything that would draw from it", function()
      app:append { {}, {}, {} }
      app.db:set_counter(1)
      local err = app:refuses({ {} }, 3)
      assert.matches("EVENT_STORE_GLOBAL_POSITION stands at 1", err, 1, true)
      assert.matches("position 3", err, 1, true)
      app:fails(3, "run", "--until-idle")
      assert.equal(3, app:count())
    end)

    it("a counter that is gone is not begun anew below stored positions", function()
      app:append { {}, {}, {} }
      app.db:drop_counter()
      app:refuses({ {} }, 3)
      assert.equal(3, app:count())
    end)
  end)
end)
