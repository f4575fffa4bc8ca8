-- `pairs` gives another order in each process. Nothing that is stored tells of
-- it: what a table becomes has the same bytes whoever makes it.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local PROCESSES = 20

-- The table of each message has the same members, put in by another order. A
-- publisher's message that comes again with other bytes fails.
local HANDLERS = [[
local moontide = require "moontide"
local function made(from)
  local t = {}
  for i = 0, 99 do
    local n = (from * 37 + i * 61) % 100
    t["member " .. n] = { n = n, ["x" .. n] = { b = 1, a = 2, ["\195\164"] = moontide.array() } }
    t["gone " .. n] = n
  end
  for n = 0, 99 do t["gone " .. n] = nil end
  return t
end
return {
  moontide.publisher "mail" { to = "kafka:mail" },
  moontide.listener "teller" { start = "beginning", retry = { attempts = 2, delay = 0 }, on = {
    ["spec.Put"] = function(event, ctx)
      ctx:publish("mail", "spec.Sent", made(event.position), { id = "00000000-0000-4000-8000-000000000001",
        ordering_key = "k" })
      ctx:emit("spec.Told", made(event.position), { key = "k",
        metadata = { correlation_id = "c", causation_id = "d" } })
      ctx:upsert("cells", { a = 1, b = 2, c = 3 }, { d = event.position, e = moontide.add(1), f = "f", g = 7 })
      if ctx.attempt == 1 then error "again" end
    end } },
  moontide.projection "kept" { fields = { n = moontide.types.integer() }, on = {
    ["spec.Put"] = function(state, event)
      state.n = 0
      state.made = made(event.position)
    end } },
}]]

dialect.each(function(database)
  describe("a table", function()
    it("becomes the same in every process, at the first attempt and at a retry", function()
      local app = application.new { database = database, config = 'retry = { attempts = 2, delay = "1ms" }',
        handlers = { ["spec.lua"] = HANDLERS } }
      app:ok("run", "--until-idle")
      app.db:command(app.db:ddl [[CREATE TABLE cells (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f TEXT,
        g INTEGER, PRIMARY KEY (c, a, b))]])
      for i = 1, PROCESSES do
        app:append { { aggregate_id = "k" .. i, type = "spec.Put" } }
        repeat -- until its retry was due
          local result = app:moontide("run", "--until-idle")
        until result.code ~= 75
        assert.equal(tostring(i), app.db:value "SELECT count(*) FROM EVENT_CAPTURE_RECORDS")
      end
      assert.same({}, app:json("dead-letters", "list").messages)
      assert.equal("1", app.db:value "SELECT count(*) FROM OUTBOX")
      assert.equal("1", app.db:value "SELECT count(DISTINCT CAST(payload AS CHAR(20000))) FROM EVENT_CAPTURE_RECORDS")
      assert.equal("1", app.db:value "SELECT count(DISTINCT CAST(state AS CHAR(20000))) FROM kept")
      assert.equal("1|20|f|7", app.db:value "SELECT count(*), max(e), max(f), max(g) FROM cells")
      app:close()
    end)
  end)
end)
