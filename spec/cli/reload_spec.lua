-- How saved scripts get into a host that runs: by watching, by SIGHUP and by
-- `moontide reload`. What a reload takes and refuses: spec/script/reload_spec.lua.
local dialect = require "spec.support.dialect"
local application = require "spec.support.application"
local process = require "spec.support.process"

local WAIT = 30 -- seconds, on a machine that does other things

local TOTALS = [[
local moontide = require "moontide"
return moontide.projection "totals" { %s
  initial = function() return { total = 0 } end,
  on = { ["spec.Added"] = function(state, event) state.total = state.total + %s event.payload.by end } }
]]

-- The same database as seen from a folder without scripts: what lies in the
-- application's own may not load.
local function writer(app)
  app:write("writer/moontide.conf.lua", ("return { database = %q, partitions = 6, %s }"):format(app.db.url,
    app.db.configuration or ""))
  return function(list)
    return app:ok("--config", "writer/moontide.conf.lua", "append", { stdin = application.ndjson(list) })
  end
end

local function totals(factor, fields) return TOTALS:format(fields or "", factor or "") end

local function count(text, part)
  local n, from = 0, 1
  while true do
    local at, last = text:find(part, from, true)
    if at == nil then return n end
    n, from = n + 1, last + 1
  end
end

dialect.each(function(database)
  local workers = database.name == "sqlite" and "1" or "3"

  describe("a running host", function()
    local app, host, append

    before_each(function()
      app = application.new { database = database, config = "partitions = 6",
        handlers = { ["totals.lua"] = totals() } }
      append = writer(app)
    end)

    after_each(function() app:close() end)

    local function wait(condition, what)
      return process.wait_until(condition, WAIT, function() return what .. "\n" .. host:err() end)
    end

    local function logged(text, times)
      wait(function() return count(host:err(), text) >= (times or 1) end, "the log to say " .. text)
    end

    local function start(...)
      host = app:start("run", "--workers", workers, ...)
      logged "running"
    end

    local function stop()
      host:signal "TERM"
      assert.equal(0, host:wait(WAIT).code)
    end

    local function add(by, key)
      append { { aggregate_id = key or "A", type = "spec.Added", payload = ('{"by":%d}'):format(by or 1) } }
    end

    local function total(key)
      local state = app.db:value(("SELECT state FROM totals WHERE read_model_id = '%s'"):format(key or "A"))
      return state and tonumber(state:match '"total":(%d+)')
    end

    local function becomes(value, key)
      wait(function() return total(key) == value end, ("the total to become %d"):format(value))
    end

    it("takes a saved file, however an editor saves it", function()
      start()
      add(1)
      becomes(1)
      app:write("handlers/totals.lua", totals "10 *") -- in place
      logged "reloaded the scripts"
      add(1)
      becomes(11)
      app:write("handlers/.totals.lua.swp", totals "100 *") -- another file in its place
      app:exec("mv", "handlers/.totals.lua.swp", "handlers/totals.lua")
      logged("reloaded the scripts", 2)
      add(1)
      becomes(111)
      app:exec("mv", "handlers/totals.lua", "handlers/totals.lua~") -- the old one moved away before
      app:write("handlers/totals.lua", totals "1000 *")
      wait(function() return host:err():match "totals%.lua changed[^\n]*\n.*totals%.lua changed.*totals%.lua changed" or
        count(host:err(), "reloaded the scripts") >= 3 end, "the third version")
      app:ok "reload"
      add(1)
      becomes(1111)
      stop()
    end)

    it("keeps what runs while a save is wrong, and says where, to whoever asks, too", function()
      start()
      app:write("handlers/totals.lua", totals() .. "end")
      logged "handlers/totals.lua:5: '<eof>' expected near 'end'"
      assert.matches("handlers/totals.lua:5: '<eof>'", app:fails(78, "reload"), 1, true)
      add(1)
      becomes(1)
      app:write("handlers/totals.lua", totals("10 *", "key = function(event) return event.key:lower() end,"))
      logged "would be halted with DECLARATION_CHANGED"
      assert.matches("totals.lua:2: projection 'totals' would be halted", app:fails(3, "reload"), 1, true)
      add(1)
      becomes(2)
      assert.matches("is live: handlers/totals.lua changed", app:ok("reload", "--accept"), 1, true)
      add(5)
      becomes(50, "a")
      stop()
    end)

    it("tells each save that is wrong, and each new mistake of what was saved, however many came before", function()
      app:configure 'partitions = 6, retry = { attempts = 1 }, on_error = "dead_letter"'
      start()
      for n = 1, 8 do
        app:write("handlers/totals.lua", totals() .. "wrong" .. n)
        logged("near 'wrong" .. n .. "'")
      end
      local function fails(text)
        app:write("handlers/totals.lua", (totals():gsub("state%.total = ", ("do error '%s' end %%0"):format(text))))
      end
      fails "first"
      logged "reloaded the scripts"
      for _ = 1, 12 do add(1) end
      wait(function() return app:count "CONSUMER_UNDELIVERED_MESSAGES" >= 12 end, "12 dead letters")
      fails "second"
      logged("reloaded the scripts", 2)
      add(1)
      logged "totals.lua:4: second"
      -- at once, and not with the sum of what was held back
      assert.is_nil(host:err():match "totals%.lua:4: second[^\n]* repeats=")
      stop()
    end)

    it("does not blame a script for a load that somebody killed", function()
      app:configure 'partitions = 6, grants = { "os" }'
      app:write("handlers/totals.lua", "os.execute 'kill -KILL $PPID'")
      assert.matches("was killed by somebody", app:expect(75, "run", "--workers", "1").err, 1, true)
      app:write("handlers/totals.lua", "os.exit(0)")
      assert.matches("has crashed: a script does something", app:expect(78, "run", "--workers", "1").err, 1, true)
    end)

    it("ends the load of a file that loops or ends its process, and goes on", function()
      app:configure 'partitions = 6, grants = { "os" }, limits = { time = "500ms" }'
      start()
      app:write("handlers/totals.lua", "while true do end")
      logged "handlers/totals.lua:1"
      app:write("handlers/totals.lua", "os.exit(0)")
      logged "the process that loaded the scripts has crashed"
      add(1)
      becomes(1)
      app:write("handlers/totals.lua", totals "10 *")
      logged "reloaded the scripts"
      stop()
    end)

    it("takes many files that are saved at once as one version, and new folders", function()
      start()
      for i = 1, 30 do
        app:write(("new/lib/deep/m%d.lua"):format(i), "return " .. i)
        app:write(("new/p%d.lua"):format(i), ([[local moontide = require "moontide"
local n = require "lib.deep.m%d"
return moontide.projection "p%d" { on = { ["spec.Added"] = function(state) state.n = n end } }]]):format(i, i))
      end
      app:shell "mv new/* handlers/" -- as quickly as one after the other can be
      logged "projection 'p30' added"
      add(1)
      wait(function() return app.db:value "SELECT count(*) FROM p30" == "1" end, "the last of them")
      assert.is_true(count(host:err(), "reloaded the scripts") <= 10)
      app:write("handlers/lib/deep/m7.lua", "return 700")
      logged "handlers/lib/deep/m7.lua changed; projection 'p7' changed"
      stop()
    end)

    it("starts with declarations of every kind, and takes changes of them", function()
      local kinds = [[
        local moontide = require "moontide"
        local seen = moontide.listener "seen" { start = "beginning", on = {
          ["spec.Added"] = function(event, ctx) %s end } }
        local thing = moontide.aggregate "spec.thing" {
          initial = function() return {} end, commands = { touch = function() return {} end }, apply = {} }
        return { seen, thing }]]
      app:write("handlers/kinds.lua", kinds:format "")
      start()
      add()
      becomes(1)
      app:write("handlers/kinds.lua", kinds:format 'ctx.log.info("seen " .. event.position)')
      logged "kinds.lua changed"
      add()
      logged "seen 2"
      stop()
    end)

    it("shows in status what runs and what was refused, until that is gone", function()
      local function scripts()
        local found = app:json "status"
        return found.scripts[1] or {}, table.concat(found.problems, "\n")
      end

      start()
      wait(function() return scripts().changes == "handlers/totals.lua added; projection 'totals' added" end,
        "the start")
      local first = scripts().version
      app:write("handlers/totals.lua", totals "10 *")
      wait(function() return scripts().changes == "handlers/totals.lua changed; projection 'totals' changed" end, "it")
      local second = scripts()
      assert.not_equal(first, second.version)
      app:write("handlers/totals.lua", totals() .. "end")
      wait(function()
        return (tostring(scripts().error):find("handlers/totals.lua:5: '<eof>'", 1, true))
      end, "the refusal")
      local now, problems = scripts()
      assert.equal(second.version, now.version)
      assert.matches("has not taken the saved scripts and goes on with version", problems, 1, true)
      app:write("handlers/totals.lua", totals "10 *")
      wait(function() return type(scripts().error) ~= "string" end, "the end of that")
      stop()
      assert.is_nil(scripts().version)
    end)

    it("answers SIGHUP, and says what is the same, and that a configuration takes a restart", function()
      start()
      host:signal "HUP"
      logged "the scripts are those that run"
      app:configure "partitions = 6, batch = 7"
      logged "moontide.conf.lua has changed: a reload takes scripts only, so restart the host"
      assert.matches("nothing has changed", app:ok "reload", 1, true)
      app:write("moontide.conf.lua", "return {") -- scripts are taken all the same, by what the host has read
      app:write("handlers/totals.lua", totals "10 *")
      logged "reloaded the scripts"
      app:configure "partitions = 6"
      stop()
      assert.matches("no host of this application runs", app:fails(69, "reload"), 1, true)
    end)

    it("goes on without its scripts folder, also with a worker that starts then", function()
      start()
      app:exec("mv", "handlers", "aside")
      logged "the scripts folder"
      host:signal "HUP"
      process.signal(host:workers()[1], "KILL")
      logged "runs again"
      add(1)
      becomes(1)
      app:exec("mv", "aside", "handlers")
      app:write("handlers/totals.lua", totals "10 *")
      logged "reloaded the scripts"
      add(1)
      becomes(11)
      stop()
    end)

    it("gives each host of the application its answer", function()
      start()
      local second = app:start("run", "--workers", "1")
      process.wait_until(function() return second:err():find("running", 1, true) end, WAIT, "the second host")
      app:write("handlers/totals.lua", totals "10 *")
      local answers = app:json "reload"
      assert.equal(2, #answers)
      assert.equal(answers[1].version, answers[2].version)
      second:signal "TERM"
      assert.equal(0, second:wait(WAIT).code)
      stop()
    end)
  end)

  describe("a reload under load", function()
    local VERSION = [[
local moontide = require "moontide"
local VERSION = %d
return moontide.sql_projection "kept" { tables = "sql/kept.sql",
  on = { ["spec.Put"] = function(event, ctx)
    ctx:execute('INSERT INTO kept (position, "key", version, page) VALUES (?, ?, ?, ?)',
      event.position, ctx.key, VERSION, require("lib.page"))
    if event.payload.fails and ctx.attempt < 3 then error("not yet") end
  end } }
]]
    local TABLE = [[
CREATE TABLE IF NOT EXISTS kept (
    n INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL, "key" TEXT NOT NULL,
    version INTEGER NOT NULL, page INTEGER NOT NULL);
]]
    local app

    after_each(function() app:close() end)

    local function saves(total, versions, kills)
      app = application.new { database = database, -- a killed worker's message has spent an attempt
        config = ('partitions = 6, batch = 20, retry = { attempts = %d, delay = "50ms", factor = 1 }'):format(
          kills and 1000 or 5) }

      -- all files of a version at once: a link is put to another folder
      local function save(n)
        app:write(("v%d/lib/page.lua"):format(n), "return " .. n)
        app:write(("v%d/kept.lua"):format(n), VERSION:format(n))
        app:shell(("rm -rf handlers.new; ln -s v%d handlers.new; mv -T handlers.new handlers"):format(n))
      end

      local function number(sql) return tonumber(app.db:value(sql)) end

      app:write("sql/kept.sql", TABLE)
      app:exec("rmdir", "handlers")
      save(0)
      local host = app:start("run", "--workers", workers)
      process.wait_until(function() return host:err():find("running", 1, true) end, WAIT,
        function() return host:err() end)
      local list = {}
      for i = 1, total do
        list[i] = { aggregate_id = "k" .. i % 23, type = "spec.Put", payload = ('{"fails":%s}'):format(i % 401 == 0) }
      end
      local appended, appender = 0, nil
      local function append(upto)
        if appender then assert.equal(0, appender:wait(120).code) end
        local part = { unpack(list, appended + 1, upto) }
        appender, appended = app:start("append", "--batch", "50", { stdin = application.ndjson(part) }), upto
      end
      append(math.floor(total / 4))
      for n = 1, versions do
        save(n)
        if kills then
          process.pause(n * 10) -- it is checked, or in the middle of its way to the workers
          local running = host:workers()
          if #running > 0 then process.signal(running[1 + n % #running], "KILL") end
        end
        if n % 3 == 0 then
          app:ok "reload"
          append(appended + math.floor((total - appended) / 2)) -- what this version finds for certain
        end
      end
      append(total)
      assert.equal(0, appender:wait(120).code)
      process.wait_until(function() return number "SELECT count(*) FROM kept" >= total end, 120,
        function() return "all messages\n" .. host:err() end)
      if kills then -- whoever came late runs what was saved last
        assert.matches("signal 9", host:err(), 1, true)
        app:ok "reload"
        app:append(list)
        total = 2 * total
        process.wait_until(function() return number "SELECT count(*) FROM kept" >= total end, 120,
          function() return "all messages\n" .. host:err() end)
        assert.equal(versions, number(("SELECT min(version) FROM kept WHERE position > %s"):format(
          app.db:value "SELECT max(global_position) / 2 FROM EVENT_STORE")))
      end
      host:signal "TERM"
      assert.equal(0, host:wait(WAIT).code)
      assert.equal(total, number "SELECT count(*) FROM kept")
      assert.equal(total, number "SELECT count(DISTINCT position) FROM kept")
      assert.equal(0, number [[SELECT count(*) FROM kept a JOIN kept b ON b."key" = a."key"
        WHERE b.n > a.n AND b.position < a.position]])
      -- a handler and the module that it requires late are of one version
      assert.equal(0, number "SELECT count(*) FROM kept WHERE version <> page")
      -- while workers start again on a slow machine versions come and go unseen
      assert.is_true(number "SELECT count(DISTINCT version) FROM kept" > (kills and 1 or 3))
    end

    it("loses and repeats nothing, keeps the order of each key, and mixes no versions", function()
      saves(6000, 25)
    end)

    it("does so while its workers are killed, too, and each of them comes to the newest version", function()
      saves(1500, 9, true)
    end)
  end)
end)
