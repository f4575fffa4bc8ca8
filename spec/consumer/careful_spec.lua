-- A message that takes whole hosts down: nobody is left to count the attempt,
-- so whoever takes over counts it before making it.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

local HEAD = [[local moontide = require "moontide"
]]

-- Whatever runs a handler of these is the host itself.
local CONFIG = [[partitions = 12, workers = 0, grants = { "os" }, on_error = "dead_letter",
  retry = { attempts = %d, delay = "1ms", jitter = 0 },
  lease = { duration = "500ms", heartbeat = "100ms", rebalance = "100ms" }]]

dialect.each(function(database)
  describe("a message that takes the host down", function()
    local app

    local function start(attempts, handler, key)
      app = application.new { database = database, config = CONFIG:format(attempts), handlers = {
        ["notes.lua"] = HEAD .. kit.LEDGER .. ([[
          return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s on = {
            ["spec.Put"] = function(event, ctx)
              ledger("notes", event, ctx)
              %s
            end } }]]):format(key or "", handler or "") } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      app:ok("run", "--until-idle")
      local list = {}
      for i = 1, 20 do
        list[i] = { aggregate_id = "key-" .. i % 4, type = "spec.Put", payload = ('{"i":%d}'):format(i) }
      end
      app:append(list, "--batch", "100")
    end

    after_each(function() app:close() end)

    -- Starts the host until one comes to its end; gives how many did not.
    local function run()
      local died = 0
      process.wait_until(function()
        local result = app:moontide("run", "--until-idle")
        if result.code == 0 then return true end
        if result.code == 9 then
          died = died + 1
        else -- the next attempt is not due, or is one that still holds a lease
          assert.equal(75, result.code, result.err)
        end
      end, 120, "a host that comes to its end")
      return died
    end

    local function letters()
      return app.db:value [[SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER']]
    end

    -- Every position but these exactly once, and per key in order.
    local function applied_all_but(left_out)
      assert.equal(tostring(20 - left_out), app.db:value "SELECT count(DISTINCT position) FROM ledger")
      assert.equal(tostring(20 - left_out), app.db:value "SELECT count(*) FROM ledger")
      assert.equal("0", app.db:value [[SELECT count(*) FROM ledger a JOIN ledger b
        ON a.key = b.key AND a.n < b.n AND a.position > b.position]])
    end

    it("is a dead letter after its budget, and no other message is", function()
      start(3, "if event.payload.i == 7 then os.exit(9) end")
      -- the first death is of a host that had nothing to be careful of, the
      -- second tells that it was the messages, and no more
      assert.equal(5, run())
      assert.equal("1", letters())
      assert.equal("7|3|crash: the host that made this attempt ended without a word", app.db:value
        [[SELECT message_position, failure_count, failure_reason FROM CONSUMER_UNDELIVERED_MESSAGES]])
      applied_all_but(1)
    end)

    it("costs its neighbours and itself nothing once the host stands it", function()
      start(3, [[if event.payload.i == 7 and ctx.attempt == 1 and not os.getenv "SPEC_STANDS" then os.exit(9) end]])
      assert.equal(9, app:moontide("run", "--until-idle").code)
      app:ok("run", "--until-idle", { env = { SPEC_STANDS = "1" } })
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
      applied_all_but(0)
      assert.equal("1", app.db:value "SELECT max(attempt) FROM ledger")
    end)

    it("is tried again with the number of its attempt once it is known", function()
      start(5, "if event.payload.i == 7 and ctx.attempt < 3 then os.exit(9) end")
      assert.equal(4, run())
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
      assert.equal("3", app.db:value "SELECT attempt FROM ledger WHERE position = 7")
      applied_all_but(0)
    end)

    it("counts as well when its key function does it", function()
      start(2, "", [[key = function(event)
        if event.payload.i == 7 then os.exit(9) end
        return event.key
      end,]])
      assert.equal(4, run())
      assert.equal("7|2", app.db:value [[SELECT max(message_position), max(failure_count)
        FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER']])
      applied_all_but(1)
    end)

    it("is one message in all partitions when its key is not known, and none of them counts for itself", function()
      start(6, "", [[key = function(event)
        if event.payload.i == 7 then error "nobody knows" end
        return event.key
      end,]])
      local function seen()
        return app.db:value [[SELECT count(DISTINCT failure_count) AS counts, count(DISTINCT status) AS words,
          count(DISTINCT failure_reason) AS reasons, max(failure_count) AS most, max(status) AS word, count(*) AS number
          FROM CONSUMER_UNDELIVERED_MESSAGES WHERE message_position = 7]]
      end
      local first = app:start("run", { env = { MOONTIDE_RETRY_DELAY = "2s" } })
      process.wait_until(function() return seen():find "|1|FAILED|12$" end, 30, function() return first:err() end)
      first:signal "KILL"
      first:wait(30)
      local second = app:start("run", { env = { MOONTIDE_RETRY_DELAY = "100ms" } })
      local other
      process.wait_until(function()
        local now = seen()
        if not now:find "^1|1|1|" then other = now end
        return other or now:find "|6|DEAD_LETTER|12$"
      end, 30, function() return seen() .. second:err() end)
      assert.is_nil(other)
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM ledger" == "19"
      end, 30, function() return second:err() end)
      second:signal "TERM"
      assert.equal(0, second:wait(30).code, second:err())
      applied_all_but(1)
    end)

    it("is one message again when two hosts have counted it apart", function()
      start(6, "", [[key = function(event)
        if event.payload.i == 7 then error "nobody knows" end
        return event.key
      end,]])
      app:expect(75, "run", "--until-idle", { env = { MOONTIDE_RETRY_DELAY = "1h" } })
      -- what another host held has failed more often, and is due
      app.db:execute [[UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_count = 3, next_retry_at = recorded_at
        WHERE partition_no >= 6]]
      app:expect(75, "run", "--until-idle", { env = { MOONTIDE_RETRY_DELAY = "1h" } })
      assert.equal("4|4|FAILED|1|1|12", app.db:value [[SELECT min(failure_count), max(failure_count), max(status),
        count(DISTINCT failure_reason), count(DISTINCT next_retry_at), count(*)
        FROM CONSUMER_UNDELIVERED_MESSAGES WHERE message_position = 7]])
      assert.equal("0", app.db:value
        "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE failure_reason LIKE 'crash:%'")
    end)

    it("stays undelivered when its retry fails and the host is stopped then", function()
      start(5, [[if event.payload.i == 7 then
        if ctx.attempt == 2 and os.getenv "SPEC_DIES" then os.exit(9) end
        if not os.getenv "SPEC_STANDS" then error "not now" end
      end]])
      -- the third attempt is far away
      app:configure((CONFIG:format(5):gsub('delay = "1ms"', 'delay = "100ms", factor = 1000, max_delay = "1h"')))
      process.wait_until(function()
        return app:moontide("run", "--until-idle", { env = { SPEC_DIES = "1" } }).code == 9
      end, 30, "the death in the second attempt")
      -- whoever takes over makes it again, and is stopped then
      local row
      process.wait_until(function()
        app:expect(75, "run", "--until-idle")
        row = app.db:value [[SELECT message_position, status, failure_count FROM CONSUMER_UNDELIVERED_MESSAGES
          WHERE failure_reason IS NOT NULL]]
        return row ~= "7|FAILED|1"
      end, 30, "the second attempt")
      assert.equal("7|FAILED|2", row)
      app:ok("dead-letters", "retry", "7")
      app:ok("run", "--until-idle", { env = { SPEC_STANDS = "1" } })
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
      applied_all_but(0)
    end)

    it("counts as well when only its retry does it", function()
      start(3, [[if event.payload.i == 7 then
        if ctx.attempt == 1 then error "not now" end
        os.exit(9)
      end]])
      assert.equal(3, run())
      assert.equal("7|3", app.db:value "SELECT message_position, failure_count FROM CONSUMER_UNDELIVERED_MESSAGES")
      applied_all_but(1)
    end)
  end)
end)

dialect.servers(function(database)
  describe("partitions that were taken over from the dead", function()
    local app, host, proxied

    after_each(function() app:close() end)

    local function events(count)
      local list = {}
      for i = 1, count do list[i] = { aggregate_id = "key-" .. i % 4, type = "spec.Put" } end
      return list
    end

    local function applied(count)
      process.wait_until(function() return app.db:value "SELECT count(*) FROM ledger" == tostring(count) end, 60,
        function() return host:err() end)
    end

    -- A host that has taken over what dead ones held, 20 messages behind, and
    -- has applied these.
    local function take_over(deaths)
      -- a lease that is not lost to a busy machine
      app = application.new { database = database, config = CONFIG:format(3):gsub("500ms", "4s"), handlers = {
        ["notes.lua"] = HEAD .. kit.LEDGER .. [[
          return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
            ["spec.Put"] = function(event, ctx)
              if os.getenv "SPEC_DIES" then os.exit(9) end
              ledger("notes", event, ctx)
            end } }]] } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      app:ok("run", "--until-idle")
      app:append(events(20), "--batch", "100")
      for _ = 1, deaths do
        process.wait_until(function()
          return app:moontide("run", "--until-idle", { env = { SPEC_DIES = "1" } }).code == 9
        end, 30, "a death")
      end
      proxied = proxy.start(app, {})
      host = app:start("run", "--database", proxied.url)
      applied(20)
    end

    -- How many transactions have written into the ledger, and how many commits
    -- there were for undelivered messages alone.
    local function transactions()
      local applying, counting = 0, 0
      for _, one in ipairs(proxied:transactions()) do
        local text = table.concat(one.statements, "\n"):lower()
        if text:find("insert into ledger", 1, true) then
          applying = applying + 1
        elseif text:find 'insert into ["`]?consumer_undelivered_messages' then
          counting = counting + 1
        end
      end
      return applying, counting
    end

    local function told() return select(2, host:err():gsub("partitions over from an instance", "")) end

    local function stop()
      host:signal "TERM"
      local result = host:wait(30)
      assert.equal(0, result.code, result.err)
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
    end

    it("are read in pages, each with one commit more, and it says so once", function()
      take_over(1)
      local applying, counting = transactions()
      assert.equal(1, applying)
      assert.equal(1, counting)
      assert.matches("took 12 partitions over from an instance that ended without a word: "
        .. "each batch up to position 20 is counted", host:err(), 1, true)
      -- until the dead one's page is passed
      app:append(events(40), "--batch", "100")
      applied(60)
      assert.equal(counting, select(2, transactions()))
      assert.equal(1, told())
      stop()
    end)

    it("are read one message at a time where two have died, which costs one commit each, and says so once", function()
      take_over(2)
      local applying, counting = transactions()
      assert.equal(20, applying)
      -- the count of a step's first message needs a commit of its own
      assert.is_true(counting <= 5, counting .. " transactions that only count")
      assert.matches("took 12 partitions over from an instance that ended without a word, as one before it had: "
        .. "one message at a time up to position 20,", host:err(), 1, true)
      -- until the dead one's page is passed
      app:append(events(40), "--batch", "100")
      applied(60)
      local after, counts = transactions()
      assert.is_true(after - applying <= 12, ("%d transactions for 40 messages"):format(after - applying))
      assert.equal(counting, counts)
      assert.equal(1, told())
      stop()
    end)
  end)
end)
