local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local fault = require "spec.support.fault"
local process = require "spec.support.process"

local ID = "01890a5d-ac96-774b-bcce-%012x"

local LEDGER = [[
local moontide = require "moontide"
return moontide.sql_projection "ledger" {
  tables = "ledger.sql",
  on = {
    ["thing.Happened"] = function(event, ctx)
      ctx:execute("INSERT INTO ledger (id, filling) VALUES (?, ?)", event.id, ("x"):rep(600))
    end,
  },
}]]

-- These rules are about the one file of SQLite.
describe("a SQLite file", function()
  local database = dialect.sqlite()
  local app

  before_each(function()
    app = application.new { database = database, handlers = { ["ledger.lua"] = LEDGER } }
    app:write("ledger.sql", "CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL UNIQUE, filling TEXT NOT NULL);")
    app:write("events.ndjson", application.ndjson { {} })
  end)

  after_each(function()
    app:close()
  end)

  local WRITERS = { { "append", "events.ndjson" }, { "run", "--until-idle" }, { "schema", "upgrade" } }

  local function bulk(count, size)
    local events = {}
    for i = 1, count do
      events[i] = { id = ID:format(i), aggregate_id = "K-" .. i % 7, payload = '"' .. ("x"):rep(size) .. '"' }
    end
    return application.ndjson(events)
  end

  describe("that is read-only", function()
    local run

    before_each(function()
      app:append { {}, {} }
      run = fault.without_rights(app)
    end)

    local function refused_by_all_that_write()
      local before = fault.checksum(app.db.path)
      for _, words in ipairs(WRITERS) do
        local result = run(unpack(words))
        assert.equal(69, result.code, result.err)
        assert.equal("", result.out)
        assert.matches("moontide.db: the f", result.err, 1, true)
        assert.matches("not writable", result.err, 1, true)
        assert.is_nil(result.err:find("not an error", 1, true), result.err)
      end
      assert.equal(before, fault.checksum(app.db.path))
    end

    it("is refused by every verb that writes, with what to do, and stays as it is", function()
      assert.equal(0, app:exec("chmod", "a=rwx", app.path).code)
      assert.equal(0, app:exec("chmod", "a=r", app.db.path).code)
      refused_by_all_that_write()
    end)

    it("together with its folder is refused in the same way", function()
      assert.equal(0, app:exec("chmod", "-R", "a-w,a+rX", app.path).code)
      refused_by_all_that_write()
    end)

    it("is read by the verbs that only read", function()
      assert.equal(0, app:exec("chmod", "a=rwx", app.path).code)
      assert.equal(0, app:exec("chmod", "a=r", app.db.path).code)
      local result = run("events", "--json")
      assert.equal(0, result.code, result.err)
      assert.equal(2, #application.lines(result.out))
      assert.equal(0, run("status").code)
    end)

    it("together with its folder is read, or refused with what to do", function()
      assert.equal(0, app:exec("chmod", "-R", "a-w,a+rX", app.path).code)
      local result = run("events", "--json")
      if result.code ~= 0 then
        assert.equal(69, result.code, result.err)
        assert.matches("not writable", result.err, 1, true)
      else
        assert.equal(2, #application.lines(result.out))
      end
    end)

    it("works again with its rights", function()
      assert.equal(0, app:exec("chmod", "-R", "a-w,a+rX", app.path).code)
      run("append", "events.ndjson")
      assert.equal(0, app:exec("chmod", "-R", "u+w", app.path).code)
      assert.equal(3, app:append({ {} }).last_position)
    end)
  end)

  describe("that another program has locked", function()
    before_each(function()
      app:append { {} }
    end)

    it("makes append give up in the end with 75, and nothing is kept", function()
      local lock = app.db:lock_for_writers()
      local err = app:fails(75, "append", "events.ndjson")
      assert.matches("moontide.db is locked by another program", err, 1, true)
      assert.matches("nothing was appended", err, 1, true)
      lock.release()
      assert.equal(1, app:count())
      app:ok("append", "events.ndjson")
      assert.equal(2, app:count())
    end)

    it("makes a run to idle give up in the end with 75", function()
      app:ok("run", "--until-idle")
      app:append { {} }
      local lock = app.db:lock_for_writers()
      assert.matches("is locked by another program", app:fails(75, "run", "--until-idle"), 1, true)
      lock.release()
      app:ok("run", "--until-idle")
      assert.equal("2", app.db:value "SELECT count(*) FROM ledger")
    end)

    it("is waited for, and then written to", function()
      local lock = app.db:lock_for_writers()
      local append = app:start("append", "--json", { stdin = application.ndjson { {}, {} } })
      -- it holds its database file open by now, and waits
      process.wait_until(function()
        return app:shell(("ls -l /proc/%d/fd"):format(append.pid)).out:find("moontide.db", 1, true)
      end, 10, "append to open the database")
      assert.is_true(append:alive())
      lock.release()
      local result = append:wait(20)
      assert.equal(0, result.code, result.err)
      assert.equal(3, app:count())
    end)

    it("does not stop a host, which says so once and goes on afterwards", function()
      app:configure 'poll = { min_interval = "1s", max_interval = "1s" }'
      local host = app:start "run"
      local function applied(count)
        process.wait_until(function()
          local good, found = pcall(app.db.value, app.db, "SELECT count(*) FROM ledger")
          return good and found == tostring(count)
        end, 20, function() return ("%d applied events: %s"):format(count, host:err()) end)
      end
      applied(1)
      -- An event and then, at once, the lock: the host polls once a second and does not come between.
      local lock = app.db:hold [[
        BEGIN EXCLUSIVE;
        INSERT INTO EVENT_STORE SELECT '00000000-0000-7000-8000-000000000002', 'A-2',
          aggregate_type, 0, event_type, 0, payload, NULL, occurred_at,
          partition_key, 2 FROM EVENT_STORE;
        UPDATE EVENT_STORE_GLOBAL_POSITION SET val = 2;
        COMMIT;
        BEGIN EXCLUSIVE;]]
      process.wait_until(function()
        return host:err():find("locked by another program", 1, true)
      end, 30, function() return "a word about the lock: " .. host:err() end)
      assert.is_true(host:alive())
      lock.release()
      applied(2)
      host:signal "TERM"
      assert.equal(0, host:wait(20).code)
      assert.equal(1, select(2, host:err():gsub("locked by another program", "")), host:err())
    end)

    it("is still read", function()
      local lock = app.db:lock_for_writers()
      assert.equal(1, #app:events())
      app:ok "status"
      lock.release()
    end)
  end)

  describe("on a full disk", function()
    it("fails an append without a false success, keeps what was committed, and goes on", function()
      app:write("bulk.ndjson", bulk(6000, 300))
      local result, mounted = fault.on_small_disk(app, [[
        run() { "$MOONTIDE" --database "sqlite:$DISK/e.db" "$@"; }
        count() { sqlite3 "$DISK/e.db" 'SELECT count(*) FROM EVENT_STORE'; }
        run schema upgrade >/dev/null || exit 98
        fill 700
        run append --batch 100 bulk.ndjson >full.out 2>full.err; echo $? >full.code
        make_room
        count >full.count
        run append --batch 100 --json bulk.ndjson >again.out 2>again.err; echo $? >again.code
        count >again.count
        sqlite3 "$DISK/e.db" 'PRAGMA integrity_check' >integrity
        sqlite3 "$DISK/e.db" \
          'SELECT min(global_position), max(global_position), count(DISTINCT id) FROM EVENT_STORE' >ends
      ]])
      assert.equal(0, result.code, result.err)
      local err = app:read "full.err"
      assert.equal("", app:read "full.out")
      assert.is_true(tonumber(app:read "full.code") ~= 0)
      if mounted then assert.matches("the disk is full", err, 1, true) end
      -- what it said was kept is what is there
      local kept = tonumber(app:read "full.count")
      assert.is_true(kept < 6000)
      local said = err:match "up to line (%d+) all is committed" or err:match "nothing was appended" and 0
      assert.equal(kept, tonumber(said), err)
      assert.is_true(kept > 0, "the disk was full too early for this test")

      assert.equal("0\n", app:read "again.code", app:read "again.err")
      local totals = application.json.decode(app:read "again.out")
      assert.equal(6000 - kept, totals.appended)
      assert.equal(kept, totals.repeated)
      assert.equal("6000\n", app:read "again.count")
      assert.equal("ok\n", app:read "integrity")
      assert.equal("1|6000|6000\n", app:read "ends")
    end)

    it("fails a run without losing or repeating a message, and goes on", function()
      app:write("bulk.ndjson", bulk(1500, 600))
      local result, mounted = fault.on_small_disk(app, [[
        run() { "$MOONTIDE" --database "sqlite:$DISK/e.db" "$@"; }
        ask() { sqlite3 "$DISK/e.db" "$1"; }
        run append bulk.ndjson >/dev/null || exit 98
        ask 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
        fill 400
        run run --until-idle >full.out 2>full.err; echo $? >full.code
        make_room
        run run --until-idle >again.out 2>again.err; echo $? >again.code
        ask 'SELECT count(*), count(DISTINCT id) FROM ledger' >ledger
        ask 'SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES' >undelivered
        ask 'PRAGMA integrity_check' >integrity
      ]])
      assert.equal(0, result.code, result.err)
      assert.is_true(tonumber(app:read "full.code") ~= 0, "the disk was not full in this test")
      if mounted then assert.matches("the disk is full", app:read "full.err", 1, true) end
      assert.equal("0\n", app:read "again.code", app:read "again.err")
      assert.equal("1500|1500\n", app:read "ledger")
      assert.equal("0\n", app:read "undelivered")
      assert.equal("ok\n", app:read "integrity")
    end)
  end)

  describe("that is no database", function()
    local function refuses(text, part)
      app:write("moontide.db", text)
      for _, words in ipairs { { "append", "events.ndjson" }, { "run", "--until-idle" }, { "events" }, { "status" },
        { "read", "ledger" }, { "schema", "upgrade" } } do
        local result = app:moontide(unpack(words))
        assert.equal(69, result.code, result.err)
        assert.matches("moontide.db", result.err, 1, true)
        assert.matches(part, result.err, 1, true)
      end
      assert.equal(text, app:read "moontide.db")
    end

    it("is refused and not touched: a text", function()
      refuses(("This is a letter and no database.\n"):rep(100), "not a SQLite database")
    end)

    it("is refused and not touched: a short text", function()
      refuses("hello\n", "not a SQLite database")
    end)

    it("is refused: a folder", function()
      assert.equal(0, app:exec("mkdir", "moontide.db").code)
      local err = app:fails(69, "append", "events.ndjson")
      assert.matches("moontide.db", err, 1, true)
    end)

    it("is refused: a database that is damaged", function()
      app:append { {} }
      local text = app:read "moontide.db"
      app:exec("rm", "-f", "moontide.db-wal", "moontide.db-shm")
      app:write("moontide.db", text:sub(1, 100) .. ("\255"):rep(#text - 100))
      local result = app:moontide("append", "events.ndjson")
      assert.is_true(result.code == 1 or result.code == 69, result.err)
      assert.matches("damaged", result.err, 1, true)
    end)
  end)

  describe("whose folder is missing", function()
    it("is refused with the folder's name, which is not made", function()
      app:configure 'database = "sqlite:nowhere/deep/x.db"'
      app:write("moontide.conf.lua", 'return { database = "sqlite:nowhere/deep/x.db" }')
      for _, words in ipairs { { "append", "events.ndjson" }, { "status" }, { "run", "--until-idle" } } do
        local err = app:fails(69, unpack(words))
        assert.matches("nowhere/deep", err, 1, true)
        assert.matches("No such file or directory", err, 1, true)
      end
      assert.is_nil(app:read "nowhere/deep/x.db")
    end)
  end)

  it("is found beside the configuration, wherever the program is started", function()
    app:write("moontide.conf.lua", 'return { database = "sqlite:here.db" }')
    app:ok("--config", app:file "moontide.conf.lua", "append", "-", { stdin = application.ndjson { {} }, cwd = "/" })
    assert.equal("SQLite format 3", app:read("here.db"):sub(1, 15))
  end)

  it("moved away under a running host is missed and not made anew; back again, it is used", function()
    app:append { {} }
    local host = app:start "run"
    process.wait_until(function()
      return app:moontide("status", "--json").out:find('"position":1', 1, true)
    end, 20, function() return "the first event: " .. host:err() end)
    assert.equal(0, app:shell("mkdir away && mv moontide.db* away/").code)
    process.wait_until(function()
      return host:err():find("moved, deleted or replaced", 1, true)
    end, 20, function() return "an error: " .. host:err() end)
    assert.is_nil(app:read "moontide.db")
    assert.equal(0, app:shell("mv away/moontide.db* .").code)
    app:append { {} }
    process.wait_until(function()
      return app.db:value "SELECT count(*) FROM ledger" == "2"
    end, 20, function() return "the second event: " .. host:err() end)
    host:signal "TERM"
    assert.equal(0, host:wait(20).code)
    -- the supervisor and its worker, each once at most
    local said = {}
    for message in host:err():gmatch 'level=error msg=("[^\n]*)' do
      assert.is_nil(said[message], host:err())
      said[message] = true
    end
  end)

  it("is whole after all of this", function()
    app:append { {} }
    assert.is_true(app.db:intact())
  end)
end)
