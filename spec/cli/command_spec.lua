-- `moontide command`: what it prints and how it ends.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local proxy = require "spec.support.proxy"

local ID = "01890a5d-ac96-774b-bcce-b302099a8057"

local HANDLERS = { ["account.lua"] = [[
  local moontide = require "moontide"
  return moontide.aggregate "bank.account" {
    commands = {
      deposit = function(_, args, ctx)
        return moontide.event("account.Deposited", { amount = args.amount, by = ctx.metadata.by })
      end,
      withdraw = function() return moontide.reject("insufficient funds", { missing = 5 }) end,
      look = function() end,
      fail = function() error "broken" end,
    },
    apply = { ["account.Deposited"] = function() end },
  }]] }

local WORDS = { "command", "bank.account", "A-1", "deposit", '{"amount":5}', "--id", ID }

dialect.servers(function(database)
  describe("a command whose connection is cut", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = HANDLERS }
      app:ok("run", "--until-idle") -- makes the tables
    end)

    after_each(function() app:close() end)

    for _, cut in ipairs { "before", "after" } do
      it(cut .. " its COMMIT has one effect when it is given again under its id", function()
        local proxied = proxy.start(app, { cut = cut })
        local first = app:moontide("--json", "--database", proxied.url, unpack(WORDS))
        assert.is_true(proxied:has_cut())
        local again = app:json(unpack(WORDS))
        -- whoever got an answer all the same got the one that stands
        if first.code == 0 then
          assert.same(application.json.decode(first.out).events, again.events)
        else
          assert.equal(69, first.code, first.err)
          assert.matches("doing it again is safe", first.err, 1, true)
          assert.equal(cut == "after", again.repeated)
        end
        assert.equal(1, app:count())
        assert.equal("1", tostring(app.db:value "SELECT count(*) FROM COMMAND_RESULTS"))
        assert.same(again.events, app:json(unpack(WORDS)).events)
      end)

      it(cut .. " its COMMIT gives a rejection again, too", function()
        local words = { "command", "bank.account", "A-1", "withdraw", "--id", ID }
        local proxied = proxy.start(app, { cut = cut })
        app:moontide("--database", proxied.url, unpack(words))
        assert.is_true(proxied:has_cut())
        local again = application.json.decode(app:expect(3, "--json", unpack(words)).out)
        assert.same({ "rejected", "insufficient funds", 5 }, { again.outcome, again.reason, again.details.missing })
        assert.equal(0, app:count())
        assert.equal("1", tostring(app.db:value "SELECT count(*) FROM COMMAND_RESULTS"))
      end)
    end
  end)
end)

dialect.each(function(database)
  describe("command", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = HANDLERS }
    end)

    after_each(function() app:close() end)

    it("appends and prints the events of an accepted one", function()
      assert.equal("accepted, 1 event\n  account.Deposited  bank.account A-1  sequence 0, position 1\n",
        app:ok("command", "bank.account", "A-1", "deposit", '{"amount":5}'))
      assert.equal("accepted, no event\n", app:ok("command", "bank.account", "A-1", "look"))
      assert.equal(5, app:events()[1].payload.amount)
    end)

    it("ends with 3 when it is rejected, with reason and details", function()
      assert.equal('moontide: rejected: insufficient funds {"missing":5}\n',
        app:fails(3, "command", "bank.account", "A-1", "withdraw"))
      local result = app:expect(3, "--json", "command", "bank.account", "A-1", "withdraw")
      local found = application.json.decode(result.out)
      assert.same({ "rejected", "insufficient funds", 5, "" },
        { found.outcome, found.reason, found.details.missing, result.err })
      assert.equal(0, app:count())
    end)

    it("gives the first outcome again under its id", function()
      local words = { "command", "bank.account", "A-1", "deposit", '{"amount":5}', "--id", ID,
        "--metadata", '{"by":"me"}' }
      local first, second = app:json(unpack(words)), app:json(unpack(words))
      assert.same({ ID, false, "me" }, { first.command_id, first.repeated, first.events[1].payload.by })
      assert.is_true(second.repeated)
      assert.same(first.events, second.events)
      assert.matches("^accepted before, 1 event\n", app:ok(unpack(words)))
      assert.equal(1, app:count())
      assert.matches("stands for 'deposit' of bank.account \"A-1\" already",
        app:fails(3, "command", "bank.account", "A-1", "look", "--id", ID), 1, true)
    end)

    it("says what is wrong with its words", function()
      assert.matches("no aggregate is called 'bank.acount'; did you mean 'bank.account'?",
        app:fails(64, "command", "bank.acount", "A-1", "look"), 1, true)
      assert.matches("has no command 'lok'; did you mean 'look'? (handlers/account.lua:2)",
        app:fails(64, "command", "bank.account", "A-1", "lok"), 1, true)
      assert.matches("the command's arguments: ", app:fails(64, "command", "bank.account", "A-1", "look", "{"), 1, true)
      assert.matches("the id of the aggregate has 256 characters; 1 to 255 are allowed",
        app:fails(64, "command", "bank.account", ("é"):rep(256), "look"), 1, true)
      assert.matches("the id of the aggregate has 0 characters", app:fails(64, "command", "bank.account", "", "look"),
        1, true)
      assert.matches("--id x is not a UUID", app:fails(64, "command", "bank.account", "A-1", "look", "--id", "x"), 1,
        true)
      assert.matches("--metadata: a JSON object is wanted",
        app:fails(64, "command", "bank.account", "A-1", "look", "--metadata", "[]"), 1, true)
    end)

    it("reads its arguments from standard input", function()
      local note = ("x"):rep(100000) -- more than one read, and than a system may allow as a word
      app:ok("command", "bank.account", "A-1", "deposit", "-",
        { stdin = ('{"amount":5,\n"note":"%s"}\n'):format(note) })
      assert.equal(5, app:events()[1].payload.amount)
      assert.matches("the command's arguments: ",
        app:fails(1, "command", "bank.account", "A-1", "deposit", "-", { stdin = "" }), 1, true)
      app:configure 'limits = { payload = "1KiB" }'
      assert.matches("on standard input have more than 1024 bytes, which limits.payload allows",
        app:fails(1, "command", "bank.account", "A-1", "deposit", "-", { stdin = ('{"note":"%s"}'):format(note) }),
        1, true)
      assert.equal(1, app:count())
    end)

    it("ends with 1 and the script's line when the command fails", function()
      assert.matches("error: handlers/account.lua:9: broken", app:fails(1, "command", "bank.account", "A-1", "fail"), 1,
        true)
    end)
  end)
end)
