-- A host whose database is there and serves it no more: gone, without its
-- rights, or without room. It says so in few lines, costs next to nothing, loses
-- no message, and goes on by itself.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

local WATCHED = 8 -- seconds
-- Each thing that fails is told five times at first, and then every 30 seconds.
local LINES = 30
local CPU = 0.2 -- of a core; starts of workers are in it

-- A worker that stands for longer than its lease on a busy machine is taken for
-- dead, and what it had in hand may have failed once.
local CONFIG = 'partitions = 12, retry = { attempts = 1000, delay = "10ms", factor = 1, jitter = 0 }, workers = '

-- As the servers say it.
local FULL = {
  postgres = "RAISE EXCEPTION 'could not extend file \"base/5/16384\": No space left on device' "
    .. "USING ERRCODE = 'disk_full'",
  mysql = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table ''it'' is full'",
}

dialect.each(function(database)
  describe("a host that its database refuses", function()
    local app, host
    local file = database.name == "sqlite"

    before_each(function()
      app = application.new { database = database, config = CONFIG .. (file and 1 or 2) }
      ledger.add(app)
      app:append { {}, {} }
    end)

    after_each(function() app:close() end)

    local function applied(count)
      process.wait_until(function() return ledger.count(app) == count end, 60, function()
        return ("%d applied, there are %d\n%s"):format(count, ledger.count(app), host:err())
      end)
    end

    -- What the supervisor and its workers have used, dead ones included.
    local function cpu()
      local sum = process.cpu(host.pid, true)
      for _, pid in ipairs(host:workers()) do sum = sum + process.cpu(pid) end
      return sum
    end

    local function lines()
      return select(2, host:err():gsub("\n", ""))
    end

    local function start(url)
      -- a file that may not grow is no reason to end
      host = app:start("run", "--database", url or app.db.url, { before = "trap '' XFSZ" })
      applied(2)
    end

    local function endures(refuse)
      local lines_before, cpu_before, from = lines(), cpu(), process.now()
      refuse()
      process.wait_until(function() return process.now() - from > WATCHED and lines() > lines_before end, 60,
        function() return "a word in the log\n" .. host:err() end)
      local watched = process.now() - from
      assert.is_true(host:alive(), host:err())
      assert.is_true(lines() - lines_before <= LINES, host:err())
      assert.is_true(cpu() - cpu_before < CPU * watched, ("%.2f s of the processor\n%s"):format(cpu() - cpu_before,
        host:err()))
    end

    local function ends()
      host:signal "TERM"
      local result = host:wait(30)
      return result.code, result.err
    end

    local function goes_on(count)
      applied(count)
      assert.same({}, ledger.faults(app))
      assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES")
      local code, err = ends()
      assert.equal(0, code, err)
    end

    if not file then
      it("because all of it was dropped", function()
        start()
        endures(function()
          if database.name == "postgres" then
            app.db:execute(("DROP SCHEMA %s CASCADE"):format(app.db.schema))
          else
            app.db:execute("DROP DATABASE " .. app.db.database)
          end
        end)
        local code, err = ends()
        assert.is_true(code == 0 or code == 69, code .. err)
        if database.name == "postgres" then app.db:execute("CREATE SCHEMA " .. app.db.schema) end
      end)

      it("because its user has lost all rights", function()
        local role = ("spec_%s"):format(app.root:match "(%w+)$"):lower()
        local grant, revoke, drop
        if database.name == "postgres" then
          local owner = app.db:value "SELECT current_user"
          app.db:execute(("CREATE ROLE %s LOGIN PASSWORD 'secret'"):format(role))
          grant, revoke = ("GRANT %s TO %s"):format(owner, role), ("REVOKE %s FROM %s"):format(owner, role)
          drop = ("DROP OWNED BY %s; DROP ROLE %s"):format(role, role)
        else
          app.db:execute(("CREATE USER %s@'%%' IDENTIFIED BY 'secret'"):format(role))
          grant = ("GRANT ALL ON %s.* TO %s@'%%'"):format(app.db.database, role)
          revoke = ("REVOKE ALL ON %s.* FROM %s@'%%'; KILL USER %s@'%%'"):format(app.db.database, role, role)
          drop = ("DROP USER %s@'%%'"):format(role)
        end
        app.db:execute(grant)
        app:on_close(function() app.db:execute(drop) end)
        start(app.db.url:gsub("://[^/@]*@", "://" .. role .. ":secret@"))
        endures(function()
          app.db:execute(revoke)
          app:append { {}, {}, {} }
        end)
        app.db:execute(grant)
        goes_on(5)
      end)
    end

    it("because there is no room", function()
      start()
      local function limit(bytes)
        local pids = host:workers()
        pids[#pids + 1] = host.pid
        for _, pid in ipairs(pids) do
          -- one that has ended since is no matter
          app:exec("prlimit", "--pid", pid, "--fsize=" .. bytes .. ":")
        end
      end
      endures(function()
        if file then
          limit(20480)
          app:append { {}, {}, {} }
          return
        end
        app:append { {} }
        for _, on in ipairs { "ledger", "EVENT_STORE" } do
          for _, statement in ipairs(app.db:trigger { name = "full_" .. on, on = on, at = "BEFORE INSERT",
            body = FULL[database.name] }) do
            app.db:command(statement)
          end
        end
        assert.matches("nothing was appended", app:refuses({ {}, {} }, 69), 1, true)
        app.db:execute(app.db:drop_trigger("full_EVENT_STORE", "EVENT_STORE"))
        app:append { {}, {} }
      end)
      if file then limit "unlimited" else app.db:execute(app.db:drop_trigger("full_ledger", "ledger")) end
      goes_on(5)
    end)
  end)
end)
