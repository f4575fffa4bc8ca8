-- The operator's verbs as programs: beside a host that runs, what they print,
-- and how they end.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

local PARTITIONS = 12

local NOTES = [[local moontide = require "moontide"
]] .. kit.LEDGER .. [[
return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s on = {
  ["spec.Put"] = function(event, ctx)
    ledger("notes", event, ctx)
    %s
  end } }]]

-- Takes some milliseconds: hundreds of them outlast the start of a verb.
local SLOW = [[ctx:query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) "
      .. "SELECT max(x) AS m FROM c")]]
local BAD = 'if event.payload.bad then error("no good:\\n" .. event.key) end'

-- No host dies here, and who stands for a while on a busy machine is not dead.
local LEASE = 'lease = { duration = "20s", heartbeat = "200ms", rebalance = "200ms" }'

local function set_up(database)
  local world = {}

  function world.start(handler, options, config)
    world.app = application.new { database = database,
      config = ("partitions = %d, %s, %s"):format(PARTITIONS, LEASE, config or ""),
      handlers = { ["notes.lua"] = NOTES:format(options or "", handler or "") } }
    world.app:write("sql/ledger.sql", world.app.db:ddl(kit.LEDGER_SQL))
    world.app:ok("run", "--until-idle") -- makes the tables that the specs look at
  end

  function world.stop() world.app:close() end

  --- append(list): { key, payload } each.
  function world.append(list)
    local events = {}
    for i, item in ipairs(list) do
      events[i] = { aggregate_id = item[1], type = "spec.Put", payload = item[2] or "{}" }
    end
    world.app:append(events)
  end

  function world.value(sql) return world.app.db:value(sql) end

  --- ledger(): what was applied, as "key:position".
  function world.ledger()
    local list = {}
    for i, row in ipairs(world.app.db:query [[SELECT "key" AS k, position FROM ledger ORDER BY n]]) do
      list[i] = ("%s:%d"):format(row.k, row.position)
    end
    return list
  end

  --- until_value(sql, wanted, host)
  function world.until_value(sql, wanted, host)
    process.wait_until(function() return world.value(sql) == wanted end, 90, function()
      return ("%s = %s, not %s\n%s"):format(sql, wanted, world.value(sql), host:err())
    end)
  end

  function world.state()
    return world.value "SELECT coalesce(state, 'RUNNING') FROM CONSUMERS WHERE consumer_name = 'notes'"
  end

  return world
end

local APPLIED = "SELECT count(*) FROM ledger"
local MARK = "SELECT high_water_mark FROM HIGH_WATER_MARK_STORE WHERE topic_name = 'event-store'"
local STATUSES = "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES"
local DEAD = STATUSES .. " WHERE status = 'DEAD_LETTER_KEY'"

dialect.each(function(database)
  describe("beside a running host", function()
    local world = set_up(database)
    local host

    after_each(function() world.stop() end)

    local function stop_host()
      host:signal "TERM"
      assert.equal(0, host:wait().code)
    end

    it("pause lets nothing be applied after it has returned, and resume lets all of it", function()
      world.start(SLOW, nil, "batch = 5")
      local list = {}
      for i = 1, 800 do list[i] = { "k" .. i % 7 } end
      world.append(list)
      host = world.app:start "run"
      process.wait_until(function() return tonumber(world.value(APPLIED)) >= 5 end, 30,
        function() return host:err() end)
      assert.equal("projection 'notes' is paused\n", world.app:ok("pause", "notes"))
      local count = world.value(APPLIED)
      assert.is_true(tonumber(count) < 800, "it was done before it was paused")
      assert.equal(world.value "SELECT max(position) FROM ledger",
        world.value "SELECT max(position) FROM CONSUMER_CHECKPOINTS")
      -- the host lives and looks at the topic, but applies nothing
      for round = 1, 3 do
        world.append { { "x" } }
        world.until_value(MARK, tostring(800 + round), host)
      end
      assert.equal(count, world.value(APPLIED))
      assert.equal("PAUSED", world.state())
      assert.equal("projection 'notes' runs again\n", world.app:ok("resume", "notes"))
      world.until_value(APPLIED, "803", host)
      assert.equal("803", world.value "SELECT count(DISTINCT position) FROM ledger")
      stop_host()
    end)

    it("resume and resume --past let a halted consumer go on, without a restart", function()
      world.start(BAD)
      world.append { { "A" }, { "B", '{"bad":true}' }, { "B" } }
      host = world.app:start "run"
      world.until_value("SELECT count(*) FROM CONSUMERS WHERE state = 'HALTED'", "1", host)
      world.app:ok("resume", "notes")
      -- it has been tried again when it says so a second time
      process.wait_until(function() return select(2, host:err():gsub("could not apply", "")) >= 2 end, 30,
        function() return host:err() end)
      world.until_value("SELECT count(*) FROM CONSUMERS WHERE state = 'HALTED'", "1", host)
      local result = world.app:json("resume", "notes", "--past")
      assert.same({ true, 1, 1 }, { result.changed, result.skips, result.undelivered_removed })
      world.until_value(APPLIED, "2", host)
      assert.same({ "A:1", "B:3" }, world.ledger())
      world.append { { "B" } }
      world.until_value(APPLIED, "3", host)
      assert.equal("0", world.value(STATUSES))
      stop_host()
    end)

    it("dead-letters retry and delete are seen by a host that has nothing to do", function()
      world.start('if event.payload.bad and ctx.attempt < 3 then error "not yet" end',
        'on_error = "dead_letter_key", retry = { attempts = 2, delay = "10ms", jitter = 0 },')
      world.append { { "A", '{"bad":true}' }, { "A" }, { "B", '{"bad":true}' }, { "B" }, { "C" } }
      host = world.app:start "run"
      world.until_value(DEAD, "4", host)
      assert.same({ "C:5" }, world.ledger())
      -- attempts count anew after a retry, so it lies dead again: a second one
      -- would not help either, but what is deleted lets its key go
      assert.equal(1, world.app:json("dead-letters", "retry", "1").retried)
      process.wait_until(function() return select(2, host:err():gsub("could not apply", "")) >= 6 end, 30,
        function() return host:err() end)
      world.until_value(DEAD, "4", host)
      assert.equal(2, world.app:json("dead-letters", "delete", "--error", "not yet").deleted)
      world.until_value(APPLIED, "3", host)
      assert.same({ "A:2", "B:4", "C:5" }, (function()
        local list = world.ledger()
        table.sort(list)
        return list
      end)())
      assert.equal("0", world.value(STATUSES))
      stop_host()
    end)

    it("unsubscribe is refused while the host would go on, and by force stops that consumer only", function()
      world.start()
      world.app:write("handlers/others.lua", [[local moontide = require "moontide"
        return moontide.projection "others" { on = {
          ["spec.Put"] = function(state, event) state.n = event.position end } }]])
      world.append { { "A" } }
      host = world.app:start "run"
      world.until_value(APPLIED, "1", host)
      assert.matches("is declared by the scripts", world.app:fails(3, "unsubscribe", "notes"), 1, true)
      assert.equal("RUNNING", world.state())
      local result = world.app:json("unsubscribe", "notes", "--force")
      assert.same({ true, PARTITIONS }, { result.gone, result.checkpoints_removed })
      process.wait_until(function() return host:err():find("stands still", 1, true) end, 30,
        function() return host:err() end)
      assert.matches("unsubscribed while it ran", host:err(), 1, true)
      world.append { { "A" } }
      world.until_value("SELECT state FROM others", '{"n":2}', host)
      assert.equal("1", world.value(APPLIED))
      stop_host()
    end)

    if database.name ~= "sqlite" then
      it("unsubscribe while its connection is lost stops that consumer only", function()
        world.start()
        world.app:write("handlers/others.lua", [[local moontide = require "moontide"
          return moontide.projection "others" { on = {
            ["spec.Other"] = function(state, event) state.n = (state.n or 0) + 1 end } }]])
        world.app:ok("run", "--until-idle") -- makes the table that is looked at
        local proxied = proxy.start(world.app, {})
        host = world.app:start("run", "--workers", "0", "--database", proxied.url)
        world.app:append { { type = "spec.Other" } }
        world.until_value("SELECT state FROM others", '{"n":1}', host)
        proxied:leave()
        local function says(part)
          process.wait_until(function() return host:err():find(part, 1, true) end, 60, function() return host:err() end)
        end
        says "trying again"
        world.app:ok("unsubscribe", "notes", "--force")
        proxied:come_back()
        says "unsubscribed while it ran"
        world.app:append { { type = "spec.Other" } }
        world.until_value("SELECT state FROM others", '{"n":2}', host)
        stop_host()
      end)
    end

    it("unsubscribe just before a stop lets that end in order", function()
      world.start()
      world.app:write("handlers/others.lua", [[local moontide = require "moontide"
        return moontide.projection "others" { on = {
          ["spec.Other"] = function(state, event) state.n = event.position end } }]])
      world.app:ok("run", "--until-idle") -- makes the table that is looked at
      host = world.app:start("run", "--workers", "0")
      -- a stretch without a message of its own, which it has not saved
      world.app:append { { type = "spec.Other" } }
      world.until_value("SELECT state FROM others", '{"n":1}', host)
      host:signal "STOP"
      world.app:ok("unsubscribe", "notes", "--force")
      host:signal "TERM"
      host:signal "CONT"
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
      assert.matches("unsubscribed while it ran", result.err, 1, true)
    end)
  end)

  describe("the operator's verbs", function()
    local world = set_up(database)

    after_each(function() world.stop() end)

    local function halt()
      world.start(BAD)
      world.append { { "A" }, { "B", '{ "bad" : true }' }, { "B" } }
      world.app:expect(1, "run", "--until-idle")
    end

    it("say what they changed, and that nothing changed, in sentences and with 0", function()
      halt()
      local function says(text, ...) assert.equal(text .. "\n", world.app:ok(...)) end
      says("projection 'notes' is halted and stays so, with its reason: it applies nothing until it is resumed: "
        .. "nothing changed", "pause", "notes")
      says("projection 'notes' runs again; 1 message is tried again", "resume", "notes")
      says("projection 'notes' runs already: nothing changed", "resume", "notes")
      world.app:expect(1, "run", "--until-idle")
      says("projection 'notes': 1 message is tried again; it is halted, and moontide resume lets it go on",
        "dead-letters", "retry", "2")
      says("projection 'notes': 0 messages are tried again, 1 is tried at once already; it is halted, and moontide "
        .. "resume lets it go on", "dead-letters", "retry", "2")
      says("projection 'notes': 1 message deleted and skipped; it is halted, and moontide resume lets it go on",
        "dead-letters", "delete", "2")
      says("no message matches: nothing changed", "dead-letters", "delete", "2")
      says("projection 'notes' runs again", "resume", "notes")
      world.app:ok("pause", "notes")
      says(("projection 'notes' is unsubscribed; removed: 1 skip, 1 undelivered message, %d checkpoints and its row. "
        .. "What it derived stays; remove that before a host runs it from the start again"):format(PARTITIONS),
        "unsubscribe", "notes")
      says("projection 'notes' is declared, but no host has run it yet, or not since it was unsubscribed: nothing "
        .. "changed", "unsubscribe", "notes")
      says("projection 'notes' is declared, but no host has run it yet, or not since it was unsubscribed: nothing "
        .. "changed", "resume", "notes")
      assert.matches("or not since it was unsubscribed: there is nothing to pause",
        world.app:fails(3, "pause", "notes"), 1, true)
    end)

    it("unsubscribe leaves no lease of the consumer, and all of its neighbour's", function()
      world.start()
      world.app:write("handlers/others.lua", [[local moontide = require "moontide"
        return moontide.projection "others" { on = {
          ["spec.Put"] = function(state, event) state.n = event.position end } }]])
      world.append { { "A" } }
      world.app:ok("run", "--until-idle")
      local leases = "SELECT count(*) FROM PARTITION_OWNERSHIP WHERE consumer_name = '%s'"
      assert.equal(tostring(PARTITIONS), world.value(leases:format "notes"))
      world.app:ok("unsubscribe", "notes", "--force")
      assert.equal("0", world.value(leases:format "notes"))
      assert.equal(tostring(PARTITIONS), world.value(leases:format "others"))
      world.append { { "B" } } -- one that comes back has what it needs
      world.value 'DELETE FROM ledger'
      world.app:ok("run", "--until-idle")
      assert.same({ "A:1", "B:2" }, world.ledger())
    end)

    it("are what status tells to use, with the consumer's name", function()
      halt()
      local function problem() return world.app:json("status").problems[1] end
      assert.matches("`moontide resume notes` or the next start tries it again; with --past it is skipped", problem(),
        1, true)
      world.app:ok("resume", "notes", "--past")
      world.app:ok("run", "--until-idle")
      assert.is_nil(problem())
      world.app:ok("pause", "notes")
      assert.matches("^projection 'notes' is paused since .*; `moontide resume notes` lets it go on$", problem())
      world.app:ok("resume", "notes")
      world.append { { "A", '{"bad":true}' } }
      world.app:expect(1, "run", "--until-idle")
      world.value "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET status = 'DEAD_LETTER'"
      world.app:ok("resume", "notes")
      assert.matches("`moontide dead-letters --consumer notes` lists them", problem(), 1, true)
      world.app:ok("dead-letters", "delete", "--consumer", "notes")
      world.value "UPDATE CONSUMERS SET state = 'HALTED', halt_reason = 'MISSING_HISTORY'"
      assert.matches("`moontide resume notes --accept`", problem(), 1, true)
    end)

    it("are silent with --quiet", function()
      halt()
      for _, words in ipairs { { "resume", "notes" }, { "dead-letters", "retry", "--all" }, { "pause", "notes" } } do
        words[#words + 1] = "--quiet"
        local result = world.app:moontide(unpack(words))
        assert.same({ 0, "", "" }, { result.code, result.out, result.err })
      end
    end)

    it("name the nearest consumer, also one that only the scripts know", function()
      world.start()
      assert.matches("no consumer is called 'note'; did you mean 'notes'?", world.app:fails(64, "pause", "note"),
        1, true)
      world.value "DELETE FROM CONSUMER_CHECKPOINTS"
      world.value "DELETE FROM CONSUMERS"
      for _, words in ipairs { { "resume", "note" }, { "unsubscribe", "note" },
        { "dead-letters", "--consumer", "note" }, { "dead-letters", "retry", "--consumer", "note" } } do
        assert.matches("did you mean 'notes'?", world.app:fails(64, unpack(words)), 1, true)
      end
      assert.matches("no host has run it yet", world.app:fails(3, "pause", "notes"), 1, true)
    end)

    it("work although a script is broken; only unsubscribe wants force then", function()
      halt()
      world.app:write("handlers/broken.lua", "this is no Lua")
      world.app:ok("dead-letters", "delete", "2")
      world.app:ok("resume", "notes")
      assert.matches("give --force", world.app:fails(3, "unsubscribe", "notes"), 1, true)
      world.app:ok("unsubscribe", "notes", "--force")
      assert.equal("0", world.value "SELECT count(*) FROM CONSUMERS")
    end)

    it("list what failed as a table and as JSON, and show it with payload, error and line", function()
      halt()
      local list = world.app:ok "dead-letters"
      assert.matches("^consumer +position +key +type +status +failures +age +reason\n", list)
      assert.matches("\nnotes +2 +B +spec.Put +HALTED +1 [%d.]+ %w+  error: handlers/notes.lua:%d+: no good:\\nB\n$",
        (list:gsub("  +([%d.]+ %w+)  ", " %1  ")))
      local found = world.app:json("dead-letters", "list", "--status", "WAITING")
      assert.same({ 1, 3 }, { found.total, found.messages[1].position })
      local shown = world.app:ok("dead-letters", "show", "2")
      assert.matches('\npayload       { "bad" : true }\n', shown, 1, true)
      assert.matches("\nerror         error: handlers/notes.lua:%d+: no good:\\nB\n", shown)
      local message = world.app:json("dead-letters", "show", found.messages[1].id).messages[1]
      assert.same({ 3, "WAITING", "B" }, { message.position, message.status, message.message.key })
      assert.matches("no undelivered message is meant", world.app:fails(1, "dead-letters", "show", "1"), 1, true)
      assert.equal("no undelivered message\n", world.app:moontide("dead-letters", "--key", "A").err)
    end)

    it("tell type and id of messages without reading their payloads, whatever their keys hold", function()
      local keys = { '\\",\\"payload\\":\\"', ("é"):rep(255), "plain" }
      world.start(BAD, 'on_error = "dead_letter", retry = { attempts = 1 },')
      local events = {}
      for i, key in ipairs(keys) do
        events[i] = { aggregate_id = key, type = "spec.Put",
          payload = ('{"bad":true,"type":"other","text":"%s"}'):format(("x"):rep(5000)) }
      end
      world.app:append(events)
      world.app:moontide("run", "--until-idle")
      local all = world.app:json("dead-letters", "list", "--type", "spec.Put").messages
      assert.equal(#keys, #all)
      assert.same({}, world.app:json("dead-letters", "list", "--type", "other").messages)
      for i, letter in ipairs(all) do
        assert.equal("spec.Put", letter.type)
        local shown = world.app:json("dead-letters", "show", tostring(i)).messages[1].message
        assert.equal(i, world.app:json("dead-letters", "list", shown.id).messages[1].position)
      end
    end)

    it("list at most so many, and say how many there are", function()
      world.start(BAD, 'on_error = "dead_letter", retry = { attempts = 1 },')
      local list = {}
      for i = 1, 105 do list[i] = { "k" .. i, '{"bad":true}' } end
      world.append(list)
      world.app:ok("run", "--until-idle")
      local result = world.app:moontide "dead-letters"
      assert.equal(101, select(2, result.out:gsub("\n", "\n")))
      assert.equal("the first 100 of 105; --limit shows more\n", result.err)
      local found = world.app:json("dead-letters", "--limit", "3")
      assert.same({ 105, 3, 1 }, { found.total, #found.messages, found.messages[1].position })
      assert.equal(105, world.app:json("dead-letters", "delete", "--all").deleted)
    end)

    it("want to be told which messages are meant", function()
      halt()
      for _, word in ipairs { "show", "retry", "delete" } do
        assert.matches("an id, a filter such as --consumer, or --all", world.app:fails(64, "dead-letters", word),
          1, true)
      end
      assert.equal("2", world.value(STATUSES))
    end)

    it("create neither a database nor its tables", function()
      world.start()
      local empty = database:create(world.app, "empty.db")
      for _, words in ipairs { { "pause", "notes" }, { "dead-letters" }, { "unsubscribe", "notes" } } do
        local result = world.app:moontide("--database", empty.url, unpack(words))
        assert.is_true(result.code == 3 or result.code == 69, result.code .. result.err)
      end
      if database.name == "sqlite" then assert.is_nil(process.read_file(empty.path)) end
    end)
  end)
end)

dialect.each(function(database)
  describe("a rebuild that waits", function()
    local world = set_up(database)

    after_each(function() world.stop() end)

    it("says that no host runs the projection, and ends when one has replayed", function()
      world.start("", 'reset = function(ctx) ctx:execute "DELETE FROM ledger" end,')
      world.append { { "A" }, { "B" } }
      world.app:ok("run", "--until-idle")
      local verb = world.app:start("rebuild", "notes", "--wait")
      process.wait_until(function()
        return verb:err():find("no host runs projection 'notes': its replay stands at position 0 of 2", 1, true)
      end, 30, function() return verb:err() end)
      world.app:ok("run", "--until-idle")
      local ended = verb:wait(30)
      assert.equal(0, ended.code)
      assert.matches("projection 'notes' is rebuilt: its replay is over\n$", ended.out)
      assert.same({ "A:1", "B:2" }, world.ledger())
    end)

    it("makes a table of the projection that is gone", function()
      world.start("", 'reset = function(ctx) ctx:execute "DELETE FROM ledger" end,')
      world.append { { "A" } }
      world.app:ok("run", "--until-idle")
      world.app.db:execute "DROP TABLE ledger"
      world.app:ok("rebuild", "notes")
      world.app:ok("run", "--until-idle")
      assert.same({ "A:1" }, world.ledger())
    end)

    it("makes it beside a host that runs, whichever of the two comes to the reset first", function()
      world.start("", 'reset = function(ctx) ctx:execute "DELETE FROM ledger" end,')
      world.append { { "A" } }
      world.app:ok("run", "--until-idle")
      local host = world.app:start("run")
      for _ = 1, 3 do
        world.app.db:execute "DROP TABLE ledger"
        world.app:ok("rebuild", "notes", "--wait")
        assert.same({ "A:1" }, world.ledger())
      end
      host:signal "TERM"
      assert.equal(0, host:wait(30).code)
    end)

    it("of other tables makes them before anything else, or leaves all as it was", function()
      world.start("", 'reset = function(ctx) ctx:execute "DELETE FROM ledger" end,')
      world.append { { "A" } }
      world.app:ok("run", "--until-idle")
      world.app:write("sql/ledger.sql", world.app.db:ddl(kit.LEDGER_SQL)
        .. "ALTER TABLE ledger ADD COLUMN more INTEGER;")
      assert.matches("tables of 'notes' %(sql/ledger.sql%): .*a script may not run ALTER",
        world.app:fails(78, "rebuild", "notes"))
      assert.same({ "A:1" }, world.ledger())

      world.app:write("sql/ledger.sql", world.app.db:ddl(kit.LEDGER_SQL)
        .. "CREATE TABLE IF NOT EXISTS further (n INTEGER NOT NULL);")
      assert.matches("sql/ledger.sql makes what is missing and leaves a table that is there as it is: drop or alter "
        .. "one that is to change before `moontide rebuild notes`", world.app:ok "status", 1, true)
      world.app:write("handlers/notes.lua", NOTES:format(
        'reset = function(ctx) ctx:execute "DELETE FROM ledger" ctx:execute "DELETE FROM further" end,', ""))
      world.app:ok("rebuild", "notes")
      world.app:ok("run", "--until-idle")
      assert.same({ "A:1" }, world.ledger())
    end)
  end)

  describe("an operator's verb that is killed", function()
    local world = set_up(database)
    local GROUPS, SIZE = 12, 20

    after_each(function() world.stop() end)

    -- Rows and skips of the messages of one group, which lie one after another,
    -- in one view.
    local function left(group)
      local range = ("message_position BETWEEN %d AND %d"):format((group - 1) * SIZE + 1, group * SIZE)
      return world.value(([[SELECT (SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE %s),
        (SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES WHERE %s)]]):format(range, range))
    end

    it("has done all or nothing, and can be done again", function()
      world.start('if event.payload.bad then error(event.payload.bad) end',
        'on_error = "dead_letter", retry = { attempts = 1 },')
      local list = {}
      for i = 1, GROUPS * SIZE do
        list[i] = { "k" .. i, ('{"bad":"group <%d>"}'):format(math.ceil(i / SIZE)) }
      end
      world.append(list)
      world.app:ok("run", "--until-idle")
      local began = process.now()
      assert.equal(0, world.app:json("dead-letters", "delete", "--key", "none").deleted)
      local usual = (process.now() - began) * 1000
      math.randomseed(7)
      for group = 1, GROUPS do
        local words = { "dead-letters", "delete", "--error", ("<%d>"):format(group) }
        local verb = world.app:start(unpack(words))
        process.pause(math.random() * usual * 1.2)
        verb:signal "KILL"
        verb:wait()
        local found = left(group)
        assert.is_true(found == "0|20" or found == "20|0", found)
        -- a COMMIT that was on its way may have come first
        local deleted = world.app:json(unpack(words)).deleted
        assert.is_true(deleted == 0 or found == "20|0" and deleted == SIZE)
        assert.equal("0|20", left(group))
      end
    end)
  end)

  describe("operator's verbs at the same time", function()
    local world = set_up(database)
    local file = database.name == "sqlite"

    after_each(function() world.stop() end)

    it("and beside a host come one after the other: each message is applied once or skipped", function()
      world.start('if event.payload.bad then error "no" end', 'on_error = "dead_letter", retry = { attempts = 1 },')
      local host = world.app:start "run"
      local list = {}
      for i = 1, 200 do list[i] = { "k" .. i % 7, i % 4 == 0 and '{"bad":true}' or "{}" } end
      world.append(list)
      world.until_value(STATUSES, "50", host)
      local verbs = {
        { "dead-letters", "delete", "--error", "no", "--key", "k1" }, { "dead-letters", "retry", "--all" },
        { "dead-letters", "delete", "--all" }, { "dead-letters", "retry", "--key", "k2" },
        { "dead-letters", "delete", "--all" }, { "dead-letters", "retry", "--all" },
        { "pause", "notes" }, { "resume", "notes" },
      }
      local started = {}
      for i, words in ipairs(verbs) do started[i] = world.app:start(unpack(words)) end
      for i, verb in ipairs(started) do
        local result = verb:wait(60)
        -- one at a time writes to a file, and a busy machine lets some wait long
        while file and result.code == 75 do result = world.app:moontide(unpack(verbs[i])) end
        assert.equal(0, result.code, result.err)
      end
      world.app:ok("resume", "notes")
      world.app:ok("dead-letters", "delete", "--all")
      host:signal "TERM"
      assert.equal(0, host:wait().code)
      world.app:ok("run", "--until-idle")
      assert.equal("0", world.value(STATUSES))
      assert.equal("150", world.value(APPLIED))
      assert.equal("150", world.value "SELECT count(DISTINCT position) FROM ledger WHERE position % 4 <> 0")
    end)
  end)
end)

dialect.servers(function(database)
  describe("an operator's verb whose answer is lost", function()
    local world = set_up(database)

    after_each(function() world.stop() end)

    it("says that doing it again is safe, and is done once then", function()
      world.start(BAD, 'on_error = "dead_letter", retry = { attempts = 1 },')
      world.append { { "A", '{"bad":true}' }, { "B", '{"bad":true}' }, { "C", '{"bad":true}' }, { "D" } }
      world.app:ok("run", "--until-idle")
      -- what doing it again changes, and the verb
      local cuts = {
        before = { { 1, "dead-letters", "delete", "1" }, { 1, "dead-letters", "retry", "3" },
          { true, "pause", "notes" } },
        after = { { 0, "dead-letters", "delete", "2" }, { 0, "dead-letters", "retry", "3" },
          { false, "pause", "notes" } },
      }
      for cut, verbs in pairs(cuts) do
        world.app:ok("resume", "notes")
        world.value "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET status = 'DEAD_LETTER', failure_count = 1"
        for _, case in ipairs(verbs) do
          local wanted, words = case[1], { unpack(case, 2) }
          local proxied = proxy.start(world.app, { cut = cut })
          local text = world.app:fails(69, "--database", proxied.url, unpack(words))
          assert.is_true(proxied:has_cut())
          assert.matches("doing it again is safe", text, 1, true)
          local again = world.app:json(unpack(words))
          local done = again.deleted or again.retried
          if words[1] == "pause" then done = again.changed end
          assert.equal(wanted, done, cut .. " " .. table.concat(words, " "))
        end
      end
      assert.equal("2", world.value "SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES")
      assert.equal("1", world.value(STATUSES))
      assert.equal("PAUSED", world.state())
    end)
  end)

  describe("a batch that waits for an operator's transaction", function()
    local world = set_up(database)

    after_each(function() world.stop() end)

    it("sees what that one has written, and applies nothing when it was a pause", function()
      world.start()
      world.append { { "A" } }
      local host = world.app:start "run"
      world.until_value(APPLIED, "1", host)
      local verb = world.app.db:hold [[BEGIN IMMEDIATE; SELECT count(*) FROM (SELECT 1 FROM CONSUMER_CHECKPOINTS
        FOR UPDATE) AS k; UPDATE CONSUMERS SET state = 'PAUSED';]]
      world.append { { "A" } }
      process.wait_until(verb.blocks, 30, function() return "a batch that waits\n" .. host:err() end)
      verb.commit()
      for round = 3, 4 do -- it goes on with its rounds
        world.append { { "A" } }
        world.until_value(MARK, tostring(round), host)
      end
      assert.equal("1", world.value(APPLIED))
      host:signal "TERM"
      assert.equal(0, host:wait().code)
    end)
  end)
end)

-- The servers keep what is no time out of such columns themselves.
dialect.only("sqlite", function(database)
  describe("a row that somebody changed by hand", function()
    local world = set_up(database)

    before_each(function()
      world.start(BAD, 'on_error = "dead_letter", retry = { attempts = 1 },')
      world.append { { "A", '{"bad":true}' }, { "B", '{"bad":true}' } }
      world.app:moontide("run", "--until-idle")
    end)

    after_each(function() world.stop() end)

    it("is told with what it holds and its id by the verbs that cannot read it", function()
      local id = world.value "SELECT id FROM CONSUMER_UNDELIVERED_MESSAGES WHERE message_position = 2"
      world.app.db:execute("UPDATE CONSUMER_UNDELIVERED_MESSAGES SET recorded_at = 'soon' WHERE message_position = 2")
      for _, words in ipairs { { "dead-letters" }, { "dead-letters", "delete", "--all" } } do
        local err = world.app:fails(1, unpack(words))
        assert.matches([[column "recorded_at" of the result holds 'soon' and not a time like]], err, 1, true)
        assert.matches("in the row of id = '" .. id .. "', consumer_id = ", err, 1, true)
      end
      assert.matches("holds 'soon' and not a time like", world.app:fails(1, "status"), 1, true)
      assert.equal("2", world.value(STATUSES))
    end)

    it("is told with its consumer when that has a state that nobody knows", function()
      world.app.db:execute "UPDATE CONSUMERS SET state = 'ODD'"
      assert.matches("projection 'notes': its row holds state 'ODD'",
        world.app:fails(1, "run", "--until-idle"), 1, true)
    end)
  end)
end)
