-- What a changed declaration does to its consumer, and what a restart without
-- a change does not. Every start is a process of its own.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local MODELS = [[
local moontide = require "moontide"
local t = moontide.types
local names = require "lib.names"
return {
  moontide.projection "models" { aggregates = { "spec.thing" },
    fields = { f = t.text() },
    key = function(event) return event.key end,
    on = { ["spec.Put"] = function(state, event) state.f = names.of(event) end } },
  moontide.projection "others" { key = moontide.by "f", on = { ["spec.Put"] = function(state) state.n = 1 end } },
  moontide.sql_projection "days" { tables = "sql/days.sql", on = { ["spec.Put"] = function() end } },
}
]]
local NAMES = [[return { of = function(event) return event.payload.f end }]]

local PARTS = {
  { word = "sources", said = "its source, aggregates or event types", from = '{ "spec.thing" }',
    to = '{ "spec.thing", "spec.other" }' },
  { word = "key", said = "its key or number of partitions", from = "return event.key end",
    to = "return event.key:lower() end" },
  { word = "shape", said = "its stored shape (fields, tables)", from = "t.text()", to = "t.text { optional = true }" },
}

local function replaced(text, from, to)
  local at, last = text:find(from, 1, true)
  assert(at, from)
  return text:sub(1, at - 1) .. to .. text:sub(last + 1)
end

dialect.each(function(database)
  describe("a declaration", function()
    local app, position

    before_each(function()
      position = 0
      app = application.new { database = database, config = "partitions = 6",
        handlers = { ["models.lua"] = MODELS, ["lib/names.lua"] = NAMES } }
      app:write("sql/days.sql", "CREATE TABLE IF NOT EXISTS days (day VARCHAR(10) PRIMARY KEY);\n")
    end)

    after_each(function() app:close() end)

    local function append(value)
      position = position + 1
      app:append { { aggregate_id = "A", type = "spec.Put", payload = ('{"f":"%s"}'):format(value) } }
    end

    local function declare(...)
      local text = MODELS
      for _, change in ipairs { ... } do text = replaced(text, change.from, change.to) end
      app:write("handlers/models.lua", text)
    end

    local function run()
      return app:ok("run", "--until-idle")
    end

    local function status(name)
      local report = app:json "status"
      for _, consumer in ipairs(report.consumers) do
        if consumer.name == (name or "models") then return consumer, report end
      end
    end

    -- What the database holds of the declaration.
    local function stored(name)
      return app.db:value(("SELECT declaration_fingerprint FROM CONSUMERS WHERE consumer_name = '%s'"):format(
        name or "models"))
    end

    local function read(key)
      for _, row in ipairs(app:json("read", "models")) do
        if row.key == key then return row.state.f end
      end
    end

    local function fingerprint(name)
      for _, declaration in ipairs(app:json("check").declarations) do
        if declaration.name == name then
          local f = declaration.fingerprint
          return table.concat({ f.sources, f.key, f.shape, f.code }, ",")
        end
      end
    end

    it("is taken at the first start, of every projection, in silence", function()
      append "one"
      local result = app:moontide("run", "--until-idle")
      assert.equal(0, result.code)
      assert.not_matches("declar", result.err)
      for _, name in ipairs { "models", "others", "days" } do
        assert.equal(fingerprint(name), stored(name))
        assert.same({}, status(name).changed)
      end
    end)

    it("is taken in silence where a consumer has none yet, and nothing else changes", function()
      append "one"
      run()
      app.db:execute "UPDATE CONSUMERS SET declaration_fingerprint = NULL"
      declare(PARTS[2])
      append "two"
      run()
      assert.equal(fingerprint "models", stored())
      assert.equal("RUNNING", status().state)
    end)

    it("is never said to be changed by twenty starts, nor by comments, layout and where it lies", function()
      append "one"
      run()
      local before = { stored "models", stored "others", stored "days" }
      for start = 1, 20 do
        if start == 7 then
          app:write("handlers/models.lua", "-- what this is\n\n" .. MODELS:gsub("\n", "\r\n  ") .. "--[[ end ]]")
          app:write("handlers/lib/names.lua", "-- names\n" .. NAMES)
        elseif start == 14 then
          app:exec("mv", "handlers/models.lua", "handlers/another.lua")
        end
        append(tostring(start))
        local result = app:moontide("run", "--until-idle")
        assert.equal(0, result.code)
        assert.not_matches("declar", result.err)
        local consumer, report = status()
        assert.equal("RUNNING", consumer.state)
        assert.equal(position, consumer.position)
        assert.same({ {}, {} }, { report.problems, report.notes })
      end
      assert.same(before, { stored "models", stored "others", stored "days" })
    end)

    for _, part in ipairs(PARTS) do
      it("that changes in its " .. part.word .. " halts its consumer alone, until it is as before", function()
        append "one"
        run()
        local before = stored()
        declare(part)
        append "two"
        local consumer, report = status()
        assert.equal("RUNNING", consumer.state)
        assert.same({ part.word, "code" }, consumer.changed)
        assert.matches("will be halted by the next start of the host: " .. part.said, report.problems[1], 1, true)

        local err = app:fails(1, "run", "--until-idle")
        assert.matches("halted with DECLARATION_CHANGED", err, 1, true)
        assert.matches(part.said, err, 1, true)
        consumer, report = status()
        assert.equal("HALTED", consumer.state)
        assert.equal("DECLARATION_CHANGED", consumer.halt_reason)
        assert.equal(1, consumer.position)
        assert.equal("one", read "A")
        assert.equal(1, #report.problems)
        assert.matches("is halted since .* %(DECLARATION_CHANGED%)", report.problems[1])
        assert.matches(part.said .. " and its code changed since", report.problems[1], 1, true)
        assert.matches("`moontide rebuild models`", report.problems[1], 1, true)
        assert.matches("`moontide resume models --accept`", report.problems[1], 1, true)
        assert.equal(2, status("others").position)
        assert.equal(before, stored())

        local since = consumer.state_since
        app:fails(1, "run", "--until-idle")
        assert.equal(since, status().state_since)

        declare()
        consumer, report = status()
        assert.equal("HALTED", consumer.state)
        assert.matches("it is declared as before again: start the host", report.problems[1], 1, true)
        run()
        assert.equal("RUNNING", status().state)
        assert.is_nil(status().halt_reason)
        assert.equal("two", read "A")
        assert.same({ {}, {} }, { select(2, status()).problems, select(2, status()).notes })
        assert.equal(before, stored())
      end)
    end

    it("that changes in its tables halts a projection that writes SQL", function()
      run()
      app:write("sql/days.sql", "-- days\nCREATE TABLE IF NOT EXISTS days\n  (day VARCHAR(10) PRIMARY KEY);\n")
      run()
      assert.same({}, status("days").changed)
      app:write("sql/days.sql", "CREATE TABLE IF NOT EXISTS days (day VARCHAR(20) PRIMARY KEY);\n")
      app:fails(1, "run", "--until-idle")
      assert.same({ "shape" }, status("days").changed)
      assert.equal("DECLARATION_CHANGED", status("days").halt_reason)
      assert.equal("RUNNING", status().state)
    end)

    it("whose code alone changes applies from then on, and status tells that history is older", function()
      append "one"
      run()
      local before = stored()
      app:write("handlers/lib/names.lua", [[return { of = function(event) return event.payload.f .. "!" end }]])
      for _ = 1, 2 do
        append "two"
        run()
        local consumer, report = status()
        assert.equal("RUNNING", consumer.state)
        assert.same({ "code" }, consumer.changed)
        assert.is_false(consumer.rebuild_due)
        assert.same({}, report.problems)
        assert.equal(3, #report.notes) -- all three are declared in one file
        assert.matches("projection 'models' holds history that was derived by older code", report.notes[2], 1, true)
        assert.matches("note: projection 'models' holds history", app:ok "status", 1, true)
      end
      assert.equal("two!", read "A")
      assert.equal(before, stored())
      app:write("handlers/lib/names.lua", NAMES)
      run()
      assert.same({}, select(2, status()).notes)
    end)

    it("whose revision is raised asks for a rebuild and runs on", function()
      append "one"
      run()
      declare { from = '"models" {', to = '"models" { revision = 2,' }
      append "two"
      run()
      local consumer, report = status()
      assert.equal("RUNNING", consumer.state)
      assert.same({ "code" }, consumer.changed)
      assert.is_true(consumer.rebuild_due)
      assert.is_false(status("others").rebuild_due)
      assert.same({}, report.problems)
      local notes = table.concat(report.notes, "\n")
      assert.matches("projection 'models' asks for a rebuild, its revision was raised", notes, 1, true)
      assert.equal("two", read "A")
    end)

    it("that changes back in code leaves the first one stored, so that nothing is said any more", function()
      run()
      local before = stored()
      declare { from = "state.n = 1", to = "state.n = 2" }
      run()
      declare()
      run()
      assert.equal(before, stored())
      assert.same({}, status().changed)
    end)

    it("that changed does not run on when an operator lets it, unless it is taken over", function()
      append "one"
      run()
      declare(PARTS[2])
      append "two"
      local host = app:start "run"
      process.wait_until(function() return status().halt_reason == "DECLARATION_CHANGED" end, 20, "the halt")
      app.db:execute "UPDATE CONSUMERS SET state = NULL, halt_reason = NULL WHERE consumer_name = 'models'"
      process.wait_until(function() return status().halt_reason == "DECLARATION_CHANGED" end, 20,
        function() return host:err() end)
      assert.equal(1, status().position)
      assert.matches("projection 'models' runs again, as it is declared now", app:ok("resume", "models", "--accept"), 1,
        true)
      process.wait_until(function() return status().position == 2 end, 20, "the message behind the halt")
      host:signal "TERM"
      assert.equal(0, host:wait(20).code)
    end)

    it("that changed is taken over by resume --accept only, and then counts as the one that derived", function()
      append "one"
      run()
      declare(PARTS[2], PARTS[3])
      append "two"
      app:fails(1, "run", "--until-idle")
      local before = stored()
      assert.matches("rebuild it, or go on with what is there by --accept", app:fails(3, "resume", "models"), 1, true)
      assert.same({ "HALTED", before }, { status().state, stored() })
      local result = app:json("resume", "models", "--accept")
      assert.is_true(result.changed)
      assert.is_true(result.declaration_accepted)
      assert.same({ "RUNNING", fingerprint "models" }, { status().state, stored() })
      run()
      assert.equal("one", read "A") -- what was derived stays
      assert.equal("two", read "a")
      local consumer, report = status()
      assert.same({}, consumer.changed)
      for _, note in ipairs(report.notes) do assert.not_matches("'models'", note) end
      assert.is_false(app:json("resume", "models", "--accept").changed)
      declare()
      app:fails(1, "run", "--until-idle") -- now the first one is a change
      assert.same({ "key", "shape", "code" }, status().changed)
    end)

    it("cannot be taken over while nobody knows what it is", function()
      run()
      declare(PARTS[1])
      app:fails(1, "run", "--until-idle")
      local before = stored()
      app:write("handlers/models.lua", "return {")
      assert.matches("the scripts do not load", app:fails(3, "resume", "models", "--accept"), 1, true)
      app:write("handlers/models.lua", replaced(MODELS, '"models"', '"renamed"'))
      assert.matches("is not declared by the scripts", app:fails(3, "resume", "models", "--accept"), 1, true)
      assert.same({ "HALTED", before }, { status().state, stored() })
    end)

    it("leaves a paused consumer paused, and one without history halted for that", function()
      append "one"
      run()
      app.db:execute "UPDATE CONSUMERS SET state = 'PAUSED' WHERE consumer_name = 'models'"
      app.db:execute [[UPDATE CONSUMERS SET state = 'HALTED', halt_reason = 'MISSING_HISTORY'
        WHERE consumer_name = 'others']]
      declare(PARTS[1], { from = 'moontide.by "f"', to = 'moontide.by "g"' })
      app:moontide("run", "--until-idle")
      assert.equal("PAUSED", status().state)
      assert.equal("MISSING_HISTORY", status("others").halt_reason)
    end)

    it("that changed is told before a message that failed", function()
      app:write("handlers/lib/names.lua", "return { of = function() error 'no name' end }")
      append "one"
      app:fails(1, "run", "--until-idle")
      assert.equal("APPLY_ERROR", status().halt_reason)
      declare(PARTS[1])
      app:write("handlers/lib/names.lua", NAMES)
      app:fails(1, "run", "--until-idle")
      assert.equal("DECLARATION_CHANGED", status().halt_reason)
      assert.is_nil(read "A")
      declare()
      run()
      assert.equal("one", read "A")
    end)

    -- Rebuilt with what is declared now; `before` is what was stored.
    local function rebuilt(before, epoch)
      local consumer, report = status()
      assert.same({ "RUNNING", epoch, {} }, { consumer.state, consumer.epoch, consumer.changed })
      assert.same({}, report.problems)
      assert.equal(fingerprint "models" .. ";" .. before:match "^[^;]*", stored())
    end

    it("is replaced by a rebuild, which keeps the one before", function()
      append "one"
      run()
      local before = stored()
      declare(PARTS[2])
      app:fails(1, "run", "--until-idle")
      app:ok("rebuild", "models")
      run()
      rebuilt(before, 1)
      assert.is_nil(read "A")
      assert.equal("one", read "a")
      declare()
      app:fails(1, "run", "--until-idle")
      assert.matches("to what was declared before the last rebuild", select(2, status()).problems[1], 1, true)
      before = stored()
      app:ok("rebuild", "models")
      run()
      rebuilt(before, 2)
      assert.equal("one", read "A")
      before = stored()
      app:ok("rebuild", "models") -- one that changes nothing keeps it, too
      run()
      assert.equal(before, stored())
    end)

    it("is told by the older host that a newer one has halted what it applies", function()
      append "one"
      local older = app:start("run", "--workers", "0") -- which takes no other scripts
      process.wait_until(function() return status().position == 1 end, 20, "the first message")
      declare(PARTS[2])
      app:fails(1, "run", "--until-idle")
      process.wait_until(function()
        return older:err():find("was halted with DECLARATION_CHANGED by a host", 1, true)
      end, 20, function() return older:err() end)
      declare()
      local _, report = status()
      assert.matches("start the host anew, or `moontide resume models --accept`", report.problems[1], 1, true)
      app:ok("resume", "models", "--accept")
      append "two"
      process.wait_until(function() return read "A" == "two" end, 20, function() return older:err() end)
      older:signal "TERM"
      assert.equal(0, older:wait(20).code)
    end)

    describe("with on_change", function()
      local ON_CHANGE = { from = '"models" {', to = '"models" { on_change = "rebuild",' }

      for _, part in ipairs(PARTS) do
        it("is rebuilt when it changes in its " .. part.word .. ", once", function()
          declare(ON_CHANGE)
          append "one"
          run()
          local before = stored()
          declare(ON_CHANGE, part)
          local _, report = status()
          assert.same({}, report.problems)
          assert.matches("'models' will be rebuilt by the next start of the host, as on_change says: " .. part.said,
            table.concat(report.notes, "\n"), 1, true)
          append "two"
          local err = app:expect(0, "run", "--until-idle").err
          assert.matches("is rebuilt, as on_change says: " .. part.said, err, 1, true)
          rebuilt(before, 1)
          assert.equal("two", read(part.word == "key" and "a" or "A"))
          for _ = 1, 3 do
            append "three"
            assert.not_matches("on_change", app:expect(0, "run", "--until-idle").err)
          end
          rebuilt(before, 1)
        end)
      end

      it("is rebuilt when its revision is raised, and not for other code", function()
        declare(ON_CHANGE)
        append "one"
        run()
        local before = stored()
        app:write("handlers/lib/names.lua", [[return { of = function(event) return event.payload.f .. "!" end }]])
        run()
        assert.equal(0, status().epoch)
        assert.equal("one", read "A")
        declare({ from = '"models" {', to = '"models" { on_change = "rebuild", revision = 2,' })
        run()
        rebuilt(before, 1)
        assert.equal("one!", read "A")
      end)

      it("needs reset where tables must be emptied", function()
        declare { from = 'tables = "sql/days.sql",', to = 'tables = "sql/days.sql", on_change = "rebuild",' }
        assert.matches('"days": on_change = "rebuild" needs reset', app:fails(78, "check"), 1, true)
      end)

      it("leaves the consumer to the newer host, and the older one stands still", function()
        declare(ON_CHANGE)
        append "one"
        local older = app:start("run", "--workers", "0") -- which takes no other scripts
        process.wait_until(function() return status().position == 1 end, 20, "the first message")
        local before = stored()
        declare(ON_CHANGE, PARTS[2])
        run()
        process.wait_until(function() return older:err():find("start this host again", 1, true) end, 20,
          function() return older:err() end)
        assert.matches("goes by another declaration now than this host has loaded", older:err(), 1, true)
        append "two"
        run()
        rebuilt(before, 1)
        assert.equal("two", read "a")
        assert.is_nil(read "A")
        process.wait_until(function() return status("others").position == 2 end, 20, "the other consumer")
        older:signal "TERM"
        assert.equal(0, older:wait(20).code)
      end)
    end)

    describe("of another table", function()
      local MORE = { from = "fields = { f = t.text() }", to = "fields = { f = t.text(), g = t.integer() }" }
      local SET = { from = "state.f = names.of(event)", to = "state.f = names.of(event) state.g = event.position" }
      local ON_CHANGE = { from = '"models" {', to = '"models" { on_change = "rebuild",' }

      local function columns(name)
        return app.db:value(("SELECT max(g) FROM %s"):format(name or "models"))
      end

      it("stops the start, and a rebuild makes the table anew", function()
        append "one"
        run()
        local before = stored()
        declare(MORE, SET)
        local err = app:fails(78, "run", "--until-idle")
        assert.matches('column "g"', err, 1, true)
        assert.matches("`moontide rebuild models` makes the table anew", err, 1, true)
        assert.same({ "RUNNING", before }, { status().state, stored() })
        app:ok("rebuild", "models")
        append "two"
        run()
        rebuilt(before, 1)
        assert.equal("two", read "A")
        assert.equal("2", columns())
        run()
        assert.equal(1, status().epoch)
      end)

      it("is made anew by a start with on_change, once", function()
        declare(ON_CHANGE)
        append "one"
        run()
        local before = stored()
        declare(ON_CHANGE, MORE, SET)
        append "two"
        local err = app:expect(0, "run", "--until-idle").err
        assert.matches("its table had another shape and was made anew", err, 1, true)
        rebuilt(before, 1)
        assert.equal("2", columns())
        run()
        rebuilt(before, 1)
        -- a column that another program took away is not a change of the declaration
        app.db:execute "ALTER TABLE models RENAME COLUMN g TO h"
        app:fails(78, "run", "--until-idle")
        app:ok("rebuild", "models")
        run()
        assert.equal("2", columns())
      end)

      it("gets its new name by a rebuild, and the old table stays", function()
        append "one"
        run()
        declare({ from = '"models" {', to = '"models" { table = "Order",' })
        assert.matches("`moontide rebuild models`", app:fails(78, "run", "--until-idle"), 1, true)
        app:ok("rebuild", "models")
        run()
        assert.equal("one", read "A")
        assert.equal("1", app.db:value "SELECT count(*) FROM models")
        declare({ from = '"models" {', to = '"models" { table = "Order",' }, MORE, SET)
        app:ok("rebuild", "models")
        run()
        assert.equal("1", columns(database.name == "postgres" and '"order"' or '"Order"'))
      end)

      it("goes on with a rebuild that died without the table", function()
        append "one"
        run()
        app.db:execute [[UPDATE CONSUMERS SET state = 'HALTED', halt_reason = 'DECLARATION_CHANGED'
          WHERE consumer_name = 'models']]
        app.db:execute "DROP TABLE models"
        for _, change in ipairs { MORE, PARTS[3] } do
          declare(change, change == MORE and SET or PARTS[2])
          assert.matches("has read up to position 1", app:fails(78, "run", "--until-idle"), 1, true)
        end
        declare(MORE, SET)
        app:ok("rebuild", "models")
        run()
        assert.equal("1", columns())
      end)

      it("is never one that is no query table, or while schema.create is off", function()
        append "one"
        run()
        declare { from = '"models" {', to = '"models" { table = "days",' }
        assert.matches("is no query table", app:fails(78, "rebuild", "models"), 1, true)
        assert.equal("RUNNING", status().state)
        app:configure "partitions = 6, schema = { create = false }"
        declare(MORE, SET)
        assert.matches("schema.create is off", app:fails(3, "rebuild", "models"), 1, true)
        assert.same({ "RUNNING", 1 }, { status().state, status().position })
        assert.equal("1", app.db:value "SELECT count(*) FROM models")
      end)
    end)

    it("that a rebuild has replaced is no longer what an older host applies", function()
      append "one"
      local older = app:start("run", "--workers", "0")
      process.wait_until(function() return status().position == 1 end, 20, "the first message")
      app:write("handlers/lib/names.lua", [[return { of = function(event) return event.payload.f .. "!" end }]])
      app:ok("pause", "models")
      app:ok("rebuild", "models", "--restart")
      process.wait_until(function() return older:err():find("its code differ", 1, true) end, 20,
        function() return older:err() end)
      append "two"
      run()
      assert.equal("two!", read "A")
      older:signal "TERM"
      assert.equal(0, older:wait(20).code)
    end)

    it("stays as it was, and so does all else, when the reset of its rebuild fails", function()
      local function with_reset(body)
        declare({ from = 'tables = "sql/days.sql",',
          to = ('tables = "sql/days.sql", revision = 2, reset = function(ctx) %s end,'):format(body) })
      end
      append "one"
      run()
      local before = stored "days"
      with_reset 'ctx:execute "DELETE FROM nowhere"'
      for _ = 1, 2 do
        assert.matches("the reset of 'days' failed: ", app:fails(1, "rebuild", "days"), 1, true)
        local now = status "days"
        assert.same({ "RUNNING", 1, 0 }, { now.state, now.position, now.epoch })
        assert.equal(before, stored "days")
        run()
        assert.equal(before, stored "days")
      end
      with_reset 'ctx:execute "DELETE FROM days"'
      app:ok("rebuild", "days")
      run()
      assert.equal(1, status("days").epoch)
      assert.not_equal(before, stored "days")
    end)

    it("is halted when what is stored is no fingerprint", function()
      run()
      app.db:execute "UPDATE CONSUMERS SET declaration_fingerprint = 'of another program'"
      app:fails(1, "run", "--until-idle")
      assert.same({ "sources", "key", "shape", "code" }, status().changed)
      assert.equal("of another program", stored())
    end)
  end)
end)
