local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

-- The name says what a store might do to such a document.
local DOCUMENTS = {
  ["odd spacing"] = '{ "a" :1 ,\t"b":[ 1,2 ,3 ] ,"c" : { } }',
  ["the order of its members"] = '{"z":1,"a":2,"m":3}',
  ["members of one name"] = '{"a":1,"a":2,"a":{"a":3}}',
  ["an escape for a plain letter"] = [["\u0041\u00e9"]],
  ["escaped slashes"] = [["\/ \\ \" \b\f\n\r\t"]],
  ["a decimal fraction"] = "0.1",
  ["many digits"] = "0.10000000000000000555111512312578270211815834045410156250",
  ["trailing zeros"] = "1.500",
  ["an exponent"] = "[1E+2,1e2,1.0e-07]",
  ["a number too large for a double"] = "1e400",
  ["a number too small for a double"] = "1e-400",
  ["an integer beyond 2^53"] = "9007199254740993",
  ["an integer beyond 2^64"] = "18446744073709551617",
  ["a negative zero"] = "[-0,-0.0]",
  ["an escaped NUL"] = [[{"a\u0000b":"\u0000"}]],
  ["a character beyond the first plane"] = '"😀 𝒳"',
  ["the same as a pair of escapes"] = [["\ud83d\ude00"]],
  ["combining characters"] = '"e\204\129 \195\169"',
  ["the last code points"] = '"\244\143\191\191 \239\191\191 \239\183\144"',
  ["a byte order mark inside a string"] = '"\239\187\191"',
  ["line separators of JavaScript"] = '"\226\128\168\226\128\169"',
  ["a DEL"] = '"\127"',
  ["SQL in a string"] = [["'; DROP TABLE EVENT_STORE; -- ? ?? $1 :a ${x} %s"]],
  ["empty containers"] = '[[],{},"",[[]]]',
  ["an empty member name"] = '{"":0," ":1}',
  ["null"] = "null",
  ["true"] = "true",
  ["a bare string"] = '""',
  ["510 levels"] = ("["):rep(510) .. ("]"):rep(510),
}

local function sorted_names()
  local names = {}
  for name in pairs(DOCUMENTS) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function to_hex(text)
  return (text:gsub(".", function(c) return ("%02X"):format(c:byte()) end))
end

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database }
  end)

  after_each(function()
    app:close()
  end)

  describe("a payload", function()
    for _, name in ipairs(sorted_names()) do
      it("comes back byte for byte with " .. name, function()
        app:append { { payload = DOCUMENTS[name] } }
        assert.same({ DOCUMENTS[name] }, app:payloads())
        assert.equal(to_hex(DOCUMENTS[name]), app.db:value(("SELECT %s FROM EVENT_STORE"):format(app.db:hex "payload")))
      end)
    end

    it("and all of them in one batch come back byte for byte, too", function()
      local events, documents = {}, {}
      for i, name in ipairs(sorted_names()) do
        events[i], documents[i] = { payload = DOCUMENTS[name] }, DOCUMENTS[name]
      end
      app:append(events)
      assert.same(documents, app:payloads())
    end)

    for _, size in ipairs { 0, 1, 7, 8, 9, 255, 256, 65535, 65536, 1048576 } do
      it(("of %d letters comes back whole"):format(size), function()
        local payload = '"' .. ("x"):rep(size) .. '"'
        app:append { { payload = payload } }
        assert.is_true(payload == app:payloads()[1])
      end)
    end

    it("as long as limits.payload goes in, and one byte more does not", function()
      app:configure 'limits = { payload = "64KiB" }'
      app:append { { payload = '"' .. ("x"):rep(65534) .. '"' } }
      local err = app:refuses({ { payload = '"' .. ("x"):rep(65535) .. '"' } }, 1)
      assert.matches("payload has 65537 bytes", err, 1, true)
      assert.matches("limits.payload allows 65536", err, 1, true)
      assert.equal(1, app:count())
    end)

    it("is judged by the bytes of its characters", function()
      app:configure "limits = { payload = 10 }"
      app:append { { payload = '"éééé"' } }
      assert.matches("payload has 12 bytes", app:refuses({ { payload = '"ééééé"' } }, 1), 1, true)
    end)
  end)

  describe("metadata", function()
    it("comes back byte for byte", function()
      local metadata = [[{ "traceparent" :"00-\u0041", "n":0.10 , "n":9007199254740993}]]
      app:append { { metadata = metadata } }
      assert.matches('"metadata":' .. metadata .. ',"occurred_at"', app:ok("events", "--json"), 1, true)
      assert.equal(to_hex(metadata), app.db:value(("SELECT %s FROM EVENT_STORE"):format(app.db:hex "metadata")))
    end)

    it("that is not there is null, and an empty object stays one", function()
      app:append { {}, { metadata = "{}" } }
      local out = app:ok("events", "--json")
      assert.matches('"metadata":null', out:match "^[^\n]*", 1, true)
      assert.matches('"metadata":{}', out:match "\n([^\n]*)", 1, true)
    end)

    for _, bad in ipairs { "[]", '"x"', "1", "null", "true" } do
      it("is refused as " .. bad, function()
        assert.matches("metadata must be an object", app:refuses({ { metadata = bad } }, 1), 1, true)
        assert.equal(0, app:count())
      end)
    end
  end)
end)
