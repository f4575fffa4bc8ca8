-- How long captured events are kept: by age, by number, and never past a
-- consumer that is subscribed, unless that is forced.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local DAY = 86400

local function many(count, fields)
  local lines = {}
  for i = 1, count do
    lines[i] = ('{"type":"thing.Seen","key":"K-%d","payload":{}%s}'):format(i % 7, fields or "")
  end
  return table.concat(lines, "\n") .. "\n"
end

local function days_ago(days)
  return (',"occurred_at":%q'):format(os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() - days * DAY))
end

dialect.each(function(database)
  local app

  local function start(config)
    app = application.new { database = database, config = config }
  end

  after_each(function()
    app:close()
  end)

  local function emit(count, fields)
    return app:json("emit", { stdin = many(count, fields) })
  end

  local function run()
    app:ok("run", "--until-idle")
  end

  local function kept()
    local row = app.db:query [[
      SELECT count(*) AS rows_there, coalesce(min(global_position), 0) AS first FROM EVENT_CAPTURE_RECORDS]]
    return { row[1].rows_there, row[1].first }
  end

  local function topic_start()
    return tonumber(app.db:value "SELECT topic_start FROM HIGH_WATER_MARK_STORE WHERE topic_name = 'event-capture'")
  end

  -- A consumer of the capture topic as its rows say it: one checkpoint each.
  local function subscribe(id, positions)
    local since = database.name == "sqlite" and "2024-02-29T00:00:00.000000Z" or "2024-02-29 00:00:00"
    app.db:execute(([[INSERT INTO CONSUMERS (id, consumer_type, consumer_name, state_since)
      VALUES ('%s', 'listener', 'c%s', '%s')]]):format(id, id, since))
    for partition, position in ipairs(positions) do
      app.db:execute(([[INSERT INTO CONSUMER_CHECKPOINTS (consumer_id, source_name, partition_no, position)
        VALUES ('%s', 'event-capture', %d, %s)]]):format(id, partition - 1, position))
    end
  end

  local FIRST, SECOND = "0190f3a2-0000-7000-8000-000000000001", "0190f3a2-0000-7000-8000-000000000002"

  describe("captured events", function()
    it("are kept for good unless something else is said", function()
      start ""
      emit(5, days_ago(1000))
      run()
      assert.same({ 5, 1 }, kept())
      assert.equal(0, topic_start())
    end)

    it("beyond a number are deleted, the oldest first, in batches", function()
      start "capture = { max_rows = 100 }"
      emit(3456)
      run()
      assert.same({ 100, 3357 }, kept())
      assert.equal(3356, topic_start())
      run()
      assert.equal(3356, topic_start())
    end)

    it("are numbered on when all of them are deleted", function()
      start 'capture = { max_age = "1s" }'
      emit(20, days_ago(1))
      run()
      assert.same({ 0, 0 }, kept())
      assert.equal(20, topic_start())
      assert.equal(21, emit(1).first_position)
    end)

    it("that are too old are deleted, up to the first that is not", function()
      start 'capture = { max_age = "10d" }'
      emit(1500, days_ago(11))
      emit(1, days_ago(9))
      emit(1, days_ago(11))
      run()
      assert.same({ 2, 1501 }, kept())
      assert.equal(1500, topic_start())
    end)

    it("are kept where a subscribed consumer has not read them", function()
      start "capture = { max_rows = 10 }"
      emit(100)
      subscribe(FIRST, { 40, 100 })
      subscribe(SECOND, { 70 })
      run()
      assert.same({ 60, 41 }, kept())
      assert.equal(40, topic_start())
      app.db:execute "UPDATE CONSUMER_CHECKPOINTS SET position = 95 WHERE position < 95"
      run()
      assert.same({ 10, 91 }, kept())
    end)

    it("are all kept for a consumer that has recorded no position", function()
      start "capture = { max_rows = 10 }"
      emit(100)
      subscribe(FIRST, { "100", "NULL" })
      run()
      assert.same({ 100, 1 }, kept())
      assert.equal(0, topic_start())
      app.db:execute "DELETE FROM CONSUMER_CHECKPOINTS" -- as unsubscribe does
      run()
      assert.same({ 10, 91 }, kept())
    end)

    it("are deleted past such a consumer when that is forced, and the log names it", function()
      start "capture = { max_rows = 10, force = true }"
      emit(100)
      subscribe(FIRST, { 40 })
      local result = app:moontide("run", "--until-idle")
      assert.equal(0, result.code, result.err)
      assert.matches("not read %(the slowest stands at 40%)", result.err)
      assert.same({ 10, 91 }, kept())
      assert.equal(90, topic_start())
    end)

    it("are deleted by force past a consumer that has passed over them without a word, for it saves that", function()
      start [[capture = { max_rows = 10, force = true }, poll = { max_interval = "20ms" }]]
      app:write("handlers/others.lua", [[return require("moontide").projection "others" { source = "event-capture",
        on = { ["thing.Other"] = function(state) state.n = 1 end } }]])
      emit(15)
      run()
      emit(3)
      local host = app:start "run"
      local function wait(what, fn)
        process.wait_until(fn, 60, function() return what .. "\n" .. host:err() end)
      end
      -- the next look is seconds away: the consumer has read by then what comes now
      wait("the first look", function() return kept()[2] == 9 end)
      emit(100)
      wait("they are deleted", function() return kept()[2] == 109 end)
      wait("it is saved", function()
        return tonumber(app.db:value "SELECT min(position) FROM CONSUMER_CHECKPOINTS") >= 108
      end)
      emit(1)
      wait("the next look", function() return kept()[2] == 110 end)
      host:signal "TERM"
      assert.equal(0, host:wait(60).code, host:err())
      assert.is_nil(host:err():find("has not read", 1, true), host:err())
      assert.same({ 10, 110 }, kept())
    end)

    describe("that are deleted are missed by a consumer that comes later", function()
      local function consumer(name, rest)
        app:write("handlers/" .. name .. ".lua", ([[return require("moontide").projection %q {
          source = "event-capture", %s
          on = { ["thing.Seen"] = function(state) state.n = (state.n or 0) + 1 end } }]]):format(name, rest or ""))
      end

      local function state(name)
        local found = app:json("status", name)
        local row = found.consumers[1]
        return { row.state, row.halt_reason, found.problems[1], found.notes[1] }
      end

      local function count(name)
        local sum = 0
        for _, row in ipairs(app:json("read", name)) do sum = sum + row.state.n end
        return sum
      end

      before_each(function()
        start "capture = { max_rows = 10 }"
        emit(30)
        run()
        assert.same({ 10, 21 }, kept())
      end)

      it("which is halted, and is told what ends that, not that a start does", function()
        consumer "late"
        for _ = 1, 2 do
          local err = app:fails(1, "run", "--until-idle")
          assert.matches("'late' is halted with MISSING_HISTORY; `moontide status` shows why, and what to do",
            err, 1, true)
          assert.is_nil(err:find("next start", 1, true), err)
        end
        local now = state "late"
        assert.same({ "HALTED", "MISSING_HISTORY" }, { now[1], now[2] })
        assert.matches("`moontide resume late --accept` goes on", now[3], 1, true)
        app:fails(3, "resume", "late")
        app:ok("resume", "late", "--accept")
        run()
        assert.equal(10, count "late")
        now = state "late"
        assert.equal("RUNNING", now[1])
        assert.matches("incomplete up to position 20", now[4], 1, true)
      end)

      it("which goes on where it says so, and stays marked", function()
        consumer("late", 'on_missing_history = "continue",')
        run()
        assert.equal(10, count "late")
        local now = state "late"
        assert.equal("RUNNING", now[1])
        assert.matches("incomplete up to position 20", now[4], 1, true)
      end)
    end)

    it("are kept while the consumer that has not read them is paused, or no script declares it", function()
      start "capture = { max_rows = 10 }"
      local function declare(start_at)
        app:write("handlers/seen.lua", ([[return require("moontide").listener "seen" { start = %q,
          source = "event-capture", on = { ["thing.Seen"] = function(event, ctx) ctx.log.debug "seen" end } }]])
          :format(start_at))
      end
      emit(30)
      run() -- nobody reads them yet
      assert.same({ 10, 21 }, kept())
      declare "now" -- what is gone was not for it
      run()
      assert.equal("RUNNING", app:json("status", "seen").consumers[1].state)
      app:ok("pause", "seen")
      emit(30)
      run()
      assert.same({ 30, 31 }, kept())
      app:ok("resume", "seen")
      run()
      assert.same({ 10, 51 }, kept())
      app:exec("rm", "handlers/seen.lua")
      emit(25)
      run()
      assert.same({ 25, 61 }, kept())
      app:ok("unsubscribe", "seen")
      run()
      assert.same({ 10, 76 }, kept())
    end)

    it("that an interrupted deletion left below the start are deleted by the next one", function()
      start "capture = { max_rows = 100 }"
      emit(50)
      app.db:execute "UPDATE HIGH_WATER_MARK_STORE SET topic_start = 30 WHERE topic_name = 'event-capture'"
      run()
      assert.same({ 20, 31 }, kept())
    end)
  end)
end)
