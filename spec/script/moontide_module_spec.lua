-- The module "moontide" as specs and editors meet it, outside of the host.
local moontide = require "moontide"

local LATER = { listener = true, route = true }
local VALUES = { null = true, delete = true } -- nil in the annotations

local function names(t, prefix, into)
  for key, value in pairs(t) do
    local name = prefix .. key
    if type(value) == "table" then
      names(value, name .. ".", into)
    elseif not LATER[name] and not VALUES[name] then
      into[name] = type(value)
    end
  end
  return into
end

describe("the annotations for editors", function()
  it("name exactly what the module has", function()
    local annotated = dofile "lua/moontide/meta/moontide.lua"
    assert.same(names(moontide, "", {}), names(annotated, "", {}))
  end)

  --- found(file, pattern): the captures, sorted.
  local function found(file, ...)
    local handle = assert(io.open("lua/moontide/" .. file))
    local list = {}
    for line in handle:lines() do
      for _, pattern in ipairs { ... } do
        list[#list + 1] = line:match(pattern)
      end
    end
    handle:close()
    table.sort(list)
    return list
  end

  it("name exactly what the testing kit has", function()
    assert.same(found("testing.lua", "^function (testing%.[%w_]+)", "^(testing%.[%w_]+) =", "^function (Host:[%w_]+)"),
      found("meta/testing.lua", "^function (testing%.[%w_]+)", "^function (Host:[%w_]+)"))
    assert.same(found("testing_saga.lua", "^function (Saga:[%w_]+)"),
      found("meta/testing.lua", "^function (Saga:[%w_]+)"))
    assert.same(found("assertions.lua", '^about_messages%("([%w_]+)"', "^function assertions%.([%w_]+)"),
      found("meta/testing.lua", "^function luassert%.([%w_]+)"))
  end)
end)

describe("a name that the module does not have", function()
  local function problem(fn)
    local good, why = pcall(fn)
    assert.is_false(good)
    return why
  end

  it("is an error that names the line and the nearest name", function()
    local why = problem(function() return moontide.projektion "x" end)
    assert.matches('moontide_module_spec.lua:%d+: there is no moontide.projektion; did you mean "projection"%?', why)
    why = problem(function() return moontide.types.string() end)
    assert.matches('moontide_module_spec.lua:%d+: there is no moontide.types.string; did you mean "text"%?', why)
    why = problem(function() return moontide.types.zzzz() end)
    assert.matches("known are .*boolean, .*uuid", why)
  end)
end)

describe("another Lua than LuaJIT", function()
  it("is refused before the core is loaded into it", function()
    for _, file in ipairs { "init", "testing" } do
      local env = { type = type, error = error }
      function env.require(name)
        assert.is_nil(name:match "core$")
        return setfenv(assert(loadfile "lua/moontide/init.lua"), env)(name)
      end
      local chunk = setfenv(assert(loadfile(("lua/moontide/%s.lua"):format(file))), env)
      local good, why = pcall(chunk, "moontide")
      assert.is_false(good)
      assert.equal("moontide needs LuaJIT: run `moontide test` or `busted --lua=luajit`", why)
    end
  end)
end)

describe("moontide.json", function()
  it("keeps empty arrays, null and large integers", function()
    local text = '{"a":[],"b":{},"c":null,"d":9007199254740993,"e":0.1}'
    assert.equal(text, moontide.json.encode(moontide.json.decode(text)))
  end)

  it("raises at the caller's line with the path", function()
    local good, why = pcall(function() return (moontide.json.encode { a = { 0 / 0 } }) end)
    assert.is_false(good)
    assert.matches("moontide_module_spec.lua:%d+: value.a%[1%]: NaN cannot be written as JSON", why)
  end)
end)

describe("moontide.date", function()
  it("gives the day of a time in UTC", function()
    assert.equal("2024-04-30", moontide.date.of "2024-05-01T01:30:00+02:00")
  end)

  it("adds days over leap days and years", function()
    assert.equal("2024-03-01", moontide.date.add("2024-02-28", 2))
    assert.equal("2023-12-31", moontide.date.add("2024-01-01", -1))
    assert.equal("1900-03-01", moontide.date.add("1900-02-28", 1))
  end)

  it("counts back what it added, for every day of 800 years", function()
    for days = 0, 292194, 7 do
      local day = moontide.date.add("1600-01-01", days)
      if moontide.date.days("1600-01-01", day) ~= days then error(day) end
    end
  end)

  it("knows the weekday", function()
    assert.equal(4, moontide.date.weekday "1970-01-01")
    assert.equal(7, moontide.date.weekday "2024-03-03")
  end)

  it("refuses days that do not exist", function()
    assert.has_error(function() moontide.date.add("2023-02-29", 1) end)
    assert.has_error(function() moontide.date.of "2023-02-29T00:00:00Z" end)
  end)
end)

describe("moontide.by", function()
  it("takes the key from the payload", function()
    assert.equal("O-1", moontide.by "order_id" { type = "a.B", payload = { order_id = "O-1" } })
  end)

  it("fails when the field is missing or null", function()
    for _, payload in ipairs { {}, { order_id = moontide.null }, "text" } do
      local good, why = pcall(moontide.by "order_id", { type = "a.B", payload = payload })
      assert.is_false(good)
      assert.matches('the payload of a.B has no "order_id" to take the key from', why, 1, true)
    end
  end)
end)

describe("moontide.event", function()
  it("gives an object for a payload that is left out", function()
    assert.equal('{"payload":{},"type":"a.B"}', moontide.json.encode(moontide.event "a.B"))
  end)

  it("names the nearest option for an unknown one", function()
    local good, why = pcall(function() return (moontide.event("a.B", {}, { metdata = {} })) end)
    assert.is_false(good)
    assert.matches('unknown option metdata; did you mean "metadata"?', why, 1, true)
  end)
end)

describe("a declaration", function()
  it("is made without the host and keeps its functions", function()
    local function handler() end
    local declaration = moontide.projection "orders" {
      fields = { total = moontide.types.integer() },
      on = { ["order.Placed"] = handler },
    }
    assert.equal("projection", declaration.kind)
    assert.equal(handler, declaration.handlers["order.Placed"])
    assert.equal("total", declaration.fields[1].name)
  end)
end)
