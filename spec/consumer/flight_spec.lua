-- Once a batch has found nothing in its way, the next one is sent without a look
-- before, and its commit is not waited for. Whatever happens meanwhile is met
-- all the same.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local proxy = require "spec.support.proxy"

local HANDLERS = kit.LEDGER .. [[
  return moontide.sql_projection "notes" { tables = "sql/ledger.sql", %s on = {
    ["spec.Put"] = function(event, ctx)
      ledger("notes", event, ctx)
      %s
    end } }]]

dialect.each(function(database)
  describe("a consumer that has found nothing in its way", function()
    local rig

    -- Ten messages are applied; position 11 comes next.
    local function start(fault, policy)
      rig = kit.new { database = database, batch = 2, files = { ["sql/ledger.sql"] = kit.LEDGER_SQL },
        handlers = HANDLERS:format(('on_error = "%s", retry = { attempts = 1 },'):format(policy or "dead_letter"),
          fault or "") }
      for i = 1, 10 do rig:append("k" .. i % 3, "spec.Put", { i = i }) end
      rig:run()
      assert.equal(10, #rig:ledger())
    end

    local function more(first, last)
      for i = first, last do rig:append("k" .. i % 3, "spec.Put", { i = i }) end
      rig:run()
    end

    -- The positions in the ledger from 11 on.
    local function applied()
      local list = {}
      for _, row in ipairs(rig:query "SELECT position AS p FROM ledger WHERE position > 10 ORDER BY position, n") do
        list[#list + 1] = row.p
      end
      return list
    end

    after_each(function() rig:close() end)

    it("meets checkpoints that another process has moved", function()
      start()
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 12"
      more(11, 20)
      assert.same({ 13, 14, 15, 16, 17, 18, 19, 20 }, applied())
    end)

    it("meets one checkpoint that another process has moved", function()
      start()
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 20 WHERE partition_no = 0"
      more(11, 20)
      local expected = {}
      for _, row in ipairs(rig:query [[SELECT global_position AS p FROM EVENT_STORE
          WHERE global_position > 10 AND partition_key <> 0 ORDER BY global_position]]) do
        expected[#expected + 1] = row.p
      end
      assert.same(expected, applied())
    end)

    it("stops when an operator has paused it", function()
      start()
      rig:query "UPDATE CONSUMERS SET state = 'PAUSED'"
      more(11, 20)
      assert.same({}, applied())
      assert.equal(10, rig:value "SELECT max(position) AS value FROM CONSUMER_CHECKPOINTS")
    end)

    it("passes over a message that is skipped since", function()
      start()
      rig:query([[INSERT INTO CONSUMER_SKIPPED_MESSAGES (id, consumer_id, source_name, partition_no,
          message_position, resolved_key, every_key)
        SELECT ?, id, 'event-store', 0, 13, '', ? FROM CONSUMERS]], "00000000-0000-7000-8000-000000000001", true)
      more(11, 16)
      assert.same({ 11, 12, 14, 15, 16 }, applied())
    end)

    it("applies the neighbours of a message that fails in its handler once", function()
      start 'if event.payload.i == 15 then error "no" end'
      more(11, 20)
      assert.same({ 11, 12, 13, 14, 16, 17, 18, 19, 20 }, applied())
      assert.equal(1, #rig:undelivered())
    end)

    it("applies the neighbours of a message that the database refuses once", function()
      start 'if event.payload.i == 15 then ctx:execute("INSERT INTO ledger (consumer) VALUES (NULL)") end'
      more(11, 20)
      assert.same({ 11, 12, 13, 14, 16, 17, 18, 19, 20 }, applied())
      assert.equal(15, rig:undelivered()[1].position)
    end)

    it("applies the neighbours of a message that fails at its query once", function()
      start 'if event.payload.i == 15 then ctx:query("SELECT * FROM nowhere") end'
      more(11, 20)
      assert.same({ 11, 12, 13, 14, 16, 17, 18, 19, 20 }, applied())
      assert.equal(15, rig:undelivered()[1].position)
    end)

    it("goes on after a failure as before", function()
      start 'if event.payload.i % 5 == 0 and event.payload.i > 10 then error "no" end'
      more(11, 40)
      assert.equal(24, #applied())
      assert.equal(6, #rig:undelivered())
    end)

    it("records what comes behind a dead letter of its key, once each", function()
      start('if event.payload.i == 12 then error "no" end', "dead_letter_key")
      more(11, 40)
      local expected, waiting, recorded = {}, {}, {}
      for i = 11, 40 do table.insert(i % 3 == 0 and waiting or expected, i) end
      for _, row in ipairs(rig:undelivered()) do recorded[#recorded + 1] = row.position end
      assert.same(expected, applied())
      assert.same(waiting, recorded)
    end)

    it("meets that somebody has settled what was undelivered", function()
      start 'if event.payload.i == 15 then error "no" end'
      more(11, 20)
      rig:query "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES"
      more(21, 30)
      assert.equal(19, #applied())
      assert.same({}, rig:undelivered())
    end)
  end)

  if database.name ~= "postgres" then return end -- where a pipeline can be had

  describe("a batch that is written", function()
    local app

    after_each(function() app:close() end)

    it("has its page asked for once, also when two projections take turns", function()
      app = application.new { database = database, config = "partitions = 12, batch = 5", handlers = {
        ["notes.lua"] = 'local moontide = require "moontide"\n' .. HANDLERS:format("", ""),
        ["counts.lua"] = [[return require "moontide".projection "counts" { on = {
          ["spec.Put"] = function(state) state.n = (state.n or 0) + 1 end } }]] } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      local events = {}
      for i = 1, 60 do events[i] = { aggregate_id = "key-" .. i % 7, type = "spec.Put", payload = "{}" } end
      app:append(events)
      local proxied = proxy.start(app, {})
      app:ok("run", "--until-idle", "--database", proxied.url)
      local pages, batches = 0, 0
      for _, event in ipairs(proxied:trace()) do
        local statement = event.statement or ""
        if statement:find "^SELECT global_position" then pages = pages + 1 end
        if statement:find "UPDATE CONSUMER_CHECKPOINTS" then batches = batches + 1 end
      end
      assert.is_true(batches >= 24, batches .. " batches")
      assert.is_true(pages <= batches + 2, ("%d pages for %d batches"):format(pages, batches))
    end)

    -- Sixty messages in batches of five: how many transactions are sent in one
    -- turn with the query for the next page in front, and contain `what`.
    local function sent_together(handlers, what)
      app = application.new { database = database, config = "partitions = 12, batch = 5", handlers = {
        ["spec.lua"] = 'local moontide = require "moontide"\n' .. handlers } }
      app:write("sql/ledger.sql", app.db:ddl(kit.LEDGER_SQL))
      local events = {}
      for i = 1, 60 do events[i] = { aggregate_id = "key-" .. i % 7, type = "spec.Put", payload = "{}" } end
      app:append(events)
      local proxied = proxy.start(app, {})
      app:ok("run", "--until-idle", "--database", proxied.url)
      local together = 0
      for _, transaction in ipairs(proxied:transactions()) do
        for _, turn in ipairs(transaction.turns) do
          local text = table.concat(turn, "\n")
          if text:find("^SELECT global_position.*\nBEGIN.*" .. what .. ".*\nCOMMIT$") then together = together + 1 end
        end
      end
      return together
    end

    it("has the next page asked for in front of it", function()
      local together = sent_together(HANDLERS:format("", ""), "")
      assert.is_true(together >= 8, ("%d of 12 batches"):format(together))
    end)

    it("goes without a look also where messages wait behind a dead letter", function()
      local together = sent_together(HANDLERS:format(
        'on_error = "dead_letter_key", retry = { attempts = 1 },',
        'if event.key == "key-1" then error "no" end'),
        "UPDATE CONSUMER_CHECKPOINTS AS k.*FROM CONSUMERS AS c")
      assert.equal(9, tonumber(app.db:query("SELECT COUNT(*) AS n FROM CONSUMER_UNDELIVERED_MESSAGES")[1].n))
      assert.is_true(together >= 8, ("%d of 12 batches"):format(together))
    end)
  end)
end)
