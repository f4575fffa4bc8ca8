-- A host that has nothing to do is told that there is something, and finds it
-- by itself where it was not told.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local COUNT = [[local moontide = require "moontide"
return moontide.projection "counts" { on = {
  ["spec.Put"] = function(state) state.n = (state.n or 0) + 1 end } }]]

-- A host that never looks by itself while the spec lasts.
local NEVER = 'poll = { min_interval = "1h", max_interval = "1h" }'
local SOON = 'poll = { min_interval = "5ms", max_interval = "50ms" }'

local MODES = { ["with a supervisor"] = "workers = 1", ["in one process"] = "workers = 0" }

local LONG = 60 -- seconds

local MARK = "SELECT high_water_mark FROM HIGH_WATER_MARK_STORE WHERE topic_name = 'event-store'"

dialect.each(function(database)
  describe("an idle host", function()
    local app, appended

    after_each(function() app:close() end)

    local function start(fields)
      app = application.new { database = database, handlers = { ["counts.lua"] = COUNT } }
      appended = 0
      -- behind a pooler
      local direct = app.db.direct and ("notify_url = %q, "):format(app.db.direct) or ""
      app:configure("partitions = 3, " .. direct .. fields)
      app:ok("run", "--until-idle") -- makes the tables that the specs look at
      return app:start("run")
    end

    local function append(...)
      appended = appended + 1
      app:append({ { type = "spec.Put", aggregate_id = "A-" .. appended } }, ...)
    end

    local function applied()
      return tonumber(app.db:value "SELECT count(*) FROM counts")
    end

    local function all_applied(host)
      process.wait_until(function() return applied() == appended end, LONG, function()
        return ("%d of %d events applied\n%s"):format(applied(), appended, host:err())
      end)
    end

    local function said(host, text)
      process.wait_until(function() return host:err():find(text, 1, true) end, LONG,
        function() return ("%q in the log:\n%s"):format(text, host:err()) end)
    end

    -- How often the log says it.
    local function count(host, text)
      local _, times = host:err():gsub(text, "")
      return times
    end

    -- It runs, and hears by now what others append.
    local function hears(host)
      append()
      all_applied(host)
    end

    for name, mode in pairs(MODES) do
      if database.name ~= "mysql" then
        it("applies at once what another process appends, " .. name, function()
          local host = start(mode .. ", " .. NEVER)
          hears(host)
          for _ = 1, 20 do
            append()
            all_applied(host)
          end
          assert.equal(0, count(host, "are not told"))
        end)

        it("sees what operators change though it waits for long, " .. name, function()
          local host = start(mode .. ", " .. NEVER)
          hears(host)
          app:ok("pause", "counts")
          append()
          process.wait_until(function()
            return app.db:value(MARK) == "2"
          end, LONG, function() return host:err() end)
          assert.equal(1, applied())
          app:ok("resume", "counts")
          all_applied(host)
        end)

        it("misses none of many appends, at whatever moment they come, " .. name, function()
          local host = start(mode .. ", " .. NEVER)
          hears(host)
          local list = {}
          for i = 1, 300 do list[i] = { type = "spec.Put", aggregate_id = "B-" .. i } end
          app:append(list, "--batch", "1")
          appended = appended + 300
          all_applied(host)
        end)
      end

      if database.name == "postgres" or database.name == "pooled" then
        -- An open transaction of another program has drawn a position, and
        -- does not tell when it ends.
        local function silent()
          return app.db:hold [[BEGIN; SELECT position FROM (SELECT global_position AS position
            FROM moontide_append(NULL::event_store, 'spec.thing', 'S-' || pg_backend_pid(), 'any',
              ARRAY['spec.Put'], ARRAY['{}']::json[])) AS a;]]
        end

        it("applies what others kept back when the last of them ends without a word, " .. name, function()
          local host = start(mode .. ", " .. NEVER)
          hears(host)
          local first = silent()
          append()
          local second = silent()
          append()
          -- a part of what was told can be had now: the mark moves, not to the end
          first.commit()
          process.wait_until(function() return tonumber(app.db:value(MARK)) > 1 end, LONG, function()
            return host:err()
          end)
          assert.is_true(applied() < 4)
          second.release()
          appended = appended + 1 -- the first one's
          all_applied(host)
        end)
      end

      it("finds within a poll interval what nobody tells of, " .. name, function()
        local host = start(mode .. ", notify = false, " .. SOON)
        hears(host)
        for _ = 1, 3 do
          append()
          all_applied(host)
        end
      end)

      it("goes on soon after others locked it out, " .. name, function()
        local host = start(mode .. ", log = { level = 'debug' }, lease = { duration = '2s', heartbeat = '500ms' }, "
          .. NEVER)
        hears(host)
        -- nobody can append to a file meanwhile, and there it is the heartbeat that fails
        local held = app.db:hold(database.lock_checkpoints)
        if database.name ~= "sqlite" then append() end
        said(host, "running it again")
        held.release()
        append()
        all_applied(host)
      end)

      it("stops at once though it waits for long, " .. name, function()
        local host = start(mode .. ", notify = false, " .. NEVER)
        said(host, "running 1 consumer")
        host:signal "TERM"
        assert.equal(0, host:wait(LONG).code)
      end)

    end
  end)
end)

dialect.only("postgres", function(database)
  describe("notifications", function()
    local app, appended

    after_each(function() app:close() end)

    local function make(fields)
      app = application.new { database = database, handlers = { ["counts.lua"] = COUNT } }
      appended = 0
      app.config = "partitions = 3, " .. (app.db.direct and ("notify_url = %q, "):format(app.db.direct) or "")
      app:configure(app.config .. fields)
      app:ok("run", "--until-idle")
    end

    local function append(env)
      appended = appended + 1
      local done = app:moontide("append", { env = env,
        stdin = application.ndjson { { type = "spec.Put", aggregate_id = "A-" .. appended } } })
      assert.equal(0, done.code, done.err)
    end

    local function all_applied(host)
      process.wait_until(function() return tonumber(app.db:value "SELECT count(*) FROM counts") == appended end, LONG,
        function() return host:err() end)
    end

    local function said(host, text, times)
      process.wait_until(function() return select(2, host:err():gsub(text, "")) >= (times or 1) end, LONG,
        function() return ("%q in the log:\n%s"):format(text, host:err()) end)
    end

    local CHANNEL = "'moontide_' || 'HIGH_WATER_MARK_STORE'::regclass::oid"

    -- Ends the connections that listen for this application's events.
    local function end_listeners()
      return tonumber(app.db:value(([[SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND query = 'LISTEN "' || %s || '"']]):format(CHANNEL)))
    end

    -- What a session that listens is told while it runs the statements.
    local function told(sql)
      local channel = app.db:value("SELECT " .. CHANNEL)
      local url = app.db.direct or app.db.url
      local result = app:exec("psql", url, "-XqAt", "-v", "ON_ERROR_STOP=1",
        { stdin = ('LISTEN "%s";\n%s;\nSELECT 1;\n'):format(channel, sql) })
      assert.equal(0, result.code, result.err)
      return select(2, result.out:gsub("Asynchronous notification", ""))
    end

    local function append_function(id)
      return ([[SELECT position FROM (SELECT global_position AS position FROM moontide_append(NULL::event_store,
        'spec.thing', '%s', 'any', ARRAY['spec.Put', 'spec.Put'], ARRAY['{}', '{}']::json[])) AS a;]]):format(id)
    end

    it("are sent once for a transaction, by moontide_append only where moontide.notify says so", function()
      make ""
      local two = "BEGIN; " .. append_function "A-1" .. append_function "A-2" .. "COMMIT"
      assert.equal(0, told(two))
      assert.equal(1, told("SET moontide.notify = 'on'; " .. two))
      assert.equal(1, told("BEGIN; SET LOCAL moontide.notify = 'on'; " .. append_function "A-3" .. "COMMIT"))
      assert.equal(0, told("BEGIN; SET LOCAL moontide.notify = 'on'; COMMIT; " .. two))
      assert.equal(0, told("SET moontide.notify = 'off'; " .. two))
      assert.equal(0, told("SET moontide.notify = 'on'; BEGIN; " .. append_function "A-4" .. "ROLLBACK"))
    end)

    it("wake a host when a program appends by moontide_append", function()
      make(NEVER)
      local host = app:start("run")
      append()
      all_applied(host)
      app.db:value("BEGIN; SET LOCAL moontide.notify = 'on'; " .. append_function "C-1" .. "COMMIT")
      appended = appended + 1
      all_applied(host)
    end)

    it("do not fail an append, however much it writes", function()
      make(NEVER)
      local host = app:start("run")
      local list, long = {}, ("x"):rep(200)
      for i = 1, 10000 do list[i] = { type = "spec.Put", aggregate_id = long .. i } end
      app:append(list, "--batch", #list)
      appended = #list
      all_applied(host)
    end)

    it("are one for a transaction that appends ten thousand times", function()
      make ""
      assert.equal(1, told [[SET moontide.notify = 'on';
        BEGIN; SELECT count(*) FROM generate_series(1, 10000) AS i, LATERAL moontide_append(NULL::event_store,
          'spec.thing', repeat('x', 200) || i, 'any', ARRAY['spec.Put'], ARRAY['{}']::json[]) AS a; COMMIT]])
      assert.equal(10000, app:count())
    end)

    it("that are lost are made up for by a look, and told of once", function()
      make 'poll = { min_interval = "5ms", max_interval = "200ms" }'
      local host = app:start("run")
      append()
      all_applied(host)
      append { MOONTIDE_NOTIFY = "false" }
      all_applied(host)
      assert.is_nil(host:err():find("are not told", 1, true))
    end)

    it("come again over a new connection when theirs was ended, and nothing is missed meanwhile", function()
      make(NEVER)
      local host = app:start("run")
      append()
      all_applied(host)
      for i = 1, 3 do
        process.wait_until(function() return end_listeners() > 0 end, LONG, "a connection that listens")
        append()
        all_applied(host)
        said(host, "new events are told again", i)
        assert.equal(i, (select(2, host:err():gsub("new events are not told, polling for them", ""))))
      end
      append()
      all_applied(host)
    end)

    it("that cannot be had leave polling once a second at least, told once", function()
      make ""
      app:configure(('partitions = 3, notify_url = "postgresql://x@127.0.0.1:1/x", %s'):format(NEVER))
      local host = app:start("run")
      said(host, "are not told, polling for them")
      for _ = 1, 3 do
        append()
        all_applied(host)
      end
      assert.equal(1, (select(2, host:err():gsub("are not told", ""))))
    end)

    it("are not sent any more when the server's queue of them is half full, and appends go on", function()
      make 'poll = { max_interval = "200ms" }'
      -- what the server says of its queue, in a schema that is looked at first
      local own = app.db.schema
      app.db:value("CREATE FUNCTION pg_notification_queue_usage() RETURNS float8 LANGUAGE sql AS 'SELECT 0.9::float8'")
      local shadowed = ("SET search_path = %s, pg_catalog; "):format(own)
      local fn = app.db:value(shadowed .. "SELECT 'moontide_append'::regproc")
      app.db:value(("ALTER FUNCTION %s SET search_path = %s, pg_catalog"):format(fn, own))
      assert.equal(0, told(shadowed .. "SET moontide.notify = 'on'; " .. append_function "A-1"))
      app.db:value(("DROP FUNCTION %s.pg_notification_queue_usage()"):format(own))
      assert.equal(1, told("SET moontide.notify = 'on'; " .. append_function "A-2"))
    end)
  end)
end)
