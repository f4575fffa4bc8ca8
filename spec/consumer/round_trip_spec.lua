-- What a batch costs where the server is far away: round trips, as a proxy in
-- front of the server sees them. A round trip is whatever the host sends before
-- it waits for an answer again.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local proxy = require "spec.support.proxy"

local BATCH, EVENTS = 5, 60
local WARM = 2 -- batches in which statements are prepared
local JUDGED = 5 -- at least

local KEYED = [[
  return moontide.projection "counts" { on = {
    ["spec.Put"] = function(state, event) state.n = (state.n or 0) + event.payload.i end } }]]

local QUEUED = [[
  return moontide.sql_projection "sums" { tables = "sql/sums.sql", on = {
    ["spec.Put"] = function(event, ctx)
      %s
    end } }]]

local PUBLISHES = [[
  return { moontide.publisher "out" { to = "stdout:" },
    moontide.listener "relay" { start = "beginning", on = { ["spec.Put"] = function(event, ctx)
      ctx:publish("out", "out.Put", { i = event.payload.i }, %s)
    end } } }]]

local UPSERT = 'ctx:upsert("sums", { key = ctx.key }, { total = moontide.add(event.payload.i) })'

-- All its messages lie dead at once, each without a key.
local KEYLESS = [[
  return moontide.projection "keyless" { on_error = "dead_letter", retry = { attempts = 1 },
    key = function() error "no" end,
    on = { ["spec.Put"] = function() end } }]]

local TABLE = 'CREATE TABLE IF NOT EXISTS sums ("key" TEXT NOT NULL PRIMARY KEY, total INTEGER NOT NULL);'

dialect.each(function(database)
  if database.name ~= "postgres" then return end -- where a pipeline can be had

  describe("a batch", function()
    local app, proxied

    after_each(function() app:close() end)

    local function fill(handler, partitions)
      app = application.new { database = database,
        config = ("partitions = %d, batch = %d"):format(partitions, BATCH),
        handlers = { ["spec.lua"] = 'local moontide = require "moontide"\n' .. handler } }
      app:write("sql/sums.sql", app.db:ddl(TABLE))
      local events = {}
      for i = 1, EVENTS do
        events[i] = { aggregate_id = "key-" .. i % 7, type = "spec.Put", payload = ('{"i":%d}'):format(i) }
      end
      app:append(events)
    end

    local function run()
      proxied = proxy.start(app, {})
      app:ok("run", "--until-idle", "--database", proxied.url)
    end

    local function start(handler)
      fill(handler, 12)
      run()
    end

    local function count(statements, pattern)
      local found = 0
      for _, statement in ipairs(statements) do
        if statement:find(pattern) then found = found + 1 end
      end
      return found
    end

    -- A look at the mark is no part of a batch: a caught-up host has it anyway,
    -- a busy one 50 times a second at most.
    local function is_look(turn)
      return #turn == 1 and turn[1]:find "^SELECT m.high_water_mark" ~= nil
    end

    -- The round trips of each batch, and how many statements that match ran.
    local function batches(pattern)
      local list, seen = {}, 0
      for _, transaction in ipairs(proxied:transactions()) do
        local statements = transaction.statements
        if count(statements, "UPDATE CONSUMER_CHECKPOINTS") > 0 then
          local trips = 0
          for _, turn in ipairs(transaction.turns) do
            if not is_look(turn) then trips = trips + 1 end
          end
          seen = seen + 1
          if seen > WARM then
            list[#list + 1] = { trips = trips, found = count(statements, pattern or "^COMMIT"),
              text = table.concat(statements, "\n") }
          end
        end
      end
      assert.is_true(#list >= JUDGED, ("only %d batches"):format(#list))
      return list
    end

    -- No batch takes more than three and `each` for a statement that matches. On
    -- a busy machine what is sent at once may pass the proxy in two parts, and
    -- counts as two: that happens to one batch in many, and never to most.
    local function judge(pattern, each)
      local asked, parted, all = 0, 0, batches(pattern)
      for _, batch in ipairs(all) do
        local over = batch.trips - 3 - each * batch.found
        if over > 0 then parted = parted + 1 end
        assert.is_true(over <= 1 and parted <= #all / 5,
          ("%d round trips:\n%s"):format(batch.trips, batch.text))
        assert.is_true(batch.trips > batch.found * math.min(each, 1))
        asked = asked + batch.found
      end
      return asked
    end

    it("of a keyed projection takes three round trips at most", function()
      start(KEYED)
      judge("^COMMIT", 0)
    end)

    it("of a projection that queues its statements takes three round trips at most", function()
      start(QUEUED:format('ctx:execute("DELETE FROM sums WHERE total = ?", -event.payload.i) ' .. UPSERT))
      judge("^COMMIT", 0)
    end)

    it("of a listener that publishes takes three round trips at most", function()
      start(PUBLISHES:format "nil")
      judge("^COMMIT", 0)
    end)

    it("takes one more, whatever the number of messages that bring an id", function()
      start(PUBLISHES:format "{ id = event.id }")
      assert.is_true(judge("^SELECT o.event_id", 1) >= JUDGED)
      for _, batch in ipairs(batches "^SELECT o.event_id") do assert.equal(1, batch.found, batch.text) end
      for _, batch in ipairs(batches "^INSERT INTO OUTBOX") do assert.is_true(batch.found <= 1, batch.text) end
    end)

    it("takes one more for each query of its handlers", function()
      start(QUEUED:format 'ctx:query("SELECT total FROM sums WHERE total = ?", event.payload.i)')
      assert.is_true(judge("^SELECT total FROM sums", 1) > JUDGED * BATCH / 2)
    end)

    it("takes one more for each update of its handlers", function()
      start(QUEUED:format 'ctx:update("UPDATE sums SET total = total WHERE total = ?", event.payload.i)')
      assert.is_true(judge("^UPDATE sums SET total = total", 1) > JUDGED * BATCH / 2)
    end)

    it("takes one more for what is queued in front of a query", function()
      start(QUEUED:format('ctx:query("SELECT total FROM sums WHERE total = ?", event.payload.i) ' .. UPSERT))
      assert.is_true(judge("^SELECT total FROM sums", 2) > JUDGED * BATCH / 2)
    end)

    it("of retries asks once what is recorded of messages without a key", function()
      fill(KEYLESS, 1)
      app:ok("run", "--until-idle")
      assert.equal(EVENTS, app:json("dead-letters", "retry", "--all").retried)
      run()
      local asked = 0
      for _, transaction in ipairs(proxied:transactions()) do
        local found = count(transaction.statements, "SELECT u.id::text,.*unresolved, u.failure_reason")
        assert.is_true(found <= 1, table.concat(transaction.statements, "\n"))
        asked = asked + found
      end
      assert.is_true(asked >= EVENTS / BATCH)
    end)
  end)
end)
