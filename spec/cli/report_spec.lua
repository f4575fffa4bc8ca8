local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local HANDLERS = {
  ["orders.lua"] = [[
local moontide = require "moontide"
local t = moontide.types
return {
  moontide.projection "orders" {
    aggregates = { "shop.order" },
    fields = { customer = t.text { optional = true }, cents = t.integer(), paid = t.boolean() },
    initial = function() return { cents = 0, paid = false } end,
    on = {
      ["order.Placed"] = function(state, event) state.customer = event.payload.customer end,
      ["order.Added"] = function(state, event) state.cents = state.cents + event.payload.cents end,
      ["order.Paid"] = function(state) state.paid = true end,
      ["order.Broken"] = function(state, event) error("cannot take " .. event.key) end,
      ["order.Cancelled"] = function() return moontide.delete end,
    },
  },
  moontide.projection "plain" {
    on = { ["order.Placed"] = function(state, event) state.by = event.payload.customer end },
  },
}]],
  ["days.lua"] = [[
local moontide = require "moontide"
return moontide.sql_projection "days" {
  tables = "days.sql",
  on = { ["order.Placed"] = function(event, ctx) ctx:execute("INSERT INTO days VALUES (?)", event.position) end },
}]],
}

local function keys(value)
  local list = {}
  for key in pairs(value) do list[#list + 1] = key end
  table.sort(list)
  return list
end

local function order(id, kind, payload)
  return { aggregate_type = "shop.order", aggregate_id = id, type = "order." .. kind, payload = payload }
end

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, config = "partitions = 12", handlers = HANDLERS }
    app:write("days.sql", "CREATE TABLE IF NOT EXISTS days (position INTEGER NOT NULL);")
  end)

  after_each(function()
    app:close()
  end)

  local function fill()
    app:append {
      order("O-1", "Placed", '{"customer":"Ada"}'), order("O-1", "Added", '{"cents":450}'),
      order("O-2", "Placed", '{"customer":"Grace \\"G\\""}'), order("O-2", "Added", '{"cents":900}'),
      order("O-1", "Paid"), order("o-1", "Placed", '{"customer":"Bo"}'), order("O-3", "Cancelled"),
    }
  end

  local function fill_and_run()
    fill()
    app:ok("run", "--until-idle")
  end

  describe("check", function()
    it("lists aggregates and event types", function()
      app:write("handlers/account.lua", [[
        local moontide = require "moontide"
        return { moontide.aggregate "bank.account" { commands = { open = print, close = print },
            apply = { ["account.Opened"] = print }, snapshot = { every = 200, version = 3 } },
          moontide.event_type "account.Opened" { revision = 2, upcast = { [1] = print }, fields = {} } }]])
      local found = app:json "check"
      assert.same({ { name = "bank.account", file = "handlers/account.lua", line = 2, commands = { "close", "open" },
        types = { "account.Opened" }, snapshot = { every = 200, version = 3 } } }, found.aggregates)
      assert.same({ { name = "account.Opened", file = "handlers/account.lua", line = 4, revision = 2, oldest = 1,
        into = {}, checked = true } }, found.event_types)
      local text = app:ok "check"
      assert.matches("aggregate bank.account (handlers/account.lua:2)\n    commands close, open", text, 1, true)
      assert.matches("revision 2, reads from 1, payloads are checked", text, 1, true)
    end)

    it("gives configuration, declarations and warnings as JSON", function()
      local found = app:json "check"
      assert.same({ "aggregates", "configuration", "declarations", "event_types", "publishers", "warnings" },
        keys(found))
      assert.same({}, found.warnings)
      local by_name = {}
      for _, declaration in ipairs(found.declarations) do by_name[declaration.name] = declaration end
      assert.same({ "days", "orders", "plain" }, keys(by_name))
      local orders = by_name.orders
      assert.same({ "aggregates", "fields", "file", "fingerprint", "kind", "line", "name", "on_change",
        "on_error", "retry", "revision", "source", "table", "types" }, keys(orders))
      assert.equal("halt", orders.on_error)
      assert.same({ attempts = 1, delay = 1, factor = 2, max_delay = 300, jitter = 0.2 }, orders.retry)
      assert.is_false(by_name.days.resettable)
      assert.equal("halt", orders.on_change)
      assert.equal(1, orders.revision)
      assert.same({ "code", "key", "shape", "sources" }, keys(orders.fingerprint))
      for part, hash in pairs(orders.fingerprint) do
        assert.matches("^[%w_.-]+$", hash)
        assert.is_true(#hash >= 20 and #hash <= 31, part)
      end
      assert.equal("projection", orders.kind)
      assert.equal("handlers/orders.lua", orders.file)
      assert.equal(4, orders.line)
      assert.equal("event-store", orders.source)
      assert.same({ "shop.order" }, orders.aggregates)
      assert.same({ "order.Added", "order.Broken", "order.Cancelled", "order.Paid", "order.Placed" }, orders.types)
      assert.same({ name = "cents", type = "integer", unique = false, optional = false }, orders.fields[1])
      assert.equal("sql_projection", by_name.days.kind)
      assert.equal("days.sql", by_name.days.tables)
    end)

    it("says which declaration has a failure policy of its own, and which cannot be rebuilt", function()
      app:write("handlers/own.lua", [[local moontide = require "moontide"
return moontide.projection "own" {
  retry = { attempts = 2, delay = "3s" }, on_error = function() return "skip" end,
  on = { ["t"] = function() end } }]])
      local out = app:ok "check"
      local own = out:match "projection own .*"
      assert.matches("attempts 2, the second after 3 s, each delay 2 times the one before, at most 300 s", own, 1, true)
      assert.matches("on error function", own, 1, true)
      assert.matches("sql_projection days.-no reset: it cannot be rebuilt", out)
      local _, mentions = out:gsub("    attempts ", "")
      assert.equal(1, mentions)
    end)

    it("says the same to people, and touches no database", function()
      local out = app:ok "check"
      assert.matches("projection orders (handlers/orders.lua:4)", out, 1, true)
      assert.matches("sql_projection days (handlers/days.lua:2)", out, 1, true)
      assert.matches("Configuration and scripts are good.", out, 1, true)
      assert.is_false(app.db:made())
    end)

    it("warns of a local that a handler changes, and still ends with 0", function()
      app:write("handlers/warn.lua", [[local moontide = require "moontide"
local seen = 0
return moontide.projection "warn" { on = { ["t"] = function() seen = seen + 1 end } }]])
      local warnings = app:json("check").warnings
      assert.equal(1, #warnings)
      assert.matches("handlers/warn.lua", warnings[1], 1, true)
      assert.matches("seen", warnings[1], 1, true)
      assert.equal(warnings[1] .. "\n", app:ok("check", "--quiet"))
      assert.equal(app:ok("check", "--json"), app:ok("check", "--quiet", "--json"))
      app:exec("rm", "handlers/warn.lua")
      assert.equal("", app:ok("check", "--quiet"))
    end)

    it("warns of variables that nobody declares, in handlers and what the file has beside them", function()
      app:write("handlers/lib/money.lua", "return { total = function() return 1 end }")
      app:write("handlers/warn.lua", [[local moontide = require "moontide"
local money = require "lib.money"
local function total(event) return mony.total(event) + money.total(event) end
return moontide.projection "warn" { on = {
  ["t"] = function(state, event)
    local day = string.sub(event.occurred_at, 1, 10)
    state.day, sum = day, total(event)
    if os then print(tostring(_G.pairs), _VERSION) end
  end } }]])
      local OS = 'handlers/warn.lua:8: "os" is read, and nobody declares it: it is nil'
      local others = {
        'handlers/warn.lua:3: "mony" is read, and nobody declares it: it is nil',
        'handlers/warn.lua:7: "sum" is assigned and no local: that fails when it runs; declare it with local',
      }
      assert.same({ others[1], others[2], OS }, app:json("check").warnings)
      app:configure 'grants = { "os" }'
      assert.same(others, app:json("check").warnings)
    end)

    it("warns of variables that nobody declares in modules, whoever requires them and when", function()
      app:write("handlers/lib/money.lua", "return { total = function(e) return rat * tonumber(e.sum) end }")
      app:write("shared/days.lua", "local late = require 'lib.late'\nreturn function() days = late end")
      app:write("handlers/lib/late.lua", "return function() return unheard end")
      app:write("handlers/lib/alone.lua", "return nobody_requires_it")
      app:write("handlers/types.lua", [[local moontide = require "moontide"
local money = require "lib.money"
return moontide.event_type "t" { upcast = { [0] = function(e) return money.total(e) + tax end }, revision = 1 }]])
      app:write("handlers/warn.lua", [[local moontide = require "moontide"
return moontide.projection "warn" { on = { ["t"] = function() require("shared.days")() end } }]])
      assert.same({
        'handlers/lib/late.lua:1: "unheard" is read, and nobody declares it: it is nil',
        'handlers/lib/money.lua:1: "rat" is read, and nobody declares it: it is nil',
        'handlers/types.lua:3: "tax" is read, and nobody declares it: it is nil',
        'shared/days.lua:2: "days" is assigned and no local: that fails when it runs; declare it with local',
      }, app:json("check").warnings)
    end)

    it("warns of a type in on that no event type declares when a declared one is near", function()
      app:write("handlers/booking.lua", [[local moontide = require "moontide"
local nothing = function() end
return {
  moontide.event_type "booking.CheckedIn" {},
  moontide.event_type "booking.CheckedOut" {},
  moontide.aggregate "booking" { commands = { x = nothing }, apply = { ["booking.CheckedUp"] = nothing } },
  moontide.projection "guests" { on = {
    ["booking.ChekedIn"] = nothing, ["booking.CheckedOut"] = nothing, ["booking.CheckedUp"] = nothing,
    ["order.Placed"] = nothing,
  } },
}]])
      assert.same({ 'handlers/booking.lua:7: "guests" has a handler for booking.ChekedIn, which no '
        .. "moontide.event_type declares; did you mean booking.CheckedIn?" }, app:json("check").warnings)
    end)

    it("says that a script took too long or too much, and of no handler, where it is the file", function()
      app:configure 'limits = { time = "200ms", memory = "8MiB" }'
      app:write("handlers/loop.lua", "while true do end")
      assert.matches("handlers/loop.lua:1: script ran longer than limits.time = 200ms", app:fails(78, "check"), 1, true)
      app:write("handlers/loop.lua", 'local s = "x" while true do s = s .. s end')
      assert.matches("script needed more than limits.memory = 8MiB", app:fails(78, "check"), 1, true)
    end)

    for what, case in pairs {
      ["a syntax error"] = { "return {\n  oops oops\n}", "handlers/bad.lua:2:" },
      ["an accidental global"] = { "local moontide\ncount = 1\nreturn moontide", "handlers/bad.lua:2:", "count" },
      ["no declaration"] = { "return 1", "handlers/bad.lua" },
      ["a declaration that is not returned"] = { [[local moontide = require "moontide"
moontide.projection "lost" { on = { t = function() end } }
return moontide.projection "found" { on = { t = function() end } }]], "handlers/bad.lua:2", "lost" },
      ["an empty list"] = { "return {}", "handlers/bad.lua" },
      ["a name without a table"] = { [[return require("moontide").saga "s"]], "handlers/bad.lua:1: ",
        'moontide.saga "s" has no table after its name' },
      ["no handlers"] = { [[return require("moontide").projection "idle" { on = {} }]], "handlers/bad.lua:1", "idle" },
      ["a name that is taken"] = { [[return require("moontide").projection "orders" { on = { t = function() end } }]],
        "orders" },
      ["a table that is taken"] = { [[return require("moontide").projection "other" {
  table = "orders", on = { t = function() end } }]], "orders", "table" },
      ["an unknown field type"] = { [[local moontide = require "moontide"
return moontide.projection "p" { fields = { a = moontide.types.txt() }, on = { t = function() end } }]],
        "handlers/bad.lua:2", "txt" },
      ["an unknown key"] = { [[return require("moontide").projection "p" { onn = { t = function() end } }]],
        "handlers/bad.lua:1", "onn", "on" },
    } do
      it("ends with 78 for " .. what .. " and says where; run does not start", function()
        app:write("handlers/bad.lua", case[1])
        local err = app:fails(78, "check")
        for i = 2, #case do assert.matches(case[i], err, 1, true) end
        app:fails(78, "run", "--until-idle")
        assert.is_false(app.db:made())
      end)
    end
  end)

  describe("events", function()
    it("gives one object per line with these keys, in position order", function()
      fill()
      local found = app:events()
      assert.equal(7, #found)
      for i, event in ipairs(found) do
        assert.equal(i, event.position)
        assert.same({ "aggregate_id", "aggregate_type", "id", "key", "metadata", "occurred_at", "partition", "payload",
          "position", "revision", "sequence", "type" }, keys(event))
        assert.equal(event.aggregate_id, event.key)
      end
    end)

    it("filters by key, type, position and number, alone and together", function()
      fill()
      assert.same({ 1, 2, 5 }, app:positions("--aggregate", "O-1"))
      assert.same({ 1, 3, 6 }, app:positions("--type", "order.Placed"))
      assert.same({ 1, 3, 5, 6 }, app:positions("--type", "order.Placed", "--type", "order.Paid"))
      assert.same({ 6, 7 }, app:positions("--after", "5"))
      assert.same({ 1, 2 }, app:positions("--limit", "2"))
      assert.same({ 3 }, app:positions("--type", "order.Placed", "--after", "1", "--limit", "1"))
      assert.same({}, app:positions("--after", "7"))
      assert.same({}, app:positions("--aggregate", "O-1 "))
      assert.same({ 1, 2, 3, 4, 5, 6, 7 }, app:positions("--topic", "event-store"))
    end)

    it("finds the few among many", function()
      local lines = {}
      for i = 1, 5000 do lines[i] = { aggregate_id = i % 1000 == 0 and "rare" or "common" } end
      app:append(lines)
      assert.same({ 1000, 2000, 3000, 4000, 5000 }, app:positions("--aggregate", "rare"))
      assert.same({ 2000, 3000 }, app:positions("--aggregate", "rare", "--after", "1000", "--limit", "2"))
    end)

    it("--export gives what append takes, for a database with other partitions too", function()
      app:append {
        order("O-1", "Placed", '{"customer":"Ada","n":0.10}'),
        { aggregate_id = "ä\n", type = "x", revision = 7, occurred_at = "2024-02-29T23:00:00+02:00", payload = "[]",
          metadata = '{"by":"x"}', id = "0190b3c0-0000-7000-8000-00000000000b" },
        order("O-1", "Paid", "null"),
      }
      local exported = app:ok("events", "--export")
      assert.equal(exported, app:ok("events", "--export", "--json"))
      assert.same({ "aggregate_id", "aggregate_type", "id", "occurred_at", "payload", "revision", "type" },
        keys(application.lines(exported)[1]))

      local other = application.new { database = database, config = "partitions = 5" }
      assert.equal(3, other:json("append", { stdin = exported }).appended)
      assert.equal(exported, other:ok("events", "--export"))
      local before, after = app:events(), other:events()
      for i, event in ipairs(before) do
        for key, value in pairs(event) do
          if key ~= "partition" then assert.same(value, after[i][key], key) end
        end
      end
      assert.equal(3, other:json("append", { stdin = exported }).repeated)
      other:close()
      assert.equal(3, app:json("append", { stdin = exported }).repeated)
    end)

    it("--export keeps the revision of an old event where its type has a newer one by now", function()
      app:append { order("O-1", "Placed", '{"client":"Ada"}') }
      app:ok("emit", { stdin = '{"type":"order.Placed","payload":{"client":"Ada"}}' })
      local other = application.new { database = database, handlers = {
        ["orders.lua"] = HANDLERS["orders.lua"],
        ["placed.lua"] = [[local moontide = require "moontide"
          return moontide.event_type "order.Placed" { revision = 1,
            upcast = { [0] = { rename = { client = "customer" } } } }]],
      } }

      other:ok("append", { stdin = app:ok("events", "--export") })
      other:ok("emit", { stdin = app:ok("events", "--export", "--topic", "event-capture") })
      assert.equal(0, other:events()[1].revision)
      assert.equal(0, other:events("--topic", "event-capture")[1].revision)
      other:ok("run", "--until-idle")
      assert.equal("Ada", other:json("read", "orders", "O-1")[1].state.customer)
      other:close()
    end)

    it("--export filters as all else", function()
      fill()
      assert.equal(3, #application.lines(app:ok("events", "--export", "--aggregate", "O-1")))
    end)

    it("shows a table to people, without control characters from the data", function()
      app:append { { aggregate_id = "a\27[2Jb\nc", payload = '"\\u001b[2J"' } }
      local out = app:ok "events"
      assert.matches("^%s*position%s+id%s+occurred_at%s+type%s+key%s+payload\n", out)
      assert.equal(2, select(2, out:gsub("\n", "\n")))
      assert.is_nil(out:find("\27", 1, true))
    end)

    it("--follow shows what comes, and ends with 0 at a signal", function()
      app:append { { payload = "1" } }
      local follow = app:start("events", "--json", "--follow", "--after", "1")
      app:append { { payload = "2" } }
      app:append { { payload = "3" } }
      require("spec.support.process").wait_until(function()
        return #application.lines(follow:out()) == 2
      end, 20, function() return "two events: " .. follow:out() .. follow:err() end)
      assert.is_true(follow:alive())
      follow:signal "INT"
      local result = follow:wait(10)
      assert.equal(0, result.code)
      assert.equal(3, application.lines(result.out)[2].payload)
    end)

    it("--follow with --limit ends when it has shown so many", function()
      app:append { {} }
      local follow = app:start("events", "--json", "--follow", "--limit", "2")
      app:append { {}, {} }
      local result = follow:wait(20)
      assert.equal(0, result.code)
      assert.equal(2, #application.lines(result.out))
    end)
  end)

  describe("read", function()
    it("gives key, state and position of every read model, by key", function()
      fill_and_run()
      local found = app:json("read", "orders")
      assert.equal(3, #found)
      assert.same({ "key", "position", "state" }, keys(found[1]))
      assert.same({ "O-1", "O-2", "o-1" }, { found[1].key, found[2].key, found[3].key })
      assert.same({ customer = "Ada", cents = 450, paid = true }, found[1].state)
      assert.equal('Grace "G"', found[2].state.customer)
      assert.equal(7, found[1].position)
    end)

    it("gives one by its key, which is compared exactly", function()
      fill_and_run()
      assert.equal("Ada", app:json("read", "orders", "O-1")[1].state.customer)
      assert.equal("Bo", app:json("read", "orders", "o-1")[1].state.customer)
      local result = app:moontide("read", "orders", "O-1 ")
      assert.equal(1, result.code)
      assert.equal("", result.out)
      assert.matches("no read model with the key 'O-1 '", result.err, 1, true)
      result = app:moontide("--json", "read", "orders", "O-9")
      assert.equal(1, result.code)
      assert.equal("[]\n", result.out)
    end)

    it("filters, orders and limits", function()
      fill_and_run()
      local function read(...)
        local list = {}
        for i, model in ipairs(app:json("read", "orders", ...)) do list[i] = model.key end
        return list
      end
      assert.same({ "O-2" }, read("--where", "cents=900"))
      assert.same({ "O-1" }, read("--where", "paid=true"))
      assert.same({ "O-2" }, read("--where", 'customer=Grace "G"'))
      assert.same({}, read("--where", "paid=true", "--where", "cents=900"))
      assert.same({ "o-1", "O-1", "O-2" }, read("--order", "cents"))
      assert.same({ "O-2", "O-1", "o-1" }, read("--order", "cents:desc"))
      assert.same({ "O-2", "O-1" }, read("--order=-cents", "--limit", "2"))
      assert.same({ "o-1", "O-2", "O-1" }, read("--order", "key:desc"))
    end)

    it("refuses a field that is not declared and a value that is none of its type", function()
      fill_and_run()
      assert.matches("sents", app:fails(64, "read", "orders", "--where", "sents=1"), 1, true)
      assert.matches("sents", app:fails(64, "read", "orders", "--order", "sents"), 1, true)
      assert.matches("cents", app:fails(64, "read", "orders", "--where", "cents=much"), 1, true)
      assert.matches("paid", app:fails(64, "read", "orders", "--where", "paid=perhaps"), 1, true)
    end)

    it("names the words of an enum, as check does", function()
      app:write("handlers/doors.lua", [[local moontide = require "moontide"
return moontide.projection "doors" {
  fields = { state_is = moontide.types.enum { "open", "closed" } }, on = { t = function() end },
}]])
      app:ok("run", "--until-idle")
      assert.matches("field 'state_is' takes one of open, closed, not 'shut'",
        app:fails(64, "read", "doors", "--where", "state_is=shut"), 1, true)
      assert.matches("state_is enum(open, closed)", app:ok "check", 1, true)
      local found = app:json "check"
      local doors
      for _, declaration in ipairs(found.declarations) do
        if declaration.name == "doors" then doors = declaration end
      end
      assert.same({ "open", "closed" }, doors.fields[1].values)
    end)

    it("tells a table that is gone from one that was never made, and what brings it back", function()
      fill_and_run()
      local before = app:json("read", "orders")
      app.db:execute "DROP TABLE orders"
      assert.matches("the table orders of projection 'orders' is missing, although its messages were applied: "
        .. "`moontide rebuild orders` makes it anew and a running host fills it",
        app:fails(1, "read", "orders"), 1, true)
      app:ok("rebuild", "orders")
      app:ok("run", "--until-idle")
      assert.same(before, app:json("read", "orders"))
    end)

    it("finds what has no value with F= and F=null, and a text that is so", function()
      app:append { order("O-1", "Placed", '{"customer":"Ada"}'), order("O-2", "Added", '{"cents":1}'),
        order("O-3", "Placed", '{"customer":""}'), order("O-4", "Placed", '{"customer":"null"}') }
      app:ok("run", "--until-idle")
      local function read(...)
        local list = {}
        for i, model in ipairs(app:json("read", "orders", ...)) do list[i] = model.key end
        return list
      end
      assert.same({ "O-2", "O-3" }, read("--where", "customer="))
      assert.same({ "O-2", "O-4" }, read("--where", "customer=null"))
      assert.same({ "O-2" }, read("--where", "customer=", "--where", "cents=1"))
      assert.same({}, read("--where", "cents="))
      assert.same({}, read("--where", "paid=null", "--where", "customer=Ada"))
      assert.equal("O-2", app:json("read", "orders", "O-2", "--where", "customer=null")[1].key)
    end)

    it("says before the first run what to do", function()
      fill()
      for _, words in ipairs { { "orders" }, { "orders", "O-1" }, { "orders", "--where", "cents=1" } } do
        local err = app:fails(1, "read", unpack(words))
        assert.matches("'orders' has not run on this database yet; `moontide run --until-idle`", err, 1, true)
        assert.is_nil(err:find("SELECT", 1, true))
      end
    end)

    it("treats values as values", function()
      fill_and_run()
      assert.same({}, app:json("read", "orders", "--where", "customer=' OR '1'='1"))
      app:fails(1, "read", "orders", "' OR '1'='1")
      app:fails(64, "read", "orders", "--order", "cents; DROP TABLE orders")
      assert.equal(3, #app:json("read", "orders"))
    end)

    it("names the nearest projection, and says that a SQL projection has no read models", function()
      fill_and_run()
      assert.matches("did you mean 'orders'", app:fails(64, "read", "order"), 1, true)
      local result = app:moontide("read", "days")
      assert.equal(64, result.code, result.err)
      assert.matches("days", result.err, 1, true)
    end)

    it("gives an empty list before anything was run, and shows people a table or a word", function()
      app:ok("run", "--until-idle")
      assert.equal("[]\n", app:ok("read", "orders", "--json"))
      assert.equal("", app:ok("read", "orders"))
      fill_and_run()
      assert.matches("^key%s+cents%s+customer%s+paid\nO%-1%s+450%s+Ada%s+true\n", app:ok("read", "orders"))
      assert.matches('O%-1%s+{"by":"Ada"}', app:ok("read", "plain"))
    end)
  end)

  describe("status", function()
    it("gives topics, consumers and problems as JSON", function()
      fill()
      local found = app:json "status"
      assert.same({ "compaction", "consumers", "deadlines", "notes", "outbox", "problems", "sagas", "scripts",
        "topics" }, keys(found))
      assert.same({ { name = "event-store", mark = 0, ["end"] = 7, start = 0 } }, found.topics)
      assert.equal(3, #found.consumers)
      for _, consumer in ipairs(found.consumers) do
        assert.equal("NEW", consumer.state)
        assert.equal("projection", consumer.type)
        assert.is_true(consumer.declared)
        assert.equal(0, consumer.position)
      end

      app:ok("run", "--until-idle")
      found = app:json "status"
      assert.equal(7, found.topics[1].mark)
      for _, consumer in ipairs(found.consumers) do
        assert.same({ "blocked_partitions", "changed", "declared", "epoch", "incomplete_through", "lag", "last_error",
          "name", "next_retry_at", "oldest", "owners", "position", "rate", "rebuild_due", "replay", "source", "state",
          "state_since", "type", "undelivered" }, keys(consumer))
        assert.equal("RUNNING", consumer.state)
        assert.same({ messages = 0, seconds = 0 }, consumer.lag)
        assert.same({}, consumer.undelivered)
        assert.same({}, consumer.owners)
        assert.equal("event-store", consumer.source)
      end
      assert.same({}, found.problems)
    end)

    it("counts the lag of each consumer by what it reads", function()
      fill()
      local lag = {}
      for _, consumer in ipairs(app:json("status").consumers) do lag[consumer.name] = consumer.lag.messages end
      assert.same({ orders = 7, plain = 3, days = 3 }, lag)
    end)

    it("of one consumer gives that one, and names the nearest to another name", function()
      fill_and_run()
      local found = app:json("status", "orders")
      assert.equal(1, #found.consumers)
      assert.equal("orders", found.consumers[1].name)
      assert.matches("did you mean 'orders'", app:fails(64, "status", "ordres"), 1, true)
    end)

    it("shows first what is halted, by which message, in which line", function()
      app:append { order("O-7", "Placed", '{"customer":"X"}'), order("O-7", "Broken"), order("O-8", "Placed", "{}") }
      local result = app:moontide("run", "--until-idle")
      assert.equal(1, result.code)
      assert.matches("projection 'orders' is halted with APPLY_ERROR", result.err, 1, true)
      local found = app:json("status", "orders")
      local consumer = found.consumers[1]
      assert.equal("HALTED", consumer.state)
      assert.equal("APPLY_ERROR", consumer.halt_reason)
      assert.same({ "attempts", "key", "position", "reason", "recorded_at", "status" }, keys(consumer.last_error))
      assert.equal(2, consumer.last_error.position)
      assert.equal("O-7", consumer.last_error.key)
      assert.equal("HALTED", consumer.last_error.status)
      assert.matches("handlers/orders.lua:12: cannot take O-7", consumer.last_error.reason, 1, true)
      assert.equal(1, consumer.undelivered.HALTED)
      assert.matches("'orders' is halted", found.problems[1], 1, true)
      assert.matches("cannot take O-7", found.problems[1], 1, true)
      assert.matches("^problem: projection 'orders' is halted", app:ok "status")
      -- the others went on
      assert.equal("2", app.db:value "SELECT count(*) FROM days")
    end)

    it("of one consumer lists the messages that failed, in position order", function()
      app:append { order("O-7", "Placed", '{"customer":"X"}'), order("O-7", "Broken"), order("O-8", "Broken"),
        order("O-7", "Paid") }
      app:fails(1, "run", "--until-idle")
      local failed = app:json("status", "orders").consumers[1].failed
      assert.equal(2, #failed)
      assert.same({ "attempts", "key", "position", "reason", "status", "type" }, keys(failed[1]))
      for i, key in ipairs { "O-7", "O-8" } do
        assert.equal(i + 1, failed[i].position)
        assert.equal(key, failed[i].key)
        assert.equal("order.Broken", failed[i].type)
        assert.equal("HALTED", failed[i].status)
        assert.equal(1, failed[i].attempts)
        assert.matches("cannot take " .. key, failed[i].reason, 1, true)
      end
      local out = app:ok("status", "orders")
      assert.matches("2  O-7  order.Broken  HALTED         1  error: handlers/orders.lua:12: cannot take O-7", out, 1,
        true)
      assert.is_nil(app:json("status").consumers[1].failed)
    end)

    it("lists at most 20 failed messages, and says so", function()
      local lines = {}
      for i = 1, 23 do lines[i] = order("O-" .. i, "Broken") end
      app:configure 'partitions = 12, on_error = "dead_letter", retry = { attempts = 1 }'
      app:append(lines)
      app:moontide("run", "--until-idle")
      assert.equal(20, #app:json("status", "orders").consumers[1].failed)
      assert.matches("the first 20 of those that failed\n$", app:ok("status", "orders"))
    end)

    it("shows a consumer that no script declares any more", function()
      fill_and_run()
      app:exec("rm", "handlers/days.lua")
      local found = app:json "status"
      assert.matches("'days' is known to the database, but no script declares it", found.problems[1], 1, true)
    end)

    it("works while the scripts are broken, and says so", function()
      fill_and_run()
      app:write("handlers/orders.lua", "return {")
      local found = app:json "status"
      assert.matches("the scripts cannot be loaded: handlers/orders.lua:1", found.problems[1], 1, true)
      assert.equal(7, found.topics[1].mark)
    end)
  end)

  describe("run --until-idle", function()
    it("says to people on standard error what it did, and as JSON on standard output", function()
      fill()
      local result = app:moontide("run", "--until-idle")
      assert.equal(0, result.code)
      assert.equal("", result.out)
      assert.matches("applied 13 messages in [%d.]+ s", result.err)
      local found = app:json("run", "--until-idle")
      assert.same({ "applied", "failed", "fired", "seconds" }, keys(found))
      assert.equal(0, found.applied)
    end)

    it("counts a message that a new start applied after all, and one is no plural", function()
      app:append { order("O-7", "Broken") }
      app:fails(1, "run", "--until-idle")
      app:write("handlers/orders.lua", (HANDLERS["orders.lua"]:gsub("error%b()", "state.paid = true")))
      assert.matches("^applied 1 message in ", app:moontide("run", "--until-idle").err)
      assert.equal(0, app:json("run", "--until-idle").applied)
    end)

    it("names every halted consumer in the end", function()
      app:write("handlers/more.lua", [[return require("moontide").projection "more" {
        on = { ["order.Broken"] = function() error "no" end } }]])
      app:append { order("O-7", "Broken") }
      local err = app:fails(1, "run", "--until-idle")
      assert.matches("projection 'more' is halted with APPLY_ERROR, projection 'orders' is halted with APPLY_ERROR; "
        .. "`moontide status CONSUMER` shows the messages", err, 1, true)
    end)

    it("says nothing with --quiet", function()
      fill()
      local result = app:moontide("run", "--until-idle", "--quiet")
      assert.same({ code = 0, out = "", err = "" }, result)
    end)
  end)
end)
