-- What keeps a host from a database that would lose or merge events.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local HANDLER = [[
local moontide = require "moontide"
return moontide.projection "things" {
  fields = { n = moontide.types.integer { optional = true } },
  on = { ["thing.Happened"] = function(state) state.n = (state.n or 0) + 1 end },
}]]

-- Statements that make a column merge values, by the collation's name.
local MERGING = {
  sqlite = {
    NOCASE = { [[CREATE TABLE other (id, aggregate_id TEXT NOT NULL COLLATE NOCASE, aggregate_type, sequence_no,
        event_type, event_revision, payload, metadata, occurred_at, partition_key, global_position,
        UNIQUE (aggregate_type, aggregate_id, sequence_no))]],
      "DROP TABLE EVENT_STORE", "ALTER TABLE other RENAME TO EVENT_STORE" },
  },
  postgres = {
    blind = { "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
      "ALTER TABLE event_store ALTER COLUMN aggregate_id TYPE varchar(255) COLLATE blind" },
  },
  mysql = {
    utf8mb4_general_ci = { "ALTER TABLE EVENT_STORE MODIFY aggregate_id VARCHAR(255)"
      .. " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL" },
    utf8mb4_bin = { "ALTER TABLE EVENT_STORE MODIFY aggregate_id VARCHAR(255)" -- takes no notice of blanks at the end
      .. " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL" },
  },
}

local NAMES = { "A-1", "a-1", "A-1 ", " A-1", "A\204\129-1", "\195\129-1", "\195\159", "ss", "SS" }

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = "partitions = 12", handlers = { ["things.lua"] = HANDLER } }
  end)

  after_each(function()
    app:close()
  end)

  describe("names that differ only in case, accents or blanks", function()
    it("are streams of their own, and read models of their own", function()
      local events = {}
      for i, name in ipairs(NAMES) do
        for n = 1, i do events[#events + 1] = { aggregate_id = name, payload = tostring(n) } end
      end
      app:append(events)
      app:ok("run", "--until-idle")
      local found = {}
      for _, model in ipairs(app:json("read", "things")) do found[model.key] = model.state.n end
      for i, name in ipairs(NAMES) do
        assert.equal(i, found[name], name)
        assert.equal(i, #app:events("--aggregate", name), name)
        assert.equal(tostring(i - 1),
          app.db:value(("SELECT max(sequence_no) FROM EVENT_STORE WHERE aggregate_id = '%s'"):format(name)))
      end
    end)

    it("are types of their own", function()
      app:append { { type = "thing.Happened" }, { type = "Thing.Happened" }, { type = "thing.Happened " } }
      app:ok("run", "--until-idle")
      assert.equal(1, app:json("read", "things")[1].state.n)
      assert.equal(1, #app:events("--type", "thing.Happened"))
    end)

    it("are not merged by a column of another collation: it stops every verb", function()
      for collation, statements in pairs(MERGING[database.name]) do
        local other = application.new { database = database, config = "partitions = 12" }
        finally(function() other:close() end)
        other:append { {} }
        for _, statement in ipairs(statements) do other.db:execute(statement) end
        other:write("events.ndjson", application.ndjson { {} })
        for _, verb in ipairs { { "append", "events.ndjson" }, { "run", "--until-idle" }, { "events" }, { "status" },
          { "schema", "upgrade" } } do
          assert.matches(("table EVENT_STORE compares column aggregate_id by %s, which takes"):format(collation),
            other:fails(3, unpack(verb)), 1, true)
        end
      end
    end)
  end)

  if database.name == "postgres" then
    describe("a sequence of positions with a wider cache", function()
      local function widen()
        app:append { {} }
        app.db:execute "ALTER SEQUENCE event_store_global_position CACHE 20"
        app:append { {} }
      end

      it("is set back by the host that owns the schema, which says so, and all is applied", function()
        widen()
        app:append { {} }
        local run = app:expect(0, "run", "--until-idle")
        assert.matches("had a wider CACHE and was set back to CACHE 1", run.err, 1, true)
        assert.equal(3, app:json("read", "things")[1].state.n)
        assert.equal("1", app.db:value [[
          SELECT cache_size FROM pg_sequences
           WHERE schemaname = current_schema() AND sequencename = 'event_store_global_position']])
      end)

      it("holds the mark where the schema is somebody else's, and log and status name the fix", function()
        app:append { {} }
        app:ok("run", "--until-idle")
        widen()
        local env = { MOONTIDE_SCHEMA_CREATE = "false" }
        local run = app:expect(0, "run", "--until-idle", { env = env })
        local problem = app:json("status", { env = env }).problems[1]
        for _, text in ipairs { run.err, problem } do
          assert.matches("has CACHE 20", text, 1, true)
          assert.matches("then restart every program that appends", text, 1, true)
        end
        assert.equal(1, app:json("read", "things")[1].state.n)
        app.db:execute(assert(problem:match "Run (ALTER SEQUENCE %S+ CACHE 1);", problem))
        app:ok("run", "--until-idle", { env = env })
        assert.equal(3, app:json("read", "things")[1].state.n)
      end)

      it("is feared as long as a session of that time is connected, which is named", function()
        local session = app.db:hold [[SET application_name = 'old writer'; SELECT 1;]]
        widen()
        local run = app:expect(0, "run", "--until-idle")
        assert.matches("sessions from that time may hold positions back", run.err, 1, true)
        assert.matches("old writer", run.err, 1, true)
        session.release()
        process.wait_until(function()
          app:ok("run", "--until-idle")
          local models = app:json("read", "things")
          return models[1] and models[1].state.n == 2
        end, 15, "the mark to move")
      end)
    end)
  end

  describe("an older copy of the events", function()
    it("below a checkpoint stops what would append or apply, and names both positions", function()
      app:append { {}, {}, {}, {}, {} }
      app:ok("run", "--until-idle")
      app.db:execute "DELETE FROM EVENT_STORE WHERE global_position > 2"
      app.db:execute "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark = 2 WHERE topic_name = 'event-store'"
      app.db:set_counter(2)
      for _, err in ipairs { app:refuses({ {} }, 3), app:fails(3, "run", "--until-idle"), app:fails(3, "status") } do
        assert.matches("a consumer has come to position 5 (table CONSUMER_CHECKPOINTS)", err, 1, true)
        assert.matches("counter EVENT_STORE_GLOBAL_POSITION stands at 2", err, 1, true)
        assert.matches("restore both from one copy", err, 1, true)
      end
      assert.equal(2, app:count())
      app.db:execute "DELETE FROM CONSUMER_CHECKPOINTS" -- started anew
      app:append { {} }
    end)
  end)
end)
