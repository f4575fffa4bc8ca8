local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local ID = "01890a5d-ac96-774b-bcce-b302099a8057"
local OTHER_ID = "01890a5d-ac96-774b-bcce-b302099a8058"

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = "partitions = 12" }
  end)

  after_each(function()
    app:close()
  end)

  describe("the expected sequence number", function()
    it("none: takes the first event of a stream", function()
      assert.equal(1, app:append({ { expected = "none" } }).appended)
      assert.equal(0, app:events()[1].sequence)
    end)

    it("none: refuses a stream that has an event, and names its number", function()
      app:append { {}, {} }
      local err = app:refuses({ { expected = "none" } }, 3)
      assert.matches("expected no event", err, 1, true)
      assert.matches("its last event has sequence number 1", err, 1, true)
      assert.equal(2, app:count())
    end)

    it("a number: takes the next event of the stream", function()
      app:append { {}, {}, {} }
      app:append { { expected = 2 } }
      assert.equal(3, app:events()[4].sequence)
    end)

    it("a number: refuses an older one, and carries both numbers", function()
      app:append { {}, {}, {} }
      local err = app:refuses({ { expected = 1 } }, 3)
      assert.matches("expected sequence number 1", err, 1, true)
      assert.matches("sequence number 2", err, 1, true)
      assert.equal(3, app:count())
    end)

    it("a number: refuses a stream without events", function()
      local err = app:refuses({ { expected = 0 } }, 3)
      assert.matches("expected sequence number 0, but it has no event yet", err, 1, true)
      assert.equal(0, app:count())
    end)

    it("any: takes what is there", function()
      app:append { { expected = "any" }, {}, { expected = "any" } }
      assert.equal(2, app:events()[3].sequence)
    end)

    it("counts the events of the same batch that stand before", function()
      app:append { { expected = "none" }, { expected = 0 }, { expected = 1 } }
      local err = app:refuses({ { aggregate_id = "B" }, { aggregate_id = "B", expected = "none" } }, 3)
      assert.matches("standard input:2:", err, 1, true)
      assert.equal(3, app:count())
    end)

    it("is judged per aggregate type and id", function()
      app:append { { aggregate_type = "a", aggregate_id = "1" } }
      app:append {
        { aggregate_type = "b", aggregate_id = "1", expected = "none" },
        { aggregate_type = "a", aggregate_id = "2", expected = "none" },
      }
      assert.equal(3, app:count())
    end)

    for _, expected in ipairs { '"some"', "-1", "1.5", "null", "true", '"1"', "9223372036854775808", "[]" } do
      it("refuses " .. expected .. " as what it is not", function()
        local line = application.event():gsub("}$", ',"expected":' .. expected:gsub("%%", "%%%%") .. "}")
        local err = app:refuses({ line }, 1)
        assert.matches("expected must be", err, 1, true)
        assert.equal(0, app:count())
      end)
    end
  end)

  describe("an event's own id", function()
    it("makes a repeated append write nothing", function()
      local event = { id = ID, payload = '{"n": 1}' }
      assert.same({ appended = 1, repeated = 0, first_position = 1, last_position = 1 }, app:append { event })
      local before = app:ok("events", "--json")
      local again = app:append { event }
      assert.equal(0, again.appended)
      assert.equal(1, again.repeated)
      assert.equal(before, app:ok("events", "--json"))
      assert.equal(1, app:count())
    end)

    it("is found again whatever was expected of the stream", function()
      local event = { id = ID, expected = "none" }
      app:append { event }
      assert.equal(1, app:append({ event }).repeated)
    end)

    it("is kept in lower case and compared as a number", function()
      app:append { { id = ID:upper() } }
      assert.equal(ID, app:events()[1].id)
      assert.equal(1, app:append({ { id = ID } }).repeated)
    end)

    for part, changed in pairs {
      payload = { payload = '{"n":1}' },
      metadata = { metadata = '{"by":"x"}' },
      type = { type = "thing.Other" },
      revision = { revision = 1 },
      aggregate_id = { aggregate_id = "A-2" },
      aggregate_type = { aggregate_type = "spec.other" },
      occurred_at = { occurred_at = "2020-01-01T00:00:00Z" },
    } do
      it("is refused with another " .. part .. ", which is named", function()
        app:append { { id = ID } }
        changed.id = ID
        local err = app:refuses({ changed }, 3)
        assert.matches(ID, err, 1, true)
        assert.matches("another " .. part, err, 1, true)
        assert.matches("position 1", err, 1, true)
        assert.equal(1, app:count())
      end)
    end

    it("compares payloads by their bytes", function()
      app:append { { id = ID, payload = '{"n":1}' } }
      assert.matches("another payload", app:refuses({ { id = ID, payload = '{"n": 1}' } }, 3), 1, true)
    end)

    it("lets the other events of a batch in that is repeated in part", function()
      app:append { { id = ID, payload = "1" } }
      local result = app:append { { id = ID, payload = "1" }, { id = OTHER_ID, payload = "2" }, { payload = "3" } }
      assert.same({ appended = 2, repeated = 1, first_position = 2, last_position = 3 }, result)
      assert.same({ "1", "2", "3" }, app:payloads())
    end)

    it("counts once within a batch", function()
      local result = app:append { { id = ID }, { id = ID }, { id = OTHER_ID } }
      assert.equal(2, result.appended)
      assert.equal(1, result.repeated)
      assert.same({ 1, 2 }, app:positions())
    end)

    it("is refused with other content within a batch, and nothing is kept", function()
      local err = app:refuses({ { id = OTHER_ID }, { id = ID, payload = "1" }, { id = ID, payload = "2" } }, 3)
      assert.matches("standard input:3:", err, 1, true)
      assert.equal(0, app:count())
    end)

    it("is a rising version 7 UUID when the event brings none", function()
      app:append { {}, {}, {}, {} }
      local last = ""
      for _, event in ipairs(app:events()) do
        assert.matches("^%x%x%x%x%x%x%x%x%-%x%x%x%x%-7%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$", event.id)
        assert.is_true(event.id > last)
        last = event.id
      end
    end)

    for _, bad in ipairs {
      "{" .. ID .. "}", "urn:uuid:" .. ID, (ID:gsub("-", "")), ID:sub(1, -2), ID .. "0", "", " " .. ID,
      (ID:gsub("0", "g")),
    } do
      it(("refuses %q"):format(bad), function()
        local err = app:refuses({ {}, { id = bad } }, 1)
        assert.matches("standard input:2: id is not a UUID", err, 1, true)
        assert.equal(0, app:count())
      end)
    end
  end)

  describe("the time of an event", function()
    for given, stored in pairs {
      ["2024-02-29T23:59:59Z"] = "2024-02-29T23:59:59.000000Z",
      ["2024-01-01T01:30:00+02:00"] = "2023-12-31T23:30:00.000000Z",
      ["2024-01-01T00:00:00-05:45"] = "2024-01-01T05:45:00.000000Z",
      ["2024-01-01T00:00:00.1Z"] = "2024-01-01T00:00:00.100000Z",
      ["2024-01-01T00:00:00.123456Z"] = "2024-01-01T00:00:00.123456Z",
      ["2024-01-01T00:00:00.123456000Z"] = "2024-01-01T00:00:00.123456Z",
      ["1969-12-31T23:59:59.999999Z"] = "1969-12-31T23:59:59.999999Z",
      ["0001-01-01T00:00:00Z"] = "0001-01-01T00:00:00.000000Z",
      ["9999-12-31T23:59:59.999999Z"] = "9999-12-31T23:59:59.999999Z",
    } do
      it(given .. " is kept in UTC with microseconds", function()
        app:append { { occurred_at = given } }
        assert.equal(stored, app:events()[1].occurred_at)
      end)
    end

    for given, reason in pairs {
      ["2016-12-31T23:59:60Z"] = "leap second",
      ["2024-01-01T00:00:00.123456789Z"] = "finer than a microsecond",
      ["2023-02-29T00:00:00Z"] = "not a valid time",
      ["2024-01-01T24:00:00Z"] = "not a valid time",
      ["2024-01-01T00:00:00"] = "offset",
      ["2024-01-01 00:00:00Z"] = "T must stand",
      ["2024-01-01T00:00:00+24:00"] = "offset",
      ["9999-12-31T23:59:59-01:00"] = "year",
      ["yesterday"] = "not a valid time",
      [""] = "not a valid time",
    } do
      it(("%q is refused with the reason"):format(given), function()
        local err = app:refuses({ { occurred_at = given } }, 1)
        assert.matches("standard input:1: occurred_at:", err, 1, true)
        assert.matches(reason, err, 1, true)
        assert.equal(0, app:count())
      end)
    end

    it("is the host's clock when the event brings none", function()
      local before = os.date "!%Y-%m-%dT%H:%M:%S"
      app:append { {} }
      local after = os.date("!%Y-%m-%dT%H:%M:%S", os.time() + 1)
      local at = app:events()[1].occurred_at
      assert.is_true(at >= before and at <= after)
    end)

    it("follows clock_offset", function()
      app:configure 'partitions = 12, clock_offset = "-3650d"'
      app:append { {} }
      local year = tonumber(app:events()[1].occurred_at:sub(1, 4))
      assert.is_true(year <= tonumber(os.date "!%Y") - 9)
    end)
  end)

  describe("two keys", function()
    local pairs_of_keys = {
      ["that differ in case"] = { "A-1", "a-1" },
      ["that differ in trailing blanks"] = { "A-1", "A-1 " },
      ["that differ in leading blanks"] = { "A-1", " A-1" },
      ["that differ in an accent"] = { "cafe", "café" },
      ["that a normal form would merge"] = { "caf\195\169", "cafe\204\129" },
      ["that fold to one letter"] = { "straße", "strasse" },
      ["that differ in their width"] = { "A", "Ａ" },
      ["that look like numbers"] = { "1", "01" },
    }
    for what, keys in pairs(pairs_of_keys) do
      it(what .. " are two streams", function()
        app:append {
          { aggregate_id = keys[1], expected = "none" },
          { aggregate_id = keys[2], expected = "none" },
          { aggregate_id = keys[1], expected = 0 },
        }
        assert.same({ 1, 3 }, app:positions("--aggregate", keys[1]))
        assert.same({ 2 }, app:positions("--aggregate", keys[2]))
      end)

      it(what .. " are two aggregate types", function()
        app:append {
          { aggregate_type = keys[1], expected = "none" },
          { aggregate_type = keys[2], expected = "none" },
        }
        assert.same({ keys[1], keys[2] }, { app:events()[1].aggregate_type, app:events()[2].aggregate_type })
      end)
    end
  end)

  describe("partitions", function()
    -- 12 is no power of two: a signed hash would show.
    for key, partition in pairs { ["café-42"] = 6, ["order-1"] = 1, ["Ünïcode"] = 3, ["日本-7"] = 5 } do
      it(("%s is in partition %d of 12"):format(key, partition), function()
        app:append { { aggregate_id = key } }
        assert.equal(partition, app:events()[1].partition)
        assert.equal(tostring(partition), app.db:value "SELECT partition_key FROM EVENT_STORE")
      end)
    end
  end)

  describe("positions", function()
    it("start at 1 and rise by one, also over failed appends", function()
      app:append { {}, {} }
      app:refuses({ {}, {}, "nonsense" }, 1)
      app:refuses({ {}, { expected = "none" } }, 3)
      app:append { {} }
      assert.same({ 1, 2, 3 }, app:positions())
    end)

    it("are never given twice, even after the last rows were deleted", function()
      app:append { {}, {}, {} }
      app.db:execute "DELETE FROM EVENT_STORE WHERE global_position >= 2"
      assert.equal(4, app:append({ {} }).first_position)
      app.db:execute "DELETE FROM EVENT_STORE"
      assert.equal(5, app:append({ {} }).first_position)
    end)

    it("follow the order of the lines, whatever their streams", function()
      local events = {}
      for i = 1, 30 do
        events[i] = { aggregate_id = "K-" .. i % 7, payload = tostring(i) }
      end
      app:append(events, "--batch", "4")
      local found = app:events()
      assert.equal(30, #found)
      for i, event in ipairs(found) do
        assert.equal(i, event.position)
        assert.equal(i, event.payload)
      end
    end)

    it("number each stream from 0", function()
      app:append { { aggregate_id = "a" }, { aggregate_id = "b" }, { aggregate_id = "a" } }
      app:append { { aggregate_id = "a" }, { aggregate_id = "b" } }
      local sequences = { a = {}, b = {} }
      for _, event in ipairs(app:events()) do
        table.insert(sequences[event.aggregate_id], event.sequence)
      end
      assert.same({ a = { 0, 1, 2 }, b = { 0, 1 } }, sequences)
    end)

    it("of programs that append at the same time are all there, each once", function()
      app:ok("schema", "upgrade")
      local events = {}
      for i = 1, 200 do events[i] = { aggregate_id = "K-" .. i % 5 } end
      local started = {}
      for i = 1, 4 do
        started[i] = app:start("append", "--json", "--batch", "10", { stdin = application.ndjson(events) })
      end
      for i = 1, 4 do
        local result = started[i]:wait(60)
        assert.equal(0, result.code, result.err)
      end
      local found = app:events()
      assert.equal(800, #found)
      local last = {}
      for i, event in ipairs(found) do
        if database.gap_free then assert.equal(i, event.position) end
        assert.is_true(i == 1 or event.position > found[i - 1].position)
        assert.equal((last[event.aggregate_id] or -1) + 1, event.sequence)
        last[event.aggregate_id] = event.sequence
      end
    end)
  end)
end)
