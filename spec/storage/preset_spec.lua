-- What an administrator presets for all sessions of a server, for other programs,
-- changes nothing about a host. The servers here are private to each spec.
local application = require "spec.support.application"
local cluster = require "spec.support.cluster"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local LONG = 60 -- seconds: a start of a server may be slow
local CONFIG = 'partitions = 12, limits = { time = "60s" }, grants = { "os" }, poll = { max_interval = "10ms" }'

-- Silent inside of the transaction, behind a write, for longer than the server
-- waits for other programs.
local SLOW = [[
local moontide = require "moontide"
return moontide.sql_projection "slow" { tables = "slow.sql", on_error = "dead_letter", on = {
  ["thing.Slow"] = function(event, ctx)
    ctx:update("INSERT INTO slow (position) VALUES (?)", event.position)
    require("os").execute "sleep 2.5"
  end,
  ["thing.Large"] = function(event, ctx)
    ctx:query "SELECT count(*) AS n FROM (SELECT n FROM generate_series(1, 300000) AS g (n) ORDER BY -n) AS s"
  end } }]]

local function fresh(name, server)
  local app = application.new {}
  app.db = nil
  server = server(app)
  app.db = dialect.at(name, app, server.url)
  app:configure(CONFIG)
  ledger.add(app)
  app:write("handlers/slow.lua", SLOW)
  app:write("slow.sql", "CREATE TABLE IF NOT EXISTS slow (position INTEGER NOT NULL PRIMARY KEY);")
  return app, server
end

local function work(app)
  local list = {}
  for i = 1, 30 do list[i] = { aggregate_id = "A-" .. i } end
  app:append(list)
  app:ok("run", "--until-idle")
  assert.equal(30, #app:events())
  assert.same({}, app:json("status").problems)
end

local function outlasts(app)
  app:append { { type = "thing.Slow" } }
  app:ok("run", "--until-idle", { timeout = LONG })
  assert.equal(1, tonumber(app.db:value "SELECT count(*) FROM slow"))
end

dialect.only("mysql", function()
  local app, server

  before_each(function()
    app, server = fresh("mysql", cluster.mariadb)
  end)

  after_each(function()
    app:close()
  end)

  it("a server that cuts and refuses what is large gets its way with others only", function()
    server:execute [[
      SET GLOBAL sql_select_limit = 2; SET GLOBAL sql_safe_updates = 1; SET GLOBAL group_concat_max_len = 4;
      SET GLOBAL max_join_size = 4; SET GLOBAL sql_big_selects = 0; SET GLOBAL max_recursive_iterations = 2]]
    work(app)
    server:execute "SET GLOBAL max_join_size = DEFAULT; SET GLOBAL sql_select_limit = DEFAULT" -- for our own look
    assert.same({}, ledger.faults(app))
  end)

  it("a server with short time limits lets a slow handler end", function()
    server:execute [[
      SET GLOBAL idle_transaction_timeout = 1; SET GLOBAL idle_write_transaction_timeout = 1;
      SET GLOBAL idle_readonly_transaction_timeout = 1; SET GLOBAL wait_timeout = 1]]
    outlasts(app)
  end)
end)

dialect.only("postgres", function()
  local app, server

  before_each(function()
    app, server = fresh("postgres", cluster.postgres)
  end)

  after_each(function()
    app:close()
  end)

  local function preset(text)
    server:value(("ALTER ROLE moontide SET %s"):format(text))
  end

  it("a role with settings for other programs gives the same, and lets a slow handler end", function()
    for _, text in ipairs { "array_nulls = off", "TimeZone = 'Asia/Kolkata'", "DateStyle = 'German'",
      "bytea_output = escape", "standard_conforming_strings = off", "transform_null_equals = on",
      "default_transaction_isolation = serializable", "statement_timeout = '1s'",
      "idle_in_transaction_session_timeout = '1s'" } do
      preset(text)
    end
    work(app)
    assert.same({}, ledger.faults(app))
    outlasts(app)
  end)

  it("a role that may not sort much fails the message that does, and no other waits", function()
    preset "temp_file_limit = '1MB'"
    preset "work_mem = '64kB'"
    app:append { { aggregate_id = "A", type = "thing.Large" }, { aggregate_id = "B" }, { aggregate_id = "C" } }
    app:ok("run", "--until-idle")
    assert.same({}, ledger.faults(app))
    local letters = app:json("dead-letters", "list").messages
    assert.equal(1, #letters)
    assert.matches("^sql: handlers/slow.lua:%d+: temporary file size exceeds", letters[1].reason)
  end)

  it("a role with a short idle_session_timeout leaves an idle host its connections", function()
    preset "idle_session_timeout = '500ms'"
    local host = app:start("run", "--workers", "1")
    process.wait_until(function()
      return tonumber(server:value [[
        SELECT count(*) FROM pg_stat_activity WHERE usename = 'moontide' AND query LIKE 'LISTEN %'
           AND now() - state_change > interval '2 seconds']]) > 0
    end, LONG, function() return "a connection that is idle for long\n" .. host:err() end)
    app:append { {}, {}, {} }
    process.wait_until(function() return ledger.count(app) == 3 end, LONG, function() return host:err() end)
    host:signal "TERM"
    assert.equal(0, host:wait(LONG).code, host:err())
    assert.not_matches("lost", host:err(), 1, true)
  end)
end)
