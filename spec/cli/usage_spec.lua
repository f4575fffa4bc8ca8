local application = require "spec.support.application"

local VERBS = { "new", "check", "schema", "run", "append", "events", "read", "status", "pause", "resume", "rebuild",
  "dead-letters", "unsubscribe", "test", "console", "completion", "help" }
local GLOBAL_OPTIONS = { "--config", "--database", "--json", "--quiet", "--no-color", "--help", "--version" }

describe("the command line", function()
  local app

  before_each(function()
    app = application.new()
  end)

  after_each(function()
    app:close()
  end)

  describe("help", function()
    it("names every verb, every global option and every exit code", function()
      local out = app:ok "--help"
      for _, verb in ipairs(VERBS) do
        if verb ~= "help" then assert.matches("\n  " .. verb, out, 1, true) end
      end
      for _, option in ipairs(GLOBAL_OPTIONS) do assert.matches(option, out, 1, true) end
      for _, code in ipairs { "0 done", "1 failed", "3 refused", "64 ", "69 ", "75 ", "78 " } do
        assert.matches(code, out, 1, true)
      end
    end)

    it("stays within 80 columns", function()
      for _, verb in ipairs { "--help", unpack(VERBS) } do
        for line in app:ok(verb == "--help" and "check" or verb, "--help"):gmatch "[^\n]+" do
          assert.is_true(#line <= 80, line)
        end
      end
    end)

    it("of the hidden verb is in no list", function()
      assert.is_nil(app:ok("--help"):find("\n  lua ", 1, true))
      assert.is_nil(app:ok("completion", "bash"):find(" lua ", 1, true))
    end)

    for _, verb in ipairs(VERBS) do
      it("of " .. verb .. " is the same by --help, -h and help, and needs nothing else to be right", function()
        app:write("moontide.conf.lua", "this is broken (")
        local out = app:ok("help", verb)
        assert.equal("Usage: moontide " .. verb, out:sub(1, #"Usage: moontide " + #verb))
        if verb ~= "test" then
          assert.equal(out, app:ok(verb, "--help"))
          assert.equal(out, app:ok(verb, "-h"))
        end
        assert.equal(out, app:ok("--help", verb))
      end)
    end

    it("of a verb names its options", function()
      for verb, options in pairs {
        run = { "--until-idle", "--workers N" }, append = { "--batch N" }, schema = { "--dialect D", "--raw" },
        events = { "--topic T", "--aggregate ID", "--type T", "--after P", "--limit N", "--follow" },
        read = { "--where F=V", "--order F", "--limit N" }, status = { "--watch" },
        resume = { "--past", "--every-key", "--accept" }, unsubscribe = { "--source TOPIC", "--force" },
        rebuild = { "--key K", "--cancel", "--restart", "--wait" },
        ["dead-letters"] = { "--consumer NAME", "--type T", "--key K", "--error TEXT", "--status S", "--older-than AGE",
          "--newer-than AGE", "--all", "--limit N" },
      } do
        local out = app:ok(verb, "--help")
        for _, option in ipairs(options) do assert.matches(option, out, 1, true) end
      end
    end)

    it("alone goes to standard error, for it was a mistake", function()
      local result = app:moontide()
      assert.equal(64, result.code)
      assert.equal("", result.out)
      assert.matches("^Usage: moontide", result.err)
    end)
  end)

  it("--version gives a version, also as JSON and as -V", function()
    local out = app:ok "--version"
    local version = assert(out:match "^moontide (%d+%.%d+%.%d+)\n$", out)
    assert.equal(out, app:ok "-V")
    assert.same({ version = version }, app:json "--version")
  end)

  describe("a mistake", function()
    local function mistake(words, ...)
      local result = app:moontide(unpack(words))
      assert.equal(64, result.code, result.err)
      assert.equal("", result.out)
      assert.matches("^moontide: ", result.err)
      assert.equal(1, select(2, result.err:gsub("\n", "\n")))
      for _, part in ipairs { ... } do assert.matches(part, result.err, 1, true) end
    end

    it("in a verb is told with the nearest one", function()
      mistake({ "apend" }, "there is no verb 'apend'", "did you mean 'append'")
      mistake({ "stauts" }, "did you mean 'status'")
      mistake({ "help", "evnts" }, "did you mean 'events'")
      mistake({ "frobnicate" }, "there is no verb 'frobnicate'", "moontide --help")
      mistake({ "" }, "there is no verb ''")
    end)

    it("in an option is told with the nearest one", function()
      mistake({ "append", "--btach", "3" }, "unknown option --btach", "did you mean --batch")
      mistake({ "--databse=x", "status" }, "did you mean --database")
      mistake({ "run", "--frobnicate" }, "unknown option --frobnicate", "moontide run --help")
      mistake({ "status", "-x" }, "unknown option -x")
      mistake({ "check", "--batch", "3" }, "unknown option --batch")
    end)

    it("in the number of arguments is told", function()
      mistake({ "new" }, "DIR")
      mistake({ "read" }, "PROJECTION")
      mistake({ "new", "a", "b" }, "b")
      mistake({ "check", "x" }, "x")
      mistake({ "append", "a", "b" }, "b")
      mistake({ "pause" }, "CONSUMER")
      mistake({ "resume", "a", "b" }, "b")
      mistake({ "completion" }, "bash|zsh|fish")
    end)

    it("in a word is told with the words there are", function()
      mistake({ "schema", "drop" }, "drop", "print", "upgrade")
      mistake({ "completion", "tcsh" }, "tcsh", "bash", "zsh", "fish")
      mistake({ "dead-letters", "retyr" }, "did you mean 'retry'")
    end)

    it("in a value is told with the option", function()
      mistake({ "events", "--limit", "0" }, "--limit")
      mistake({ "events", "--after", "-1" }, "--after")
      mistake({ "events", "--limit", "many" }, "--limit", "many")
      mistake({ "events", "--limit" }, "--limit needs a value")
      mistake({ "run", "--until-idle=yes" }, "--until-idle takes no value")
      mistake({ "events", "--topic", "nowhere" }, "nowhere", "event-store")
      mistake({ "read", "x", "--where", "novalue" }, "--where takes FIELD=VALUE")
      mistake({ "read", "x", "--limit", "1.5" }, "--limit")
      mistake({ "dead-letters", "--status", "failed" }, "--status takes one of FAILED, WAITING", "failed")
      mistake({ "dead-letters", "show", "A-1" }, "a position or a UUID", "A-1", "--key")
      mistake({ "dead-letters", "show", "0" }, "a position or a UUID")
      mistake({ "dead-letters", "--older-than", "yesterday" }, "--older-than", "yesterday")
      mistake({ "dead-letters", "--newer-than", "0s" }, "--newer-than")
      mistake({ "dead-letters", "delete", "--error", "" }, "--error", "--all")
      mistake({ "dead-letters", "retry", "7", "--all" }, "--all")
      mistake({ "resume", "x", "--every-key" }, "--every-key", "--past")
      mistake({ "rebuild", "x", "--cancel", "--wait" }, "--cancel")
      mistake({ "rebuild", "x", "--key", "K", "--wait" }, "--key")
      mistake({ "resume", "x", "--past", "--accept" }, "--past", "--accept")
    end)

    it("is also told as JSON on standard error when JSON is asked for, wherever --json stands", function()
      for _, words in ipairs { { "--json", "apend" }, { "apend", "--json" }, { "append", "--btach", "--json" } } do
        local result = app:moontide(unpack(words))
        assert.equal(64, result.code)
        assert.equal("", result.out)
        local problem = application.json.decode(result.err:match "\n({.*})\n$").error
        assert.equal("usage", problem.status)
        assert.equal(result.err:match "^moontide: ([^\n]*)\n", problem.message)
      end
    end)

    it("of bytes that are no text is told, but for paths", function()
      mistake({ "read", "orders", "\255" }, "an argument of read is not valid UTF-8")
      mistake({ "dead-letters", "--key", "a\192" }, "--key is not valid UTF-8")
      mistake({ "command", "account", "\237\160\128", "open" }, "an argument of command is not valid UTF-8")
      app:write("\255.ndjson", "")
      app:ok("append", "\255.ndjson")
    end)

    it("of several workers is refused where one process writes at a time", function()
      mistake({ "run", "--workers", "2" }, "one process write at a time")
      app:ok("--database", "sqlite::memory:", "run", "--until-idle", "--workers", "1")
      app:ok("--database", "sqlite::memory:", "run", "--until-idle", "--workers", "0")
    end)
  end)

  describe("global options", function()
    it("stand before or after the verb", function()
      local before = app:ok("--json", "--database", "sqlite:x.db", "check")
      assert.equal(before, app:ok("check", "--json", "--database=sqlite:x.db"))
      assert.equal("sqlite:x.db", application.json.decode(before).configuration.database.value)
    end)

    it("with a value are refused when they are given twice", function()
      local err = app:fails(64, "--database", "sqlite:a.db", "check", "--database", "sqlite:b.db")
      assert.matches("--database is given twice", err, 1, true)
    end)

    it("end at --", function()
      assert.matches("cannot open --json", app:fails(64, "append", "--", "--json"), 1, true)
    end)
  end)

  describe("the database", function()
    local function database_of(words, env)
      words[#words + 1] = "check"
      words[#words + 1] = { env = env or {} }
      return app:json(unpack(words)).configuration.database
    end

    it("is a file in the application's folder unless something is said", function()
      assert.same({ value = "sqlite:moontide.db", origin = "default" }, database_of {})
    end)

    it("is that of the file, before the default", function()
      app:configure 'database = "sqlite:file.db"'
      assert.same({ value = "sqlite:file.db", origin = "moontide.conf.lua" }, database_of {})
    end)

    it("is that of DATABASE_URL, before the file", function()
      app:configure 'database = "sqlite:file.db"'
      assert.same({ value = "sqlite:env.db", origin = "DATABASE_URL" },
        database_of({}, { DATABASE_URL = "sqlite:env.db" }))
    end)

    it("is that of --database, before DATABASE_URL", function()
      app:configure 'database = "sqlite:file.db"'
      assert.same({ value = "sqlite:option.db", origin = "--database" },
        database_of({ "--database", "sqlite:option.db" }, { DATABASE_URL = "sqlite:env.db" }))
    end)

    it("is the one that is written to", function()
      app:configure 'database = "sqlite:file.db"'
      app:ok("append", { stdin = application.event(), env = { DATABASE_URL = "sqlite:" .. app:file "env.db" } })
      assert.is_nil(app:read "file.db")
      assert.equal("SQLite format 3", app:read("env.db"):sub(1, 15))
    end)

    it("is not that of an empty DATABASE_URL", function()
      assert.equal("default", database_of({}, { DATABASE_URL = "" }).origin)
    end)

    it("is never shown with its password", function()
      local result = app:moontide("--database", "postgresql://me:s3cret@db/x", "check")
      assert.is_nil((result.out .. result.err):find("s3cret", 1, true))
      assert.matches("me:", result.out .. result.err, 1, true)
      result = app:moontide("status", { env = { DATABASE_URL = "postgresql://me:s3cret@db/x" } })
      assert.is_true(result.code ~= 0)
      assert.is_nil((result.out .. result.err):find("s3cret", 1, true))
    end)

    it("with an unknown scheme is refused with the forms there are", function()
      local err = app:fails(78, "--database", "oracle:x", "status")
      assert.matches("--database: database must be sqlite:PATH", err, 1, true)
      assert.matches("oracle:x", err, 1, true)
      assert.matches("DATABASE_URL: ", app:fails(78, "status", { env = { DATABASE_URL = "x" } }), 1, true)
    end)
  end)

  describe("completion", function()
    it("of bash offers verbs, options and words", function()
      app:write("completion", app:ok("completion", "bash"))
      local function offers(...)
        local words = { ... }
        local script = [[. ./completion
          COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
          _moontide; printf '%s\n' "${COMPREPLY[@]}"]]
        local found = {}
        local result = app:exec("bash", "-c", script, "bash", "moontide", unpack(words))
        assert.equal("", result.err)
        for word in result.out:gmatch "%S+" do found[word] = true end
        return found
      end
      local found = offers ""
      for _, verb in ipairs(VERBS) do assert.is_true(found[verb], verb) end
      assert.is_nil(found.lua)
      assert.is_true(offers("ap").append)
      assert.is_nil(offers("ap").status)
      assert.is_true(offers("append", "--b")["--batch"])
      assert.is_true(offers("--config", "append", "run", "--u")["--until-idle"])
      assert.is_true(offers("schema", "")["upgrade"])
      assert.is_true(offers("dead-letters", "--status", "DEAD")["DEAD_LETTER_KEY"])
      assert.is_nil(offers("dead-letters", "--status", "DEAD")["FAILED"])
      assert.is_true(offers("events", "--")["--database"])
    end)

    it("of every shell is printed without a configuration", function()
      app:write("moontide.conf.lua", "broken (")
      for _, shell in ipairs { "bash", "zsh", "fish" } do
        local out = app:ok("completion", shell)
        for _, verb in ipairs(VERBS) do assert.matches(verb, out, 1, true) end
        assert.matches("until-idle", out, 1, true)
      end
    end)
  end)

  describe("new", function()
    it("writes an application whose check, specs and run are good", function()
      local out = app:json("new", "shop")
      assert.equal("shop", out.folder)
      for _, name in ipairs(out.files) do assert.is_string(app:read("shop/" .. name), name) end
      local where = { cwd = app:file "shop" }
      for _, words in ipairs { { "check" }, { "test" }, { "append", "events.ndjson" }, { "run", "--until-idle" } } do
        words[#words + 1] = where
        app:ok(unpack(words))
      end
      assert.is_true(#app:json("read", "orders", where) > 0)
      assert.same({}, app:json("status", where).problems)
    end)

    it("tells editors where the annotations of an installed program lie", function()
      app:shell('mkdir -p "tree/bin" "tree/share/moontide/meta" && cp "$MOONTIDE" tree/bin/moontide')
      app:exec(app:file "tree/bin/moontide", "new", "shop")
      local settings = require("moontide").json.decode(app:read "shop/.luarc.json")
      assert.matches("/tree/share/moontide/meta$", settings["workspace.library"][1])
      app:exec("rm", "-r", "tree/share")
      app:exec(app:file "tree/bin/moontide", "new", "other")
      settings = require("moontide").json.decode(app:read "other/.luarc.json")
      for _, folder in ipairs(settings["workspace.library"]) do assert.is_nil(folder:find("meta", 1, true)) end
    end)

    it("passes its own check for accidental globals and dead code", function()
      app:ok("new", "shop")
      local result = app:exec("luacheck", "--no-color", ".", { cwd = app:file "shop" })
      assert.equal(0, result.code, result.out .. result.err)
    end)

    it("takes an empty folder and folders with blanks, and no others", function()
      app:exec("mkdir", "empty", "full")
      app:write("full/keep.txt", "mine")
      app:ok("new", "empty")
      app:ok("new", "a shop/")
      assert.is_string(app:read "a shop/moontide.conf.lua")
      local err = app:fails(3, "new", "full")
      assert.matches("full is not empty; nothing was written", err, 1, true)
      assert.equal("mine", app:read "full/keep.txt")
      assert.is_nil(app:read "full/moontide.conf.lua")
    end)

    it("fails where no folder can be made", function()
      assert.matches("cannot make the folder", app:fails(1, "new", "no/such/parent"), 1, true)
      app:write("file", "x")
      assert.matches("file", app:fails(1, "new", "file"), 1, true)
      app:fails(64, "new", "")
    end)
  end)
end)
