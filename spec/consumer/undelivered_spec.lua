-- Rows of undelivered and skipped messages: whose they are, and how long a skip
-- is kept.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local FILES = { ["sql/ledger.sql"] = kit.LEDGER_SQL }

-- Keys that only an exact comparison tells apart.
local ALIKE = { "a", "A", "a ", "á", "ａ", "a\\", 'a"', "a😀", "a😁", "ss", "ß" }

dialect.each(function(database)
  describe("what waits behind a message", function()
    it("is of the very same key, not of one that looks like it", function()
      local rig = kit.new { database = database, files = FILES, handlers = kit.LEDGER .. [[
        return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on_error = "dead_letter_key",
          retry = { attempts = 3, delay = "1000s", max_delay = "1000s", factor = 1, jitter = 0 },
          on = { ["spec.Put"] = function(event, ctx)
            ledger("notes", event, ctx)
            if event.payload.fails and ctx.attempt <= 2 then
              error(ctx.key == "a" and ctx.attempt == 2 and moontide.permanent "no" or "no")
            end
          end } }]] }
      finally(function() rig:close() end)
      local list, expected = {}, {}
      for i, key in ipairs(ALIKE) do list[i] = { key, "spec.Put", { fails = true } } end
      for i = 2, #ALIKE do expected[#expected + 1] = ("%s:%d"):format(ALIKE[i], i) end
      for i, key in ipairs(ALIKE) do
        list[#list + 1] = { key, "spec.Put", {} }
        if i > 1 then expected[#expected + 1] = ("%s:%d"):format(key, #list) end
      end
      rig:append_all(list)
      rig:run()
      assert.equal(#list, #rig:undelivered())
      rig.host:advance "1001s"
      rig:run()
      assert.same({}, rig:ledger())
      for _, row in ipairs(rig:undelivered()) do -- `a` is dead, and the others wait on
        assert.equal(row.key == "a", row.status == "DEAD_LETTER_KEY")
      end
      rig.host:advance "1001s"
      rig:run()
      assert.same({ "1 a DEAD_LETTER_KEY", ("%d a DEAD_LETTER_KEY"):format(#ALIKE + 1) }, rig:waiting())
      assert.same(expected, rig:ledger())
      for i, key in ipairs(ALIKE) do assert.equal(i == 1 and 1 or 0, #rig.host:dead_letters { key = key }) end
    end)
  end)

  describe("a skip for one key of a message", function()
    local rig

    local function keyed(body)
      return ([[
        return moontide.projection "keyed" { retry = { attempts = 1 }, on_error = "dead_letter_key",
          key = function(event) return event.payload.from, event.payload.to end,
          on = { ["spec.Move"] = function(state, event)
            %s
            state.seen = (state.seen and state.seen .. " " or "") .. event.position
          end } }]]):format(body)
    end

    local function skips()
      local list = {}
      for i, row in ipairs(rig:query [[SELECT message_position AS position, resolved_key AS "key"
          FROM CONSUMER_SKIPPED_MESSAGES ORDER BY message_position]]) do
        list[i] = ("%d %s"):format(row.position, row.key)
      end
      return list
    end

    local function pass() -- every partition passes one more message
      rig:append("-", "spec.Move", { from = "z" })
      rig:run()
    end

    it("is kept as long as the message lies undelivered for another one, and goes then", function()
      rig = kit.new { database = database, handlers = keyed 'if event.payload.bad then error "bad" end' }
      finally(function() rig:close() end)
      rig:append("-", "spec.Move", { from = "x", to = "y", bad = true })
      rig:run()
      assert.equal(1, rig.host:delete({ key = "x" }).deleted)
      assert.same({ "1 x" }, skips())
      pass()
      assert.same({ "1 x" }, skips())
      assert.same({ "1 y DEAD_LETTER_KEY" }, rig:waiting())
      rig:script(keyed "")
      rig:reopen()
      rig.host:retry { key = "y" }
      rig:run()
      assert.same({ seen = "1" }, rig.host:read("keyed", "y"))
      pass()
      assert.same({}, skips())
      assert.is_nil(rig.host:read("keyed", "x"))
    end)
  end)
end)
