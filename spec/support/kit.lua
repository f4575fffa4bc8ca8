-- A host of the testing kit with an application and a database of its own, for
-- specs of consumers and models.
--
--   local rig = kit.new { database = database, handlers = "return ...", batch = 3 }
--   rig:append("A-1", "spec.Added", { by = 1 })
--   rig:run()
--   assert.same({ total = 1 }, rig.host:read("totals", "A-1"))
--   rig:close()
--
-- Whatever is no field of the rig itself is a configuration key.
local ffi = require "ffi"
local application = require "spec.support.application"
local moontide = require "moontide"
local testing = require "moontide.testing"

ffi.cdef [[
  int dup(int fd);
  int dup2(int fd, int to);
  int close(int fd);
  int open(const char *path, int flags, ...);
]]

local STDERR = 2
local WRITE_CREATE_APPEND = 0x441

local PARTITIONS = 12 -- no power of two, so that a wrong hash shows
local AGGREGATE = "spec.thing"

local kit = { aggregate = AGGREGATE, partitions = PARTITIONS }

local Rig = {}
Rig.__index = Rig

-- The host in this process logs to standard error; specs make it log a lot.
-- It goes to a file meanwhile, which log() gives.
local function aside(self, fn, ...)
  local kept = ffi.C.dup(STDERR)
  local file = ffi.C.open(self.app.root .. "/host.log", WRITE_CREATE_APPEND, ffi.cast("int", 384))
  ffi.C.dup2(file, STDERR)
  ffi.C.close(file)
  local function back(good, ...)
    ffi.C.dup2(kept, STDERR)
    ffi.C.close(kept)
    if not good then error((...), 0) end
    return ...
  end
  return back(pcall(fn, ...))
end

-- What every declaration of these specs starts with.
local HEAD = [[
local moontide = require "moontide"
local t = moontide.types
]]

--- new(options): `database` (from spec.support.dialect) and `handlers` (the
-- text of handlers/spec.lua), or `files` (texts by name). The host is open.
function kit.new(options)
  local settings = {}
  for key, value in pairs(options) do settings[key] = value end
  settings.database, settings.handlers, settings.files = nil, nil, nil
  settings.partitions = settings.partitions or PARTITIONS
  local self = setmetatable({ settings = settings }, Rig)
  self.app = application.new { database = options.database, config = "partitions = " .. settings.partitions }
  for name, text in pairs(options.files or {}) do self.app:write(name, self.app.db:ddl(text)) end
  if options.handlers then self:script(options.handlers) end
  local good, problem = pcall(self.open, self)
  if not good then
    self.app:close()
    error(problem, 0)
  end
  return self
end

--- start(database, handlers[, options]): the same with other options, if any.
function kit.start(database, handlers, options)
  local all = { database = database, handlers = handlers }
  for key, value in pairs(options or {}) do all[key] = value end
  return kit.new(all)
end

--- script(text): writes handlers/spec.lua; the host takes it with reopen.
function Rig:script(text)
  self.app:write("handlers/spec.lua", HEAD .. text)
end

--- open([changes]): opens the host; the keys of `changes` stay changed.
function Rig:open(changes)
  for key, value in pairs(changes or {}) do self.settings[key] = value end
  local options = { app = self.app.path, database = self.app.db.url, log = { level = "error" } }
  for key, value in pairs(self.settings) do options[key] = value end
  self.host = aside(self, testing.host, options)
  return self.host
end

--- reopen([changes]): as a new start of the program, scripts read again.
function Rig:reopen(changes)
  if self.host then self.host:close() end
  self.host = nil
  return self:open(changes)
end

function Rig:close()
  if self.host then aside(self, self.host.close, self.host) end -- it says then how often each line came again
  self.app:close()
end

--- append(id, type, payload[, options]): one event of aggregate spec.thing.
function Rig:append(id, event_type, payload, options)
  return self.host:append(AGGREGATE, id, { moontide.event(event_type, payload, options) })[1]
end

--- append_all(list): { id, type, payload[, options] } each, in one transaction
-- and so in one run of positions.
function Rig:append_all(list)
  local events = {}
  for i, item in ipairs(list) do
    local options = { aggregate_id = item[1] }
    for key, value in pairs(item[4] or {}) do options[key] = value end
    events[i] = moontide.event(item[2], item[3], options)
  end
  return self.host:append(AGGREGATE, "-", events)
end

--- run(): applies what is there; failing messages are no error of the spec.
-- Gives what the host counts: messages passed and messages failed.
function Rig:run()
  return aside(self, self.host.core.run, self.host.core)
end

--- redeliver(): see testing.lua.
function Rig:redeliver()
  return aside(self, self.host.core.redeliver, self.host.core)
end

--- restart(): see testing.lua.
function Rig:restart()
  return aside(self, self.host.core.restart, self.host.core)
end

--- log(): what the host has logged.
function Rig:log()
  return self.app:read(self.app.root .. "/host.log") or ""
end

--- query(sql, ...): rows as the database has them.
function Rig:query(sql, ...)
  return self.host:query(self.app.db:ddl(sql), ...)
end

local function run_all(self, statements)
  for _, statement in ipairs(statements) do self.host:query(statement) end
end

--- trigger(wanted): makes a trigger; see spec.support.words.
function Rig:trigger(wanted)
  run_all(self, self.app.db:trigger(wanted))
end

function Rig:drop_trigger(name)
  run_all(self, { self.app.db:drop_trigger(name) })
end

--- intrude(wanted): another writer at the wrong moment; see
-- spec.support.words. Handlers run the query database.intrusion.
function Rig:intrude(wanted)
  self.intruded = wanted
  run_all(self, self.app.db:intruder(wanted))
end

function Rig:end_intrusion()
  run_all(self, self.app.db:remove_intruder(self.intruded))
end

--- accept(): the next start takes every declaration as it is then, whatever
-- changed in it.
function Rig:accept()
  self:query "UPDATE CONSUMERS SET declaration_fingerprint = NULL"
end

--- value(sql, ...): the column `value` of the first row.
function Rig:value(sql, ...)
  local row = self.host:query(sql, ...)[1]
  return row and row.value
end

--- totals(projection): the member `total` of its read models, by key.
function Rig:totals(projection)
  local list = {}
  for key, state in pairs(self.host:read(projection)) do list[key] = state.total end
  return list
end

--- undelivered([consumer]): rows in position order, as { key, position, status,
-- failures, reason, partition, unresolved }.
function Rig:undelivered(consumer)
  local rows = self:query([[
    SELECT u.resolved_key AS "key", u.message_position AS position, u.status AS status,
           u.failure_count AS failures, u.failure_reason AS reason, u.partition_no AS "partition",
           u.unresolved AS unresolved
      FROM CONSUMER_UNDELIVERED_MESSAGES u JOIN CONSUMERS c ON c.id = u.consumer_id
     WHERE c.consumer_name = coalesce(?, c.consumer_name)
     ORDER BY u.message_position, u.partition_no, u.resolved_key]], consumer)
  for _, row in ipairs(rows) do -- a boolean where the engine knows them
    if type(row.unresolved) == "boolean" then row.unresolved = row.unresolved and 1 or 0 end
  end
  return rows
end

--- copy(position): the copy of an undelivered message.
function Rig:copy(position)
  return self:value([[SELECT message_copy AS value FROM CONSUMER_UNDELIVERED_MESSAGES
    WHERE message_position = ?]], position)
end

--- waiting([consumer]): the same, as "position key STATUS".
function Rig:waiting(consumer)
  local list = {}
  for i, row in ipairs(self:undelivered(consumer)) do
    list[i] = ("%d %s %s"):format(row.position, row.key, row.status)
  end
  return list
end

--- consumer(name): the row of CONSUMERS.
function Rig:consumer(name)
  return self:query("SELECT * FROM CONSUMERS WHERE consumer_name = ?", name)[1]
end

--- state(name): "RUNNING", or state and reason in one.
function Rig:state(name)
  local row = self:consumer(name)
  if row.state == nil then return "RUNNING" end
  return row.halt_reason and row.state .. " " .. row.halt_reason or row.state
end

--- checkpoints(name): the lowest and the highest stored position; nil for
-- partitions that hold none.
function Rig:checkpoints(name)
  local row = self:query([[
    SELECT min(k.position) AS low, max(k.position) AS high, count(*) AS partitions, count(k.position) AS stored
      FROM CONSUMER_CHECKPOINTS k JOIN CONSUMERS c ON c.id = k.consumer_id
     WHERE c.consumer_name = ?]], name)[1]
  assert(row.stored == row.partitions or row.stored == 0, "some partitions have no position")
  return row.low, row.high
end

--- ledger([consumer]): what a ledger handler wrote, as "key:position".
function Rig:ledger(consumer)
  local list = {}
  for i, row in ipairs(self:query([[
      SELECT "key", position FROM ledger WHERE consumer = ? OR ? IS NULL ORDER BY n]], consumer, consumer)) do
    list[i] = ("%s:%d"):format(row.key, row.position)
  end
  return list
end

--- The ledger table, and a statement that a handler of an SQL projection runs
-- to write down that it was called. `n` counts the calls that were kept.
kit.LEDGER_SQL = [[
CREATE TABLE IF NOT EXISTS ledger (
    n INTEGER PRIMARY KEY AUTOINCREMENT, consumer TEXT NOT NULL, "key" TEXT NOT NULL,
    position INTEGER NOT NULL, attempt INTEGER NOT NULL);
]]

kit.LEDGER = [[
local function ledger(consumer, event, ctx)
  ctx:execute('INSERT INTO ledger (consumer, "key", position, attempt) VALUES (?, ?, ?, ?)',
    consumer, ctx.key, event.position, ctx.attempt)
end
]]

return kit
