-- What the host tells the service manager that has started it, and the unit that
-- lets it do so.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local folder = require "spec.support.folder"
local process = require "spec.support.process"

-- A service manager: writes down each datagram, with the time.
local MANAGER = [[
import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    text = s.recv(4096).decode()
    for line in text.splitlines():
        print(f"{time.monotonic():.3f} {line}", flush=True)
]]

describe("a service manager", function()
  local app, manager, socket

  before_each(function()
    app = application.new { database = dialect.sqlite(), config = "partitions = 12", handlers = {} }
    app:write("manager.py", MANAGER)
    socket = app.root .. "/notify"
    manager = app:launch("python3", "manager.py", socket)
    process.wait_until(function() return manager:out():find "bound" end, 20, "the manager")
  end)

  after_each(function()
    app:close()
  end)

  local function heard(text)
    return manager:out():find(text, 1, true) ~= nil
  end

  it("is told that the host is ready once a worker is, that it lives, and that it stops", function()
    local host = app:start("run", { env = { NOTIFY_SOCKET = socket, WATCHDOG_USEC = "400000" } })
    process.wait_until(function() return heard "READY=1" end, 20, function() return host:err() end)
    assert.matches("STATUS=running 0 consumers", manager:out(), 1, true)
    assert.equal(1, #host:workers())
    assert.is_false(heard "STOPPING")
    local function lives()
      local times = {}
      for time in manager:out():gmatch "([%d.]+) WATCHDOG=1" do times[#times + 1] = tonumber(time) end
      return times
    end
    process.wait_until(function() return #lives() >= 10 end, 20, function() return manager:out() end)
    local times, pauses = lives(), {}
    for i = 2, #times do pauses[i - 1] = times[i] - times[i - 1] end
    table.sort(pauses)
    -- twice within the time, as a manager wants it; a busy machine may keep some waiting
    assert.is_true(pauses[math.ceil(#pauses / 2)] < 0.4, manager:out())
    host:signal "TERM"
    assert.equal(0, host:wait(20).code)
    process.wait_until(function() return heard "STOPPING=1" end, 5, function() return manager:out() end)
  end)

  it("is not told that a host is ready that cannot start", function()
    app:write("handlers/broken.lua", "return {")
    local result = app:moontide("run", { env = { NOTIFY_SOCKET = socket } })
    assert.equal(78, result.code)
    assert.is_false(heard "READY")
  end)

  it("that watches another process gets no signs of life", function()
    local host = app:start("run", { env = { NOTIFY_SOCKET = socket, WATCHDOG_USEC = "100000", WATCHDOG_PID = "1" } })
    process.wait_until(function() return heard "READY=1" end, 20, function() return host:err() end)
    host:signal "TERM"
    assert.equal(0, host:wait(20).code)
    assert.is_false(heard "WATCHDOG")
  end)

  it("that is not there is no reason not to run", function()
    for _, name in ipairs { "@nobody-listens-here", app.root .. "/none", "nonsense", "/" .. ("x"):rep(200) } do
      local host = app:start("run", { env = { NOTIFY_SOCKET = name } })
      process.wait_until(function() return host:err():find("running", 1, true) end, 20,
        function() return host:err() end)
      assert.matches("service manager is told nothing", host:err(), 1, true)
      host:signal "TERM"
      assert.equal(0, host:wait(20).code)
    end
  end)
end)

describe("the unit for systemd", function()
  local unit = process.read_file(folder.source "scripts/systemd/moontide@.service.in")

  it("hands the signal to the supervisor alone, restarts the host, and lets it replace its workers", function()
    for _, line in ipairs { "Type=notify", "KillMode=mixed", "Restart=on-failure", "OOMPolicy=continue",
      "MemoryDenyWriteExecute=yes", "NoNewPrivileges=yes", "ProtectSystem=strict",
      "SystemCallFilter=@system-service" } do
      assert.matches("\n" .. line .. "\n", unit, 1, true)
    end
    assert.matches("\nWatchdogSec=%d+\n", unit)
    -- longer than the default of stop_timeout
    assert.is_true(tonumber(unit:match "\nTimeoutStopSec=(%d+)\n") > 10)
  end)

  it("is one that systemd takes", function()
    local at = folder.new()
    local text = unit:gsub("@CMAKE_INSTALL_FULL_BINDIR@/moontide", folder.program)
      :gsub("@CMAKE_INSTALL_FULL_DOCDIR@", "/usr/share/doc/moontide")
    assert.is_nil(text:find("@CMAKE", 1, true))
    at:write("moontide@.service", text)
    local result = at:exec("systemd-analyze", "verify", "./moontide@.service")
    at:close()
    assert.same({ 0, "" }, { result.code, result.out .. result.err })
  end)
end)

describe("a process that may not make memory executable", function()
  -- PR_SET_MDWE, as with MemoryDenyWriteExecute of a unit
  local LAUNCH = [[
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(65, 1, 0, 0, 0) != 0:
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
]]

  local app

  before_each(function()
    app = application.new { database = dialect.sqlite(), config = "", handlers = {} }
    app:write("launch.py", LAUNCH)
  end)

  after_each(function()
    app:close()
  end)

  it("is refused jit, with what to do, and runs without it", function()
    app:configure "jit = true"
    for _, words in ipairs { { "run" }, { "run", "--until-idle" }, { "check" } } do
      local result = app:exec("python3", "launch.py", folder.program, unpack(words))
      assert.equal(78, result.code, result.err)
      assert.matches("jit = true cannot work here", result.err, 1, true)
      assert.matches("MemoryDenyWriteExecute=no", result.err, 1, true)
    end
    app:ok("run", "--until-idle") -- elsewhere it works
    app:configure "jit = false"
    local result = app:exec("python3", "launch.py", folder.program, "run", "--until-idle")
    assert.equal(0, result.code, result.err)
  end)
end)
