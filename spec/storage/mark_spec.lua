-- Who holds the high-water mark back, who does not, and that nothing is
-- applied out of turn meanwhile.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local CONFIG = 'partitions = 12, poll = { max_interval = "20ms" }'
local LONG = 60 -- seconds

local function wait_for(app, count, host)
  process.wait_until(function() return ledger.count(app) >= count end, LONG, function()
    return ("%d applied events, there are %d\n%s"):format(count, ledger.count(app), host:err())
  end)
end

local function stop(host)
  host:signal "TERM"
  assert.equal(0, host:wait(15).code, host:err())
end

local function many(count, prefix)
  local events = {}
  for i = 1, count do events[i] = { aggregate_id = (prefix or "K-") .. i % 17 } end
  return events
end

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = CONFIG }
    ledger.add(app)
  end)

  after_each(function()
    app:close()
  end)

  describe("the high-water mark", function()
    it("is not held by a long reader: what comes is applied as ever", function()
      app:append(many(10))
      app.db:hold_snapshot()
      local host = app:start "run"
      wait_for(app, 10, host)
      for i = 1, 5 do
        app:append(many(20))
        wait_for(app, 10 + 20 * i, host)
      end
      assert.equal(110, app:json("status").topics[1].mark)
      stop(host)
      assert.same({}, ledger.faults(app))
    end)
  end)

  describe("writers that fight over one stream", function()
    it("give it sequence numbers in the order of its positions, without gaps", function()
      app:append { {} }
      local started = {}
      for i = 1, 8 do
        started[i] = app:start("append", "--batch", "3", { stdin = application.ndjson(many(30, "one-stream-")) })
      end
      local same = {}
      for i = 1, 60 do same[i] = {} end
      for i = 9, 16 do started[i] = app:start("append", "--batch", "2", { stdin = application.ndjson(same) }) end
      for _, writer in ipairs(started) do
        local result = writer:wait(LONG)
        assert.equal(0, result.code, result.err)
      end
      local rows = app.db:query [[
        SELECT sequence_no, global_position FROM EVENT_STORE WHERE aggregate_id = 'A-1' ORDER BY global_position]]
      assert.equal(481, #rows)
      for i, row in ipairs(rows) do assert.equal(i - 1, row.sequence_no) end
    end)
  end)
end)

-- Where positions come from a sequence, a transaction may own one for long.
dialect.only("postgres", function(database)
  local app, holder

  before_each(function()
    app = application.new { config = CONFIG }
    app.db = database:create_alone(app)
    app:configure(CONFIG)
    ledger.add(app)
    app:append { {} }
    -- an append to a stream slow-... owns its position and waits for the holder
    app.db:execute [[
      CREATE FUNCTION wait_for_holder() RETURNS trigger LANGUAGE plpgsql AS $body$
      BEGIN
          WHILE NOT pg_try_advisory_xact_lock(1) LOOP PERFORM pg_sleep(0.02); END LOOP;
          RETURN NEW;
      END $body$;
      CREATE TRIGGER wait_for_holder BEFORE INSERT ON event_store FOR EACH ROW
        WHEN (NEW.aggregate_id LIKE 'slow-%') EXECUTE FUNCTION wait_for_holder()]]
  end)

  after_each(function()
    app:close()
  end)

  local function drawn()
    return tonumber(app.db:value "SELECT last_value FROM event_store_global_position")
  end

  local function start_slow_append()
    local before = drawn()
    holder = app.db:hold "BEGIN; SELECT pg_advisory_xact_lock(1);"
    local writer = app:start("append", { stdin = application.event { aggregate_id = "slow-1" } })
    process.wait_until(function() return drawn() > before end, LONG, "the position of the slow append")
    assert.equal("0", app.db:value "SELECT count(*) FROM event_store WHERE aggregate_id = 'slow-1'")
    return writer
  end

  local function wait_until_told(host, ...)
    local parts = { ... }
    process.wait_until(function() return host:err():find(parts[1], 1, true) end, LONG,
      function() return parts[1] .. "\n" .. host:err() end)
    for _, part in ipairs(parts) do assert.matches(part, host:err(), 1, true) end
  end

  local function mark()
    return app:json("status").topics[1].mark
  end

  it("an append that outlasts every pause holds the mark, also over restarts, and is named", function()
    app:ok("run", "--until-idle")
    local writer = start_slow_append()
    app:append(many(200), "--batch", "20")
    for _, signal in ipairs { "TERM", "KILL", "TERM" } do
      local host = app:start "run"
      wait_until_told(host, "waits at 1 (the end is 202)")
      local problems = app:json("status").problems
      assert.equal(1, #problems)
      assert.matches("pid %d+, user moontide, application moontide, open for", problems[1])
      assert.equal(1, mark())
      assert.equal(1, ledger.count(app))
      host:signal(signal)
      host:wait(15)
    end
    local host = app:start "run"
    holder.release()
    assert.equal(0, writer:wait(LONG).code)
    wait_for(app, 202, host)
    stop(host)
    assert.same({}, ledger.faults(app))
    assert.equal(202, mark())
  end)

  it("a consumer that catches up stops below an append that is open, and takes it in its turn", function()
    local handler = app:read "handlers/ledger.lua"
    app:write("handlers/ledger.lua", (handler:gsub('"ledger" {', '"another" {')))
    app:append(many(499), "--batch", "100")
    app:ok("run", "--until-idle")
    app.db:execute "DELETE FROM ledger"
    app:write("handlers/ledger.lua", handler)
    local writer = start_slow_append()
    app:append(many(500), "--batch", "100")
    app:ok("run", "--until-idle")
    assert.equal(500, app:json("status", "ledger").consumers[1].position)
    assert.equal(500, ledger.count(app))
    assert.equal("500", app.db:value "SELECT max(position) FROM ledger")
    holder.release()
    assert.equal(0, writer:wait(LONG).code)
    app:ok("run", "--until-idle")
    assert.same({}, ledger.faults(app))
    assert.equal(1001, ledger.count(app))
  end)

  it("idle transactions that never appended hold nothing, here or in another database", function()
    local other = database:create_alone(app)
    other:hold "BEGIN; SELECT pg_current_xact_id();"
    app.db:execute "CREATE TABLE unrelated (a INT)"
    app.db:hold "BEGIN; INSERT INTO unrelated VALUES (1);"
    local host = app:start "run"
    app:append(many(3))
    wait_for(app, 4, host)
    assert.same({}, app:json("status").problems)
    stop(host)
    assert.is_nil(host:err():find("waits at", 1, true), host:err())
    assert.same({}, ledger.faults(app))
  end)

  it("an idle transaction of another program that appended holds it until it ends, and is named", function()
    local host = app:start "run"
    wait_for(app, 1, host)
    local idle = app.db:hold [[
      BEGIN;
      SELECT * FROM moontide_append(NULL::event_store, 'spec.thing', 'A-2', 'any', ARRAY['thing.Happened'],
        ARRAY['1']::json[]);]]
    app:append(many(3))
    wait_until_told(host, "waits at 1 (the end is 5)", "user moontide, application psql, open for")
    assert.equal(1, ledger.count(app))
    local pid = app.db:value [[
      SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()
         AND application_name = 'psql']]
    local problem = app:json("status").problems[1]
    assert.matches("pid " .. pid .. ",", problem, 1, true)
    assert.matches("waits at 1 ", problem, 1, true)
    assert.equal(1, select(2, host:err():gsub("waits at", "")), "it is told now and then only")
    idle.release()
    wait_for(app, 4, host)
    assert.same({}, app:json("status").problems)
    stop(host)
    assert.same({}, ledger.faults(app))
  end)

  -- Transactions of every kind in one session, each with positions of its own;
  -- seeded, so that a run can be repeated.
  local function session_script(number, count)
    local function append(stream)
      return ("SELECT count(*) FROM moontide_append(NULL::event_store, 'spec.thing', 's-%d-%d', 'any', "
        .. "ARRAY['thing.Happened', 'thing.Happened'], ARRAY['1', '2']::json[]);"):format(number, stream)
    end
    local function pause()
      return ("SELECT pg_sleep(%.3f);"):format(math.random(0, 30) / 1000)
    end
    local lines = {}
    local function add(...)
      for _, line in ipairs { ... } do lines[#lines + 1] = line end
    end
    for i = 1, count do
      local kind = math.random(6)
      local gid = ("'%s-%d-%d'"):format(app.db.database, number, i)
      add("BEGIN;", append(i))
      if kind == 1 then
        add(pause(), "ROLLBACK;")
      elseif kind == 2 then
        add("SAVEPOINT s;", append(i + 1000), "ROLLBACK TO s;", pause(), append(i + 2000), "COMMIT;")
      elseif kind == 3 then
        add(("PREPARE TRANSACTION %s;"):format(gid), pause(), ("COMMIT PREPARED %s;"):format(gid))
      elseif kind == 4 then
        add(("PREPARE TRANSACTION %s;"):format(gid), pause(), ("ROLLBACK PREPARED %s;"):format(gid))
      else
        add(pause(), "COMMIT;")
      end
    end
    return table.concat(lines, "\n")
  end

  it("no event appears behind a host that keeps reading, whatever eight writers do", function()
    local seed = os.time()
    math.randomseed(seed)
    app.db:hold "BEGIN; SELECT pg_current_xact_id();"
    local host = app:start "run"
    local writers = {}
    for i = 1, 8 do
      writers[i] = app:launch("psql", app.db.url, "-Xq", "-v", "ON_ERROR_STOP=1", { stdin = session_script(i, 40) })
    end
    writers[9] = app:start("append", "--batch", "1", { stdin = application.ndjson(many(100)) })
    for _, writer in ipairs(writers) do
      local result = writer:wait(LONG)
      assert.equal(0, result.code, result.err)
    end
    local events = app:count()
    assert.is_true(events > 400, "there was a load")
    wait_for(app, events, host)
    stop(host)
    assert.same({}, ledger.faults(app), "seed " .. seed)
    assert.equal(drawn(), mark())
  end)
end)

-- Where positions come from a counter, an open append keeps it to itself.
dialect.only("mysql", function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = CONFIG }
    ledger.add(app)
  end)

  after_each(function()
    app:close()
  end)

  for _, finish in ipairs { "commit", "release" } do
    it(("an open append lets writers wait and readers read, until its %s"):format(finish), function()
      app:append(many(5))
      local holder = app.db:hold [[
        BEGIN IMMEDIATE; CALL moontide_append('spec.thing', 'open', 'any',
          '[{"type": "thing.Happened", "payload": 1}]');]]
      local writer = app:start("append", { stdin = application.ndjson(many(4)) })
      process.wait_until(holder.blocks, LONG, "the writer to wait")
      app:ok("run", "--until-idle")
      assert.equal(5, ledger.count(app))
      assert.equal(5, app:json("status").topics[1].mark)
      holder[finish]()
      assert.equal(0, writer:wait(LONG).code, writer:err())
      app:ok("run", "--until-idle")
      assert.same({}, ledger.faults(app))
      local positions = app:positions()
      assert.equal(finish == "commit" and 10 or 9, #positions)
      for i, position in ipairs(positions) do assert.equal(i, position) end
    end)
  end
end)
