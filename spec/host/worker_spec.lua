-- Worker processes and their supervisor: whichever of them is killed or
-- stopped, each event is applied once, the other workers go on, and none is left
-- behind.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"
local ffi = require "ffi"

ffi.cdef "long syscall(long number, ...);"

-- Whether two descriptors of two processes are one open file, inherited by one
-- of them.
local KCMP = ffi.arch == "arm64" and 272 or 312
local function is_one_file(a, fd_a, b, fd_b)
  local function long(n) return ffi.cast("long", n) end
  local answer = tonumber(ffi.C.syscall(KCMP, long(a), long(b), long(0), long(fd_a), long(fd_b)))
  assert(answer >= 0 or ffi.errno() == 9, "the system does not compare descriptors") -- 9: closed meanwhile
  return answer == 0
end

-- Writes each event into a ledger, in the transaction that applies it.
local HANDLER = [[
local moontide = require "moontide"
return moontide.sql_projection "ledger" {
  tables = "ledger.sql",
  on = {
    ["thing.Happened"] = function(event, ctx)
      ctx:execute("INSERT INTO ledger (id, position) VALUES (?, ?)", event.id, event.position)
      local n = 0
      for i = 1, event.payload.loops or 0 do n = n + i % 7 end
    end,
    ["thing.Endless"] = function()
      local n = 0
      while true do n = n + 1 end
    end,
  },
}]]

local KEYS = 9

-- A killed worker's message has failed once; it must not run out of attempts.
local PATIENT = 'partitions = 12, retry = { attempts = 1000, delay = "10ms", factor = 1, jitter = 0 }, '
  .. 'poll = { max_interval = "20ms" }, '

dialect.each(function(database)
  local app
  local several = database.name ~= "sqlite" -- one worker there

  before_each(function()
    app = application.new {
      database = database, config = PATIENT .. "batch = 20",
      handlers = { ["ledger.lua"] = HANDLER },
    }
    app:write("ledger.sql", "CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL, position INTEGER NOT NULL);")
  end)

  after_each(function()
    app:close()
  end)

  local function events(count, fields)
    local list = {}
    for i = 1, count do
      list[i] = { aggregate_id = "K-" .. i % KEYS, type = "thing.Happened", payload = "{}" }
      for name, value in pairs(fields or {}) do list[i][name] = value end
    end
    return list
  end

  local function applied()
    local good, found = pcall(app.db.value, app.db, "SELECT count(*) FROM ledger")
    return good and tonumber(found) or 0
  end

  local function wait_for(count, host)
    process.wait_until(function() return applied() >= count end, 60, function()
      return ("%d applied events, there are %d\n%s"):format(count, applied(), host:err())
    end)
  end

  -- Each event once, whatever has happened.
  local function complete(count)
    assert.equal(("%d|%d"):format(count, count), app.db:value "SELECT count(*), count(DISTINCT position) FROM ledger")
  end

  local function start(workers, ...)
    local host = app:start("run", "--workers", workers, ...)
    process.wait_until(function() return #host:workers() == workers and host:err():find("running", 1, true) end, 30,
      function() return workers .. " workers\n" .. host:err() end)
    return host
  end

  local function stop(host)
    host:signal "TERM"
    local result = host:wait(30)
    assert.equal(0, result.code, result.err)
    return result
  end

  local function gone(pids)
    return function()
      for _, pid in ipairs(pids) do
        if process.read_file(("/proc/%d/cmdline"):format(pid)) then return false end
      end
      return true
    end
  end

  local function is_member(list, wanted)
    for _, item in ipairs(list) do
      if item == wanted then return true end
    end
    return false
  end

  describe("a worker", function()
    it("that is killed is replaced, and nothing is lost or applied twice", function()
      local workers = several and 3 or 1
      local host = start(workers)
      local total = 0
      for round = 1, 3 do
        app:append(events(100, { payload = '{"loops":20000}' }))
        total = total + 100
        local before = host:workers()
        local victim = before[1 + round % #before]
        process.wait_until(function() return applied() > total - 100 end, 60, function() return host:err() end)
        assert.is_true(process.signal(victim, "KILL"))
        process.wait_until(function()
          local now = host:workers()
          return #now == workers and not is_member(now, victim)
        end, 20, function() return "another worker\n" .. host:err() end)
        -- the others are the same processes as before
        for _, pid in ipairs(before) do
          if pid ~= victim then assert.is_true(is_member(host:workers(), pid), "worker " .. pid .. " is gone") end
        end
        wait_for(total, host)
      end
      assert.matches("it was ended by signal 9", host:err(), 1, true)
      stop(host)
      complete(total)
    end)

    it("that was stopped for a while does no harm when it goes on", function()
      -- a handler that is stopped does not run too long
      app:configure(PATIENT .. 'batch = 20, limits = { time = "60s" }')
      local host = start(several and 2 or 1)
      app:append(events(200, { payload = '{"loops":20000}' }))
      process.wait_until(function() return applied() > 20 end, 60, function() return host:err() end)
      local stopped = host:workers()[1]
      assert.is_true(process.signal(stopped, "STOP"))
      if several then app:append(events(50)) end -- it may hold the only writer's lock
      process.pause(1500)
      assert.is_true(process.signal(stopped, "CONT"))
      if not several then app:append(events(50)) end
      wait_for(250, host)
      assert.is_true(is_member(host:workers(), stopped), "it was killed\n" .. host:err())
      stop(host)
      complete(250)
    end)

    it("ends in order at SIGTERM, and another one takes its place", function()
      local host = start(1)
      local first = host:worker()
      process.signal(first, "TERM")
      process.wait_until(function()
        local now = host:workers()
        return #now == 1 and now[1] ~= first
      end, 20, function() return host:err() end)
      app:append(events(10))
      wait_for(10, host)
      assert.matches("was told to end", host:err(), 1, true)
      stop(host)
    end)

    it("that is started later has the configuration that its host was started with", function()
      local host = start(1)
      app:append(events(5))
      wait_for(5, host)
      -- a worker that read this would not even start
      app:write("moontide.conf.lua", "return { nonsense = 1 }")
      local first = host:worker()
      process.signal(first, "KILL")
      process.wait_until(function()
        local now = host:workers()
        return #now == 1 and now[1] ~= first and host:err():find("runs again", 1, true)
      end, 20, function() return host:err() end)
      app:configure(PATIENT)
      app:append(events(5))
      wait_for(10, host)
      stop(host)
      complete(10)
    end)

    it("has nothing open that is its host's", function()
      app:append(events(10))
      local host = start(several and 2 or 1, { before = "exec 9<ledger.sql", env = { NOTIFY_SOCKET = "@nobody" } })
      wait_for(10, host)
      local function open_files(pid)
        local files = {}
        local list = 'cd /proc/$0/fd && for f in *; do echo "$f $(readlink "$f")"; done'
        local listed = app:exec("sh", "-c", list, pid).out
        for fd, target in listed:gmatch "(%d+) ([^\n]+)\n" do files[tonumber(fd)] = target end
        return files
      end
      local own, kept = {}, {}
      for fd, target in pairs(open_files(host.pid)) do
        if fd > 2 and not target:find "memfd:moontide" then kept[#kept + 1] = fd end
        if fd > 2 and target:find "^socket:" then own[target] = fd end
      end
      for _, worker in ipairs(host:workers()) do
        local files = open_files(worker)
        assert.matches("/dev/null", files[0], 1, true)
        assert.matches("^socket:", files[3])
        assert.matches("memfd:moontide", files[4], 1, true)
        for fd, target in pairs(files) do
          assert.is_true(fd <= 2 or own[target] == nil, ("descriptor %d of worker %d is the host's"):format(fd, worker))
          assert.is_nil(target:find("ledger.sql", 1, true), "it inherits what the host was started with")
          for _, other in ipairs(kept) do -- the database's files, too
            assert.is_false(is_one_file(host.pid, other, worker, fd), ("%d of the host is %d of worker %d, %s"):format(
              other, fd, worker, target))
          end
        end
        local environment = process.read_file(("/proc/%d/environ"):format(worker))
        assert.is_nil(environment:find("NOTIFY_SOCKET", 1, true))
      end
      stop(host)
    end)
  end)

  describe("a supervisor", function()
    it("that is killed takes its workers along at once, and nothing is lost or applied twice", function()
      local workers = several and 3 or 1
      local total = 0
      for _ = 1, 2 do
        app:append(events(150, { payload = '{"loops":20000}' }))
        local host = start(workers)
        process.wait_until(function() return applied() > total end, 60, function() return host:err() end)
        total = total + 150
        local orphans = host:workers()
        assert.equal(workers, #orphans)
        host:signal "KILL"
        process.wait_until(gone(orphans), 5, "the end of the workers")
      end
      local host = start(workers)
      wait_for(total, host)
      stop(host)
      complete(total)
    end)

    it("ends with 1 and a sentence when a worker does not stop in time, and keeps nothing of its batch", function()
      -- compiled code cannot be interrupted
      app:configure 'partitions = 12, stop_timeout = "1s", jit = true, limits = { time = "60s" }'
      app:append { { type = "thing.Endless" } }
      local host = start(1)
      local worker = host:worker()
      process.wait_until(function() return process.cpu(worker) > 0.5 end, 20, "the handler")
      host:signal "TERM"
      local result = host:wait(20)
      assert.equal(1, result.code)
      assert.matches("1 of 1 workers did not end within stop_timeout and were killed", result.err, 1, true)
      assert.equal(0, applied())
      process.wait_until(gone { worker }, 1, "the end of the worker")
    end)

    it("ends at once at a second signal, and its workers with it", function()
      app:configure 'partitions = 12, jit = true, limits = { time = "60s" }'
      app:append { { type = "thing.Endless" } }
      local host = start(several and 2 or 1)
      local workers = host:workers()
      process.wait_until(function()
        for _, worker in ipairs(workers) do
          if process.cpu(worker) > 0.5 then return true end
        end
        return false
      end, 20, "the handler")
      host:signal "INT"
      process.wait_until(function() host:signal "INT"; return not host:alive() end, 5, "the end")
      assert.equal(128 + 2, host:wait(5).code)
      process.wait_until(gone(workers), 5, "the end of the workers")
    end)

    it("says what a worker found wrong once, and ends with its code", function()
      app:write("handlers/broken.lua", "return { moontide = }\n")
      local result = app:moontide("run", "--workers", several and 3 or 1)
      assert.equal(78, result.code)
      local _, count = result.err:gsub("handlers/broken.lua:1", "")
      assert.equal(1, count, result.err)
      assert.matches("^moontide: [^\n]*\n$", result.err)
    end)

    -- A script that ends each process which loads it, once there is a file.
    local MORTAL = [[
      local file = io.open("broken")
      if file then
        file:close()
        file = io.open("starts", "a")
        file:write("x")
        file:close()
        os.exit(7)
      end
    ]] .. HANDLER

    it("gives up when its first worker dies before it is ready", function()
      app:configure 'partitions = 12, grants = { "os", "io" }'
      -- the look at the scripts comes first, and finds them good
      app:write("handlers/ledger.lua",
        'if io.open("looked") then os.exit(7) end\nio.open("looked", "w"):close()\n' .. HANDLER)
      local result = app:moontide("run", "--workers", "1")
      assert.equal(1, result.code)
      assert.matches("died 5 times before it was ready", result.err, 1, true)
      assert.matches("exited with 7", result.err, 1, true)
      -- the same trouble is told once, and then as the reason for the end
      local _, lines = result.err:gsub("\n", "")
      assert.is_true(lines <= 3, result.err)
    end)

    it("starts a worker that cannot start more and more rarely, and says it once", function()
      app:configure 'partitions = 12, grants = { "os", "io" }'
      app:write("handlers/ledger.lua", MORTAL)
      app:append(events(1))
      local host = start(1)
      wait_for(1, host)
      app:write("broken", "")
      process.signal(host:worker(), "KILL")
      process.wait_until(function() return #(app:read "starts" or "") >= 3 end, 20, "starts")
      local from, before = process.now(), #app:read "starts"
      process.wait_until(function() return process.now() - from > 4 end, 10)
      local starts = #app:read "starts" - before
      assert.is_true(starts <= 8, starts .. " starts in 4 seconds")
      local _, told = host:err():gsub("cannot start", "")
      assert.equal(1, told, host:err())
      assert.is_true(host:alive())
      app:exec("rm", "broken")
      app:append(events(1))
      wait_for(2, host)
      stop(host)
    end)

    it("stays when a handler cannot be stopped: its worker is killed, and the message has failed", function()
      app:configure 'partitions = 12, jit = true, limits = { time = "1s" }, on_error = "dead_letter"'
      app:append { { aggregate_id = "K-1", type = "thing.Endless" } }
      app:append(events(5, { aggregate_id = "K-2" }))
      local host = start(several and 2 or 1)
      local before = host:workers()
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER'" == "1"
      end, 30, function() return "the dead letter\n" .. host:err() end)
      assert.matches("ran longer than limits.time", host:err(), 1, true)
      wait_for(5, host)
      process.wait_until(function() return #host:workers() == #before end, 20, function() return host:err() end)
      app:append(events(5, { aggregate_id = "K-1" }))
      wait_for(10, host)
      stop(host)
      complete(10)
    end)

    it("gives what is halted no fresh budget when a worker is replaced", function()
      app:configure(PATIENT .. 'retry = { attempts = 1 }')
      app:write("handlers/ledger.lua", (HANDLER:gsub("while true do n = n %+ 1 end", 'error "not today"')))
      app:append { { aggregate_id = "A-1", type = "thing.Endless" } }
      local host = start(1)
      local halted = "SELECT state_since FROM CONSUMERS WHERE state = 'HALTED'"
      process.wait_until(function() return app.db:value(halted) ~= "" end, 60, function()
        return "a halted consumer\n" .. host:err()
      end)
      local since = app.db:value(halted)
      assert.is_true(process.signal(host:workers()[1], "KILL"))
      process.wait_until(function() return host:err():find("runs again", 1, true) end, 60, function()
        return "another worker\n" .. host:err()
      end)
      stop(host)
      assert.equal(since, app.db:value(halted))
      -- a start of the host does
      host = start(1)
      process.wait_until(function()
        local now = app.db:value(halted)
        return now ~= "" and now ~= since
      end, 60, function()
        return "another attempt\n" .. host:err()
      end)
      stop(host)
    end)

    it("replaces a worker that has closed the way to it", function()
      app:configure [[partitions = 12, grants = { "ffi" }, limits = { time = "60s" }, on_error = "dead_letter",
        retry = { attempts = 2 }]]
      app:write("handlers/ledger.lua", (HANDLER:gsub("while true", [[
        local ffi = require "ffi"
        ffi.cdef "int close(int);"
        ffi.C.close(3)
        %0]])))
      local host = start(1)
      local first = host:workers()[1]
      app:append { { aggregate_id = "A-1", type = "thing.Endless" } }
      process.wait_until(function()
        local now = host:workers()
        return #now == 1 and now[1] ~= first
      end, 60, function() return "another worker\n" .. host:err() end)
      app:append(events(20))
      wait_for(20, host)
      -- its second attempt does it again, and not while the host stops
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER'" == "1"
      end, 60, function() return "the dead letter\n" .. host:err() end)
      stop(host)
      complete(20)
    end)

    it("does not spin when messages kill worker after worker, and all others are applied", function()
      app:configure 'partitions = 12, grants = { "os" }, on_error = "dead_letter"'
      app:write("handlers/ledger.lua", (HANDLER:gsub("while true do n = n %+ 1 end", "os.exit(3)")))
      local list = events(40)
      for i = 1, 3 do
        table.insert(list, 10 * i, { aggregate_id = "poison-" .. i, type = "thing.Endless" })
      end
      app:append(list)
      local host = start(several and 2 or 1)
      wait_for(40, host)
      process.wait_until(function()
        return app.db:value "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE status = 'DEAD_LETTER'" == "3"
      end, 60, function() return "three dead letters\n" .. host:err() end)
      assert.matches("exited with 3", host:err(), 1, true)
      stop(host)
      complete(40)
    end)
  end)
end)

describe("a database in one file", function()
  it("is whole after workers were killed in the middle of their transactions", function()
    local app = application.new {
      database = dialect.sqlite(), config = PATIENT .. "batch = 5",
      handlers = { ["ledger.lua"] = HANDLER },
    }
    app:write("ledger.sql", "CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL, position INTEGER NOT NULL);")
    app:ok("run", "--until-idle")
    local host = app:start("run", "--workers", "1")
    local total, cut = 0, 0
    local function applied() return tonumber(app.db:value "SELECT count(*) FROM ledger") end
    local function said() return host:err() end
    for round = 1, 10 do
      local list = {}
      for i = 1, 60 do
        list[i] = { aggregate_id = "K-" .. i % KEYS, type = "thing.Happened", payload = '{"loops":200000}' }
      end
      app:append(list)
      process.wait_until(function() return applied() > total end, 30, said)
      local worker = host:worker()
      process.pause(2 * round)
      process.signal(worker, "STOP") -- what it has done by now is not to be missed
      if applied() < total + 60 then cut = cut + 1 end
      process.signal(worker, "KILL")
      process.wait_until(function()
        local now = host:workers()
        return #now == 1 and now[1] ~= worker
      end, 30, said)
      total = total + 60
      process.wait_until(function() return applied() == total end, 30, said)
    end
    assert.is_true(cut > 0, "no kill fell into the work")
    host:signal "TERM"
    assert.equal(0, host:wait(30).code)
    assert.equal(tostring(total), app.db:value "SELECT count(DISTINCT position) FROM ledger")
    assert.is_true(app.db:intact())
    app:close()
  end)
end)
