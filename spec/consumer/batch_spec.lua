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
      assert.same({ 7, 7, 6 }, sizes())
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
