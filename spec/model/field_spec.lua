-- Declared fields: every type, what is stored of it, and what is refused.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- A projection with one field `f`, whose value is what the payload holds.
local function one(field)
  return ([[
    return moontide.projection "fields" { fields = { f = %s }, on = {
      ["spec.Set"] = function(state, event) state.f = event.payload.f end } }]]):format(field)
end

local COMPARE = "SELECT CASE WHEN f = %s THEN 'same' ELSE 'another' END AS value FROM given%d WHERE read_model_id = ?"
local REASON = "^state: handlers/spec.lua:%d+: field f: "

-- declaration · { value as JSON, value that is stored } ... · values that are
-- refused, as JSON
local CASES = {
  { "t.text()", { { [["x"]], "x" }, { [["é\n\"'"]], "é\n\"'" }, { [[""]], "" },
      { '"' .. ("é"):rep(255) .. '"', ("é"):rep(255) } },
    { "1", "true", "{}", "[]", [["a\u0000b"]], '"' .. ("é"):rep(256) .. '"' } },
  { "t.integer()", { { "0", "0" }, { "-7", "-7" }, { "9007199254740993", "9007199254740993" },
      { "9223372036854775807", "9223372036854775807" }, { "-9223372036854775808", "-9223372036854775808" },
      { "3.0", "3" } },
    { "0.5", "1e300", [["7"]], "false" } },
  { "t.double()", { { "0.1", "0.1" }, { "1", "1" }, { "-1e300", "-1e300" }, { "5e-324", "5e-324" } },
    { [["0.1"]], "true", "{}" } },
  { "t.boolean()", { { "true", "true" }, { "false", "false" } }, { "1", [["true"]], "0" } },
  { "t.decimal(12, 2)", { { [["12.34"]], "12.34" }, { [["-0.05"]], "-0.05" }, { [["7"]], "7" },
      { [["1.5"]], "1.5" }, { [["9999999999.99"]], "9999999999.99" } },
    { "12.34", "1", [["1.234"]], [["12345678901"]], [["1e3"]], [["x"]], [[""]], [["."]], [["1,5"]] } },
  { "t.decimal(18, 18)", { { [["0.123456789012345678"]], "0.123456789012345678" } }, { [["1.0"]] } },
  { "t.date()", { { [["2024-02-29"]], "2024-02-29" } },
    { [["2023-02-29"]], [["2024-2-9"]], [["2024-13-01"]], "20240229", [["2024-02-29T00:00:00Z"]] } },
  { "t.time()", { { [["23:59:59"]], "23:59:59" } }, { [["24:00:00"]], [["12:60:00"]], "12", [["noon"]] } },
  { "t.timestamp()", { { [["2024-02-29T12:34:56.789012Z"]], "2024-02-29T12:34:56.789012Z" },
      { [["2024-02-29T12:34:56Z"]], "2024-02-29T12:34:56.000000Z" },
      { [["2024-03-01T01:04:56+12:30"]], "2024-02-29T12:34:56.000000Z" } },
    { [["2024-02-30T00:00:00Z"]], [["yesterday"]], "1709210096", [["2024-02-29 12:34:56"]] } },
  { "t.uuid()", { { [["0190b3c0-0000-7000-8000-00000000000b"]], "0190b3c0-0000-7000-8000-00000000000b" },
      { [["0190B3C0-0000-7000-8000-00000000000B"]], "0190b3c0-0000-7000-8000-00000000000b" } },
    { [["0190b3c0"]], [["{0190b3c0-0000-7000-8000-00000000000b}"]], "1" } },
  { 't.enum { "open", "closed" }', { { [["open"]], "open" } }, { [["Open"]], [["shut"]], "1", [[""]] } },
  { "t.bytes()", { { [["AAH/"]], "0001ff" }, { [[""]], "" } }, { [["A"]], [["!!!!"]], "1", [["AAH"]] } },
}

-- The declarations of all types: one that must be there, one that gets nothing,
-- and one that may be missing. A database and a host for all of them.
local function declarations()
  local parts = {}
  for i, case in ipairs(CASES) do
    local optional = case[1]:gsub("%(%)$", "(OPTIONS)"):gsub("(%d)%)$", "%1, OPTIONS)")
      :gsub("^(t.enum) ({.*})$", "%1(%2, OPTIONS)"):gsub("OPTIONS", "{ optional = true }")
    for _, item in ipairs { { "given", case[1], "Set" }, { "missing", case[1], "Missed" },
      { "optional", optional, "Missed" } } do
      parts[#parts + 1] = ([[
        moontide.projection "%s%d" { fields = { f = %s }, on = {
          ["spec.%s%d"] = function(state, event) state.f = event.payload.f end } }]]):format(item[1], i, item[2],
        item[3], i)
    end
  end
  return "return {" .. table.concat(parts, ",\n") .. "}"
end

local function events()
  local list = {}
  local function add(id, event_type, payload)
    list[#list + 1] = { aggregate_id = id, type = event_type, payload = payload }
  end
  for i, case in ipairs(CASES) do
    for j, value in ipairs(case[2]) do add("good " .. j, "spec.Set" .. i, '{"f":' .. value[1] .. "}") end
    for j, value in ipairs(case[3]) do add("bad " .. j, "spec.Set" .. i, '{"f":' .. value .. "}") end
    add("none", "spec.Missed" .. i, "{}")
    add("null", "spec.Missed" .. i, '{"f":null}')
  end
  return list
end

dialect.each(function(database)
  describe("a declared field", function()
    local rig

    setup(function()
      rig = kit.new { database = database, handlers = declarations() }
      rig.app:append(events())
      rig:run()
    end)

    teardown(function() rig:close() end)

    -- The keys of undelivered messages, and that each failed by this rule.
    local function refused(consumer, reason)
      local keys = {}
      for i, row in ipairs(rig:undelivered(consumer)) do
        keys[i] = row.key
        assert.matches(REASON .. reason, row.reason)
      end
      return keys
    end

    for i, case in ipairs(CASES) do
      local field, good, bad = unpack(case)

      it("of type " .. field .. " is stored in a column, exactly", function()
        local kind, precision, scale = field:match "^t%.(%l+)%s*%(?(%d*),?%s*(%d*)"
        assert.same({ name = "f", type = database:type_name(kind, precision, scale) },
          rig.app.db:columns("given" .. i)[4])
        for j, value in ipairs(good) do
          local wanted = database:literal(kind, value[2], tonumber(scale))
          assert.equal("same", rig:value(COMPARE:format(wanted, i), "good " .. j),
            value[1] .. " is not stored as " .. wanted)
        end
      end)

      it("of type " .. field .. " refuses every other value, and says which", function()
        local wanted = {}
        for j in ipairs(bad) do wanted[j] = "bad " .. j end
        assert.same(wanted, refused("given" .. i, ""))
        assert.equal(#good, rig:value("SELECT count(*) AS value FROM given" .. i))
      end)

      it("of type " .. field .. " may be missing or null only when it is optional", function()
        assert.same({ "none", "null" }, refused("missing" .. i, "missing; .*optional = true"))
        assert.same({}, rig:undelivered("optional" .. i))
        assert.equal(2, rig:value("SELECT count(*) AS value FROM optional" .. i .. " WHERE f IS NULL"))
      end)
    end
  end)

  describe("a declared field", function()
    local rig

    after_each(function() rig:close() end)

    it("that is an enum names its words when it meets something else", function()
      rig = kit.new { database = database, handlers = one 't.enum { "open", "closed" }' }
      rig.app:append {
        { type = "spec.Set", aggregate_id = "A", payload = '{"f":"shut"}' },
        { type = "spec.Set", aggregate_id = "B", payload = '{"f":1}' },
      }
      rig:run()
      assert.equal(2, #rig:undelivered())
      for _, row in ipairs(rig:undelivered()) do
        assert.matches("expected one of open, closed, got", row.reason, 1, true)
      end
    end)

    it("is written again when it changes, and emptied when it goes", function()
      rig = kit.new { database = database, handlers = one "t.text { optional = true }" }
      for _, value in ipairs { '"a"', '"b"', "null", '"c"' } do
        rig.app:append { { type = "spec.Set", payload = '{"f":' .. value .. "}" } }
        rig:run()
        local stored = rig:value "SELECT f AS value FROM fields"
        assert.equal(value, stored and '"' .. stored .. '"' or "null")
      end
    end)

    it("may have a name that SQL reserves", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "fields" { fields = { order = t.integer(), ["group"] = t.text { unique = true } },
          on = {
          ["spec.Set"] = function(state, event) state.order, state.group = event.position, event.key end } }]] }
      rig:append("A", "spec.Set")
      rig:append("A", "spec.Set")
      rig:run()
      assert.same({ { o = 2, g = "A" } }, rig:query 'SELECT "order" AS o, "group" AS g FROM fields')
      assert.same({ { key = "A", state = { order = 2, group = "A" }, position = nil } },
        { (function(rows)
          rows[1].position = nil
          return rows[1]
        end)(rig.app:json("read", "fields", "--where", "order=2", "--order", "-group")) })
    end)

    it("is compared as its type by read --where", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "fields" { fields = { n = t.integer(), d = t.decimal(12, 2), w = t.timestamp(),
            b = t.boolean() }, on = {
          ["spec.Set"] = function(state, event)
            for name, value in pairs(event.payload) do state[name] = value end
          end } }]] }
      rig.app:append {
        { aggregate_id = "A", type = "spec.Set", payload = '{"n":10,"d":"1.50","w":"2024-01-01T00:00:00Z","b":true}' },
        { aggregate_id = "B", type = "spec.Set", payload = '{"n":9,"d":"10","w":"2024-01-01T00:00:00.5Z","b":false}' },
      }
      rig:run()
      for condition, key in pairs { ["n=10"] = "A", ["n=9"] = "B", ["d=1.5"] = "A", ["d=10.00"] = "B",
        ["w=2024-01-01T01:00:00+01:00"] = "A", ["b=false"] = "B" } do
        local rows = rig.app:json("read", "fields", "--where", condition)
        assert.equal(1, #rows, condition)
        assert.equal(key, rows[1].key, condition)
      end
      local order = {}
      for i, row in ipairs(rig.app:json("read", "fields", "--order", "n")) do order[i] = row.key end
      assert.same({ "B", "A" }, order)
      assert.equal("A", application.json.decode(rig.app:ok("read", "fields", "--order", "d", "--json"))[1].key)
    end)
  end)
end)
