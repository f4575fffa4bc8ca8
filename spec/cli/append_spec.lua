local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local event = application.event

-- An event with one member of its JSON replaced or added as text.
local function with(name, text)
  local members = { aggregate_type = '"a"', aggregate_id = '"b"', type = '"t"', payload = "{}" }
  members[name] = text
  local parts = {}
  for _, key in ipairs { "aggregate_type", "aggregate_id", "type", "payload", "id", "metadata", "revision",
    "occurred_at", "expected", "extra" } do
    if members[key] then parts[#parts + 1] = ('"%s":%s'):format(key, members[key]) end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function without(name)
  local line = with(name, "@")
  return (line:gsub('"' .. name .. '":@,?', ""):gsub(",}", "}"))
end

-- What is wrong with a line, the line, and what the error must say.
local BAD_LINES = {
  { "is not JSON", "hello", "not JSON: expected a value at byte 0" },
  { "is cut off", event():sub(1, -2), "not JSON: the line ends before its object does" },
  { "begins an object over several lines", event():gsub(",", ",\n", 1),
    "not JSON: the line ends before its object does; one JSON object per line is wanted, and `jq -c . FILE`" },
  { "begins a list over several lines", "[\n" .. event() .. "\n]",
    "the line ends before its list does; one JSON object per line is wanted, and `jq -c '.[]' FILE`" },
  { "is UTF-16", "\255\254{\0", "starts with the byte order mark of UTF-16" },
  { "has a trailing comma", with("payload", "{},"), "not JSON" },
  { "has a comment", event() .. " // done", "not JSON" },
  { "holds two documents", event() .. event(), "not JSON" },
  { "has single quotes", "{'type':'t'}", "not JSON" },
  { "has a bare word", with("payload", "NaN"), "not JSON" },
  { "has an infinity", with("payload", "-Infinity"), "not JSON" },
  { "has a number with a leading zero", with("payload", "01"), "must not start with 0" },
  { "has a number that ends with its point", with("payload", "1."), "not JSON" },
  { "has a number with a plus", with("payload", "+1"), "not JSON" },
  { "has a hexadecimal number", with("payload", "0x10"), "not JSON" },
  { "has a raw control character in a string", with("payload", '"a\tb"'), "not JSON" },
  { "has an unknown escape", with("payload", [["\x41"]]), "not JSON" },
  { "has a cut escape", with("payload", [["\u00"]]), "not JSON" },
  { "has a lone high surrogate", with("payload", [["\ud800"]]), "high surrogate without a low one" },
  { "has a lone low surrogate", with("payload", [["\udc00"]]), "low surrogate without a high one" },
  { "has a raw byte that is no UTF-8", with("payload", '"\255"'), "UTF-8" },
  { "has an overlong form of UTF-8", with("payload", '"\192\175"'), "UTF-8" },
  { "has a surrogate in UTF-8", with("payload", '"\237\160\128"'), "UTF-8" },
  { "has a code point above the last one", with("payload", '"\244\144\128\128"'), "UTF-8" },
  { "has bytes that are no UTF-8 in a key", with("aggregate_id", '"\195("'), "UTF-8" },
  { "has a NUL byte", with("payload", '"\0"'), "NUL byte at offset" },
  { "starts with a byte order mark", "\239\187\191" .. event(),
    "starts with a byte order mark; save the file as UTF-8 without one" },
  { "is nested too deeply", with("payload", ("["):rep(600) .. ("]"):rep(600)), "nested deeper than 512 levels" },
  { "is an array", "[" .. event() .. "]", "must be an object, not an array" },
  { "is a string", '"event"', "must be an object, not a string" },
  { "is null", "null", "must be an object, not null" },
  { "is an empty object", "{}", 'field "aggregate_type" is missing' },
  { "has no aggregate type", without "aggregate_type", 'field "aggregate_type" is missing' },
  { "has no aggregate id", without "aggregate_id", 'field "aggregate_id" is missing' },
  { "has no type", without "type", 'field "type" is missing' },
  { "has no payload", without "payload", 'field "payload" is missing' },
  { "has an unknown field", with("extra", "1"), 'unknown field "extra"' },
  { "has a misspelt field", without("payload"):gsub("}$", ',"paylod":1}'), 'did you mean "payload"?' },
  { "has a field in another case", without("type"):gsub("}$", ',"Type":"t"}'), 'unknown field "Type"' },
  { "has a field twice", event():gsub("}$", ',"type":"u"}'), 'field "type" is there twice' },
  { "has a number as its type", with("type", "1"), "type must be a string, not a number" },
  { "has null as its id", with("id", "null"), "id must be a string, not null" },
  { "has an empty type", with("type", '""'), "type is empty" },
  { "has an empty aggregate id", with("aggregate_id", '""'), "aggregate_id is empty" },
  { "has an empty aggregate type", with("aggregate_type", '""'), "aggregate_type is empty" },
  { "has a type of 256 characters", with("type", '"' .. ("t"):rep(256) .. '"'), "type has 256 characters" },
  { "has an aggregate id of 256 characters", with("aggregate_id", '"' .. ("é"):rep(256) .. '"'),
    "aggregate_id has 256 characters" },
  { "has an aggregate type of 256 characters", with("aggregate_type", '"' .. ("t"):rep(256) .. '"'),
    "aggregate_type has 256 characters" },
  { "has NUL in a key", with("aggregate_id", [["a\u0000b"]]), "aggregate_id contains a NUL character" },
  { "has NUL in a type", with("type", [["\u0000"]]), "type contains a NUL character" },
  { "has a UUID that is none", with("id", '"42"'), "id is not a UUID" },
  { "has a time that is none", with("occurred_at", '"today"'), "occurred_at: 'today' is not a valid time" },
  { "has a number as its time", with("occurred_at", "0"), "occurred_at must be a string" },
  { "has a negative revision", with("revision", "-1"), "revision must be a whole number" },
  { "has a broken revision", with("revision", "1.5"), "revision must be a whole number" },
  { "has a revision beyond 2^31", with("revision", "2147483648"), "revision must be a whole number" },
  { "has a text as its revision", with("revision", '"1"'), "revision must be a number" },
  { "has a list as its metadata", with("metadata", "[]"), "metadata must be an object, not an array" },
  { "has a payload above limits.payload", with("payload", '"' .. ("x"):rep(2048) .. '"'),
    "payload has 2050 bytes; limits.payload allows 2048" },
  { "has metadata above limits.payload", with("metadata", '{"x":"' .. ("x"):rep(2048) .. '"}'),
    "metadata has 2056 bytes; limits.payload allows 2048" },
  { "is longer than any line may be", with("payload", '"' .. ("x"):rep(70000) .. '"'), "the line is longer than" },
}

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = 'partitions = 12, limits = { payload = "2KiB" }' }
  end)

  after_each(function()
    app:close()
  end)

  describe("append refuses a line that", function()
    for _, case in ipairs(BAD_LINES) do
      local what, line, part = case[1], case[2], case[3]
      it(what .. ", with its number, and keeps nothing of its batch", function()
        app:write("events.ndjson", event() .. "\n\n" .. line .. "\n" .. event() .. "\n")
        local err = app:fails(1, "append", "events.ndjson")
        assert.matches("moontide: events.ndjson:3: ", err, 1, true)
        assert.matches(part, err, 1, true)
        assert.matches("nothing was appended", err, 1, true)
        assert.equal(0, app:count())
      end)
    end

    it("stands far behind the start of the file", function()
      local lines = {}
      for i = 1, 3000 do lines[i] = { payload = '"' .. ("x"):rep(300) .. '"', aggregate_id = "K-" .. i % 11 } end
      lines[2345] = "oops"
      local err = app:refuses(lines, 1, "--batch", "100000")
      assert.matches("standard input:2345: not JSON", err, 1, true)
      assert.equal(0, app:count())
    end)

    it("writes no control character to the terminal", function()
      local line = with("extra", "1"):gsub("extra", [[\\u001b[2J\\u0007\\u009b]])
      local err = app:refuses({ line }, 1)
      assert.is_nil(err:find "[%z\1-\9\11-\31\127]")
      assert.is_nil(err:find("\194\155", 1, true))
    end)
  end)

  describe("a failed append", function()
    it("keeps the batches before, says up to which line, and where to go on", function()
      local lines = {}
      for i = 1, 10 do lines[i] = { payload = tostring(i) } end
      lines[8] = "oops"
      local err = app:refuses(lines, 1, "--batch", "3")
      assert.matches("standard input:8: not JSON", err, 1, true)
      assert.matches("nothing of lines 7 to 8 was kept", err, 1, true)
      assert.matches("up to line 6 all is committed", err, 1, true)
      assert.matches("go on with line 7", err, 1, true)
      assert.same({ "1", "2", "3", "4", "5", "6" }, app:payloads())
    end)

    it("can be gone on with from the line it names", function()
      local lines = {}
      for i = 1, 9 do lines[i] = event { payload = tostring(i) } end
      lines[6] = "oops"
      local err = app:refuses(lines, 1, "--batch", "2")
      local from = tonumber(err:match "go on with line (%d+)")
      lines[6] = event { payload = "6" }
      local rest = {}
      for i = from, 9 do rest[#rest + 1] = lines[i] end
      app:append(rest)
      assert.same({ "1", "2", "3", "4", "5", "6", "7", "8", "9" }, app:payloads())
    end)

    it("tells the same with --json", function()
      local result = app:moontide("append", "--json", { stdin = "oops\n" })
      assert.equal(1, result.code)
      assert.equal("", result.out)
      local problem = application.json.decode(result.err:match "\n({.*})").error
      assert.equal("invalid", problem.status)
      assert.matches("standard input:1: not JSON", problem.message, 1, true)
    end)

    it("of a stream's conflict names the line and ends with 3", function()
      local err = app:refuses({ {}, {}, { expected = 7 } }, 3)
      assert.matches("standard input:3: stream spec.thing \"A-1\"", err, 1, true)
      assert.equal(0, app:count())
    end)

    it("names a file that cannot be opened and what went wrong", function()
      assert.matches("cannot open missing.ndjson: No such file or directory",
        app:fails(64, "append", "missing.ndjson"), 1, true)
      app:exec("mkdir", "folder")
      assert.matches("folder is a folder; give a file", app:fails(64, "append", "folder"), 1, true)
    end)
  end)

  describe("append takes", function()
    it("standard input, with and without a dash", function()
      app:ok("append", { stdin = event() .. "\n" })
      app:ok("append", "-", { stdin = event() .. "\n" })
      app:ok("append", { stdin = event() .. "\n", pipe = true })
      assert.equal(3, app:count())
    end)

    it("a file by its path", function()
      app:write("in put/events 'a'.ndjson", event() .. "\n")
      app:ok("append", "in put/events 'a'.ndjson")
      assert.equal(1, app:count())
    end)

    it("an empty input", function()
      assert.equal("appended 0 events\n", app:ok("append", { stdin = "" }))
      assert.same({ appended = 0, repeated = 0, first_position = application.json.decode "null",
        last_position = application.json.decode "null" }, app:json("append", { stdin = "" }))
    end)

    it("an input of blank lines only", function()
      assert.equal("appended 0 events\n", app:ok("append", { stdin = "\n \n\t\n\r\n\n" }))
    end)

    it("lines that end with CR LF", function()
      app:ok("append", { stdin = event { payload = "1" } .. "\r\n\r\n" .. event { payload = "2" } .. "\r\n" })
      assert.same({ "1", "2" }, app:payloads())
    end)

    it("a last line without its end", function()
      app:ok("append", { stdin = event { payload = "1" } .. "\n" .. event { payload = "2" } })
      assert.same({ "1", "2" }, app:payloads())
    end)

    it("blanks around a line and between its tokens", function()
      local line = ' \t{ "aggregate_type" : "a" ,\t"aggregate_id":"b", "type":"t" , "payload" : [ 1 ] } \n'
      app:ok("append", { stdin = line })
      assert.same({ "[ 1 ]" }, app:payloads())
    end)

    it("fields in any order, their names and texts with escapes", function()
      local line = [[{"payload":1,"t\u0079pe":"\u0074\/1","aggregate_id":"\u00e9","aggregate_type":"a"}]]
      app:ok("append", { stdin = line })
      local found = app:events()[1]
      assert.equal("t/1", found.type)
      assert.equal("é", found.aggregate_id)
    end)

    it("keys and types of 255 characters, whatever their bytes", function()
      local long = ("😀"):rep(255)
      app:append { { aggregate_id = long, aggregate_type = long, type = long } }
      local found = app:events()[1]
      assert.equal(long, found.aggregate_id)
      assert.equal(long, found.aggregate_type)
      assert.equal(long, found.type)
    end)

    it("a revision, 0 when there is none", function()
      app:append { {}, { revision = 0 }, { revision = 2147483647 } }
      local found = app:events()
      assert.same({ 0, 0, 2147483647 }, { found[1].revision, found[2].revision, found[3].revision })
    end)

    it("a huge line, between small ones", function()
      app:configure 'partitions = 12, limits = { payload = "32MiB" }'
      local huge = '"' .. ("y"):rep(15 * 1024 * 1024) .. '"'
      app:append { { payload = "1" }, { payload = huge }, { payload = "3" } }
      local found = app:payloads()
      assert.equal("1", found[1])
      assert.is_true(found[2] == huge)
      assert.equal("3", found[3])
    end)

    it("lines of every length around the size of its buffer", function()
      app:configure 'partitions = 12, limits = { payload = "1MiB" }'
      local documents, events = {}, {}
      for i, size in ipairs { 65535, 262143, 262144, 131072, 1, 262000, 262145, 0, 524288, 100 } do
        documents[i] = '"' .. ("z"):rep(size) .. '"'
        events[i] = { payload = documents[i] }
      end
      app:append(events)
      local found = app:payloads()
      for i, document in ipairs(documents) do assert.is_true(found[i] == document) end
    end)
  end)

  describe("append --batch", function()
    it("makes one transaction of so many events", function()
      local lines = {}
      for i = 1, 5 do lines[i] = { payload = tostring(i) } end
      lines[6] = "oops"
      app:refuses(lines, 1, "--batch", "5")
      assert.equal(5, app:count())
      app:refuses(lines, 1, "--batch", "6")
      assert.equal(5, app:count())
    end)

    it("is the batch of the configuration when it is not given", function()
      app:configure "batch = 2"
      app:refuses({ {}, {}, {}, "oops" }, 1)
      assert.equal(2, app:count())
    end)

    for _, bad in ipairs { "0", "-1", "x", "1.5", "", "100001", "99999999999999999999", "1e3" } do
      it(("refuses %q"):format(bad), function()
        assert.matches("--batch", app:fails(64, "append", "--batch=" .. bad, { stdin = event() }), 1, true)
      end)
    end
  end)

  describe("append says", function()
    it("how many events it appended, and where", function()
      assert.equal("appended 1 event, position 1\n", app:ok("append", { stdin = event() }))
      assert.equal("appended 2 events, positions 2 to 3\n", app:ok("append", { stdin = application.ndjson { {}, {} } }))
    end)

    it("how many were there already", function()
      local line = event { id = "01890a5d-ac96-774b-bcce-b302099a8057" }
      app:ok("append", { stdin = line })
      assert.equal("appended 0 events; 1 was there already\n", app:ok("append", { stdin = line }))
    end)

    it("nothing with --quiet, and the JSON all the same", function()
      assert.equal("", app:ok("append", "--quiet", { stdin = event() }))
      assert.equal(1, app:json("append", "--quiet", { stdin = event() }).appended)
    end)

    it("its progress on a terminal only", function()
      local lines = {}
      for i = 1, 200 do lines[i] = {} end
      app:write("events.ndjson", application.ndjson(lines))
      local inside = [[script -qec '"$MOONTIDE" append --batch 20 %s events.ndjson' /dev/null]]
      assert.matches("\r\27[K20 events", app:shell("TERM=xterm " .. inside:format "").out, 1, true)
      assert.is_nil(app:shell("TERM=xterm " .. inside:format "--quiet").out:find("20 events", 1, true))
      assert.equal("", app:moontide("append", "events.ndjson").err)
    end)
  end)

  describe("a signal", function()
    it("ends append after its batch; what it says was kept is what is there", function()
      local lines = {}
      for i = 1, 40000 do lines[i] = { payload = '"' .. i .. '"', aggregate_id = "K-" .. i % 13 } end
      local append = app:start("append", "--batch", "10", { stdin = application.ndjson(lines) })
      require("spec.support.process").wait_until(function()
        local good, count = pcall(app.count, app)
        return good and count > 0
      end, 20, "the first batch")
      append:signal "TERM"
      local result = append:wait(20)
      assert.is_true(result.code ~= 0 and result.code < 128)
      local line = tonumber(result.err:match "up to line (%d+) all is committed")
      assert.equal(app:count(), line)
      assert.is_true(line < 40000 and line % 10 == 0)
    end)
  end)
end)
