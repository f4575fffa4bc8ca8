-- What a crash of the server, or a move to another one, does to positions and
-- marks. The servers here are private to each spec.
local application = require "spec.support.application"
local cluster = require "spec.support.cluster"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local CONFIG = 'partitions = 12, poll = { max_interval = "20ms" }, '
  .. 'retry = { attempts = 100, delay = "10ms", factor = 1 }' -- a host is killed, too
local LONG = 60 -- seconds
local ROUNDS = 4

local SERVERS = { postgres = "postgres", mysql = "mariadb" }

local function use(app, name, server)
  app.db = dialect.at(name, app, server.url)
  app:configure(CONFIG)
  ledger.add(app)
end

local function many(count)
  local events = {}
  for i = 1, count do events[i] = { aggregate_id = "K-" .. i % 17 } end
  return events
end

local function mark(app)
  return app:json("status").topics[1].mark
end

dialect.servers(function(database)
  local app, server

  before_each(function()
    app = application.new {}
    server = cluster[SERVERS[database.name]](app)
    use(app, database.name, server)
  end)

  after_each(function()
    app:close()
  end)

  -- What committed reads show: nobody may ever see less.
  local function look()
    return {
      mark = tonumber(app.db:value "SELECT max(high_water_mark) FROM HIGH_WATER_MARK_STORE"),
      checkpoint = tonumber(app.db:value "SELECT max(position) FROM CONSUMER_CHECKPOINTS"),
      applied = ledger.count(app),
      events = app.db:query "SELECT id, global_position FROM EVENT_STORE ORDER BY global_position",
    }
  end

  it("a crash of the server under load takes nothing back, and gives no position twice", function()
    app:append(many(20))
    app:ok("run", "--until-idle")
    local at = {}
    for round = 1, ROUNDS do
      local host = app:start "run"
      local writer = app:start("append", "--batch", "3", { stdin = application.ndjson(many(30000)) })
      local goal = ledger.count(app) + 60
      process.wait_until(function() return ledger.count(app) >= goal end, LONG, function() return host:err() end)
      local seen = look()
      assert.is_true(writer:alive(), "the crash must come in the middle")
      host:signal "KILL"
      server:crash()
      writer:signal "KILL"
      server:start()
      local found = look()
      assert.is_true(found.mark >= seen.mark, ("round %d: mark %d, then %d"):format(round, seen.mark, found.mark))
      assert.is_true(found.checkpoint >= seen.checkpoint)
      assert.is_true(found.applied >= seen.applied)
      for _, event in ipairs(found.events) do at[event.global_position] = at[event.global_position] or event.id end
      for _, event in ipairs(seen.events) do assert.equal(event.id, at[event.global_position]) end
    end
    app:append(many(5))
    app:ok("run", "--until-idle")
    assert.same({}, ledger.faults(app))
    for _, event in ipairs(look().events) do
      assert.equal(at[event.global_position] or event.id, event.id)
    end
  end)
end)

dialect.only("postgres", function(database)
  local app, server

  before_each(function()
    app = application.new {}
    server = cluster.postgres(app)
    use(app, database.name, server)
  end)

  after_each(function()
    app:close()
  end)

  it("a sequence that jumps ahead at a crash leaves a gap that nothing waits for", function()
    app:append(many(6))
    server:crash()
    server:start()
    assert.is_true(tonumber(server:value "SELECT last_value FROM event_store_global_position") > 6,
      "the sequence has jumped")
    app:ok("run", "--until-idle")
    local before = mark(app)
    assert.is_true(before >= 6)
    local host = app:start "run"
    for i = 1, 3 do
      app:append { { aggregate_id = "after-" .. i } }
      process.wait_until(function() return ledger.count(app) >= 6 + i end, LONG, function() return host:err() end)
    end
    host:signal "TERM"
    assert.equal(0, host:wait(15).code)
    local positions = app:positions()
    assert.equal(9, #positions)
    for i = 7, 9 do assert.is_true(positions[i] > before) end
    assert.same({}, ledger.faults(app))
  end)

  -- An append that owns a position, and a mark that waits for it.
  local function pend()
    local held = app.db:hold [[
      BEGIN;
      SELECT * FROM moontide_append(NULL::event_store, 'spec.thing', 'open', 'any', ARRAY['thing.Happened'],
        ARRAY['1']::json[]);]]
    app:append(many(3))
    local before = mark(app)
    app:ok("run", "--until-idle")
    assert.equal(before, mark(app))
    return held
  end

  local function pending_horizon()
    return tonumber(server:value "SELECT max(pending_horizon) FROM high_water_mark_store")
  end

  local function next_transaction()
    return tonumber(server:value "SELECT pg_current_xact_id()")
  end

  for what, ages in pairs {
    ["an older cluster into a younger one"] = { 655360 },
    ["a younger cluster into an older one"] = { nil, 655360 },
  } do
    it("a database that moves from " .. what .. " keeps its promise there", function()
      local function grow_old(transaction)
        if transaction == nil then return end
        server:stop "INT"
        server:age(transaction)
        server:start()
      end
      grow_old(ages[1])
      app:append(many(5))
      app:ok("run", "--until-idle")
      local held = pend()
      local foreign = pending_horizon()
      local source = server
      server = cluster.postgres(app)
      grow_old(ages[2])
      source:copy_to(server)
      held.release()
      source:stop "INT"
      use(app, database.name, server)
      assert.equal(foreign, pending_horizon())
      assert.equal(ages[1] ~= nil, foreign > next_transaction(), "the clusters differ in age")

      app:ok("run", "--until-idle") -- what was open there is not here
      assert.same({}, ledger.faults(app))
      local reached = mark(app)
      held = pend()
      assert.equal(reached, mark(app))
      held.commit()
      app:ok("run", "--until-idle")
      assert.same({}, ledger.faults(app))
      assert.equal(12, ledger.count(app))
    end)
  end
end)
