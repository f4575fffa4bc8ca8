-- A database in one file, with several processes on it. The system drops all of
-- a process's locks on a file when it closes any descriptor of that file, so
-- whoever has it open must open it nowhere else.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"

-- Of the file beside the database through which its programs know each other:
-- the byte that each of them has locked as long as it is there.
local THERE = 128

describe("a database in one file", function()
  local app

  before_each(function()
    app = application.new { database = dialect.sqlite(),
      config = 'partitions = 12, poll = { max_interval = "20ms" }, retry = { attempts = 1000, delay = "10ms" }' }
    ledger.add(app)
    app:ok("run", "--until-idle")
  end)

  after_each(function() app:close() end)

  local function start()
    local host = app:start "run"
    process.wait_until(function() return host:err():find("running", 1, true) end, 30, function() return host:err() end)
    return host
  end

  local function inode(path)
    return app:exec("stat", "-c", "%i", path).out:match "%d+"
  end

  -- Whether the process has that byte locked, as F_GETLK would tell others.
  local function locks(pid, path, byte)
    local file = inode(path)
    for line in process.read_file("/proc/locks"):gmatch "[^\n]+" do
      local owner, of, first, last = line:match "POSIX%s+%u+%s+%u+%s+(%d+)%s+%x+:%x+:(%d+)%s+(%d+)%s+(%w+)"
      if tonumber(owner) == pid and of == file and tonumber(first) <= byte
        and (last == "EOF" or tonumber(last) >= byte) then
        return true
      end
    end
    return false
  end

  local function everybody_is_known(hosts)
    for _, host in ipairs(hosts) do
      for _, pid in ipairs { host.pid, host:worker() } do
        process.wait_until(function() return locks(pid, app.db.path .. "-shm", THERE) end, 10,
          function() return ("the lock of %d\n%s%s"):format(pid, process.read_file "/proc/locks", host:err()) end)
      end
    end
  end

  it("keeps the locks of each process whatever others do with it, and takes two hosts", function()
    local hosts = { start(), start() }
    everybody_is_known(hosts)
    local total = 0
    for round = 1, 5 do
      local list = {}
      for i = 1, 60 do list[i] = { aggregate_id = "key-" .. i % 23 } end
      app:append(list, "--batch", "20")
      total = total + 60
      app:ok "status"
      app:exec("cp", app.db.path, app.db.path .. ".copy") -- not the way to do it, and no harm to us
      app:exec("sqlite3", app.db.path, ".backup backup.db")
      hosts[1]:signal "HUP"
      everybody_is_known(hosts)
      if round % 2 == 0 then
        local worker = hosts[2]:worker()
        process.signal(worker, "KILL")
        process.wait_until(function()
          local now = hosts[2]:workers()
          return #now == 1 and now[1] ~= worker and not locks(worker, app.db.path .. "-shm", THERE)
        end, 30, function() return hosts[2]:err() end)
      end
      local copy = app:exec("sqlite3", "backup.db", "PRAGMA integrity_check")
      assert.equal("ok\n", copy.out, copy.err)
    end
    process.wait_until(function() return app.db:value "SELECT count(*) FROM ledger" == tostring(total) end, 60,
      function() return hosts[1]:err() .. hosts[2]:err() end)
    assert.equal(tostring(total), app.db:value "SELECT count(DISTINCT position) FROM ledger")
    assert.is_true(app.db:intact())
    for _, host in ipairs(hosts) do
      host:signal "TERM"
      assert.equal(0, host:wait(30).code, host:err())
    end
  end)

  it("is begun anew with when another file lies in its place", function()
    local host = start()
    app:append { { aggregate_id = "A" } }
    process.wait_until(function() return app.db:value "SELECT count(*) FROM ledger" == "1" end, 30,
      function() return host:err() end)
    assert.equal(0, app:exec("sqlite3", app.db.path, ".backup copy.db").code)
    app:append { { aggregate_id = "A" } } -- which the copy has not
    process.wait_until(function() return app.db:value "SELECT count(*) FROM ledger" == "2" end, 30,
      function() return host:err() end)
    for _, ending in ipairs { "-wal", "-shm" } do os.remove(app.db.path .. ending) end
    assert.equal(0, app:exec("mv", "copy.db", app.db.path).code)
    process.wait_until(function() return host:err():find("another file now lies", 1, true) end, 30,
      function() return host:err() end)
    app:append { { aggregate_id = "B" }, { aggregate_id = "C" } }
    process.wait_until(function() return app.db:value "SELECT count(*) FROM ledger" == "3" end, 30,
      function() return host:err() end)
    host:signal "TERM"
    assert.equal(0, host:wait(30).code, host:err())
  end)
end)
