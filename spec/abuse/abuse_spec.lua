-- Hostile handlers, each a file beside this one whose head says how it ends.
-- One host runs them all, with handlers that mean no harm: it stays up, the
-- others' messages and the hostile ones' own other messages are applied, and
-- each hostile message is a dead letter after its budget.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local LIMIT = 0.3    -- limits.time
local GRACE = 0.2    -- what the end of a handler may take beyond that
local MACHINE = 4    -- what a machine with other things to do may add to each attempt
local ATTEMPTS = 2
local GOOD = 20      -- messages besides the hostile one

-- A build with AddressSanitizer leaves the signals alone, so that a process ends
-- as it does without.
local UNWATCHED = (os.getenv "ASAN_OPTIONS" or "") .. ":handle_segv=0:abort_on_error=1"

local HANDLER = [[
local moontide = require "moontide"
return moontide.projection "%s" { on = {
  ["abuse.Good"] = function(state, event, ctx) state.n = (state.n or 0) + 1 end,
  ["abuse.Bad"] = function(state, event, ctx)
    ctx.log.info("begins")
    %s
  end } }
]]

-- SQL that was sent, and more that was not, before the handler hangs.
local HALF_WRITTEN = [[
local moontide = require "moontide"
return moontide.sql_projection "half-written" { tables = "sql/marks.sql", on = {
  ["abuse.Good"] = function(event, ctx) ctx:execute("INSERT INTO marks (position) VALUES (?)", event.position) end,
  ["abuse.Bad"] = function(event, ctx)
    ctx.log.info("begins")
    ctx:update("INSERT INTO marks (position) VALUES (?)", event.position)
    ctx:execute("INSERT INTO marks (position) VALUES (?)", 1000 + event.position)
    while true do end
  end } }
]]

-- Its key function, and what it says of errors, take their worker along or
-- run for ever.
local BY_KEY = [[
local moontide = require "moontide"
return moontide.projection "by-key" {
  key = function(event)
    if event.type == "abuse.Bad" then while true do end end
    return event.key
  end,
  on = { ["abuse.Good"] = function(state) state.n = (state.n or 0) + 1 end, ["abuse.Bad"] = function() end } }
]]
local BY_POLICY = [[
local moontide = require "moontide"
return moontide.projection "by-policy" {
  on_error = function() while true do end end,
  on = { ["abuse.Good"] = function(state) state.n = (state.n or 0) + 1 end,
         ["abuse.Bad"] = function() error "no" end } }
]]

local function hostile(folder)
  local list = {}
  local found = process.run { "sh", "-c", "ls spec/abuse/" .. folder .. "/*.lua", scratch = os.tmpname() }
  for path in found.out:gmatch "%S+" do
    local name = path:match "([^/]+)%.lua$"
    local text = process.read_file(path)
    local ends = text:match "%-%- ends: ([^\n]+)"
    list[#list + 1] = { name = name, body = text,
      ends = ends:gsub("NAME", function() return (name:gsub("%-", "%%-")) end):gsub("LIMIT", "300ms") }
  end
  return list
end

-- Seconds since midnight of a line of the log.
local function clock_of(line)
  local h, m, s = line:match "ts=%S-T(%d+):(%d+):([%d.]+)Z"
  return h and h * 3600 + m * 60 + s
end

local function line_of(log, consumer, text, from)
  for at, line in log:gmatch "()([^\n]+)" do
    if at >= from and line:find(text, 1, true) and line:find("consumer=" .. consumer .. " ", 1, true) then
      return line, at
    end
  end
end

-- Seconds from the begin of a hostile handler to the word that it has failed: of
-- the quickest attempt, as a process may stand for long in one of them.
local function least_time(log, consumer)
  local least, from = nil, 1
  for _ = 1, ATTEMPTS do
    local begins, at = line_of(log, consumer, "begins", from)
    local ends, behind
    if begins then ends, behind = line_of(log, consumer, "could not apply", at) end
    if ends == nil then break end
    local took = clock_of(ends) - clock_of(begins)
    least, from = math.min(least or took, took), behind + 1
  end
  return assert(least, log)
end

-- What Lua does is the same on every database; what the end of a worker leaves
-- is not.
local function is_told_by(database, folder, jit)
  return database.name == "sqlite" or (folder == "granted" and jit == "true")
end

local RUNS = { { "sandboxed", "false" }, { "sandboxed", "true" }, { "granted", "false" }, { "granted", "true" } }

dialect.each(function(database)
  for _, run in ipairs(RUNS) do
    local folder, jit = run[1], run[2]
    if is_told_by(database, folder, jit) then
      describe(("hostile handlers, %s, jit = %s,"):format(folder, jit), function()
        local app, host
        local cases = hostile(folder)

        setup(function()
          app = application.new { database = database, config = ([[partitions = 12, jit = %s, %s
            on_error = "dead_letter", retry = { attempts = %d, delay = "50ms", jitter = 0 },
            limits = { time = "300ms", memory = "16MiB" }, log = { level = "info", format = "logfmt" },]])
            :format(jit, folder == "granted" and [[grants = { "os", "ffi" },]] or "", ATTEMPTS)
            .. (database.name ~= "sqlite" and " workers = 2" or "") }
          for _, case in ipairs(cases) do
            app:write("handlers/" .. case.name .. ".lua", HANDLER:format(case.name, case.body))
          end
          app:write("handlers/harmless.lua", HANDLER:format("harmless", ""))
          if folder == "sandboxed" then
            app:write("sql/marks.sql", app.db:ddl "CREATE TABLE IF NOT EXISTS marks (position INTEGER NOT NULL);")
            app:write("handlers/half-written.lua", HALF_WRITTEN)
            app:write("handlers/by-key.lua", BY_KEY)
            app:write("handlers/by-policy.lua", BY_POLICY)
          end
          local list = {}
          for i = 1, GOOD do list[i] = { aggregate_id = "key-" .. i % 5, type = "abuse.Good" } end
          table.insert(list, GOOD / 2, { aggregate_id = "bad", type = "abuse.Bad" })
          app:ok("run", "--until-idle")
          app:append(list, "--batch", "100")
          host = app:start("run", { env = { ASAN_OPTIONS = UNWATCHED } })
          local function settled()
            return app.db:value [[SELECT count(*) FROM CONSUMERS c
                WHERE c.halt_reason IS NULL AND EXISTS (SELECT 1 FROM CONSUMER_CHECKPOINTS k
                  WHERE k.consumer_id = c.id AND coalesce(k.position, 0) < 21)]] == "0"
              and app.db:value [[SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES
                WHERE status IN ('FAILED', 'WAITING')]] == "0"
          end
          process.wait_until(settled, 120, function()
            return "the end of all hostile messages:\n" .. host:err()
          end)
        end)

        teardown(function()
          if host then host:stop() end
          app:close()
        end)

        local function row(name)
          local text = app.db:value(([[SELECT u.status, u.failure_count, u.failure_reason
            FROM CONSUMER_UNDELIVERED_MESSAGES u JOIN CONSUMERS c ON c.id = u.consumer_id
            WHERE c.consumer_name = '%s']]):format(name)) or ""
          local status, failures, reason = text:match "^([A-Z_]+)|(%d+)|(.*)"
          return status, tonumber(failures), reason
        end

        local function applied(name)
          return app.db:value(("SELECT sum(n) FROM (SELECT count(*) AS n FROM %s) AS t"):format((name:gsub("%-", "_"))))
        end

        for _, case in ipairs(cases) do
          it(case.name .. " ends its message alone, as a dead letter after its budget, and says where", function()
            local status, failures, reason = row(case.name)
            assert.equal("DEAD_LETTER", status, host:err())
            assert.equal(ATTEMPTS, failures)
            assert.matches(case.ends, reason)
            assert.equal("5", applied(case.name)) -- the other keys
          end)

          it(case.name .. " has ended in time", function()
            local took = least_time(host:err(), case.name)
            assert.is_true(took < LIMIT + GRACE + MACHINE, ("%s took %.3f s"):format(case.name, took))
          end)
        end

        it("do no harm to others", function()
          assert.equal("6", applied "harmless")
          assert.is_nil((row "harmless"))
          assert.equal("0", app.db:value "SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES")
        end)

        if folder == "sandboxed" then
          it("leave nothing half written", function()
            local status, failures, reason = row "half-written"
            assert.equal("DEAD_LETTER", status)
            assert.equal(ATTEMPTS, failures)
            assert.matches("^timeout: handlers/half%-written%.lua:%d+: handler ran longer than", reason)
            assert.equal("20|20", app.db:value "SELECT count(*), count(DISTINCT position) FROM marks")
          end)

          it("count as well in a key function, in every partition that met the message", function()
            assert.equal("DEAD_LETTER|2", app.db:value [[SELECT DISTINCT u.status, u.failure_count
              FROM CONSUMER_UNDELIVERED_MESSAGES u JOIN CONSUMERS c ON c.id = u.consumer_id
              WHERE c.consumer_name = 'by-key']])
            assert.equal("5", applied "by-key")
          end)

          it("halt their consumer when it is on_error that does not end", function()
            local status = row "by-policy"
            assert.equal("HALTED", status)
            assert.equal("HALTED|APPLY_ERROR", app.db:value
              "SELECT state, halt_reason FROM CONSUMERS WHERE consumer_name = 'by-policy'")
          end)
        end

        it("leave a host that stops in order", function()
          host:signal "TERM"
          assert.equal(0, host:wait().code, host:err())
          host = nil
        end)
      end)
    end
  end
end)
