-- What `moontide status` says is wrong and what to do about it, and how it goes
-- on looking with --watch.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local folder = require "spec.support.folder"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

local NULL = require("moontide").null

local HANDLER = [[
local moontide = require "moontide"
return moontide.projection "notes" {
  %s
  on = { ["spec.Put"] = function(state, event)
    state.n = (state.n or 0) + 1
    if event.payload.bad then error("cannot take " .. event.key) end
  end },
}]]

-- A second one that is content with everything.
local CALM = [[
local moontide = require "moontide"
return moontide.projection "calm" { on = { ["spec.Put"] = function(state) state.seen = true end } }]]

dialect.each(function(database)
  describe("status", function()
    local app

    after_each(function() app:close() end)

    local function start(options, config)
      app = application.new { database = database, config = "partitions = 12, " .. (config or ""),
        handlers = { ["notes.lua"] = HANDLER:format(options or ""), ["calm.lua"] = CALM } }
    end

    local function put(list)
      local events = {}
      for i, item in ipairs(list) do
        events[i] = { aggregate_id = item[1], type = "spec.Put", payload = item[2] and '{"bad":true}' or "{}" }
      end
      app:append(events)
    end

    local function consumer(name, ...)
      for _, found in ipairs(app:json("status", ...).consumers) do
        if found.name == name then return found end
      end
    end

    local function problems() return app:json("status").problems end

    it("names a message that halted a consumer, counts the others, and says when they are settled", function()
      start "retry = { attempts = 1 },"
      put { { "A", true }, { "B", true }, { "C", true } }
      app:expect(1, "run", "--until-idle")
      local halted = problems()[1]
      assert.matches("is halted since .* by the message at position %d+, key '[ABC]': .*cannot take [ABC]", halted)
      assert.matches("; 2 more halt it, too; correct the handler", halted)
      app:ok("dead-letters", "delete", "--consumer", "notes", "--all")
      assert.matches("is halted since .*; what halted it was settled since: `moontide resume notes` lets it go on",
        problems()[1])
    end)

    it("counts dead letters by status with the oldest's age, and apart from what lies behind them", function()
      start 'on_error = "dead_letter_key",'
      put { { "A", true }, { "A" }, { "A" }, { "B", true }, { "C" } }
      app:ok("run", "--until-idle")
      local notes = consumer "notes"
      assert.same({ DEAD_LETTER_KEY = 4 }, notes.undelivered)
      assert.is_true(notes.oldest.DEAD_LETTER_KEY.seconds >= 0 and notes.oldest.DEAD_LETTER_KEY.seconds < 600)
      assert.matches("^%d%d%d%d%-.*Z$", notes.oldest.DEAD_LETTER_KEY.recorded_at)
      assert.same({}, consumer("calm").undelivered)
      assert.equal(1, #problems())
      assert.matches("%s2 DEAD_LETTER_KEY and 2 behind %(", app:ok "status")
      local said = problems()[1]
      assert.matches("projection 'notes' has 2 dead letters: 2 DEAD_LETTER_KEY, the oldest %d+ s old; 2 messages lie "
        .. "behind; the last failed at position 4, key 'B': error: handlers/notes.lua:6: cannot take B; `moontide "
        .. "dead%-letters %-%-consumer notes` lists them, with retry they are tried again, with delete they are "
        .. "skipped", said)
      -- it does what it says
      app:ok("dead-letters", "delete", "--consumer", "notes", "--all")
      app:ok("run", "--until-idle")
      assert.same({}, problems())
    end)

    it("says when the next attempt is, and that there is none while the consumer is paused", function()
      start 'retry = { attempts = 3, delay = "1h", jitter = 0 },'
      put { { "A", true }, { "A" }, { "B" } }
      app:fails(75, "run", "--until-idle")
      local notes = consumer "notes"
      assert.same({ FAILED = 1, WAITING = 1 }, notes.undelivered)
      local due = notes.next_retry_at
      assert.equal("1", app.db:value(("SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES "
        .. "WHERE next_retry_at = '%s'"):format(app.db:moment(due))))
      assert.matches("projection 'notes' has undelivered messages: 1 FAILED, 1 WAITING, the oldest %d+ s old; the next "
        .. "attempt is at " .. due:gsub("%p", "%%%0") .. ", in %d+ min; the last failed at position 1, key 'A': error: "
        .. "handlers/notes.lua:6: cannot take A$", problems()[1])
      app:ok("dead-letters", "retry", "--consumer", "notes", "--all")
      assert.matches("; the next attempt is due: a host does it;", problems()[1], 1, true)
      app:ok("pause", "notes")
      assert.equal(2, #problems())
      assert.matches("; none is tried while it is PAUSED;", problems()[1], 1, true)
      assert.matches("^projection 'notes' is paused since .*; `moontide resume notes` lets it go on$", problems()[2])
    end)

    it("promises no attempt of a consumer that no script declares", function()
      start 'retry = { attempts = 3, delay = "1h", jitter = 0 },'
      put { { "A", true } }
      app:fails(75, "run", "--until-idle")
      app:write("handlers/notes.lua", [[return require("moontide").projection "others" { on = { x = print } }]])
      assert.matches("1 FAILED, the oldest %d+ s old; none is tried while no script declares it; the last failed",
        problems()[1])
      assert.matches("'notes' is known to the database, but no script declares it", problems()[2], 1, true)
    end)

    it("says which messages hold partitions because their keys are not known", function()
      start [[on_error = "dead_letter_key",
        key = function(e) return assert(not e.payload.bad and "k", "no key") end,]]
      put { { "A", true }, { "B" } }
      app:ok("run", "--until-idle")
      local notes = consumer "notes"
      assert.equal(12, notes.blocked_partitions) -- with a key of its own, every partition reads it
      assert.equal(1, notes.undelivered.DEAD_LETTER_KEY)
      assert.matches("^projection 'notes' cannot tell the keys of 1 message and applies nothing behind in 12 "
        .. "partitions: correct its key function, or `moontide dead%-letters delete 1 %-%-consumer notes`"
        .. " skips the message$",
        problems()[1])
      for _, reason in ipairs { "the host that made this attempt ended without a word",
        "the host that had this message, or some behind it, in hand ended without a word" } do
        app.db:execute(("UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_reason = 'crash: %s'"):format(reason))
        assert.matches("applies nothing behind in 12 partitions: a host ended while it had this in hand, so it is "
          .. "tried by itself, which is no fault yet, or `moontide dead-letters delete 1 --consumer notes`",
          problems()[1], 1, true)
      end
      app:ok("dead-letters", "delete", "1", "--consumer", "notes")
      app:ok("run", "--until-idle")
      assert.same({}, problems())
      assert.equal(0, consumer("notes").blocked_partitions)
    end)

    it("tells how far a replay has come and where it ends, and that nobody moves it", function()
      start()
      put { { "A" }, { "B" }, { "A" } }
      app:ok("run", "--until-idle")
      assert.equal(NULL, consumer("notes").replay)
      app:ok("rebuild", "notes")
      local found = app:json("status", "notes")
      assert.same({ position = 0, through = 3, percent = 0, seconds_left = NULL },
        found.consumers[1].replay)
      assert.equal(0, found.consumers[1].rate)
      assert.equal("projection 'notes' replays its history: 0 %, position 0 of 3; it did not move while this was "
        .. "looked at", found.notes[1])
      assert.matches("\nnotes     RUNNING, replays 0 %  ", app:ok "status", 1, true)
      app:ok("pause", "notes")
      assert.matches("position 0 of 3; it waits while it is PAUSED", app:json("status").notes[1], 1, true)
      app:ok("resume", "notes")
      app:ok("run", "--until-idle")
      assert.same({}, app:json("status").notes)
    end)

    it("tells how long a replay takes while a host does it", function()
      start(nil, "batch = 1, log = { level = 'error' }")
      local list = {}
      for i = 1, 3000 do list[i] = { "k" .. i % 7 } end
      put(list)
      app:ok("run", "--until-idle", { env = { MOONTIDE_BATCH = "500" } })
      app:ok("rebuild", "notes")
      local host = app:start "run"
      local notes
      process.wait_until(function()
        notes = consumer "notes"
        return notes.replay == NULL or notes.replay.seconds_left ~= NULL
      end, 60, function() return host:err() end)
      assert.is_table(notes.replay)
      assert.is_true(notes.rate > 0)
      assert.is_true(notes.replay.percent >= 0 and notes.replay.percent < 100)
      assert.is_true(notes.replay.seconds_left >= 0)
      host:signal "TERM"
      assert.equal(0, host:wait().code)
    end)

    it("says of a rebuild that was asked for and not begun who begins it", function()
      start()
      put { { "A" } }
      app:ok("run", "--until-idle")
      app.db:execute "UPDATE CONSUMERS SET state = 'REBUILDING' WHERE consumer_name = 'notes'"
      assert.matches("projection 'notes' is REBUILDING since .* and not reset yet; a host that starts or `moontide "
        .. "rebuild notes` does it, `moontide rebuild notes %-%-cancel` takes it back", problems()[1])
    end)

    it("remembers where history was missing", function()
      start()
      put { { "A" } }
      app:ok("run", "--until-idle")
      assert.equal(NULL, consumer("notes").incomplete_through)
      app.db:execute "UPDATE CONSUMER_CHECKPOINTS SET incomplete_through = 41 WHERE partition_no = 3"
      local found = app:json("status", "notes")
      assert.equal(41, found.consumers[1].incomplete_through)
      assert.matches("projection 'notes' is incomplete up to position 41: ", found.notes[1], 1, true)
      assert.same({}, found.problems)
    end)

    it("gives the last error of each consumer with its script line, cut in the table", function()
      start 'on_error = "dead_letter",'
      put { { ("long"):rep(40), true }, { "B" } }
      app:ok("run", "--until-idle")
      local error_text = consumer("notes").last_error.reason
      assert.equal("error: handlers/notes.lua:6: cannot take " .. ("long"):rep(40), error_text)
      assert.matches("  " .. error_text:sub(1, 60) .. "...  1 DEAD_LETTER (", app:ok "status", 1, true)
      assert.matches("\ncalm  .*  %-\n", app:ok "status")
    end)

    it("of one consumer says nothing about another", function()
      start 'on_error = "dead_letter",'
      put { { "A", true } }
      app:ok("run", "--until-idle")
      assert.same({}, app:json("status", "calm").problems)
      assert.equal(1, #app:json("status", "notes").problems)
    end)

    it("counts a long lag of each consumer by its types and aggregates, and the age of its first message", function()
      start()
      app:write("handlers/notes.lua", [[
        local moontide = require "moontide"
        local function noop() end
        return {
          moontide.projection "all" { on = { A = noop, B = noop, C = noop } },
          moontide.projection "b" { on = { B = noop } },
          moontide.projection "cats" { aggregates = { "cat" }, on = { A = noop, B = noop } },
          moontide.projection "own" { key = function() return "k" end, on = { C = noop, D = noop } },
        }]])
      local list = {}
      for i = 1, 1500 do
        list[i] = { aggregate_type = i % 5 == 0 and "cat" or "dog", aggregate_id = "x" .. i % 50,
          type = ("ABC"):sub(i % 3 + 1, i % 3 + 1), occurred_at = i == 2 and "2021-01-01T00:00:00Z"
            or "2022-01-01T00:00:00Z" }
      end
      app:append(list)
      local now = os.time()
      local function lag(name, messages, year)
        local found = consumer(name)
        assert.equal(messages, found.lag.messages, name)
        if year == nil then return end
        local age = now - os.time { year = year, month = 1, day = 1, hour = 0 }
        assert.is_true(math.abs(found.lag.seconds - age) < 2 * 86400, name)
      end
      lag("calm", 0)
      lag("all", 1500, 2022)
      lag("b", 500, 2022)
      lag("own", 500, 2021)
      lag("cats", 200, 2022)
    end)

    describe("--watch", function()
      --- documents(watching, n): waits for the first n.
      local function documents(watching, n)
        local found
        process.wait_until(function()
          found = application.lines(watching:out():match "^(.*\n)" or "")
          return #found >= n
        end, 60, function() return watching:out() .. watching:err() end)
        return found
      end

      it("looks again after so many seconds, tells the rate, and ends with 0 on SIGINT", function()
        start()
        put { { "A" } }
        app:ok("run", "--until-idle")
        local watching = app:start("status", "--watch", "0.1", "--json", "calm")
        local found = documents(watching, 3)
        assert.equal(1, #found[1].consumers)
        assert.equal(NULL, found[1].consumers[1].rate) -- nobody looked before
        assert.equal(0, found[2].consumers[1].rate)
        put { { "A" }, { "B" } }
        app:ok("run", "--until-idle")
        process.wait_until(function()
          for _, report in ipairs(documents(watching, 3)) do
            local rate = report.consumers[1].rate
            if rate ~= NULL and rate > 0 then return true end
          end
        end, 60, function() return watching:out() end)
        watching:signal "INT"
        assert.equal(0, watching:wait(10).code)
      end)

      it("says that nobody applies what is there, once it has looked some times", function()
        start()
        put { { "A" } }
        app:ok("run", "--until-idle")
        put { { "A" }, { "B" } }
        local watching = app:start("status", "notes", "--watch=0.1", "--json")
        local found = documents(watching, 5)
        assert.same({ {}, {}, {} }, { found[1].problems, found[2].problems, found[3].problems })
        assert.equal("projection 'notes' has 2 messages to apply and does not move from position 1: does "
          .. "`moontide run` run?", found[4].problems[1])
        watching:signal "TERM"
        assert.equal(0, watching:wait(10).code)
      end)

      it("says that a consumer falls behind while it moves", function()
        start()
        put { { "A" } }
        app:ok("run", "--until-idle")
        local watching = app:start("status", "notes", "--watch=1", "--json")
        local found, said = documents(watching, 1), nil
        -- it moves between each two looks, however long that takes
        process.wait_until(function()
          watching:signal "STOP"
          put { { "A" }, { "B" }, { "C" }, { "D" } }
          app.db:execute "UPDATE CONSUMER_CHECKPOINTS SET position = position + 1"
          watching:signal "CONT"
          found = documents(watching, #found + 1)
          for _, report in ipairs(found) do
            said = said or (report.problems[1] or ""):match "falls behind.*"
          end
          return said
        end, 60, function() return watching:out() end)
        assert.matches("^falls behind: from %d+ to %d+ messages in %d+ s, it applies %d+ a second$", said)
        watching:signal "TERM"
        watching:wait(10)
      end)

      it("draws over what it drew before on a terminal, and not into a file", function()
        start()
        app:ok("run", "--until-idle")
        local function seen(watching)
          process.wait_until(function()
            return select(2, watching:out():gsub("event%-store", "")) >= 3
          end, 30, function() return watching:out() .. watching:err() end)
          watching:stop()
          return watching:out()
        end
        assert.is_nil(seen(app:start("status", "--watch", "0.1")):find("\27", 1, true))
        local drawn = seen(app:launch("script", "-qfec",
          ("exec %s --no-color status --watch 0.1"):format(process.quote(folder.program)), "/dev/null"))
        assert.matches("^\27%[H\27%[2J", drawn)
        assert.is_true(select(2, drawn:gsub("\27%[H\27%[2J", "")) >= 3)
      end)

      it("refuses what is no number of seconds", function()
        start()
        for _, word in ipairs { "0", "0.05", "-1", "often", "90000", "1x" } do
          assert.matches([[--watch takes seconds from 0.1 to 86400 or text like "2m", not ']] .. word,
            app:fails(64, "status", "--watch=" .. word), 1, true)
        end
      end)
    end)
  end)
end)


dialect.servers(function(database)
  describe("status --watch whose connection is lost", function()
    it("says so, and looks again over a new one", function()
      local app = application.new { database = database, handlers = { ["calm.lua"] = CALM } }
      app:append { { type = "spec.Put" } }
      app:ok("run", "--until-idle")
      local proxied = proxy.start(app, { cut = "before", at = "incomplete_through", nth = 2 })
      local watching = app:start("status", "--watch", "0.1", "--json", "--database", proxied.url)
      local found
      process.wait_until(function()
        found = application.lines(watching:out():match "^(.*\n)" or "")
        return #found >= 5
      end, 60, function() return watching:out() .. watching:err() end)
      assert.is_true(proxied:has_cut())
      local lost = 0
      for _, report in ipairs(found) do
        if #report.consumers == 0 then
          lost = lost + 1
          assert.same({ {}, {} }, { report.topics, report.notes })
          assert.equal(1, #report.problems)
        else
          assert.equal("calm", report.consumers[1].name)
          assert.same({}, report.problems)
        end
      end
      assert.equal(1, lost)
      watching:signal "INT"
      assert.equal(0, watching:wait(10).code)
      app:close()
    end)
  end)
end)
