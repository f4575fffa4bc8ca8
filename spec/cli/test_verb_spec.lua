local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local PASSING = 'it("is fine", function() assert.is_true(true) end)\n'

describe("moontide test", function()
  local app

  before_each(function()
    app = application.new()
  end)

  after_each(function()
    app:close()
  end)

  -- A spec file that writes down what busted was given.
  local AWKWARD = {
    "a b", " leading and trailing ", "it's", 'say "hi"', "$HOME", "`id`", "$(id)", "a;b", "a&b", "a|b", "<>", "*", "?",
    "[a-z]", "~", "\\", "a\\ b", "#x", "%s %d", "tab\there", "line\nbreak", "Ünï", "!", "{a..b}", "--", "'\"'\"'",
  }

  it("hands every argument to busted as it is", function()
    app:write("spec/some_spec.lua", PASSING)
    app:write("helper.lua", [[
      local handle = assert(io.open(os.getenv "SEEN", "wb"))
      for i, argument in ipairs(arg) do handle:write(i, "=", argument, "\0") end
      handle:close()
      return function() return true end]])
    for _, word in ipairs(AWKWARD) do
      if word ~= "--" then
        app:ok("test", "--helper", "./helper.lua", "-Xhelper=" .. word, { env = { SEEN = app:file "seen" } })
        assert.equal("1=" .. word .. "\0", app:read "seen")
      end
    end
  end)

  it("runs the one test whose name has blanks and quotes", function()
    app:write("spec/names_spec.lua", [==[
      it([[is 'single' and "double" and $HOME and `id`]], function() end)
      it("is another", function() error "not asked for" end)]==])
    local out = app:ok("test", "-o", "TAP", "--filter", [['single' and "double" and $HOME and `id`]])
    assert.matches("ok 1 - is 'single' and \"double\"", out, 1, true)
    assert.matches("1..1\n", out, 1, true)
  end)

  it("runs files whose path has blanks and quotes", function()
    app:write("spec/it's a \"file\"/one_spec.lua", PASSING)
    assert.matches("1..1\n", app:ok("test", "-o", "TAP", "spec/it's a \"file\"/one_spec.lua"), 1, true)
  end)

  it("ends with busted's exit code", function()
    app:write("spec/some_spec.lua", PASSING)
    app:ok "test"
    app:write("spec/bad_spec.lua", 'it("fails", function() assert.equal(1, 2) end)\n')
    assert.equal(1, app:moontide("test").code)
    app:write("spec/bad_spec.lua", 'it("breaks", function() error "x" end)\nit("too", function() error "y" end)\n')
    assert.is_true(app:moontide("test").code ~= 0)
    app:write("spec/bad_spec.lua", "oops oops\n")
    assert.is_true(app:moontide("test").code ~= 0)
  end)

  it("calls it a failure when nothing was tested", function()
    assert.is_true(app:moontide("test").code ~= 0)
    app:write("spec/empty_spec.lua", "-- later\n")
    assert.matches("no test was run", app:fails(1, "test"), 1, true)
    app:write("spec/some_spec.lua", PASSING)
    assert.matches("no test was run", app:fails(1, "test", "--filter", "no such name"), 1, true)
    app:ok("test", "--list")
  end)

  it("runs in the host's LuaJIT, whatever .busted asks for", function()
    app:write(".busted", 'return { default = { lua = "/no/such/lua" } }')
    app:write("spec/some_spec.lua", [[it("is LuaJIT with the host inside", function()
      assert.is_string(jit.version)
      assert.is_table(require "moontide.core")
      assert.is_function(require("moontide.testing").host)
    end)]])
    app:ok "test"
  end)

  it("runs in the folder of --config, and DATABASE_URL is that of --database", function()
    app:write("deep/moontide.conf.lua", "return {}")
    app:write("deep/spec/some_spec.lua", [[it("knows where it is", function()
      assert.equal("sqlite:given.db", require("moontide.testing").database())
    end)]])
    app:ok("--config", "deep/moontide.conf.lua", "--database", "sqlite:given.db", "test")
  end)

  it("finds modules where scripts find them: in their folder, then in the application's", function()
    app:configure 'scripts = "declared"'
    app:write("declared/lib/money.lua", "return { of = 'the scripts' }")
    app:write("lib/money.lua", "return { of = 'the application' }")
    app:write("lib/days/init.lua", "return 'days'")
    app:write("declared/members.lua", [[local money = require "lib.money"
return require("moontide").projection(money.of) { on = { t = function() end } }]])
    app:write("spec/some_spec.lua", [[it("finds them", function()
      assert.equal("the scripts", require("declared.members").name)
      assert.equal("days", require "lib.days")
    end)]])
    app:ok "test"
  end)

  it("keeps the application's own database out of its specs", function()
    app:configure 'database = "sqlite:real.db"'
    app:write("spec/some_spec.lua", [[it("has a database of its own", function()
      local testing = require "moontide.testing"
      local host = testing.host { database = testing.database() }
      host:append("a", "1", { require("moontide").event("t", {}) })
      host:run()
      host:close()
    end)]])
    app:ok "test"
    assert.is_nil(app:read "real.db")
  end)
end)

dialect.each(function(database)
  describe("moontide console", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["things.lua"] = [[
  local moontide = require "moontide"
  return moontide.projection "things" {
    initial = function() return { n = 0 } end,
    on = { ["thing.Happened"] = function(state) state.n = state.n + 1 end },
  }]] } }
    end)

    after_each(function()
      app:close()
    end)

    it("appends, runs, reads and queries from a pipe", function()
      local out = app:ok("console", { pipe = true, stdin = [[
  append("spec.thing", "A-1", { moontide.event("thing.Happened", {}), moontide.event("thing.Happened", {}) })
  run()
  = read("things", "A-1").n
  = query("SELECT count(*) AS events FROM EVENT_STORE WHERE aggregate_id = ?", "A-1")[1].events
  count = 40
  = count + 2
  ]] })
      assert.matches("2\n2\n42\n$", out)
      assert.equal(2, #app:events())
    end)

    it("reads statements over several lines", function()
      local out = app:ok("console", { stdin = "for i = 1, 2 do\n  print(i)\nend\n= {\n  a = 1,\n}\n" })
      assert.matches("1\n2\n{ a = 1 }", out, 1, true)
    end)

    it("ends at the first error of a pipe with 1, and says where", function()
      local result = app:moontide("console", { stdin = 'print "one"\nerror "stop"\nprint "two"\n' })
      assert.equal(1, result.code)
      assert.equal("one\n", result.out)
      assert.matches("stop", result.err, 1, true)
    end)

    it("gives all read models by key", function()
      app:append { { aggregate_id = "A-1" }, { aggregate_id = "A-2" } }
      local out = app:ok("console", { stdin = 'run()\n= read("things")["A-2"].n\n= read "things"\n'
        .. '= read("things", "A-3")\n' })
      assert.matches('1\n{ %["A%-1"%] = { n = 1 }, %["A%-2"%] = { n = 1 } }\nnil\n$', out)
    end)

    it("ends with exit() and quit()", function()
      for _, name in ipairs { "exit", "quit" } do
        assert.equal("1\n", app:ok("console", { stdin = "print(1)\n" .. name .. "()\nprint(2)\n" }))
      end
    end)

    it("gives errors without its own lines", function()
      local result = app:moontide("console", { stdin = 'query "SELECT no_such FROM CONSUMERS"\n' })
      assert.equal(1, result.code)
      assert.matches("^moontide: [^\n]*no_such[^\n]*\n", result.err)
      assert.is_nil(result.err:find("console", 1, true))
      assert.matches("^moontide: the application declares no projection 'thing'",
        app:moontide("console", { stdin = 'read "thing"\n' }).err)
    end)

    it("leaves a halted consumer alone until run() is called", function()
      app:write("handlers/things.lua", [[return require("moontide").projection "things" {
        on = { ["thing.Happened"] = function() error "no" end } }]])
      app:append { {} }
      app:fails(1, "run", "--until-idle")
      app:ok("console", { stdin = 'read "things"\nquery "SELECT 1"\nstatus()\n' })
      local consumer = app:json("status", "things").consumers[1]
      assert.equal("HALTED", consumer.state)
      assert.equal(1, consumer.failed[1].attempts)
      assert.equal("HALTED", consumer.failed[1].status)
      app:write("handlers/things.lua", [[return require("moontide").projection "things" {
        on = { ["thing.Happened"] = function() end } }]])
      app:ok("console", { stdin = "run()\n" })
      assert.equal("RUNNING", app:json("status", "things").consumers[1].state)
    end)

    it("says nothing for an empty input", function()
      assert.equal("", app:ok("console", { stdin = "" }))
    end)
  end)
end)
