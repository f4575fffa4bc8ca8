-- Pages that are counted as a whole after a host has died: the message that
-- ended it is found among many, and no other one is charged for it.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"

local HEAD = [[local moontide = require "moontide"
]]

local CONFIG = [[partitions = 12, workers = %d, grants = { "os" }, on_error = "dead_letter",
  retry = { attempts = %d, delay = "1ms", jitter = 0 },
  lease = { duration = "500ms", heartbeat = "100ms", rebalance = "100ms" }]]

local KEY_FUNCTION = "key = function(event) return event.key end,"

dialect.each(function(database)
  describe("a page that is counted as a whole", function()
    local app

    -- `count` messages of `keys` keys; whatever handles them dies with
    -- SPEC_DIES, and in `handler`.
    local function start(options)
      app = application.new { database = database, config = CONFIG:format(0, options.attempts), handlers = {
        ["notes.lua"] = HEAD .. kit.LEDGER .. ([[
          return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s on = {
            ["spec.Put"] = function(event, ctx)
              if os.getenv "SPEC_DIES" then os.exit(9) end
              ledger("notes", event, ctx)
              %s
            end } }]]):format(options.key or "", options.handler or "") } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      app:ok("run", "--until-idle")
      local list = {}
      for i = 1, options.count do
        list[i] = { aggregate_id = "key-" .. i % options.keys, type = "spec.Put", payload = ('{"i":%d}'):format(i) }
      end
      app:append(list, "--batch", "500")
    end

    after_each(function() app:close() end)

    -- A host that dies of whatever it meets first.
    local function die()
      process.wait_until(function()
        return app:moontide("run", "--until-idle", { env = { SPEC_DIES = "1" } }).code == 9
      end, 30, "a death")
    end

    -- Starts the host until one comes to its end; gives how many did not, and
    -- what the last one has said.
    local function run()
      local died, last = 0, os.time() + 120
      while os.time() < last do
        local result = app:moontide("run", "--until-idle")
        if result.code == 0 then return died, result.err end
        if result.code == 9 then
          died = died + 1
        else -- the next attempt is not due, or is one that still holds a lease
          assert.equal(75, result.code, result.err)
        end
      end
      error "no host came to its end"
    end

    -- Every message but so many exactly once, by its first attempt, and per key
    -- in order.
    local function applied(count)
      assert.equal(("%d|%d|1"):format(count, count), app.db:value
        "SELECT count(*), count(DISTINCT position), max(attempt) FROM ledger")
      assert.equal("0", app.db:value [[SELECT count(*) FROM ledger a JOIN ledger b
        ON a.key = b.key AND a.n < b.n AND a.position > b.position]])
    end

    local function undelivered()
      return app.db:value [[SELECT count(*), count(DISTINCT partition_no), coalesce(max(failure_count), 0)
        FROM CONSUMER_UNDELIVERED_MESSAGES]]
    end

    it("gives away the one of its 500 that ends every host, which costs the others nothing", function()
      start { count = 500, keys = 50, attempts = 2, handler = "if event.payload.i == 300 then os.exit(9) end" }
      -- of none, of the page, and of the two attempts
      assert.equal(4, run())
      assert.equal("300|2|DEAD_LETTER", app.db:value
        "SELECT message_position, failure_count, status FROM CONSUMER_UNDELIVERED_MESSAGES")
      applied(499)
    end)

    it("gives away its first message as well, and one that a key function dies of", function()
      start { count = 20, keys = 4, attempts = 1, key = [[key = function(event)
        if event.payload.i == 1 then os.exit(9) end
        return event.key
      end,]] }
      assert.equal(3, run())
      assert.equal("1|1", app.db:value [[SELECT max(message_position), max(failure_count)
        FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER']])
      applied(19)
    end)

    -- Such a message stands by itself, under its id.
    it("gives away one without a key that ends every host", function()
      app = application.new { database = database, config = CONFIG:format(0, 2), handlers = {
        ["relay.lua"] = HEAD .. [[
          return moontide.listener "relay" { start = "beginning", source = "event-capture", on = {
            ["spec.Put"] = function(event, ctx)
              if event.payload.i == 7 then os.exit(9) end
              ctx:emit("spec.Seen", { at = event.payload.i })
            end } }]] } }
      app:ok("run", "--until-idle")
      local lines = {}
      for i = 1, 20 do lines[i] = ('{"type":"spec.Put","payload":{"i":%d}}'):format(i) end
      app:ok("emit", "--batch", "100", { stdin = table.concat(lines, "\n") .. "\n" })
      assert.equal(4, run())
      assert.equal("1|7|2|DEAD_LETTER", app.db:value [[SELECT count(*), max(message_position), max(failure_count),
        max(status) FROM CONSUMER_UNDELIVERED_MESSAGES]])
      local seen, expected = {}, {}
      for at in app:ok("events", "--export", "--topic", "event-capture"):gmatch '"at": ?(%d+)' do
        seen[#seen + 1] = tonumber(at)
      end
      table.sort(seen)
      for i = 1, 20 do if i ~= 7 then expected[#expected + 1] = i end end
      assert.same(expected, seen)
    end)

    for name, key in pairs { ["the message's own key"] = "", ["a key function"] = KEY_FUNCTION } do
      it("charges nobody for two deaths of other causes, with " .. name, function()
        start { count = 20, keys = 4, attempts = 1, key = key }
        die()
        assert.equal("0|0|0", undelivered())
        die()
        -- a row in each partition, so that all who share them know of it: the
        -- keys lie in four, and a key function may lead to any
        local number = key == "" and 4 or 12
        assert.equal(("%d|%d|0"):format(number, number), undelivered())
        local died, said = run()
        assert.equal(0, died)
        assert.matches("one message at a time up to position 20,", said, 1, true)
        assert.equal("0|0|0", undelivered())
        applied(20)
      end)

      it("is nothing to one that need not be careful, with " .. name, function()
        start { count = 20, keys = 4, attempts = 1, key = key }
        die()
        die()
        -- as the supervisor of a worker that has died lets go of its leases
        app.db:execute "UPDATE PARTITION_OWNERSHIP SET instance_id = NULL"
        local died, said = run()
        assert.equal(0, died)
        assert.is_nil(said:find("ended without a word", 1, true), said)
        assert.equal("0|0|0", undelivered())
        applied(20)
      end)
    end

    -- An older program takes the count for a message that failed: it passes it,
    -- and the row is what is left of the message.
    it("is a message like any other that failed where its partition has gone on", function()
      start { count = 20, keys = 1, attempts = 1 }
      die()
      die()
      assert.equal("1|1|0", undelivered())
      app.db:execute "UPDATE CONSUMER_CHECKPOINTS SET position = 1"
      assert.equal(0, (run()))
      assert.equal("0|0|0", undelivered())
      applied(20)
    end)

    -- Of the first message whose keys are told by a function there is a row in
    -- each partition, as the page was counted in all of them.
    for _, case in ipairs { { 1, "", 1 }, { 7, "", 1 }, { 1, KEY_FUNCTION, 12 }, { 7, KEY_FUNCTION, 1 } } do
      local number, key, rows = unpack(case)
      it(("leaves message %d to the supervisor whose worker has died of it, with %s"):format(number,
        key == "" and "the message's own key" or "a key function"), function()
        start { count = 20, keys = 4, attempts = 1, key = key,
          handler = ("if event.payload.i == %d then os.exit(9) end"):format(number) }
        die()
        local host = app:start("run", "--workers", "1")
        process.wait_until(function()
          return app.db:value [[SELECT count(*) FROM ledger]] == "19" and app.db:value
            [[SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status <> 'DEAD_LETTER']] == "0"
        end, 60, function() return host:err() end)
        host:signal "TERM"
        local result = host:wait(30)
        assert.equal(0, result.code, result.err)
        assert.matches("each batch up to position 20 is counted before it is applied", result.err, 1, true)
        assert.is_nil(result.err:find("one message at a time", 1, true), result.err)
        assert.equal(("%d|1|DEAD_LETTER|%d"):format(number, rows), app.db:value [[SELECT max(message_position),
          max(failure_count), max(status), count(*) FROM CONSUMER_UNDELIVERED_MESSAGES]])
        assert.equal(tostring(rows), app.db:value [[SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES
          WHERE failure_reason LIKE 'crash: %the worker ended in its handler (exit code 9)']])
        applied(19)
      end)
    end
  end)
end)
