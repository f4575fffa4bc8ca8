-- What becomes of a lease while its holder takes long, stands still, has a slow
-- way to the database, or is told to stop: who takes long keeps it, who stood
-- still changes nothing any more, and nobody applies under one that is gone.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

-- Writes each event down with the lease that it is applied under, as the
-- database has it at that moment, and says when an event is in hand.
local HANDLER = [[
local moontide = require "moontide"
return moontide.listener "notes" { start = "beginning",
  on = { ["thing.Happened"] = function(event, ctx)
    ctx:update([=[
      INSERT INTO notes (position, attempt, partition_no, instance_id, generation)
      SELECT o.position, o.attempt, p.partition_no, p.instance_id, p.generation
        FROM (SELECT ? AS position, ? AS attempt, ? AS partition_no) AS o
        JOIN PARTITION_OWNERSHIP AS p
          ON p.consumer_type = 'listener' AND p.consumer_name = 'notes' AND p.partition_no = o.partition_no]=],
      event.position, ctx.attempt, ctx.partition)
    ctx:emit("thing.Noted", { at = event.position })
    if event.payload.seconds then
      ctx.log.info("in hand", { at = event.position })
      ctx:query({ postgres = "SELECT pg_sleep(?)", mysql = "SELECT sleep(?)" }, event.payload.seconds)
    end
  end } }]]

local NOTES = [[CREATE TABLE IF NOT EXISTS notes (
  n INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL, attempt INTEGER NOT NULL,
  partition_no INTEGER NOT NULL, instance_id TEXT, generation INTEGER NOT NULL);]]

local CONFIG = [[partitions = 12, workers = 1, log = { level = "info" },
  poll = { max_interval = "20ms" }, retry = { attempts = 5, delay = "10ms", jitter = 0 }, ]]
local LEASE = 'lease = { duration = "1s", heartbeat = "200ms", rebalance = "200ms" }, '

dialect.servers(function(database)
  describe("a lease", function()
    local app

    local function set_up(config)
      app = application.new { database = database, config = CONFIG .. (config:find "lease" and "" or LEASE) .. config,
        handlers = { ["notes.lua"] = HANDLER } }
      app.db:execute(app.db:ddl(NOTES))
      app:ok("run", "--until-idle")
    end

    after_each(function() app:close() end)

    local function start(...)
      local host = app:start("run", ...)
      process.wait_until(function() return host:err():find("running", 1, true) end, 30,
        function() return host:err() end)
      return host
    end

    local function stop(host)
      host:signal "TERM"
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
    end

    local function number(sql) return tonumber(app.db:value(sql)) end

    local function holds(count, evidence)
      process.wait_until(function()
        return number "SELECT count(*) FROM PARTITION_OWNERSHIP WHERE instance_id IS NOT NULL" == 12
          and number "SELECT count(DISTINCT instance_id) FROM PARTITION_OWNERSHIP" == count
      end, 30, evidence)
    end

    local function events(count)
      local list = {}
      for i = 1, count do list[i] = { aggregate_id = "key-" .. i % 23 } end
      return list
    end

    local function applied(count, evidence)
      process.wait_until(function()
        return number "SELECT count(DISTINCT position) FROM notes" == count
      end, 60, evidence)
    end

    -- Each event once with all it leads to, and no line under a generation that
    -- was lower than one before it in its partition.
    local function exact(count)
      assert.equal(("%d|%d"):format(count, count), app.db:value "SELECT count(*), count(DISTINCT position) FROM notes")
      assert.equal(count, number "SELECT count(*) FROM EVENT_CAPTURE_RECORDS")
      assert.equal(0, number [[SELECT count(*) FROM notes a JOIN notes b
        ON a.partition_no = b.partition_no AND a.n < b.n AND a.generation > b.generation]])
      assert.equal(0, number "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
    end

    it("is another's after its holder stood still in a batch, which changes nothing when it goes on", function()
      set_up 'limits = { time = "1s" }'
      local first = start()
      local function in_hand() return select(2, first:err():gsub("in hand", "")) end
      -- until one is stopped in the midst of it
      local slow = 0
      repeat
        if slow > 0 then first:signal_all "CONT" end
        local before = in_hand()
        slow = slow + 1
        app:append { { aggregate_id = "slow", payload = '{"seconds":0.5}' } }
        process.wait_until(function() return in_hand() > before end, 30, function() return first:err() end)
        assert.is_true(first:signal_all "STOP")
      until number "SELECT count(*) FROM notes" < slow or slow == 20
      assert.equal(slow - 1, number "SELECT count(*) FROM notes")
      local before = number "SELECT max(generation) FROM PARTITION_OWNERSHIP"
      local second = start()
      local function evidence() return first:err() .. second:err() end
      app:append(events(100))
      applied(100 + slow, evidence)
      assert.is_true(number "SELECT min(generation) FROM PARTITION_OWNERSHIP" > before)
      assert.matches("ended without a word", second:err(), 1, true)
      assert.is_true(first:signal_all "CONT")
      -- it finds out, and takes part again
      holds(2, evidence)
      app:append(events(50))
      applied(150 + slow, evidence)
      assert.equal(2, number "SELECT count(DISTINCT instance_id) FROM notes")
      stop(first)
      stop(second)
      exact(150 + slow)
    end)

    it("is kept by a worker whose handler takes longer than it lasts", function()
      set_up 'limits = { time = "30s" }, lease = { duration = "4s", heartbeat = "200ms", rebalance = "200ms" }'
      local first, second = start(), start()
      local function evidence() return first:err() .. second:err() end
      holds(2, evidence)
      local before = app.db:value "SELECT sum(generation) FROM PARTITION_OWNERSHIP"
      app:append { { aggregate_id = "slow", payload = '{"seconds":8}' } }
      applied(1, evidence)
      assert.equal(before, app.db:value "SELECT sum(generation) FROM PARTITION_OWNERSHIP")
      assert.equal(1, number "SELECT max(attempt) FROM notes")
      assert.is_nil(evidence():find("ended without a word", 1, true))
      stop(first)
      stop(second)
      exact(1)
    end)

    it("is kept over a slow way to the database while other hosts come and go", function()
      set_up 'lease = { duration = "6s", heartbeat = "300ms", rebalance = "300ms" }'
      local proxied = proxy.start(app, { delay = 20 })
      local slow = start("--database", proxied.url)
      local total = 0
      for _ = 1, 2 do
        app:append(events(30))
        total = total + 30
        local other = start()
        holds(2, function() return slow:err() .. other:err() end)
        stop(other)
        assert.is_nil(other:err():find("ended without a word", 1, true), other:err())
      end
      applied(total, function() return slow:err() end)
      assert.is_nil(slow:err():find("ended without a word", 1, true), slow:err())
      stop(slow)
      assert.equal(1, number "SELECT max(attempt) FROM notes")
      exact(total)
    end)

    it("is given back after what is in hand has ended, however hosts are rolled", function()
      set_up 'limits = { time = "30s" }, stop_timeout = "3s", batch = 5'
      local hosts, seen = { start(), start() }, { 0, 0 }
      local function evidence() return hosts[1]:err() .. hosts[2]:err() end
      local total, cut, finished = 0, 0, 0
      for round = 1, 4 do
        local list = events(20)
        -- every other one takes longer than stop_timeout
        list[10].payload = round % 2 == 0 and '{"seconds":6}' or '{"seconds":0.3}'
        app:append(list)
        total = total + 20
        local busy = process.wait_until(function()
          for i, host in ipairs(hosts) do
            if select(2, host:err():gsub("in hand", "")) > seen[i] then return i end
          end
        end, 30, evidence)
        hosts[busy]:signal "TERM"
        local result = hosts[busy]:wait(30)
        if result.code == 0 then finished = finished + 1 else cut = cut + 1 end
        assert.is_true(result.code == 0 or result.err:find("did not end within stop_timeout", 1, true) ~= nil,
          result.err)
        hosts[busy] = start()
        applied(total, evidence)
        for i, host in ipairs(hosts) do seen[i] = select(2, host:err():gsub("in hand", "")) end
      end
      stop(hosts[1])
      stop(hosts[2])
      exact(total)
      assert.is_true(cut > 0 and finished > 0, ("%d were cut, %d were not"):format(cut, finished))
    end)
  end)
end)
