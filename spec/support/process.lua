-- Starts programs the way a person would, but without a shell in between that
-- could misread their arguments: every word is quoted, each run has a limit of
-- time, and the environment is the one that is asked for.
local ffi = require "ffi"

ffi.cdef [[
  struct moontide_spec_pollfd { int fd; short events; short revents; };
  int poll(struct moontide_spec_pollfd *fds, unsigned long nfds, int timeout);
  struct moontide_spec_timespec { long tv_sec; long tv_nsec; };
  int clock_gettime(int clock, struct moontide_spec_timespec *time);
  int kill(int pid, int signal);
]]

local process = {}

local SIGNALS = { HUP = 1, INT = 2, QUIT = 3, KILL = 9, USR1 = 10, USR2 = 12, TERM = 15, CONT = 18, STOP = 19 }
local CLOCK_MONOTONIC = 1
local PAUSE_MS = 5         -- between two looks at a condition, at first
local LONGEST_PAUSE_MS = 100
local TIMED_OUT = 124 -- exit code of timeout(1)
local RUN_LIMIT = 120 -- seconds
local BACKGROUND_LIMIT = 900 -- seconds: what is started in the background is ended by its spec
local LEAST_WAIT = 120 -- seconds: a process may stand for long on a machine that does other things

-- What every program needs from the machine; all else must be asked for.
local KEPT = { "PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS" }

--- quote(word): the word as the shell reads it back, unchanged.
function process.quote(word)
  word = tostring(word)
  assert(not word:find("\0", 1, true), "a NUL byte cannot be part of a command")
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

function process.read_file(path)
  local file = io.open(path, "rb")
  if file == nil then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

function process.write_file(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

--- now(): seconds on a clock that only goes forward.
function process.now()
  local time = ffi.new "struct moontide_spec_timespec"
  ffi.C.clock_gettime(CLOCK_MONOTONIC, time)
  return tonumber(time.tv_sec) + tonumber(time.tv_nsec) / 1e9
end

--- wait_until(condition, seconds, what): asks again and again until the
-- condition holds and gives its value. Past the deadline it raises, with
-- `what` was waited for: a text, or a function that gives one (the evidence).
-- The deadline ends specs that hang and says nothing of speed, so it is LEAST_WAIT
-- at least.
-- Most conditions start a program: the longer it takes, the less often they are
-- looked at, so that who waits leaves the machine to what is waited for.
function process.wait_until(condition, seconds, what)
  local start = process.now()
  seconds = math.max(seconds, LEAST_WAIT)
  while true do
    local value = condition()
    if value then return value end
    local waited = process.now() - start
    if waited > seconds then
      if type(what) == "function" then what = what() end
      error(("waited %g seconds in vain for %s"):format(seconds, what or "a condition"), 2)
    end
    ffi.C.poll(nil, 0, math.max(PAUSE_MS, math.min(LONGEST_PAUSE_MS, waited * 1000 / 8)))
  end
end

--- pause(ms): lets a random time pass before something is killed. Where there
-- is an event to wait for, wait_until is what to use.
function process.pause(ms)
  ffi.C.poll(nil, 0, math.floor(ms))
end

-- The exit code as a shell shows it, from what wait(2) gives.
local function exit_code(status)
  if status % 256 == 0 then return status / 256 end
  return 128 + status % 128
end

local function environment(env)
  local words, seen = { "env", "-i" }, {}
  for name, value in pairs(env or {}) do
    seen[name] = true
    if value ~= false then words[#words + 1] = process.quote(name .. "=" .. tostring(value)) end
  end
  for _, name in ipairs(KEPT) do
    local value = os.getenv(name)
    if value and not seen[name] then words[#words + 1] = process.quote(name .. "=" .. value) end
  end
  return table.concat(words, " ")
end

local function words_of(command)
  local words = {}
  for i, word in ipairs(command) do words[i] = process.quote(word) end
  assert(#words > 0, "a command has at least one word")
  return table.concat(words, " ")
end

-- stdin: text, or { file = PATH }; nothing is an empty input.
local function input_path(command, scratch)
  local stdin = command.stdin
  if stdin == nil then return "/dev/null" end
  if type(stdin) == "table" then return stdin.file end
  process.write_file(scratch .. "in", stdin)
  return scratch .. "in"
end

local function timeout(seconds, foreground)
  return ("timeout%s -k 5 %d "):format(foreground and " --foreground" or "", seconds)
end

--- run(command): runs to the end; gives { code, out, err }. Fields beside the
-- words: `scratch` (prefix of files for the streams), `cwd`, `env` (false
-- removes a variable), `stdin`, `pipe` (standard input is a pipe), `stdout`
-- (a path instead of out), `before` (shell code run first, such as a
-- ulimit), `timeout` (seconds; passing it is an error).
function process.run(command)
  local scratch = assert(command.scratch, "scratch is missing")
  local input = process.quote(input_path(command, scratch))
  local out, err = command.stdout or scratch .. "out", scratch .. "err"
  local line = ("cd %s && { %s\n %s%s %s%s %s >%s 2>%s; }"):format(
    process.quote(command.cwd or "."), command.before or ":",
    command.pipe and "cat " .. input .. " | " or "", environment(command.env), timeout(command.timeout or RUN_LIMIT),
    words_of(command), command.pipe and "" or "<" .. input, process.quote(out), process.quote(err))
  local code = exit_code(os.execute(line))
  local result = {
    code = code,
    out = command.stdout and "" or process.read_file(out) or "",
    err = process.read_file(err) or "",
  }
  if code == TIMED_OUT then
    error(("did not end within %d seconds: %s\n%s%s"):format(command.timeout or RUN_LIMIT, words_of(command),
      result.out, result.err), 2)
  end
  return result
end

--- signal(pid, name): false when there is no such process.
function process.signal(pid, name)
  return ffi.C.kill(pid, (assert(SIGNALS[name], "no such signal"))) == 0
end

--- cpu(pid[, with_dead]): seconds of processor time that it has used, and those of
-- the children that it has seen end, too; 0 when it is gone.
function process.cpu(pid, with_dead)
  local fields, ticks = {}, 0
  local stat = process.read_file(("/proc/%d/stat"):format(pid)) or ""
  for field in (stat:match "%) (.*)" or ""):gmatch "%S+" do fields[#fields + 1] = field end
  for i = 12, with_dead and 15 or 13 do ticks = ticks + (tonumber(fields[i]) or 0) end
  return ticks / 100
end

local Started = {}
Started.__index = Started

--- start(command): starts in the background; the fields are those of run.
-- Gives an object with the pid.
function process.start(command)
  local scratch = assert(command.scratch, "scratch is missing")
  local self = setmetatable({ scratch = scratch, words = words_of(command) }, Started)
  -- The inner shell writes its own pid and becomes the program.
  local inner = 'echo $$ >"$0.pid.new" && mv "$0.pid.new" "$0.pid" && exec "$@"'
  local line = ("cd %s && { %s\n ( %s %s sh -c %s %s %s; echo $? >%s.new; mv %s.new %s ) <%s >%s 2>%s & }"):format(
    process.quote(command.cwd or "."), command.before or ":",
    environment(command.env), timeout(command.timeout or BACKGROUND_LIMIT, true),
    process.quote(inner), process.quote(scratch), self.words,
    process.quote(scratch .. "code"), process.quote(scratch .. "code"), process.quote(scratch .. "code"),
    process.quote(input_path(command, scratch)), process.quote(scratch .. "out"), process.quote(scratch .. "err"))
  assert(os.execute(line) == 0, "cannot start " .. self.words)
  self.pid = tonumber(process.wait_until(function() return process.read_file(scratch .. ".pid") end, 10,
    "the start of " .. self.words))
  return self
end

function Started:alive()
  return process.read_file(self.scratch .. "code") == nil
end

function Started:out() return process.read_file(self.scratch .. "out") or "" end
function Started:err() return process.read_file(self.scratch .. "err") or "" end

--- signal(name): by pid, and only while it runs.
function Started:signal(name)
  if not self:alive() then return false end
  return process.signal(self.pid, name)
end

-- The pids of the processes that it has started and that are still there, by age.
local function children(self)
  local pids = {}
  local list = process.read_file(("/proc/%d/task/%d/children"):format(self.pid, self.pid)) or ""
  for pid in list:gmatch "%d+" do pids[#pids + 1] = tonumber(pid) end
  return pids
end

--- workers(): its workers by age, without the processes that load scripts now and
-- then.
function Started:workers()
  local pids = {}
  for _, pid in ipairs(children(self)) do
    local words = process.read_file(("/proc/%d/cmdline"):format(pid)) or ""
    if words:find("\0worker\0", 1, true) then pids[#pids + 1] = pid end
  end
  return pids
end

--- worker(): the pid of its only one, once it is there.
function Started:worker()
  local pids
  process.wait_until(function()
    pids = self:workers()
    return #pids == 1
  end, 20, function() return "one worker\n" .. self:err() end)
  return pids[1]
end

--- signal_all(name): all that it has started, too.
function Started:signal_all(name)
  for _, pid in ipairs(children(self)) do process.signal(pid, name) end
  return self:signal(name)
end

--- wait(seconds): until it ends; gives { code, out, err }.
function Started:wait(seconds)
  local code = process.wait_until(function() return process.read_file(self.scratch .. "code") end, seconds or 30,
    function() return ("the end of %s\n%s%s"):format(self.words, self:out(), self:err()) end)
  return { code = tonumber(code), out = self:out(), err = self:err() }
end

--- stop(): ends it, however it is.
function Started:stop()
  if self:signal "KILL" then self:wait(10) end
end

return process
