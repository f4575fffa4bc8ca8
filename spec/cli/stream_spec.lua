local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local HANDLER = [[
local moontide = require "moontide"
local t = moontide.types
return moontide.projection "sums" {
  fields = { sum = t.double(), at = t.timestamp { optional = true } },
  initial = function() return { sum = 0 } end,
  on = { ["thing.Happened"] = function(state, event)
    state.sum = state.sum + event.payload.n
    state.at = event.occurred_at
  end },
}]]

dialect.each(function(database)
  describe("standard output", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["sums.lua"] = HANDLER } }
      local events = {}
      for i = 1, 20000 do events[i] = { aggregate_id = "K-" .. i, payload = '{"n":1}' } end
      app:append(events)
      app:ok("run", "--until-idle")
    end)

    after_each(function()
      app:close()
    end)

    local PRINTING = { { "events" }, { "events", "--json" }, { "read", "sums" }, { "read", "sums", "--json" },
      { "status" }, { "status", "--json" }, { "schema", "print" }, { "check" }, { "--help" }, { "--version" },
      { "completion", "bash" }, { "new", "fresh" }, { "schema", "upgrade" } }

    it("that takes nothing is a failure of every verb that prints", function()
      for i, words in ipairs(PRINTING) do
        words = { unpack(words) }
        if words[1] == "new" then words[2] = "fresh" .. i end
        words[#words + 1] = { stdout = "/dev/full" }
        local result = app:moontide(unpack(words))
        assert.equal(1, result.code, words[1])
        assert.matches("cannot write to standard output", result.err, 1, true)
      end
    end)

    it("that takes nothing does not undo an append, which says that it could not say so", function()
      local result = app:moontide("append", { stdin = application.event(), stdout = "/dev/full" })
      assert.equal(1, result.code)
      assert.matches("cannot write to standard output", result.err, 1, true)
      assert.equal(20001, app:json("status").topics[1]["end"])
    end)

    it("that is closed ends a long answer with an error, not with a signal", function()
      for _, words in ipairs { "events --json", "events", "read sums --json", "read sums" } do
        local result = app:shell(([[
          { "$MOONTIDE" %s 2>err; echo $? >code; } | head -n 1 >/dev/null; cat code]]):format(words))
        assert.equal("1\n", result.out, words)
        assert.matches("cannot write to standard output", app:read "err", 1, true)
      end
    end)

    it("that was never open is no file of the database", function()
      local result = app:shell [["$MOONTIDE" events --json >&- ; echo $?]]
      assert.equal("1\n", result.out)
      result = app:shell [["$MOONTIDE" append <events.ndjson >&- 2>&- ; echo $?]]
      assert.is_true(result.out ~= "0\n")
      app:write("more.ndjson", application.event() .. "\n")
      app:shell [["$MOONTIDE" append more.ndjson <&- >&- 2>&-]]
      assert.is_true(app.db:intact())
      assert.equal(20000, app:json("status").topics[1].mark)
    end)
  end)
end)

describe("colours", function()
  local app

  before_each(function()
    app = application.new()
  end)

  after_each(function()
    app:close()
  end)

  -- Runs on a terminal of its own.
  local function on_terminal(words, env)
    return app:shell(("%s script -qec '\"$MOONTIDE\" %s' /dev/null"):format(env, words)).out
  end

  it("are there on a terminal", function()
    assert.matches("\27[1", on_terminal("--help", "TERM=xterm"), 1, true)
    assert.matches("\27[1;31mmoontide:", on_terminal("frobnicate", "TERM=xterm"), 1, true)
  end)

  it("are not there with NO_COLOR, --no-color or a dumb terminal", function()
    assert.is_nil(on_terminal("--help", "TERM=xterm NO_COLOR=1"):find("\27[", 1, true))
    assert.is_nil(on_terminal("--help --no-color", "TERM=xterm"):find("\27[", 1, true))
    assert.is_nil(on_terminal("frobnicate --no-color", "TERM=xterm"):find("\27[", 1, true))
    assert.is_nil(on_terminal("--no-color frobnicate", "TERM=xterm"):find("\27[", 1, true))
    assert.is_nil(on_terminal("--help", "TERM=dumb"):find("\27[", 1, true))
  end)

  it("are there with an empty NO_COLOR", function()
    assert.matches("\27[1", on_terminal("--help", "TERM=xterm NO_COLOR="), 1, true)
  end)

  it("are never in a pipe or file", function()
    local result = app:moontide("--help", { env = { TERM = "xterm" } })
    assert.is_nil(result.out:find("\27", 1, true))
    result = app:moontide("frobnicate", { env = { TERM = "xterm" } })
    assert.is_nil(result.err:find("\27", 1, true))
  end)
end)

dialect.each(function(database)
  describe("the language and the time zone of the machine", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["sums.lua"] = HANDLER } }
    end)

    after_each(function()
      app:close()
    end)

    local EVENTS = { '{"n":1.5}', '{"n":1e-7}', '{"n":-0.25}', '{"n":1234567.875}' }

    -- All that the program prints about the same events, without what differs by time.
    local function story(env)
      app.db:wipe()
      local events = {}
      for i, payload in ipairs(EVENTS) do
        events[i] = { id = ("01890a5d-ac96-774b-bcce-%012x"):format(i), aggregate_id = "Ärger-" .. i, payload = payload,
          occurred_at = ("2024-03-31T02:30:0%d.5+01:00"):format(i) }
      end
      local out = {}
      for _, words in ipairs {
        { "append", "--json", { stdin = application.ndjson(events), env = env } },
        { "run", "--until-idle", "--quiet", { env = env } },
        { "events", "--json", { env = env } },
        { "events", { env = env } },
        { "read", "sums", "--json", { env = env } },
        { "read", "sums", "--order", "sum", { env = env } },
        { "read", "sums", "--where", "sum=1.5", { env = env } },
        { "check", "--json", { env = env } },
        { "schema", "print", { env = env } },
      } do
        out[#out + 1] = app:ok(unpack(words))
      end
      return table.concat(out, "\n")
    end

    local function little_endian(number)
      local bytes = {}
      for i = 1, 4 do
        bytes[i] = string.char(number % 256)
        number = math.floor(number / 256)
      end
      return table.concat(bytes)
    end

    -- A language of our own that writes 1.234,5, so that it is there on every machine: glibc's compiled form of
    -- LC_NUMERIC, which is a magic number, the number of fields, their offsets, and the fields.
    local function language_with_commas()
      local fields = { ",\0", ".\0", "\3\3\0\0", little_endian(44), little_endian(46), "ANSI_X3.4-1968\0" }
      local head = { little_endian(0x20031114), little_endian(#fields) }
      local offset = 4 * (2 + #fields)
      for i, field in ipairs(fields) do
        fields[i] = field .. ("\0"):rep(-#field % 4)
        head[#head + 1] = little_endian(offset)
        offset = offset + #fields[i]
      end
      app:write("languages/comma/LC_NUMERIC", table.concat(head) .. table.concat(fields))
      local env = { LOCPATH = app:file "languages", LC_NUMERIC = "comma" }
      -- other programs do write it so
      assert.equal("1,5", app:exec("/usr/bin/printf", "%.1f", "1,5", { env = env }).out)
      return env
    end

    it("that writes a comma into numbers gives the same bytes", function()
      local plain = story {}
      assert.matches('"sum":1.5', plain, 1, true)
      assert.matches('"sum":1e-07', plain, 1, true)
      assert.equal(plain, story(language_with_commas()))
    end)

    it("that a script switches on by a grant gives the same bytes", function()
      local plain = story {}
      app:configure 'grants = { "os" }'
      app:write("handlers/sums.lua", (HANDLER:gsub("state.sum = ", [[
        assert(os.setlocale("", "numeric") == "comma", "the language is not there")
        state.sum = ]])))
      local env = language_with_commas()
      local found = story(env)
      assert.equal(plain:match '(%[{"key".-%]\n)', found:match '(%[{"key".-%]\n)')
    end)

    it("in zones east, west and with half hours give the same bytes", function()
      local plain = story { TZ = "UTC" }
      assert.matches("2024-03-31T01:30:01.500000Z", plain, 1, true)
      for _, zone in ipairs { "America/New_York", "Asia/Kathmandu", "Europe/Berlin", "EAST-13:45" } do
        assert.equal(plain, story { TZ = zone })
      end
    end)
  end)
end)
