-- No replica is used for marks or checkpoints: what it shows is of another
-- moment, and in another order. The servers here are private to each spec.
local application = require "spec.support.application"
local cluster = require "spec.support.cluster"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local CONFIG = 'partitions = 12, poll = { max_interval = "50ms" }'
local LONG = 60 -- seconds: a start of a server may be slow

local function verbs(url)
  return {
    { "run", "--until-idle", "--database", url },
    { "append", "--database", url, { stdin = application.event() } },
    { "schema", "upgrade", "--database", url },
    { "events", "--database", url },
    { "status", "--database", url },
  }
end

local function all_refused(app, url, reason)
  for _, words in ipairs(verbs(url)) do
    local err = app:fails(69, unpack(words))
    assert.matches(reason, err, 1, true)
    assert.matches("positions and checkpoints are read from the primary only", err, 1, true)
  end
end

local function applied(app, count, host)
  process.wait_until(function() return ledger.count(app) >= count end, LONG, function()
    return ("%d applied events\n%s"):format(count, host:err())
  end)
end

-- The worker and the supervisor have a connection each, and may meet the trouble
-- both, or one of them alone.
local function told_once(host)
  local log = host:err()
  local all = select(2, log:gsub("trying again", ""))
  local supervisor = select(2, log:gsub("heartbeats and the high%-water mark: [^\n]*trying again", ""))
  assert.is_true(all >= 1 and supervisor <= 1 and all - supervisor <= 1, log)
end

local function fresh()
  local app = application.new { config = CONFIG }
  ledger.add(app)
  return app
end

local function use(app, name, url)
  app.db = dialect.at(name, app, url)
  app:configure(CONFIG)
  ledger.add(app) -- its table in the words of the database
end

dialect.only("postgres", function()
  local app, primary, standby

  before_each(function()
    app = fresh()
    primary = cluster.postgres(app)
    use(app, "postgres", primary.url)
    app:append { {}, {}, {} }
    standby = primary:standby()
    standby:await(primary)
    assert.equal("t", standby:value "SELECT pg_is_in_recovery()")
    assert.equal("3", standby:value "SELECT count(*) FROM event_store")
  end)

  after_each(function()
    app:close()
  end)

  local function both(settings)
    return ("postgresql://moontide@%s,%s/postgres%s"):format(standby.host, primary.host, settings or "")
  end

  it("a standby is refused by every verb, and nothing is computed from it", function()
    all_refused(app, standby.url, "is a replica")
    all_refused(app, standby.url .. "?target_session_attrs=any", "is in recovery (a replica)")
    all_refused(app, both "?target_session_attrs=any", "is in recovery (a replica)")
    assert.equal("0", primary:value "SELECT count(*) FROM consumer_checkpoints WHERE position > 0")
    assert.equal("0", primary:value "SELECT max(high_water_mark) FROM high_water_mark_store")
  end)

  it("of several hosts the primary is found, wherever it stands", function()
    app:ok("run", "--until-idle", "--database", both())
    assert.same({}, ledger.faults(app))
    assert.equal(3, app:json("--database", both(), "status").topics[1].mark)
  end)

  it("a host follows from a primary that is gone to the standby that takes its place", function()
    local host = app:start("run", "--workers", "1", "--database", both())
    applied(app, 3, host)
    standby:await(primary)
    primary:crash()
    local err = app:fails(69, "append", "--database", both(), { stdin = application.event() })
    assert.matches("is a replica", err, 1, true)
    assert.is_true(host:alive())
    standby:promote()
    use(app, "postgres", standby.url)
    app:ok("append", "--database", both(), { stdin = application.ndjson { {}, {} } })
    applied(app, 5, host)
    assert.same({}, ledger.faults(app))
    host:signal "TERM"
    assert.equal(0, host:wait(15).code, host:err())
    told_once(host)
  end)
end)

dialect.only("mysql", function()
  local app, server

  before_each(function()
    app = fresh()
    server = cluster.mariadb(app)
    use(app, "mysql", server.url)
    app:append { {}, {}, {} }
  end)

  after_each(function()
    app:close()
  end)

  it("a read-only server is refused by every verb, also to an administrator, who could write there", function()
    server:execute "SET GLOBAL read_only = 1"
    all_refused(app, server.url, "is read-only")
    all_refused(app, server.admin_url, "is read-only")
    assert.equal(3, app:count())
    server:execute "SET GLOBAL read_only = 0"
    app:ok("run", "--until-idle", "--database", server.admin_url)
    assert.same({}, ledger.faults(app))
  end)

  it("a host waits while its server takes no writes, says so once, and goes on", function()
    local host = app:start("run", "--workers", "1")
    applied(app, 3, host)
    server:execute "SET GLOBAL read_only = 1"
    -- as replication writes there
    server:execute [[
      USE moontide;
      BEGIN;
      UPDATE EVENT_STORE_GLOBAL_POSITION SET val = val + 2;
      INSERT INTO EVENT_STORE (id, aggregate_id, aggregate_type, sequence_no, event_type, payload, partition_key,
                               global_position)
      SELECT uuid(), aggregate_id, aggregate_type, sequence_no + 3, event_type, payload, partition_key,
             global_position + 3
        FROM EVENT_STORE WHERE global_position < 3;
      COMMIT]]
    assert.equal(5, app:count())
    process.wait_until(function() return host:err():find("takes no writes", 1, true) end, LONG,
      function() return "the host to see it\n" .. host:err() end)
    assert.is_true(host:alive())
    assert.equal(3, ledger.count(app))
    server:execute "SET GLOBAL read_only = 0"
    applied(app, 5, host)
    assert.same({}, ledger.faults(app))
    host:signal "TERM"
    assert.equal(0, host:wait(15).code, host:err())
    told_once(host)
  end)
end)
