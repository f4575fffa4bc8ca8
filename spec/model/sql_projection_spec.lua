-- SQL projections: what handlers do to tables of their own through ctx.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local TABLES = [[
CREATE TABLE IF NOT EXISTS notes ("key" TEXT NOT NULL PRIMARY KEY, n INTEGER NOT NULL, note TEXT);
CREATE TABLE IF NOT EXISTS steps (n INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL);
]]

-- What a script may not run, in the words of any of the databases: each of them
-- refuses all of it, be it as nonsense.
local FORBIDDEN = {
  "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT mine", "RELEASE mine", "RELEASE SAVEPOINT mine", "START TRANSACTION",
  "/* c */ pragma user_version = 7", "-- c\ncommit", "UPDATE notes SET n = 1; COMMIT", "",
  "CREATE TABLE mine (x INTEGER)", "DROP TABLE notes", "ALTER TABLE notes ADD COLUMN x INTEGER", "TRUNCATE TABLE notes",
  "CREATE TEMP TABLE notes (x INTEGER)", "CREATE TEMPORARY TABLE CONSUMER_CHECKPOINTS (x INTEGER)",
  "SELECT 1 AS x INTO mine", "VACUUM", "PRAGMA foreign_keys = OFF", "PRAGMA journal_mode = DELETE",
  "ATTACH ':memory:' AS other", "SET search_path TO other", "SET ROLE other", "SET TIME ZONE 'Asia/Tokyo'",
  "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "RESET ALL", "DISCARD ALL", "LISTEN x",
  "SELECT set_config('search_path', 'other', false)", "SELECT pg_advisory_lock(1)", "LOCK TABLE notes",
  "PREPARE p AS SELECT 1", "DO $$ BEGIN END $$", "COPY notes TO STDOUT", "CALL mine()",
  "SET sql_mode = ''", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET @x = 1", "SELECT @x := 1",
  "USE mysql", "LOCK TABLES notes WRITE", "SELECT GET_LOCK('x', 1)", "XA START 'x'", "KILL 1",
  "SELECT 1 AS x INTO OUTFILE 'x'", "UPDATE CONSUMER_CHECKPOINTS SET position = 99",
}

dialect.each(function(database)
  describe("an SQL projection", function()
    local rig

    -- `handlers`: the inside of `on`.
    local function start(handlers, settings)
      local options = { database = database, files = { ["sql/notes.sql"] = TABLES },
        handlers = ('return moontide.sql_projection "notes" { tables = "sql/notes.sql", on = {\n%s\n} }'):format(
          handlers) }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function() rig:close() end)

    local function notes()
      local list = {}
      for _, row in ipairs(rig:query 'SELECT "key", n, note FROM notes') do
        list[row.key] = row.note and ("%d %s"):format(row.n, row.note) or tostring(row.n)
      end
      return list
    end

    local function steps()
      local list = {}
      for i, row in ipairs(rig:query "SELECT what FROM steps ORDER BY n") do list[i] = row.what end
      return table.concat(list, " ")
    end

    it("writes with execute, update and upsert, and reads with query", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:execute("INSERT INTO notes VALUES (?, ?, ?)", ctx.key, event.payload.n, "new")
        end,
        ["spec.Doubled"] = function(event, ctx)
          local rows = ctx:query('SELECT n FROM notes WHERE "key" = ?', ctx.key)
          local changed = ctx:update('UPDATE notes SET n = ? WHERE "key" = ?', rows[1].n * 2, ctx.key)
          assert(changed == 1 and ctx:update [=[UPDATE notes SET n = 0 WHERE "key" = 'nobody']=] == 0)
        end,
        ["spec.Added"] = function(event, ctx)
          ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(event.payload.n), note = "added" })
        end,]]
      rig:append_all {
        { "A", "spec.Put", { n = 1 } }, { "A", "spec.Doubled" }, { "A", "spec.Added", { n = 5 } },
        { "B", "spec.Added", { n = 3 } }, { "B", "spec.Added", { n = 4 } }, { "B", "spec.Doubled" },
      }
      local _, failed = rig:run()
      assert.equal(0, failed)
      assert.same({ A = "7 added", B = "14 added" }, notes())
    end)

    it("sees in a query what earlier messages of the batch have queued", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          local rows = ctx:query "SELECT count(*) AS n FROM notes"
          ctx:execute("INSERT INTO notes VALUES (?, ?, NULL)", ctx.key, rows[1].n)
        end,]]
      rig:append_all { { "A", "spec.Put" }, { "B", "spec.Put" }, { "C", "spec.Put" } }
      rig:run()
      assert.same({ A = "0", B = "1", C = "2" }, notes())
    end)

    it("keeps the order of the program between execute and upsert", function()
      start [[
        ["spec.Mixed"] = function(event, ctx)
          ctx:upsert("notes", { key = "k" }, { n = 1 })
          ctx:execute [=[INSERT INTO steps (what) SELECT 'a' || n FROM notes WHERE "key" = 'k']=]
          ctx:upsert("notes", { key = "k" }, { n = moontide.add(1) })
          ctx:execute [=[INSERT INTO steps (what) SELECT 'b' || n FROM notes WHERE "key" = 'k']=]
          ctx:execute [=[DELETE FROM notes WHERE "key" = 'k']=]
          ctx:upsert("notes", { key = "k" }, { n = moontide.add(7) })
          ctx:execute [=[INSERT INTO steps (what) SELECT 'c' || n FROM notes WHERE "key" = 'k']=]
        end,]]
      rig:append_all { { "A", "spec.Mixed" }, { "B", "spec.Mixed" } }
      rig:run()
      assert.equal("a1 b2 c7 a1 b2 c7", steps())
      assert.same({ k = "7" }, notes())
    end)

    it("commits a handler's rows with the checkpoint or not at all", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:execute("INSERT INTO notes VALUES (?, ?, NULL)", ctx.key, event.position)
        end,]]
      rig:trigger { name = "stop", at = "BEFORE UPDATE", on = "CONSUMER_CHECKPOINTS",
        fails = "the checkpoint cannot move" }
      rig:append("A", "spec.Put")
      assert.has_error(function() rig:run() end)
      assert.same({}, notes())
      assert.same({}, rig:undelivered())
      rig:drop_trigger "stop"
      rig:run()
      assert.same({ A = "1" }, notes())
      assert.equal(1, (rig:checkpoints "notes"))
    end)

    it("takes back what a failing handler queued, and nothing of its neighbours", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:upsert("notes", { key = "all" }, { n = moontide.add(1) })
          ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(1) })
          ctx:execute("INSERT INTO steps (what) VALUES (?)", ctx.key)
          ctx:upsert("notes", { key = "late" }, { n = moontide.add(1) })
          if event.payload.bad then error "bad" end
        end,]]
      rig:append_all {
        { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} },
        { "B", "spec.Put", {} }, { "A", "spec.Put", {} },
      }
      rig:run()
      assert.same({ all = "3", A = "2", C = "1", late = "3" }, notes())
      assert.equal("A C A", steps())
      assert.same({ "2 B HALTED", "4 B WAITING" }, rig:waiting())
    end)

    it("takes back what a failing handler ran at once, and nothing of its neighbours", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:update("INSERT INTO steps (what) VALUES (?)", ctx.key)
          ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(1) })
          local rows = ctx:query("SELECT count(*) AS n FROM steps")
          if event.payload.bad then error("bad at " .. rows[1].n) end
        end,]]
      -- the first page is the one that finds out that savepoints are needed
      for _ = 1, 2 do
        rig:append_all {
          { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} },
          { "B", "spec.Put", {} }, { "A", "spec.Put", {} },
        }
        rig:run()
        rig:query "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES"
        rig:query "UPDATE CONSUMERS SET state = NULL, halt_reason = NULL"
        rig:restart()
      end
      assert.same({ A = "4", C = "2" }, notes())
      assert.equal("A C A A C A", steps())
    end)

    it("lets a statement that fails fail its message, with the line that queued it", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:execute("INSERT INTO notes VALUES (?, ?, NULL)", event.payload.at, 1)
        end,]]
      rig:append_all {
        { "A", "spec.Put", { at = "x" } }, { "B", "spec.Put", { at = "x" } }, { "C", "spec.Put", { at = "y" } },
        { "B", "spec.Put", { at = "z" } },
      }
      rig:run()
      assert.same({ x = "1", y = "1" }, notes())
      assert.same({ "2 B HALTED", "4 B WAITING" }, rig:waiting())
      local reason = rig:undelivered()[1].reason
      assert.matches("^unique: handlers/spec.lua:5: .", reason)
    end)

    it("names the line of an update, a query and an upsert that fail, too", function()
      start [[
        ["spec.Update"] = function(event, ctx)
          ctx:update("UPDATE notes SET n = NULL")
        end,
        ["spec.Query"] = function(event, ctx)
          ctx:query("SELECT abs(-9223372036854775807 - 1) AS n")
        end,
        ["spec.Upsert"] = function(event, ctx)
          ctx:upsert("notes", { key = ctx.key }, { note = "n is missing" })
        end,]]
      rig:query "INSERT INTO notes VALUES ('k', 1, NULL)"
      rig:append_all { { "A", "spec.Update" }, { "B", "spec.Query" }, { "C", "spec.Upsert" } }
      rig:run()
      local rows = rig:undelivered()
      assert.equal(3, #rows)
      -- the rest is what the database says of its column
      assert.matches("^sql: handlers/spec.lua:5: .*%f[%w]n%f[%W]", rows[1].reason)
      assert.matches("^sql: handlers/spec.lua:8: .", rows[2].reason)
      assert.matches("^sql: handlers/spec.lua:11: .*%f[%w]n%f[%W]", rows[3].reason)
      assert.same({ k = "1" }, notes())
    end)

    for _, call in ipairs(database.ends_transactions and {
      'execute "INSERT OR ROLLBACK INTO steps (what) VALUES (NULL)"',
      'update "INSERT OR ROLLBACK INTO steps (what) VALUES (NULL)"',
      'upsert("notes", { key = "end" }, { n = 1 })',
    } or {}) do
      it("lets a statement that ends the whole transaction fail its message, with its line: " .. call, function()
        start(([[
          ["spec.Put"] = function(event, ctx)
            ctx:upsert("notes", { key = "all" }, { n = moontide.add(1) })
            if event.payload.bad then
              ctx:%s
            end
          end,]]):format(call))
        rig:trigger { name = "ends", at = "BEFORE INSERT", on = "notes", only = "NEW.\"key\" = 'end'",
          body = "SELECT RAISE(ROLLBACK, 'NOT NULL, either')" }
        rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} } }
        for _ = 1, 2 do -- when it is read, and when it is tried again
          rig:run()
          assert.same({ all = "1" }, notes())
          assert.same({ "2 B HALTED" }, rig:waiting())
          assert.matches("^sql: handlers/spec.lua:7: .*NOT NULL", rig:undelivered()[1].reason)
          rig:reopen()
        end
      end)
    end

    it("fails the message whose handler swallows an SQL error with pcall", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(1) })
          if event.payload.bad then
            local good = pcall(function() ctx:update("INSERT INTO steps (what) VALUES (NULL)") end)
            assert(not good)
          end
        end,]]
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} } }
      rig:run()
      assert.same({ A = "1", C = "1" }, notes())
      assert.same({ "2 B HALTED" }, rig:waiting())
      assert.matches("^sql: handlers/spec.lua:7: ", rig:undelivered()[1].reason)
    end)

    it("goes on after an error inside ctx:try, without what was done in it", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(1) })
          local good, problem = ctx:try(function()
            ctx:execute "INSERT INTO steps (what) VALUES ('inside')"
            ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(100) })
            ctx:update(event.payload.bad and "INSERT INTO steps (what) VALUES (NULL)"
              or "INSERT INTO steps (what) VALUES ('good')")
          end)
          ctx:execute("INSERT INTO steps (what) VALUES (?)", good and "kept" or "lost")
          ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(10) })
        end,]]
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} } }
      local _, failed = rig:run()
      assert.equal(0, failed)
      assert.same({ A = "111", B = "11", C = "111" }, notes())
      assert.equal("inside good kept lost inside good kept", steps())
    end)

    it("loses what ctx:try kept when the handler fails later", function()
      start [[
        ["spec.Put"] = function(event, ctx)
          assert(ctx:try(function() ctx:update("INSERT INTO steps (what) VALUES (?)", ctx.key) end))
          if event.payload.bad then error "later" end
        end,]]
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} } }
      rig:run()
      assert.equal("A C", steps())
      assert.same({ "2 B HALTED" }, rig:waiting())
    end)

    local function start_family(deferred)
      rig = kit.new { database = database, files = { ["sql/child.sql"] = ([[
          CREATE TABLE IF NOT EXISTS parent (id TEXT NOT NULL PRIMARY KEY);
          CREATE TABLE IF NOT EXISTS child (id TEXT NOT NULL PRIMARY KEY, parent TEXT NOT NULL,
            FOREIGN KEY (parent) REFERENCES parent (id) %s);]]):format(deferred) },
        handlers = [[
          return moontide.sql_projection "children" { tables = "sql/child.sql", on = {
            ["spec.Parent"] = function(_, ctx) ctx:execute("INSERT INTO parent VALUES (?)", ctx.key) end,
            ["spec.Child"] = function(event, ctx)
              ctx:execute("INSERT INTO child VALUES (?, ?)", ctx.key, event.payload.of)
            end } }]] }
      rig:append_all {
        { "p", "spec.Parent" }, { "a", "spec.Child", { of = "p" } },
        { "b", "spec.Child", { of = "q" } }, { "c", "spec.Child", { of = "p" } },
      }
      rig:run()
    end

    local function children()
      local ids = {}
      for i, row in ipairs(rig:query "SELECT id FROM child ORDER BY id") do ids[i] = row.id end
      return table.concat(ids, " ")
    end

    it("fails a message whose rows break a rule between tables, and no other", function()
      start_family ""
      assert.equal("a c", children())
      assert.same({ "3 b HALTED" }, rig:waiting())
      assert.matches("^sql: handlers/spec.lua:6: .*foreign key", rig:undelivered()[1].reason:gsub("FOREIGN KEY",
        "foreign key"))
      rig:query "INSERT INTO parent VALUES ('q')"
      rig:reopen()
      rig:run()
      assert.equal("a b c", children())
      assert.same({}, rig:waiting())
    end)

    if database.defers_rules then it("fails a message whose rows break a rule that is judged at the commit", function()
      start_family "DEFERRABLE INITIALLY DEFERRED"
      assert.equal("a", children())
      assert.same({ "3 b HALTED" }, rig:waiting())
      assert.matches("^sql: .*foreign key", rig:undelivered()[1].reason:gsub("FOREIGN KEY", "foreign key"))
      assert.equal("HALTED APPLY_ERROR", rig:state "children")
      rig:reopen()
      rig:run()
      assert.equal("a", children())
      assert.same({ "3 b HALTED" }, rig:waiting())
      rig:query "INSERT INTO parent VALUES ('q')"
      rig:reopen()
      rig:run()
      assert.equal("a b c", children())
      assert.same({}, rig:waiting())
    end) end

    for _, call in ipairs { "execute", "update", "query" } do
      it("may not leave its transaction or change the session with " .. call, function()
        start(([[
          ["spec.Put"] = function(event, ctx)
            ctx:upsert("notes", { key = ctx.key }, { n = moontide.add(1), note = ctx:query %q[1].value })
            if event.payload.statement then ctx:%s(event.payload.statement) end
          end,]]):format(database.settings, call), { on_error = "dead_letter", retry = { attempts = 1 } })
        rig:append("good", "spec.Put", {})
        rig:run()
        local before = notes().good
        local list, wanted = {}, {}
        for i, statement in ipairs(FORBIDDEN) do
          list[i] = { ("%02d %s"):format(i, statement), "spec.Put", { statement = statement } }
          wanted[i] = list[i][1]
        end
        list[#list + 1] = { "good", "spec.Put", {} }
        rig:append_all(list)
        rig:run()
        local refused = {}
        for i, row in ipairs(rig:undelivered()) do
          refused[i] = row.key
          assert.matches("^%l+: handlers/spec.lua:%d+: ", row.reason)
        end
        assert.same(wanted, refused)
        -- whoever comes next finds everything as it was
        assert.same({ good = before:gsub("^1", "2") }, notes())
      end)
    end

    it("may not write from a projection with state", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "states" { on = {
          ["spec.Execute"] = function(_, _, ctx) ctx:execute "CREATE TABLE x (y)" end,
          ["spec.Update"] = function(_, _, ctx) ctx:update "DELETE FROM EVENT_STORE" end,
          ["spec.Upsert"] = function(_, _, ctx) ctx:upsert("states", { read_model_id = "x" }, { state = "{}" }) end,
          ["spec.Query"] = function(_, _, ctx) ctx:query "DELETE FROM EVENT_STORE RETURNING id" end,
          ["spec.Read"] = function(state, _, ctx) state.n = #ctx:query "SELECT id FROM EVENT_STORE" end,
        } }]] }
      rig:append_all { { "A", "spec.Execute" }, { "B", "spec.Update" }, { "C", "spec.Upsert" }, { "D", "spec.Query" },
        { "E", "spec.Read" } }
      rig:run()
      assert.same({ "1 A HALTED", "2 B HALTED", "3 C HALTED", "4 D HALTED" }, rig:waiting())
      assert.same({ E = { n = 5 } }, rig.host:read "states")
    end)

    it("gives a row as SQL has it: types, order of columns, NULL as nil", function()
      start [[
        ["spec.Read"] = function(event, ctx)
          local row = ctx:query([=[SELECT NULL AS a, 1 AS b, 5e-1 AS c, '007' AS d, 9007199254740993 AS e, NULL AS f,
            count(*) AS g, sum(n) AS h, ? AS i, ? AS j FROM notes]=], nil, moontide.null)[1]
          assert(row.a == nil and row.f == nil and row.i == nil and row.j == nil)
          assert(row.b == 1 and row.c == 0.5 and row.d == "007" and row.g == 0 and row.h == nil)
          assert(row.e == 9007199254740993LL and tostring(row.e) == "9007199254740993LL")
          ctx:execute("INSERT INTO notes VALUES (?, ?, ?)", row.d, row.e, row.a)
        end,]]
      rig:append("A", "spec.Read")
      rig:run()
      assert.same({}, rig:waiting())
      assert.equal("9007199254740993", application.json.encode(rig:value "SELECT n AS value FROM notes"))
    end)
  end)
end)
