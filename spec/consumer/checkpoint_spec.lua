-- Checkpoints: what is done stays done, and nothing is passed over.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

local HANDLERS = kit.LEDGER .. [[
return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
  ["spec.Put"] = function(event, ctx) ledger("notes", event, ctx) end } }]]

dialect.each(function(database)
  describe("a checkpoint", function()
    local rig

    local function start(settings)
      local options = { database = database, files = FILES, handlers = HANDLERS }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function events(count, event_type)
      local list = {}
      for i = 1, count do list[i] = { "key-" .. i % 7, event_type or "spec.Put" } end
      return list
    end

    -- Every position of `spec.Put` exactly once, in order.
    local function complete(first, last)
      local position = first
      for _, entry in ipairs(rig:ledger()) do
        assert.equal(position, tonumber(entry:match ":(%d+)$"))
        position = position + 1
      end
      assert.equal(last + 1, position)
    end

    it("has a row per partition, without a position until something was read", function()
      start()
      assert.same({ { n = kit.partitions, stored = 0, source = "event-store" } }, rig:query [[
        SELECT count(*) AS n, count(position) AS stored, min(source_name) AS source FROM CONSUMER_CHECKPOINTS]])
      assert.equal("RUNNING", rig:state "notes")
      assert.is_nil(rig:consumer("notes").epoch)
    end)

    it("may have as many partitions as the manual allows", function()
      start { partitions = 1024 }
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", {} } }
      rig:run()
      assert.same({ "A:1", "B:2" }, rig:ledger())
      assert.equal(1024, rig:value "SELECT count(*) AS value FROM CONSUMER_CHECKPOINTS")
    end)

    it("stays without a position over an empty topic", function()
      start()
      rig:run()
      rig:reopen()
      rig:run()
      assert.is_nil((rig:checkpoints "notes"))
    end)

    for count = 0, 5 do
      it(("lets the first event after a restart be applied once, after %d others"):format(count), function()
        start()
        if count > 0 then rig:append_all(events(count)) end
        rig:run()
        rig.host:close()
        rig.host = nil
        rig:open()
        rig:append("late", "spec.Put")
        rig:run()
        complete(1, count + 1)
        assert.equal(count + 1, (rig:checkpoints "notes"))
      end)
    end

    it("starts at the first event also when the topic is full already", function()
      start()
      rig:append_all(events(30))
      rig:query "DELETE FROM CONSUMER_CHECKPOINTS"
      rig:query "DELETE FROM CONSUMERS"
      rig:reopen { batch = 7 }
      rig:run()
      complete(1, 30)
    end)

    it("moves forward only", function()
      start { batch = 3 }
      rig:query "CREATE TABLE moves (partition_no INTEGER, old INTEGER, new INTEGER)"
      rig:trigger { name = "note_moves", at = "AFTER UPDATE", on = "CONSUMER_CHECKPOINTS",
        body = "INSERT INTO moves VALUES (NEW.partition_no, OLD.position, NEW.position)" }
      for _ = 1, 4 do
        rig:append_all(events(10))
        rig:redeliver()
        rig:restart()
      end
      complete(1, 40)
      assert.equal(0, rig:value "SELECT count(*) AS value FROM moves WHERE new IS NULL OR new < old")
      assert.is_true(rig:value "SELECT count(*) AS value FROM moves" > 0)
    end)

    it("is fenced when it was moved by somebody else, and nothing is applied twice or passed over", function()
      start()
      rig:append_all(events(5))
      rig:run()
      -- another process has applied 6 to 8, as far as anyone can tell
      rig:append_all(events(6))
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = 8"
      rig:run()
      local positions = {}
      for i, entry in ipairs(rig:ledger()) do positions[i] = entry:match ":(%d+)$" end
      assert.same("1 2 3 4 5 9 10 11", table.concat(positions, " "))
    end)

    it("goes on where each partition stands when they stand apart", function()
      start()
      rig:append_all(events(21))
      rig:run()
      rig:query "DELETE FROM ledger"
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = partition_no % 3 * 5"
      rig:query "UPDATE CONSUMER_CHECKPOINTS SET position = NULL WHERE partition_no % 3 = 0"
      rig:reopen { batch = 2 }
      rig:run()
      local wanted = {}
      for i, row in ipairs(rig:query [[SELECT aggregate_id AS id, global_position AS position FROM EVENT_STORE
          WHERE global_position > partition_key % 3 * 5 ORDER BY aggregate_id, global_position]]) do
        wanted[i] = ("%s:%d"):format(row.id, row.position)
      end
      local got = {}
      for i, row in ipairs(rig:query 'SELECT "key", position FROM ledger ORDER BY "key", n') do
        got[i] = ("%s:%d"):format(row.key, row.position)
      end
      assert.same(wanted, got)
      assert.same({ 21, 21 }, { rig:checkpoints "notes" })
    end)

    it("passes over what nobody handles without a transaction of its own, and is saved at the end", function()
      start { batch = 10 }
      rig:append_all(events(200, "spec.Ignored"))
      rig:run()
      assert.is_nil((rig:checkpoints "notes"))
      rig.host:close()
      rig.host = nil
      assert.equal("12|200|200", rig.app.db:value [[
        SELECT count(position), min(position), max(position) FROM CONSUMER_CHECKPOINTS]])
    end)

    it("is saved at most once a minute over empty stretches", function()
      start()
      rig:append_all(events(3, "spec.Ignored"))
      rig:run()
      rig.host:advance "50s"
      rig:append_all(events(3, "spec.Ignored"))
      rig:run()
      assert.is_nil((rig:checkpoints "notes"))
      rig.host:advance "11s"
      rig:append_all(events(3, "spec.Ignored"))
      rig:run()
      assert.same({ 9, 9 }, { rig:checkpoints "notes" })
      rig:append_all(events(3, "spec.Ignored"))
      rig:run()
      assert.same({ 9, 9 }, { rig:checkpoints "notes" })
    end)

    it("is saved within that minute although nothing follows the empty stretch", function()
      start()
      rig:append_all(events(3, "spec.Ignored"))
      rig:run()
      assert.is_nil((rig:checkpoints "notes"))
      rig.host:advance "61s"
      rig:run()
      assert.same({ 3, 3 }, { rig:checkpoints "notes" })
    end)

    it("takes the empty stretch before a message along", function()
      start()
      rig:append_all(events(50, "spec.Ignored"))
      rig:run()
      rig:append("A", "spec.Put")
      rig:run()
      assert.same({ 51, 51 }, { rig:checkpoints "notes" })
      assert.same({ "A:51" }, rig:ledger())
    end)

    it("takes nothing along that another aggregate type's events are", function()
      start()
      rig:script(HANDLERS:gsub("on = {", 'aggregates = { "spec.other" }, on = {', 1))
      rig:accept()
      rig:reopen()
      rig:append("A", "spec.Put")
      rig.host:append("spec.other", "O", { require "moontide".event "spec.Put" })
      rig:append("A", "spec.Put")
      rig:run()
      assert.same({ "O:2" }, rig:ledger())
    end)
  end)

  describe("a lost answer", function()
    local rig

    after_each(function() rig:close() end)

    it("changes nothing: neither ledger, read models nor checkpoints", function()
      rig = kit.new { database = database, files = FILES, batch = 4, handlers = kit.LEDGER .. [[
        return {
          moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
            ["spec.Put"] = function(event, ctx) ledger("notes", event, ctx) end } },
          moontide.projection "sums" { on = {
            ["spec.Put"] = function(state, event) state.n = (state.n or 0) + event.position end } },
        }]] }
      local list = {}
      for i = 1, 10 do list[i] = { "k" .. i % 3, "spec.Put" } end
      local wanted = {}
      for round = 1, 5 do
        for i = 1, 10 do
          local position = (round - 1) * 10 + i
          local key = "k" .. i % 3
          wanted[key] = (wanted[key] or 0) + position
        end
        rig:append_all(list)
        rig:redeliver()
        assert.equal(round * 10, #rig:ledger())
        for key, n in pairs(wanted) do assert.same({ n = n }, rig.host:read("sums", key)) end
        assert.same({ round * 10, round * 10 }, { rig:checkpoints "sums" })
      end
      local models = rig:query "SELECT * FROM sums ORDER BY read_model_id"
      rig:redeliver()
      assert.same(models, rig:query "SELECT * FROM sums ORDER BY read_model_id")
    end)

    it("changes nothing about undelivered messages", function()
      rig = kit.new { database = database, files = FILES, handlers = kit.LEDGER .. [[
        return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
          ["spec.Put"] = function(event, ctx)
            ledger("notes", event, ctx)
            if event.payload.bad then error "no" end
          end } }]] }
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "B", "spec.Put", {} } }
      rig:redeliver()
      local rows = rig:undelivered()
      assert.same({ "2 B HALTED", "3 B WAITING" }, rig:waiting())
      rig:redeliver()
      assert.same(rows, rig:undelivered())
      assert.same({ "A:1" }, rig:ledger())
      rig:restart()
      rig:redeliver()
      assert.same({ "2 B HALTED", "3 B WAITING" }, rig:waiting())
      assert.equal(1, rig:undelivered()[1].failures)
    end)
  end)

  describe("a consumer that is paused by its row", function()
    local rig

    after_each(function() rig:close() end)

    it("stops at the next batch, alone, and goes on from there", function()
      rig = kit.new { database = database, files = FILES, batch = 5, handlers = kit.LEDGER .. [[
        local list = {}
        for _, name in ipairs { "one", "two" } do
          list[#list + 1] = moontide.sql_projection(name) { tables = "sql/ledger.sql", on = {
            ["spec.Put"] = function(event, ctx) ledger(name, event, ctx) end } }
        end
        return list]] }
      -- the row changes while the consumer is at work: with the batch that has message 12
      rig:trigger { name = "pause", at = "AFTER INSERT", on = "ledger",
        only = "NEW.position = 12 AND NEW.consumer = 'one'",
        body = "UPDATE CONSUMERS SET state = 'PAUSED' WHERE consumer_name = 'one'" }
      local list = {}
      for i = 1, 30 do list[i] = { "k" .. i % 4, "spec.Put" } end
      rig:append_all(list)
      rig:run()
      assert.equal("PAUSED", rig:state "one")
      local applied = #rig:ledger "one"
      assert.is_true(applied >= 12 and applied <= 16) -- to the end of the batch that has message 12
      assert.equal(30, #rig:ledger "two")
      rig:restart()
      rig:run()
      assert.equal("PAUSED", rig:state "one")
      assert.equal(applied, #rig:ledger "one")
      rig:drop_trigger "pause"
      rig:query "UPDATE CONSUMERS SET state = NULL WHERE consumer_name = 'one'"
      rig:restart()
      rig:run()
      assert.same(rig:ledger "two", rig:ledger "one")
    end)
  end)
end)
