-- The log that SQLite keeps beside a database: it is cut to its limit again and
-- again, and who keeps it from that is named.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local MIB = 1024 * 1024
local LIMIT = 64 * MIB
local LONG = 30 -- seconds

-- Leaves each query where it is after its first row, and fails in between.
local HANDLER = [[
local moontide = require "moontide"
return moontide.sql_projection "ledger" {
  tables = "ledger.sql", retry = { attempts = 3, delay = "1ms" },
  on = {
    ["thing.Happened"] = function(event, ctx)
      for _, row in ipairs(ctx:query "SELECT global_position AS position FROM EVENT_STORE") do
        if ctx.attempt == 1 then error "not at once" end
        if row.position then break end
      end
      ctx:execute("INSERT INTO ledger (id) VALUES (?)", event.id)
    end,
  },
}]]

dialect.only("sqlite", function(database)
  describe("the log of a SQLite file", function()
    local app, host

    before_each(function()
      app = application.new { database = database, handlers = { ["ledger.lua"] = HANDLER } }
      app:write("ledger.sql", "CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL UNIQUE);")
      app:configure 'retry = { attempts = 3, delay = "1ms" }'
      app:ok("run", "--until-idle")
      app.db:execute "CREATE TABLE filling (bytes BLOB)"
    end)

    after_each(function() app:close() end)

    local function size()
      return tonumber(app:shell("stat -c %s moontide.db-wal || echo 0").out)
    end

    local function write(mib)
      app.db:execute(("INSERT INTO filling VALUES (zeroblob(%d))"):format(mib * MIB))
    end

    local function all_applied(count)
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM ledger" == tostring(count)
      end, LONG, function() return host:err() end)
    end

    it("stays within its limit beside handlers that do not read what they asked for to its end", function()
      host = app:start("run")
      for i = 1, 20 do
        app:append { {}, {} }
        all_applied(2 * i)
        write(10)
      end
      assert.is_true(size() < 2 * LIMIT, size() .. " bytes")
    end)

    for name, workers in pairs { ["with a supervisor"] = 1, ["in one process"] = 0 } do
      it("that another program's transaction keeps long is told, and is cut when that one ends, " .. name, function()
        host = app:start("run", "--workers", workers)
        app:append { {} }
        all_applied(1)
        local function problems() return app:json("status").problems end
        assert.same({}, problems())
        local reader = app.db:hold_snapshot()
        for _ = 1, 14 do write(10) end
        assert.is_true(size() >= 2 * LIMIT)
        local problem = problems()[1]
        assert.matches("moontide%.db%-wal has grown to 1%d%d MiB, and 64 MiB is its limit", problem)
        assert.matches("another program reads the database in one transaction that does not end", problem, 1, true)
        assert.matches("fuser", problem, 1, true)
        process.wait_until(function() return host:err():find("moontide.db-wal has grown", 1, true) end, LONG,
          function() return "a word in the log\n" .. host:err() end)
        reader.release()
        app:append { {} }
        all_applied(2)
        process.wait_until(function()
          write(0)
          return size() <= LIMIT
        end, LONG, function() return size() .. " bytes" end)
        assert.same({}, problems())
        assert.equal(1, select(2, host:err():gsub("has grown", "")))
        host:signal "TERM"
        assert.equal(0, host:wait(30).code, host:err())
      end)
    end
  end)
end)
