local dialect = require "spec.support.dialect"
local moontide = require "moontide"
local program = require "spec.support.program"

local decode = moontide.json.decode

describe("the command line", function()
  local folder

  before_each(function()
    folder = program.folder()
  end)

  after_each(function()
    folder:close()
  end)

  it("alone prints the help and ends with 64", function()
    local code, out, err = folder:run()
    assert.equal(64, code)
    assert.equal("", out)
    assert.matches("Usage: moontide", err)
  end)

  it("prints the help of the program and of every verb it names", function()
    local code, out = folder:run "--help"
    assert.equal(0, code)
    local verbs = 0
    for verb in out:gmatch "\n  (%l[%l-]*) ?[^\n]*" do
      local verb_code, text = folder:run(verb, "--help")
      assert.equal(0, verb_code)
      assert.matches("Usage: moontide " .. verb, text, 1, true)
      verbs = verbs + 1
    end
    assert.is_true(verbs >= 12)
  end)

  it("names the nearest verb and the nearest option", function()
    local code, _, err = folder:run "apend"
    assert.equal(64, code)
    assert.matches("did you mean 'append'", err, 1, true)

    code, _, err = folder:run("append", "--bach", "4")
    assert.equal(64, code)
    assert.matches("did you mean --batch", err, 1, true)
  end)

  it("takes global options before and after the verb", function()
    assert.same({ folder:run("--json", "schema") }, { folder:run("schema", "--json") })
  end)

  it("gives errors as JSON, too, when JSON is asked for", function()
    local code, _, err = folder:run("--json", "frobnicate")
    assert.equal(64, code)
    assert.equal("usage", decode(err:match "\n({.*})").error.status)
  end)

  it("does not lose output in silence", function()
    local code, _, err = folder:shell [["$MOONTIDE" --help >/dev/full]]
    assert.equal(1, code)
    assert.matches("cannot write to standard output", err)
  end)

  it("refuses several workers where one process writes at a time", function()
    local code, _, err = folder:run("run", "--workers", "2")
    assert.equal(64, code)
    assert.matches("one process write at a time", err, 1, true)
  end)

  it("ends with 78 for a configuration it cannot use", function()
    folder:write("moontide.conf.lua", "return { partitons = 4 }")
    local code, _, err = folder:run "check"
    assert.equal(78, code)
    assert.matches("did you mean 'partitions'", err, 1, true)
  end)

  it("ends with 69 for a database that is not there", function()
    local code = folder:run("--database", "sqlite:nowhere/x.db", "status")
    assert.equal(69, code)
  end)

  it("prints completion scripts that their shell accepts", function()
    local code, _, err = folder:shell [["$MOONTIDE" completion bash | bash -n]]
    assert.equal(0, code)
    assert.equal("", err)
    for _, shell in ipairs { "zsh", "fish" } do
      assert.equal(0, (folder:run("completion", shell)))
    end
  end)
end)

dialect.each(function(database)
  describe("a new application", function()
    local folder

    before_each(function()
      folder = program.folder()
      folder:run("new", "app")
      folder:enter "app"
      folder.env = { DATABASE_URL = database:create(folder).url }
    end)

    after_each(function()
      folder:close()
    end)

    local function fill()
      assert.equal(0, (folder:run("append", "events.ndjson")))
      return folder:run("run", "--until-idle")
    end

    it("is not written over something", function()
      local code, _, err = folder:run("new", ".")
      assert.equal(3, code)
      assert.matches("not empty", err)
    end)

    it("has specs that pass", function()
      local code, out = folder:run "test"
      assert.equal(0, code)
      assert.matches("5 successes / 0 failures / 0 errors", out)
    end)

    it("is good", function()
      local code, out = folder:run("check", "--json")
      assert.equal(0, code)
      local found = decode(out)
      assert.equal("orders", found.declarations[1].name)
      assert.equal("handlers/orders.lua", found.declarations[1].file)
      assert.equal("DATABASE_URL", found.configuration.database.origin)
      assert.equal("default", found.configuration.batch.origin)
      assert.same({}, found.warnings)
    end)

    it("runs to the read models of its sample", function()
      local code, out, err = fill()
      assert.equal(0, code)
      assert.equal("", out)
      assert.matches("applied 7 messages", err)

      code, out = folder:run("read", "orders", "--json", "--order", "cents:desc")
      assert.equal(0, code)
      local orders = decode(out)
      assert.equal(2, #orders)
      assert.equal("O-2", orders[1].key)
      assert.equal(900, orders[1].state.cents)
      assert.is_number(orders[1].position)
    end)

    it("answers by key and by field", function()
      fill()
      local code, out = folder:run("read", "orders", "O-1")
      assert.equal(0, code)
      assert.matches("O%-1%s+450%s+Ada%s+true", out)

      code, out = folder:run("read", "orders", "--where", "paid=true", "--json")
      assert.equal(0, code)
      assert.equal(1, #decode(out))

    end)

    it("says which key or projection is not there", function()
      fill()
      local code, out, err = folder:run("read", "orders", "O-9")
      assert.equal(1, code)
      assert.equal("", out)
      assert.matches("no read model with the key 'O-9'", err, 1, true)

      code, out, err = folder:run("read", "order")
      assert.equal(64, code)
      assert.equal("", out)
      assert.matches("did you mean 'orders'", err, 1, true)
    end)

    it("tells its lag before and after it ran", function()
      folder:run("append", "events.ndjson")
      local code, out = folder:run("status", "--json")
      assert.equal(0, code)
      local consumer = decode(out).consumers[1]
      assert.equal("NEW", consumer.state)
      assert.equal(7, consumer.lag.messages)

      folder:run("run", "--until-idle")
      code, out = folder:run("status", "orders", "--json")
      assert.equal(0, code)
      local status = decode(out)
      assert.equal("RUNNING", status.consumers[1].state)
      assert.equal(0, status.consumers[1].lag.messages)
      assert.equal(7, status.topics[1].mark)
      assert.same({}, status.problems)
    end)

    it("says that a message waits for another attempt, and ends with 75", function()
      folder:shell [[sed -i 's/order.paid = true/error "no payment"/' handlers/orders.lua]]
      local code, _, err = fill()
      assert.equal(75, code)
      assert.matches("messages of projection 'orders' wait for another attempt, the next one in %d+%.%d s", err)
      folder:shell [[sed -i 's/error "no payment"/order.paid = true/' handlers/orders.lua]]
      assert.equal(0, (folder:run("dead-letters", "retry", "--all"))) -- need not wait
      assert.equal(0, (folder:run("run", "--until-idle")))
    end)

    it("says what halted it, in which line, and goes on once that is mended", function()
      folder:shell [[sed -i 's/order.paid = true/error "no payment"/' handlers/orders.lua]]
      folder:shell [[sed -i 's/^return {/return { retry = { attempts = 1 },/' moontide.conf.lua]]
      local code, _, err = fill()
      assert.equal(1, code)
      assert.matches("orders", err)

      local out
      code, out = folder:run("status", "--json")
      assert.equal(0, code)
      local status = decode(out)
      assert.equal("HALTED", status.consumers[1].state)
      assert.equal("APPLY_ERROR", status.consumers[1].halt_reason)
      assert.equal(5, status.consumers[1].last_error.position)
      assert.matches("handlers/orders.lua:%d+: no payment", status.consumers[1].last_error.reason)
      assert.matches("is halted since", status.problems[1])

      folder:shell [[sed -i 's/error "no payment"/order.paid = true/' handlers/orders.lua]]
      assert.equal(0, (folder:run("run", "--until-idle")))
      code, out = folder:run("read", "orders", "O-1", "--json")
      assert.equal(0, code)
      assert.is_true(decode(out)[1].state.paid)
    end)

    it("shows its status when its scripts are broken", function()
      fill()
      folder:write("handlers/orders.lua", "return {")
      local code, out = folder:run "status"
      assert.equal(0, code)
      assert.matches("problem: the scripts cannot be loaded: handlers/orders.lua:1", out)
      assert.equal(78, (folder:run("run", "--until-idle")))
    end)

    it("finishes and ends with 0 when it is told to stop", function()
      folder:run("append", "events.ndjson")
      local code, out = folder:shell [[
        "$MOONTIDE" run & pid=$!
        for i in $(seq 500); do
          if [ "$("$MOONTIDE" read orders --quiet --limit 1 2>/dev/null | wc -l)" -gt 1 ]; then break; fi
        done
        kill -TERM $pid
        wait $pid
        echo "ended with $?"]]
      assert.equal(0, code)
      assert.matches("ended with 0", out)
    end)

    it("hands arguments with blanks and quotes to busted as they are", function()
      folder:write("spec/quotes_spec.lua", [[it("takes 'single', \"double\" and $HOME; all of it", function() end)]])
      local code, out = folder:run("test", "--filter", [[takes 'single', "double" and $HOME; all]])
      assert.equal(0, code)
      assert.matches("1 success / 0 failures", out)
    end)

    it("calls it a failure when no test was run", function()
      local code, _, err = folder:run("test", "--filter", "there is no such test")
      assert.equal(1, code)
      assert.matches("no test was run", err)
    end)

    it("does not start another interpreter because of a .busted file", function()
      folder:write(".busted", [[return { default = { lua = "/nonexistent/lua" } }]])
      assert.equal(0, (folder:run "test"))
    end)

    it("answers a console from a pipe", function()
      fill()
      local code, out = folder:shell [["$MOONTIDE" console <<'END'
  append("shop.order", "O-4", { moontide.event("order.Placed", { customer = "Bo" }),
    moontide.event("order.ItemAdded", { item = "pot", cents = 5 }) })
  run()
  read("orders", "O-4")
  = query("SELECT cents FROM orders WHERE read_model_id = ?", "O-4")
  END]]
      assert.equal(0, code)
      assert.matches('customer = "Bo"', out, 1, true)
      assert.matches("{ { cents = 5 } }", out, 1, true)

    end)

    it("ends a console from a pipe at the first error", function()
      local code, out, err = folder:shell [[
        printf '%s\n' 'error "stop here"' 'print "not reached"' | "$MOONTIDE" console]]
      assert.equal(1, code)
      assert.equal("", out)
      assert.matches("stop here", err)
    end)
  end)
end)
