-- Batches: as many messages as asked for at most, fewer when they are slow.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

dialect.each(function(database)
  describe("a batch", function()
    local rig

    after_each(function() rig:close() end)

    -- The sizes of the batches that were committed, in order.
    local function start(settings, handlers)
      local options = { database = database, files = { ["sql/ledger.sql"] = kit.LEDGER_SQL }, handlers = handlers }
      for key, value in pairs(settings) do options[key] = value end
      rig = kit.new(options)
      rig:query "CREATE TABLE moves (n INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER)"
      rig:trigger { name = "note_moves", at = "AFTER UPDATE", on = "CONSUMER_CHECKPOINTS",
        only = "NEW.partition_no = 0", body = "INSERT INTO moves (position) VALUES (NEW.position)" }
    end

    local function sizes()
      local list, before = {}, 0
      for i, row in ipairs(rig:query "SELECT position FROM moves ORDER BY n") do
        list[i], before = row.position - before, row.position
      end
      return list
    end

    local function append(count, event_type, payload)
      local list = {}
      for i = 1, count do list[i] = { "k" .. i % 7, event_type, payload } end
      rig:append_all(list)
    end

    local FAST = kit.LEDGER .. [[
      return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
        ["spec.Fast"] = function(event, ctx) ledger("notes", event, ctx) end } }]]

    it("has `batch` messages at most", function()
      start({ batch = 7 }, FAST)
      append(20, "spec.Fast")
      rig:run()
      local list, sum = sizes(), 0
      for _, size in ipairs(list) do
        assert.is_true(size <= 7) -- a slow machine makes them smaller
        sum = sum + size
      end
      assert.same({ 7, 20 }, { list[1], sum })
    end)

    it("reaches over messages that nobody wants", function()
      start({ batch = 3 }, FAST)
      for _ = 1, 3 do
        append(1, "spec.Fast")
        append(50, "spec.Ignored")
      end
      rig:run()
      local list = sizes()
      assert.equal(1, #list)
      assert.equal(3, #rig:ledger())
    end)

    it("shrinks when its messages are slow and grows again when they are not", function()
      start({ batch = 400 }, ([[
        return moontide.sql_projection "notes" { on = {
          ["spec.Slow"] = function(event, ctx) ctx:query "%s" end,
          ["spec.Fast"] = function() end } }]]):format(database:count_to(20000)))
      append(600, "spec.Slow")
      rig:run()
      local slow = sizes()
      local small = slow[#slow - 1]
      assert.is_true(small < 200, "the last full batch had " .. small)
      rig:query "DELETE FROM moves"
      append(2000, "spec.Fast")
      rig:run()
      local largest = 0
      for i, size in ipairs(sizes()) do
        if i > 1 then largest = math.max(largest, size) end
      end
      assert.is_true(largest >= 2 * small, "the largest batch had " .. largest)
      assert.is_true(largest <= 400)
    end)

    it("ends within a second when its handlers run into their limit, at its first attempt and at a retry", function()
      start({ limits = { time = "300ms" } }, [[
        return moontide.projection "notes" {
          retry = { attempts = 3, delay = "1m", jitter = 0 },
          on = { ["spec.Slow"] = function() while true do end end, ["spec.Fast"] = function() end } }]])
      append(7, "spec.Slow")
      local function attempts()
        local list = {}
        for i, row in ipairs(rig:undelivered()) do list[i] = row.failures end
        return list
      end
      rig:run()
      assert.same({ 1, 1, 1, 1, 1, 1, 1 }, attempts())
      assert.is_true(#sizes() > 1)
      for _, size in ipairs(sizes()) do assert.is_true(size <= 4, size .. " messages of 300 ms in one batch") end
      rig:query "DELETE FROM moves"
      rig:trigger { name = "note_tries", at = "AFTER UPDATE", on = "CONSUMER_UNDELIVERED_MESSAGES",
        body = "INSERT INTO moves (position) VALUES (NEW.message_position)" }
      rig.host:advance "2m"
      rig:append("other", "spec.Fast", {}) -- its page comes between the first batch of retries and the next
      rig:run()
      local first = 0
      for i, row in ipairs(rig:query "SELECT position FROM moves ORDER BY n") do
        if tonumber(row.position) == 8 then first = i - 1 end
      end
      assert.is_true(first >= 1 and first <= 4, first .. " messages of 300 ms in one batch of retries")
      assert.same({ 2, 2, 2, 2, 2, 2, 2 }, attempts())
    end)

    it("ends behind a message that took long, and what could not be told behind it is met again", function()
      start({ limits = { time = "2s" } }, [[
        return moontide.projection "notes" {
          retry = { attempts = 1 }, on_error = "dead_letter",
          key = function(event)
            if not event.payload.key then error "no key" end
            return event.payload.key
          end,
          on = { ["spec.Put"] = function(state, event)
            if event.payload.slow then while true do end end
            state.n = event.position
          end } }]])
      rig:append_all {
        { "a", "spec.Put", { key = "a", slow = true } }, { "b", "spec.Put", { key = "b" } },
        { "c", "spec.Put", {} }, { "d", "spec.Put", { key = "d" } },
      }
      rig:run()
      local told = {}
      for i, row in ipairs(rig:query [[SELECT message_position AS position, count(*) AS n
          FROM CONSUMER_UNDELIVERED_MESSAGES GROUP BY message_position ORDER BY message_position]]) do
        told[i] = row.position .. (tonumber(row.n) == 1 and " once" or " in each partition")
      end
      assert.same({ "1 once", "3 in each partition" }, told)
      local models = rig:query "SELECT read_model_id AS id FROM notes ORDER BY read_model_id"
      assert.equal("b d", models[1].id .. " " .. models[2].id)
    end)

    it("ends where its payloads are large, whatever `batch` says", function()
      start({ batch = 1000, limits = { payload = "4MiB" } }, FAST)
      append(30, "spec.Fast", { text = ("x"):rep(2 * 1024 * 1024) })
      rig:run()
      assert.equal(30, #rig:ledger())
      for _, size in ipairs(sizes()) do assert.is_true(size <= 6, size .. " messages of 2 MiB in one batch") end
    end)

    it("lets a message through that is larger than a batch should be", function()
      start({ batch = 10, limits = { payload = "16MiB" } }, FAST)
      append(2, "spec.Fast", { text = ("x"):rep(12 * 1024 * 1024) })
      rig:run()
      assert.same({ 1, 1 }, sizes())
    end)
  end)
end)
