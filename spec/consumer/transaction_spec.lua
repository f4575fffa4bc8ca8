-- What reaches the handlers and the tables in a batch, whatever the values are,
-- whoever else writes, and wherever an error comes.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

local SIZES = { 255, 0, 65536, 7, 1048576, 1, 256, 65535, 8, 3145728, 9 }

-- Compares what it is given, and what the table has, with what it has to be.
local READER = kit.LEDGER .. [[
return moontide.sql_projection "reads" { tables = "sql/ledger.sql", on = {
  ["spec.Put"] = function(event, ctx)
    local p = event.payload
    assert(p.text == p.c:rep(p.n), "the payload is another one")
    assert(p.bare == (event.metadata == nil), "the metadata is another one")
    assert(p.bare or event.metadata.text == p.text, "the metadata is cut")
    local row = ctx:query('SELECT payload, metadata FROM EVENT_STORE WHERE global_position = ?', event.position)[1]
    assert(moontide.json.decode(row.payload).text == p.text, "the query's payload is another one")
    assert(p.bare == (row.metadata == nil), "the query's metadata is another one")
    %s
    ledger("reads", event, ctx)
  end } }
]]

dialect.each(function(database)
  describe("a batch", function()
    local rig

    after_each(function() rig:close() end)

    it("has payloads of any size, from a page, a query and a copy", function()
      rig = kit.new { database = database, files = { ["sql/ledger.sql"] = kit.LEDGER_SQL },
        limits = { payload = "4MiB" }, handlers = READER:format 'error "read it again"' }
      local list, wanted = {}, {}
      for i, size in ipairs(SIZES) do
        local c = ("abcdefghijk"):sub(i, i)
        local text = c:rep(size)
        list[i] = { aggregate_id = "k" .. i, type = "spec.Put",
          payload = ('{"n":%d,"c":"%s","bare":%s,"text":"%s"}'):format(size, c, tostring(i % 2 == 0), text),
          metadata = i % 2 == 1 and ('{"text":"%s"}'):format(text) or nil }
        wanted[i] = ("k%d:%d"):format(i, i)
      end
      rig.app:append(list)
      rig:run()
      local rows = rig:undelivered()
      assert.equal(#SIZES, #rows)
      for _, row in ipairs(rows) do assert.matches("read it again", row.reason, 1, true) end
      rig:script(READER:format "")
      rig:reopen()
      rig:run()
      assert.same({}, rig:undelivered())
      assert.same(wanted, rig:ledger())
    end)

    it("fails the message whose query fails behind its first row, and keeps nothing of it", function()
      rig = kit.new { database = database, files = { ["sql/ledger.sql"] = kit.LEDGER_SQL }, handlers = kit.LEDGER .. [[
        return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
          ["spec.Put"] = function(event, ctx)
            ledger("notes", event, ctx)
            if event.payload.bad then
              pcall(function()
                ctx:query("SELECT abs(n) AS n FROM (SELECT -1 AS n UNION ALL SELECT -9223372036854775807 - 1) AS r")
              end)
            end
          end } }]] }
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} } }
      rig:run()
      assert.same({ "A:1", "C:3" }, rig:ledger())
      assert.same({ "2 B HALTED" }, rig:waiting())
      assert.matches("^sql: handlers/spec.lua:%d+: ", rig:undelivered()[1].reason)
    end)

    it("never shortens a value: the message fails, and its neighbours do not", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.sql_projection "notes" { on = {
          ["spec.Put"] = function(event, ctx)
            if event.payload.upsert then
              ctx:upsert("sized", { n = event.position }, { short = event.payload.text })
            else
              ctx:execute("INSERT INTO sized VALUES (?, ?)", event.position, event.payload.text)
            end
          end } }]] }
      rig.app.db:execute(("CREATE TABLE sized (n INTEGER PRIMARY KEY, short %s)"):format(database.short_text))
      local fits, exceeds = ("é"):rep(20), ("😀"):rep(21)
      rig:append_all {
        { "A", "spec.Put", { text = fits } }, { "B", "spec.Put", { text = exceeds } },
        { "C", "spec.Put", { text = fits, upsert = true } }, { "D", "spec.Put", { text = exceeds, upsert = true } },
      }
      rig:run()
      assert.same({ { n = 1, short = fits }, { n = 3, short = fits } },
        rig:query "SELECT n, short FROM sized ORDER BY n")
      assert.same({ "2 B HALTED", "4 D HALTED" }, rig:waiting())
    end)
  end)

  describe("a sum that several writers add to", function()
    it("has what each of them added", function()
      local app = application.new { database = database, config = "partitions = 4, batch = 20", handlers = {
        ["sums.lua"] = [[
          local moontide = require "moontide"
          local list = {}
          for i, name in ipairs { "one", "two" } do
            list[i] = moontide.sql_projection(name) { tables = "sql/sums.sql", on = {
              ["spec.Put"] = function(_, ctx)
                ctx:upsert("sums", { name = "upsert" }, { n = moontide.add(1) })
                ctx:execute "UPDATE sums SET n = n + 1 WHERE name = 'update'"
              end } }
          end
          return list]] } }
      app:write("sql/sums.sql", app.db:ddl [[
        CREATE TABLE IF NOT EXISTS sums (name TEXT NOT NULL PRIMARY KEY, n INTEGER);]])
      app:ok("run", "--until-idle")
      app.db:execute "INSERT INTO sums VALUES ('upsert', 0), ('update', 0)"
      local list = {}
      for i = 1, 300 do list[i] = { aggregate_id = "k" .. i % 9, type = "spec.Put" } end
      app:append(list)
      local host = app:start("run", "--until-idle")
      app.db:execute(([[
        UPDATE sums SET n = n + 1 WHERE name = 'upsert';
        UPDATE sums SET n = n + 1 WHERE name = 'update';
      ]]):rep(60))
      assert.equal(0, host:wait(60).code)
      assert.equal("660|660", app.db:value "SELECT min(n), max(n) FROM sums")
      app:close()
    end)
  end)

  if database.loss then describe("a connection that is lost inside a handler", function()
    local app

    after_each(function() app:close() end)

    it("takes the message's writes with it; a new one with the same settings makes them once", function()
      app = application.new { database = database, config = "partitions = 4", handlers = { ["notes.lua"] = ([[
        local moontide = require "moontide"
        local function note(event, ctx, what)
          ctx:update("INSERT INTO notes (position, what) VALUES (?, ?)", event.position, what)
        end
        return moontide.sql_projection "notes" { tables = "sql/notes.sql", on = {
          ["spec.Put"] = function(event, ctx)
            note(event, ctx, "before")
            if event.payload.lose then ctx:query %q end
            note(event, ctx, ctx:query(%q)[1].value)
          end } }]]):format(database.loss, database.settings) } }
      app:write("sql/notes.sql", app.db:ddl [[
        CREATE TABLE IF NOT EXISTS notes (n INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER, what TEXT);]])
      app:ok("run", "--until-idle")
      for _, statement in ipairs { database:make_loss() } do app.db:command(statement) end
      app:append { { type = "spec.Put" } }
      app:ok("run", "--until-idle")
      app:append { { type = "spec.Put" }, { type = "spec.Put", payload = '{"lose":true}' }, { type = "spec.Put" } }
      local host = app:start("run")
      process.wait_until(function() return app.db:value "SELECT count(*) FROM notes" == "8" end, 30,
        function() return host:err() end)
      host:signal "TERM"
      assert.equal(0, host:wait().code)
      assert.matches("lost", host:err(), 1, true)
      assert.equal("4|2", app.db:value "SELECT count(DISTINCT position), count(DISTINCT what) FROM notes")
      assert.equal("8|4", app.db:value [[
        SELECT count(*), sum(CASE WHEN what = 'before' THEN 1 ELSE 0 END) FROM notes]])
    end)
  end) end
end)
