-- The capture topic: events that belong to no stream, with positions of their
-- own; what `moontide emit` takes, and what it keeps.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local moontide = require "moontide"

local json = application.json

-- The JSON text of an event to emit; `payload` and `metadata` are JSON text.
local function event(fields)
  local members = {}
  for _, name in ipairs { "type", "key", "id", "revision", "occurred_at" } do
    local value = fields[name]
    if value == nil and name == "type" then value = "thing.Seen" end
    if value ~= nil then members[#members + 1] = ("%q:%s"):format(name, json.encode(value)) end
  end
  members[#members + 1] = '"payload":' .. (fields.payload or "{}")
  if fields.metadata then members[#members + 1] = '"metadata":' .. fields.metadata end
  return "{" .. table.concat(members, ",") .. "}"
end

local function lines(list)
  local texts = {}
  for i, item in ipairs(list) do texts[i] = type(item) == "string" and item or event(item) end
  return table.concat(texts, "\n") .. "\n"
end

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = "partitions = 12" }
  end)

  after_each(function()
    app:close()
  end)

  local function emit(list, ...)
    local words = { ... }
    words[#words + 1] = { stdin = lines(list) }
    return app:json("emit", unpack(words))
  end

  local function refused(list)
    return app:fails(3, "emit", { stdin = lines(list) })
  end

  local function wrong(item)
    return app:fails(1, "emit", { stdin = lines { item } })
  end

  local function captured(...)
    return app:events("--topic", "event-capture", ...)
  end

  describe("emitted events", function()
    it("have positions of their own, in the order of the lines", function()
      app:append { {}, {}, {} }
      assert.same({ emitted = 2, repeated = 0, first_position = 1, last_position = 2 },
        emit { { key = "K-1" }, { key = "K-2" } })
      assert.same({ emitted = 1, repeated = 0, first_position = 3, last_position = 3 }, emit { {} })
      assert.same({ 1, 2, 3 }, app:positions("--topic", "event-capture"))
      assert.same({ 1, 2, 3 }, app:positions()) -- and the event store's are untouched
    end)

    it("keep type, key, revision, time, payload and metadata byte for byte", function()
      local payload = '{"a" : 0.10, "b":[ ],"a":9007199254740993, "u":"\\u0041"}'
      local metadata = '{"correlation_id": "C-1",  "causation_id":"E-1"}'
      emit { { type = "thing.Seen", key = "café-42", revision = 3, occurred_at = "2024-02-29T23:59:59.000001Z",
        payload = payload, metadata = metadata } }
      local line = app:ok("events", "--json", "--topic", "event-capture")
      assert.truthy(line:find('"payload":' .. payload, 1, true), line)
      assert.truthy(line:find('"metadata":' .. metadata, 1, true), line)
      local got = captured()[1]
      assert.equal("thing.Seen", got.type)
      assert.equal("café-42", got.key)
      assert.equal(6, got.partition) -- FNV-1a of the key
      assert.equal(3, got.revision)
      assert.equal("2024-02-29T23:59:59.000001Z", got.occurred_at)
      assert.is_nil(got.aggregate_type)
    end)

    it("may have no key, and are spread over the partitions then", function()
      local list = {}
      for i = 1, 60 do list[i] = {} end
      emit(list)
      local seen, count = {}, 0
      for _, message in ipairs(captured()) do
        assert.equal(moontide.null, message.key)
        if not seen[message.partition] then count = count + 1 end
        seen[message.partition] = true
      end
      assert.is_true(count > 6, count)
    end)

    it("are found by key and by type", function()
      emit { { key = "a" }, { key = "b" }, { key = "a", type = "thing.Lost" }, {}, { key = "A" } }
      assert.same({ 1, 3 }, app:positions("--topic", "event-capture", "--key", "a"))
      assert.same({ 3 }, app:positions("--topic", "event-capture", "--type", "thing.Lost"))
      assert.same({ 4, 5 }, app:positions("--topic", "event-capture", "--after", "3", "--limit", "2"))
      assert.matches("has no aggregates", app:fails(64, "events", "--topic", "event-capture", "--aggregate", "a"))
    end)

    it("can be exported and emitted again elsewhere", function()
      emit { { key = "a", metadata = '{"correlation_id":"C"}' }, { payload = "[1]" } }
      local exported = app:ok("events", "--topic", "event-capture", "--export")
      assert.same({ emitted = 0, repeated = 2 }, (function()
        local answer = app:json("emit", { stdin = exported })
        return { emitted = answer.emitted, repeated = answer.repeated }
      end)())
    end)

    it("of one id are stored once, and with other content refused", function()
      local id = "0190f3a2-0000-7000-8000-000000000001"
      emit { { id = id, key = "a", payload = "[1]" } }
      local again = emit { { id = id, key = "a", payload = "[1]" }, { id = id, key = "a", payload = "[1]" }, {} }
      assert.same({ emitted = 1, repeated = 2, first_position = 2, last_position = 2 }, again)
      assert.matches("stored at position 1 with another payload", refused { { id = id, key = "a", payload = "[2]" } })
      assert.matches("with another key", refused { { id = id, key = "b", payload = "[1]" } })
      assert.matches("with another key", refused { { id = id, payload = "[1]" } })
      assert.equal(2, app:count "EVENT_CAPTURE_RECORDS")
    end)

    it("are kept whole batches at a time", function()
      local err = app:fails(1, "emit", "--batch", "2", { stdin = lines { {}, {}, {}, "{}" } })
      assert.matches("up to line 2 all is committed, 2 emitted and 0 there already: go on with line 3", err)
      assert.same({ 1, 2 }, app:positions("--topic", "event-capture"))
    end)

    it("show a mark of their own in status once a host has run", function()
      emit { {}, {} }
      app:append { {} }
      app:ok("run", "--until-idle")
      local topics = {}
      for _, topic in ipairs(app:json("status").topics) do topics[topic.name] = topic.mark end
      assert.same({ ["event-capture"] = 2, ["event-store"] = 1 }, topics)
    end)
  end)

  describe("an event to emit", function()
    it("has a key of 1 to 255 characters, or none", function()
      emit { { key = ("é"):rep(255) }, '{"type":"t","payload":1,"key":null}' }
      assert.matches("key has 256 characters", wrong { key = ("é"):rep(256) })
      assert.matches("key is empty", wrong { key = "" })
      assert.matches("key contains a NUL", wrong '{"type":"t","payload":1,"key":"a\\u0000"}')
      assert.equal(2, app:count "EVENT_CAPTURE_RECORDS")
    end)

    it("needs type and payload, and takes nothing of a stream", function()
      assert.matches('field "type" is missing', wrong '{"payload":1}')
      assert.matches('field "payload" is missing', wrong '{"type":"t"}')
      assert.matches("belongs to an event of a stream", wrong '{"type":"t","payload":1,"aggregate_id":"a"}')
      assert.matches("belongs to an event of a stream", wrong '{"type":"t","payload":1,"expected":"any"}')
      assert.matches('did you mean "key"', wrong '{"type":"t","payload":1,"keys":"a"}')
      assert.matches("metadata must be an object", wrong '{"type":"t","payload":1,"metadata":[]}')
      assert.matches("not JSON", wrong '{"type":"t","payload":NaN}')
    end)
  end)

  it("writers that emit at the same time get positions that are all different", function()
    local started = {}
    for w = 1, 4 do
      local list = {}
      for i = 1, 50 do list[i] = { key = ("w%d-%d"):format(w, i) } end
      started[w] = app:start("emit", "--batch", "5", { stdin = lines(list) })
    end
    for _, writer in ipairs(started) do
      local result = writer:wait(60)
      assert.equal(0, result.code, result.err)
    end
    assert.same({ { rows_there = 200, different = 200 } }, app.db:query [[
      SELECT count(*) AS rows_there, count(DISTINCT global_position) AS different FROM EVENT_CAPTURE_RECORDS]])
  end)
end)
