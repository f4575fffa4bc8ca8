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

local COMPARE = "SELECT CASE WHEN f = %s THEN 'same' ELSE 'another' END AS value FROM fields WHERE read_model_id = ?"
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

dialect.each(function(database)
  describe("a declared field", function()
    local rig

    after_each(function() rig:close() end)

    for _, case in ipairs(CASES) do
      local field, good, bad = unpack(case)

      it("of type " .. field .. " is stored in a column, exactly", function()
        rig = kit.new { database = database, handlers = one(field) }
        local list = {}
        for i, value in ipairs(good) do
          list[i] = { aggregate_id = "good " .. i, type = "spec.Set", payload = '{"f":' .. value[1] .. "}" }
        end
        rig.app:append(list)
        rig:run()
        assert.same({}, rig:waiting())
        local kind, precision, scale = field:match "^t%.(%l+)%s*%(?(%d*),?%s*(%d*)"
        assert.same({ name = "f", type = database:type_name(kind, precision, scale) },
          rig.app.db:columns "fields"[4])
        for i, value in ipairs(good) do
          local wanted = database:literal(kind, value[2], tonumber(scale))
          assert.equal("same", rig:value(COMPARE:format(wanted), "good " .. i),
            value[1] .. " is not stored as " .. wanted)
        end
      end)

      it("of type " .. field .. " refuses every other value, and says which", function()
        rig = kit.new { database = database, handlers = one(field) }
        local list, wanted = {}, {}
        for i, value in ipairs(bad) do
          list[i] = { aggregate_id = "bad " .. i, type = "spec.Set", payload = '{"f":' .. value .. "}" }
          wanted[i] = ("%d bad %d HALTED"):format(i, i)
        end
        list[#list + 1] = { aggregate_id = "good", type = "spec.Set", payload = '{"f":' .. good[1][1] .. "}" }
        rig.app:append(list)
        rig:run()
        assert.same(wanted, rig:waiting())
        for _, row in ipairs(rig:undelivered()) do assert.matches(REASON, row.reason) end
        assert.same({ { key = "good" } }, rig:query 'SELECT read_model_id AS "key" FROM fields')
      end)

      it("of type " .. field .. " may be missing or null only when it is optional", function()
        local missing = { { aggregate_id = "none", type = "spec.Set", payload = "{}" },
          { aggregate_id = "null", type = "spec.Set", payload = '{"f":null}' } }
        rig = kit.new { database = database, handlers = one(field) }
        rig.app:append(missing)
        rig:run()
        assert.same({ "1 none HALTED", "2 null HALTED" }, rig:waiting())
        assert.matches(REASON .. "missing; .*optional = true", rig:undelivered()[1].reason)
        rig:close()
        local optional = field:gsub("%(%)$", "(OPTIONS)"):gsub("(%d)%)$", "%1, OPTIONS)"):gsub("^(t.enum) ({.*})$",
          "%1(%2, OPTIONS)"):gsub("OPTIONS", "{ optional = true }")
        rig = kit.new { database = database, handlers = one(optional) }
        rig.app:append(missing)
        rig:run()
        assert.same({}, rig:waiting())
        assert.equal(2, rig:value "SELECT count(*) AS value FROM fields WHERE f IS NULL")
      end)
    end

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
