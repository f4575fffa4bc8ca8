-- `moontide topics`: which topics of read models are on, and how one is switched
-- off again, beside hosts that run.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local TOPIC = "read-model:totals"

local TOTALS = [[
  local moontide = require "moontide"
  local totals = moontide.projection "totals" { %s
    on = { ["spec.Add"] = function(state, event) state.n = (state.n or 0) + event.payload.by end,
      ["spec.Drop"] = function() return moontide.delete end } } ]]

local READER = [[
  local seen = moontide.projection "seen" { source = "read-model:totals", on = {
    ["read-model.Changed"] = function(state, event) state.n = event.payload.n end,
    ["read-model.Deleted"] = function() return moontide.delete end } }
  return { totals, seen }]]

local BOTH, ALONE = TOTALS:format "" .. READER, TOTALS:format "" .. "return totals"

-- What its batches hold for as long as they run.
local HELD = {
  postgres = [[BEGIN; SELECT 1 FROM CONSUMER_CHECKPOINTS AS k JOIN CONSUMERS AS c ON c.id = k.consumer_id
    WHERE c.consumer_name = 'totals' FOR SHARE OF k;]],
  mysql = "BEGIN; SELECT 1 FROM CONSUMERS WHERE consumer_name = 'totals' LOCK IN SHARE MODE;",
}

dialect.each(function(database)
  describe("topics", function()
    local app

    local function start(handlers)
      app = application.new { database = database, handlers = { ["spec.lua"] = handlers } }
      app:ok("run", "--until-idle")
    end

    after_each(function() app:close() end)

    local function append(event_type, keys)
      local events = {}
      for i, key in ipairs(keys) do
        events[i] = { aggregate_id = key, type = event_type, payload = '{"by":1}' }
      end
      app:append(events)
    end

    local function count(name)
      return tonumber(app.db:query("SELECT count(*) AS n FROM " .. name)[1].n)
    end

    local function read(name)
      local list = {}
      for i, model in ipairs(app:json("read", name)) do list[i] = model.key .. "=" .. model.state.n end
      return table.concat(list, " ")
    end

    -- As an operator does before it is switched off.
    local function let_go()
      app:write("handlers/spec.lua", ALONE)
      app:ok("unsubscribe", "seen")
    end

    it("lists what is on", function()
      start(ALONE)
      assert.same({}, app:json "topics")
      app:write("handlers/spec.lua", BOTH)
      app:ok("run", "--until-idle")
      local topic = app:json("topics", "list")[1]
      assert.equal(TOPIC, topic.topic)
      assert.is_true(topic.filled)
      assert.matches("^%d+%-%d+%-%d+T", topic.on_since)
      assert.equal(require("moontide").null, topic.off_since)
      assert.matches("read%-model:totals%s+on%s+%d+%-", app:ok "topics")
    end)

    it("off deletes the messages, and nothing is appended from then on", function()
      start(BOTH)
      append("spec.Add", { "A", "B", "C" })
      app:ok("run", "--until-idle")
      assert.equal(3, count "READ_MODEL_CAPTURE_RECORDS")
      let_go()
      assert.same({ topic = TOPIC, changed = true, deleted = 3 }, app:json("topics", "off", TOPIC))
      append("spec.Add", { "A", "D" })
      app:ok("run", "--until-idle")
      assert.equal(0, count "READ_MODEL_CAPTURE_RECORDS")
      assert.equal(0, count "READ_MODEL_TOPICS")
      assert.same({}, app:json "topics")
      assert.matches("is off: nothing changed", app:ok("topics", "off", "totals"), 1, true)
    end)

    it("that are on again tell what is there by then, behind all positions before", function()
      start(BOTH)
      append("spec.Add", { "A", "B", "C" })
      app:ok("run", "--until-idle")
      local before = app.db:query("SELECT max(topic_position) AS n FROM READ_MODEL_CAPTURE_RECORDS")[1].n
      let_go()
      app:ok("topics", "off", TOPIC)
      append("spec.Drop", { "B" })
      app:ok("run", "--until-idle")
      app.db:execute "DELETE FROM seen"
      app:write("handlers/spec.lua", BOTH)
      app:ok("run", "--until-idle")
      append("spec.Add", { "C" })
      app:ok("run", "--until-idle")
      assert.equal("A=1 C=2", read "seen")
      local first = app.db:query("SELECT min(topic_position) AS n FROM READ_MODEL_CAPTURE_RECORDS")[1].n
      assert.is_true(tonumber(first) > tonumber(before))
    end)

    it("off that was interrupted goes on when it is said again", function()
      start(BOTH)
      append("spec.Add", { "A", "B" })
      app:ok("run", "--until-idle")
      let_go()
      app.db:execute "UPDATE READ_MODEL_TOPICS SET switched_off_at = switched_on_at"
      append("spec.Add", { "C" })
      app:ok("run", "--until-idle")
      assert.matches("off, not emptied", app:ok "topics", 1, true)
      assert.same({ topic = TOPIC, changed = true, deleted = 2 }, app:json("topics", "off", TOPIC))
      assert.equal(0, count "READ_MODEL_TOPICS")
    end)

    it("that were left so are emptied by who reads them next", function()
      start(BOTH)
      append("spec.Add", { "A", "B" })
      app:ok("run", "--until-idle")
      let_go()
      app.db:execute "UPDATE READ_MODEL_TOPICS SET switched_off_at = switched_on_at"
      append("spec.Drop", { "B" })
      app:ok("run", "--until-idle")
      app.db:execute "DELETE FROM seen"
      app:write("handlers/spec.lua", BOTH)
      app:ok("run", "--until-idle")
      assert.equal("A=1", read "seen")
      assert.equal(1, count "READ_MODEL_CAPTURE_RECORDS")
    end)

    it("off is refused while somebody reads it, or would again", function()
      start(BOTH)
      assert.matches("projection 'seen' of the scripts reads", app:fails(3, "topics", "off", TOPIC), 1, true)
      app:write("handlers/spec.lua", ALONE)
      assert.matches("`moontide unsubscribe seen --source read-model:totals`",
        app:fails(3, "topics", "off", TOPIC), 1, true)
      assert.equal(TOPIC, app:json("topics")[1].topic)
      app:ok("unsubscribe", "seen")
      app:write("handlers/spec.lua", TOTALS:format "topic = true," .. "return totals")
      assert.matches("topic = true", app:fails(3, "topics", "off", TOPIC), 1, true)
      app:write("handlers/spec.lua", "return nonsense(")
      assert.matches("scripts cannot be loaded", app:fails(3, "topics", "off", TOPIC), 1, true)
      app:write("handlers/spec.lua", ALONE)
      app:ok("topics", "off", TOPIC)
      assert.matches("did you mean 'totals'", app:fails(64, "topics", "off", "read-model:total"), 1, true)
      assert.matches("takes the name of a topic", app:fails(64, "topics", "off"), 1, true)
    end)

    it("that a consumer reads no more, which reads another now, are let go of without it", function()
      start(BOTH)
      append("spec.Add", { "A" })
      app:ok("run", "--until-idle")
      app:write("handlers/spec.lua", (BOTH:gsub('"totals"', '"sums"'):gsub("read%-model:totals", "read-model:sums")))
      app:expect(1, "run", "--until-idle") -- its declaration has changed
      app:ok("resume", "seen", "--accept")
      app:ok("run", "--until-idle")
      assert.matches("--source read-model:totals`", app:fails(3, "topics", "off", TOPIC), 1, true)
      app:fails(3, "unsubscribe", "seen", "--source", "read-model:sums")
      app:ok("unsubscribe", "seen", "--source", TOPIC)
      app:ok("topics", "off", TOPIC)
      append("spec.Add", { "A" })
      app:ok("run", "--until-idle")
      assert.equal("A=2", read "seen")
      assert.equal("read-model:sums", app:json("topics")[1].topic)
    end)

    it("off is safe beside a host that applies", function()
      start(BOTH)
      append("spec.Add", { "A" })
      app:ok("run", "--until-idle")
      let_go()
      local host = app:start "run"
      local all = {}
      for i = 1, 300 do all[i] = "key-" .. i end
      append("spec.Add", all)
      app:ok("topics", "off", TOPIC)
      append("spec.Add", all)
      process.wait_until(function() return read("totals"):find "key%-300=2" ~= nil end, 20,
        function() return "all events to be applied" end)
      host:signal "TERM"
      assert.equal(0, host:wait(20).code)
      assert.equal(0, count "READ_MODEL_CAPTURE_RECORDS")
    end)

    it("are named by who unsubscribes the last reader", function()
      start(BOTH)
      app:write("handlers/spec.lua", ALONE)
      assert.matches("`moontide topics off read-model:totals`", app:ok("unsubscribe", "seen"), 1, true)
    end)

    it("are named by who unsubscribes the last reader, in JSON too", function()
      start(BOTH)
      app:write("handlers/spec.lua", ALONE)
      assert.equal(TOPIC, app:json("unsubscribe", "seen").unread_topic)
    end)

    if database.name ~= "sqlite" then
      -- where one writes at a time, nobody could hold more than the file
      it("that somebody else holds are not waited for without end", function()
        start(ALONE)
        app:write("handlers/spec.lua", BOTH)
        local held = app.db:hold(HELD[database.name])
        local host = app:start "run"
        assert.equal(75, host:wait(20).code)
        held.release()
        app:ok("run", "--until-idle")
        assert.equal(TOPIC, app:json("topics")[1].topic)
      end)
    end
  end)
end)
