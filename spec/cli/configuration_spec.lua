local application = require "spec.support.application"

-- A key, a value, what the error must say beside the key.
local REFUSED = {
  { "partitions", "0", "a whole number from 1 to 1024, not 0" },
  { "partitions", "1025", "not 1025" },
  { "partitions", "1.5", "not 1.5" },
  { "partitions", '"16"', 'not "16"' },
  { "partitions", "true", "not true" },
  { "partitions", "0/0", "a whole number" },
  { "partitions", "1/0", "a whole number" },
  { "batch", "0", "a whole number from 1 to 100000" },
  { "batch", "-1", "not -1" },
  { "batch", "100001", "not 100001" },
  { "poll.min_interval", '"0ms"', "a duration" },
  { "poll.min_interval", '"5 ms"', "a duration" },
  { "poll.min_interval", '"5msec"', "a duration" },
  { "poll.min_interval", '"-5ms"', "a duration" },
  { "poll.min_interval", '"fast"', 'not "fast"' },
  { "poll.min_interval", '""', "a duration" },
  { "poll.max_interval", '"2h"', 'from "1ms" to "1h"' },
  { "lease.duration", '"400ms"', 'from "500ms" to "1h"' },
  { "lease.duration", '"3s"', "at least twice lease.heartbeat" },
  { "lease.heartbeat", "0", "a duration" },
  { "lease.rebalance", '"99ms"', 'from "100ms" to "1h"' },
  { "limits.time", "0", "a duration" },
  { "limits.time", "{}", "limits.time" },
  { "limits.time", '"99999999999999999999s"', "a duration" },
  { "limits.memory", '"512KiB"', 'from "1MiB" to "2GiB"' },
  { "limits.memory", '"3GiB"', "a size" },
  { "limits.memory", '"10 XB"', "a size" },
  { "limits.payload", "0", "a size from 1" },
  { "limits.payload", '"1.5"', "a size" },
  { "limits.payload", "-1", "a size" },
  { "limits.payload", '"1GiB"', "a size" },
  { "jit", '"yes"', "true or false" },
  { "jit", "1", "true or false" },
  { "grants", '"os"', "a list of names" },
  { "schema.create", "0", "true or false" },
  { "schema.prefix", "1", "letters, digits and underscores" },
  { "stop_timeout", '"-1s"', "a duration" },
  { "log.level", '"loud"', '"debug", "info", "warn" or "error"' },
  { "log.format", '"xml"', '"text", "logfmt" or "json"' },
  { "clock_offset", '"soon"', "a duration" },
  { "scripts", '""', "the path of a folder" },
  { "scripts", "1", "the path of a folder" },
  { "database", '"oracle:x"', "sqlite:PATH" },
  { "database", "1", "sqlite:PATH" },
  { "workers", "-1", "a whole number from 0" },
  { "workers", "2", "one process write at a time" },
}

local TAKEN = {
  { "partitions", "1", 1 },
  { "partitions", "1024", 1024 },
  { "workers", "0", 0 },
  { "poll.min_interval", '"1ms"', "1ms" },
  { "poll.max_interval", "1.5", 1.5 },
  { "lease.duration", '"4s"', "4s" },
  { "lease.heartbeat", '"100ms"', "100ms" },
  { "lease.rebalance", "1", 1 },
  { "limits.time", '"250ms"', "250ms" },
  { "limits.memory", '"64MiB"', "64MiB" },
  { "limits.payload", "1048576", 1048576 },
  { "limits.payload", '"10MB"', "10MB" },
  { "stop_timeout", '"2h"', "2h" },
  { "clock_offset", '"-7d"', "-7d" },
  { "log.level", '"debug"', "debug" },
  { "log.format", '"json"', "json" },
  { "jit", "true", true },
  { "retry.attempts", "3", 3 },
  { "retry.delay", '"250ms"', "250ms" },
  { "retry.factor", "1.5", 1.5 },
  { "retry.max_delay", '"1h"', "1h" },
  { "retry.jitter", "0", 0 },
  { "on_error", '"dead_letter"', "dead_letter" },
  { "sagas.keep", '"90d"', "90d" },
  { "capture.max_age", '"7d"', "7d" },
  { "capture.max_rows", "1000000", 1000000 },
  { "capture.force", "true", true },
  { "compaction.schedule", '"30s"', "30s" },
  { "tombstones.max_age", '"7d"', "7d" },
}

-- Keys of the design that later versions bring.
local LATER = {
  'admin = { listen = "127.0.0.1:1" }' }

-- "a.b", "v" -> a = { b = v }
local function nested(key, value)
  local outer, inner = key:match "^(.-)%.(.+)$"
  if outer then return ("%s = { %s = %s }"):format(outer, inner, value) end
  return ("%s = %s"):format(key, value)
end

describe("the configuration", function()
  local app

  before_each(function()
    app = application.new()
  end)

  after_each(function()
    app:close()
  end)

  local function refused(...)
    local err = app:fails(78, "check")
    for _, part in ipairs { ... } do assert.matches(part, err, 1, true) end
    -- and no verb starts with it
    app:fails(78, "append", { stdin = application.event() })
    app:fails(78, "run", "--until-idle")
    assert.is_nil(app:read "moontide.db")
    return err
  end

  it("may be missing", function()
    app:exec("rm", "moontide.conf.lua")
    assert.equal("default", app:json("check").configuration.batch.origin)
  end)

  it("may be empty", function()
    app:write("moontide.conf.lua", "return {}")
    app:ok "check"
  end)

  it("that was asked for must be there", function()
    local err = app:fails(78, "check", "--config", "other.lua")
    assert.matches("cannot read the configuration other.lua: No such file or directory", err, 1, true)
  end)

  for what, text in pairs {
    ["a text"] = 'return "partitions = 4"', ["a number"] = "return 4", ["nothing"] = "", ["nil"] = "return nil",
    ["a function"] = "return function() return {} end",
  } do
    it("must be a table and not " .. what, function()
      app:write("moontide.conf.lua", text)
      refused("moontide.conf.lua", "table")
    end)
  end

  it("with a syntax error is refused with file and line", function()
    app:write("moontide.conf.lua", "return {\n  batch = 3\n  partitions = 4\n}")
    refused "moontide.conf.lua:3:"
  end)

  it("with an error while it runs is refused with file and line", function()
    app:write("moontide.conf.lua", "local x\nreturn { batch = x.y }")
    refused("moontide.conf.lua:2:", "'x'")
  end)

  it("that runs forever is stopped", function()
    app:write("moontide.conf.lua", "while true do end")
    refused "moontide.conf.lua"
  end)

  it("that is bytecode is refused", function()
    app:write("moontide.conf.lua", string.dump(loadstring "return {}"))
    refused "moontide.conf.lua"
  end)

  it("sees env and file, and nothing else", function()
    for _, name in ipairs { "os", "io", "require", "print", "string", "_G", "load", "pcall" } do
      app:write("moontide.conf.lua", ("return { batch = %s == nil and 1 or 2 }"):format(name))
      local result = app:moontide("--json", "check")
      if result.code == 0 then
        assert.equal(1, application.json.decode(result.out).configuration.batch.value, name)
      else
        assert.equal(78, result.code)
        assert.matches(name, result.err, 1, true)
      end
    end
  end)

  it("that reaches for os or io is told what there is instead, and where", function()
    app:write("moontide.conf.lua", 'return {\n  database = os.getenv "URL",\n}')
    refused("moontide.conf.lua:2:", 'env "NAME" gives an environment variable')
    app:write("moontide.conf.lua", 'return { database = io.open("url"):read() }')
    refused("moontide.conf.lua:1:", 'file "NAME" gives the content of a file')
  end)

  it("takes values from the environment and from files", function()
    app:write("secrets/url", "sqlite:secret.db\n")
    app:write("moontide.conf.lua", [[return { database = file "secrets/url", batch = env("N", "7") + 0 }]])
    local found = app:json("check", { env = { N = "42" } }).configuration
    assert.equal("sqlite:secret.db", found.database.value)
    assert.equal(42, found.batch.value)
    assert.equal(7, app:json("check").configuration.batch.value)
  end)

  it("takes a variable that is set but empty as one that is not set", function()
    app:write("moontide.conf.lua", [[return { database = env "DB" or "sqlite:mine.db", batch = env("N", "7") + 0 }]])
    local found = app:json("check", { env = { DB = "", N = "" } }).configuration
    assert.equal("sqlite:mine.db", found.database.value)
    assert.equal(7, found.batch.value)
  end)

  it("names a file that it cannot read", function()
    app:write("moontide.conf.lua", [[return { database = file "secrets/url" }]])
    refused("moontide.conf.lua", "secrets/url")
  end)

  describe("refuses an unknown key", function()
    it("and names the nearest one", function()
      app:configure "partitons = 4"
      refused("moontide.conf.lua: unknown key 'partitons'", "did you mean 'partitions'")
    end)

    it("in a table and names the nearest one", function()
      app:configure "limits = { tim = 4 }"
      refused("unknown key 'limits.tim'", "did you mean 'limits.time'")
    end)

    it("and lists what there is when nothing is near", function()
      app:configure "colour = 4"
      refused("unknown key 'colour'", "partitions", "log.level")
    end)

    it("that is a number", function()
      app:configure "4"
      refused "moontide.conf.lua"
    end)

    it("under a key that takes a value", function()
      app:configure "batch = { size = 4 }"
      refused "batch"
    end)

    it("where a table is wanted", function()
      app:configure "poll = 5"
      refused("poll must be a table of", "min_interval", "max_interval")
    end)
  end)

  for _, later in ipairs(LATER) do
    it(("refuses %s as not available yet"):format(later), function()
      app:configure(later)
      refused("moontide.conf.lua: " .. later:match "^%w+_?%w*", "not available in this version")
    end)
  end

  for _, case in ipairs(REFUSED) do
    local key, value, part = unpack(case)
    it(("refuses %s = %s"):format(key, value), function()
      app:configure(nested(key, value))
      refused("moontide.conf.lua", key, part)
    end)
  end

  for _, case in ipairs(TAKEN) do
    local key, value, shown = unpack(case)
    it(("takes %s = %s and shows where it is from"):format(key, value), function()
      app:configure(nested(key, value))
      assert.same({ value = shown, origin = "moontide.conf.lua" }, app:json("check").configuration[key])
    end)
  end

  it("refuses a longest pause below the shortest", function()
    app:configure 'poll = { min_interval = "1s", max_interval = "10ms" }'
    refused("poll.max_interval", "poll.min_interval")
  end)

  describe("from the environment", function()
    it("wins over the file, key by key", function()
      app:configure 'batch = 3, poll = { min_interval = "7ms" }'
      local found = app:json("check", { env = { MOONTIDE_BATCH = "9", MOONTIDE_LIMITS_TIME = "2s" } }).configuration
      assert.same({ value = 9, origin = "MOONTIDE_BATCH" }, found.batch)
      assert.equal("MOONTIDE_LIMITS_TIME", found["limits.time"].origin)
      assert.equal("moontide.conf.lua", found["poll.min_interval"].origin)
    end)

    it("is refused with the variable's name", function()
      local err = app:fails(78, "check", { env = { MOONTIDE_BATCH = "many" } })
      assert.matches("MOONTIDE_BATCH: batch must be a whole number", err, 1, true)
    end)
  end)

  it("is found by --config, and its folder is the application's", function()
    app:write("deep/moontide.conf.lua", 'return { database = "sqlite:x.db" }')
    app:write("deep/handlers/h.lua", [[local moontide = require "moontide"
      return moontide.projection "deep" { on = { ["t"] = function() end } }]])
    assert.equal("deep", app:json("--config", "deep/moontide.conf.lua", "check").declarations[1].name)
    app:ok("--config", "deep/moontide.conf.lua", "run", "--until-idle")
    assert.is_string(app:read "deep/x.db")
    assert.is_nil(app:read "x.db")
  end)

  it("is printed whole by check, for people too", function()
    local out = app:ok "check"
    for key in pairs(app:json("check").configuration) do assert.matches(key .. " = ", out, 1, true) end
    assert.matches("batch = 5000 (default)", out, 1, true)
  end)
end)
