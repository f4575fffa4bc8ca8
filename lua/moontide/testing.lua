--- The testing kit: a host in the process of the spec, and pure checks.
--
--   local testing = require "moontide.testing"
--   local host = testing.host { database = testing.database() }
--   host:append("bank.account", "A-1", { moontide.event("account.Opened", { iban = "X" }) })
--   host:run()
--   assert.same({ balance = 0, iban = "X" }, host:read("account-summary", "A-1"))
--   host:close()
local moontide = require "moontide" -- first: it refuses a Lua that is none of ours
local core = require "moontide.core"

local testing = {}
local Host = {}
Host.__index = Host

local INJECTED = "failure asked for by the test"

-- What `project` gives an event that has none: the same in every fold.
local EVENT_ID = "00000000-0000-7000-8000-%012x"
local EVENT_TIME = "1970-01-01T00:00:00.000000Z"

-- URLs of the databases that were made here and are dropped with their host.
local made = {}

--- database(): the URL of a fresh database: on the server that DATABASE_URL
-- names, until the host that uses it is closed, or in memory without one. A
-- file is taken as it is.
function testing.database()
  local url = os.getenv "DATABASE_URL"
  if url == nil or url == "" then return "sqlite::memory:" end
  local fresh = core.scratch(url)
  if fresh ~= url then made[fresh] = true end
  return fresh
end

local function copy(value)
  if type(value) ~= "table" then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copy(item) end
  return result
end

-- The same with the tags of moontide.array and moontide.object, without which
-- an empty one would be told by nothing.
local function copy_tagged(value)
  if type(value) ~= "table" then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copy_tagged(item) end
  local tag = getmetatable(value)
  if tag == "moontide.array" then return moontide.array(result) end
  if tag == "moontide.object" then return moontide.object(result) end
  return result
end

local function merge(into, from)
  for key, value in pairs(from) do
    if type(value) == "table" and type(into[key]) == "table" and #value == 0 then
      merge(into[key], value)
    else
      into[key] = copy(value)
    end
  end
  return into
end

--- What the application's moontide.conf.lua says, as the host would read it.
local function configuration(folder)
  local path = folder .. "/moontide.conf.lua"
  local handle = io.open(path, "rb")
  if not handle then return {} end
  local source = handle:read "*a"
  handle:close()
  local chunk = assert(loadstring(source, "@" .. path))
  setfenv(chunk, setmetatable({
    env = function(name, default)
      local value = os.getenv(name)
      if value == nil or value == "" then return default end
      return value
    end,
    file = function(name)
      local file = assert(io.open(name:sub(1, 1) == "/" and name or folder .. "/" .. name, "rb"))
      local text = file:read "*a"
      file:close()
      return (text:gsub("\n$", ""))
    end,
  }, {
    __index = function(_, key)
      if key == "os" then error('the configuration has no `os`; env "NAME" gives an environment variable', 2) end
    end,
  }))
  return chunk()
end

--- Raises at the line of the spec: the first that is none of the kit's.
local function raise(message)
  for level = 2, 30 do
    local file, line = core.where(level)
    if file and not file:find "^moontide/" then error(("%s:%d: %s"):format(file, line, message), 0) end
  end
  error(message, 0)
end

--- What fn gives; what it raises is raised at the line of the spec.
local function at_spec(fn, ...)
  local good, result = pcall(fn, ...)
  if not good then raise((tostring(result):gsub("^moontide/[%w_/]+%.lua:%d+: ", ""))) end
  return result
end

--- host(options): a host of the application in `options.app` (the working
-- folder unless said otherwise). All other options are configuration keys; they
-- win over moontide.conf.lua, whose database is never used.
function testing.host(options)
  options = copy(options or {})
  local app = options.app or "."
  options.app = nil
  local settings = configuration(app)
  settings.database = nil
  merge(settings, options)
  settings.database = settings.database or testing.database()
  settings.log = merge({ level = "error" }, settings.log or {})
  return setmetatable({
    core = at_spec(core.host, settings, app),
    database = settings.database,
    prefix = settings.schema and settings.schema.prefix or "",
  }, Host)
end

-- Options are taken by their names; another one is a slip of the pen.
local function check_words(options, known, what)
  for key in pairs(options) do
    local found = false
    for _, word in ipairs(known) do found = found or key == word end
    if not found then
      raise(("%s: unknown word %s; known are %s"):format(what, tostring(key), table.concat(known, ", ")))
    end
  end
  return options
end

local function encode(value, what)
  local good, text = pcall(moontide.json.encode, value)
  if not good then raise(("%s: %s"):format(what, tostring(text))) end
  return text
end

--- An event of the kit as the core takes it: payload and metadata as text.
local function flatten(event, aggregate_type, aggregate_id)
  if type(event) ~= "table" or type(event.type) ~= "string" then
    error("an event is what moontide.event(type, payload) gives", 3)
  end
  local flat = {}
  for key, value in pairs(event) do
    if key ~= "payload" and key ~= "metadata" and key ~= "key" then flat[key] = value end
  end
  flat.aggregate_type = event.aggregate_type or aggregate_type
  flat.aggregate_id = event.aggregate_id or event.key or aggregate_id
  flat.payload = encode(event.payload == nil and moontide.object() or event.payload, "payload of " .. event.type)
  if event.metadata ~= nil then
    flat.metadata = encode(event.metadata, "metadata of " .. event.type)
  end
  return flat
end

--- append(aggregate, id, events[, options]): appends in one transaction and
-- gives { id, sequence, position, repeated } per event. options.expected: a
-- sequence number, "none" or "any", judged for the first event.
function Host:append(aggregate, id, events, options)
  if type(events) ~= "table" then error("append takes a list of events", 2) end
  if events.type ~= nil then events = { events } end
  local list = {}
  for i, event in ipairs(events) do
    list[i] = flatten(event, aggregate, id)
  end
  check_words(options or {}, { "expected" }, "append")
  if options and options.expected ~= nil and list[1] then
    list[1].expected = options.expected
  end
  return at_spec(self.core.append, self.core, list)
end

local EMIT_WORDS = { "key", "id", "metadata", "revision", "occurred_at" }

--- emit(type, payload[, options]): an event that belongs to no aggregate, in a
-- transaction of its own; options: key, id, metadata, revision, occurred_at.
-- Gives { id, position, repeated }.
function Host:emit(event_type, payload, options)
  local event = { type = event_type, payload = payload }
  for word, value in pairs(check_words(options or {}, EMIT_WORDS, "emit")) do event[word] = value end
  local flat = flatten(event)
  flat.key, flat.aggregate_id = event.key, nil
  return at_spec(self.core.emit, self.core, { flat })[1]
end

--- emitted([type]): the captured events that are there, in order: a list of {
-- position, id, type, key, payload, metadata }.
function Host:emitted(event_type)
  local rows = self:query(([[
    SELECT global_position AS position, id, event_type AS type, message_key AS "key", payload, metadata
      FROM %sEVENT_CAPTURE_RECORDS ORDER BY global_position]]):format(self.prefix))
  local list = {}
  for _, row in ipairs(rows) do
    if event_type == nil or row.type == event_type then
      row.payload = moontide.json.decode(row.payload)
      row.metadata = row.metadata and moontide.json.decode(row.metadata)
      list[#list + 1] = row
    end
  end
  return list
end

--- published([publisher[, status]]): the messages that are staged, in order, in
-- any status ("pending", "published" ...) unless one is said: a list of { id,
-- publisher, type, payload, ordering_key, tenant_id, execution_id,
-- correlation_id, causation_id, metadata, status, occurred_at }; what is not
-- there is nil.
function Host:published(publisher, status)
  local rows = self:query(([[
    SELECT event_id AS id, outbox_route AS publisher, event_type AS type, payload, ordering_key, tenant_id,
           execution_id, correlation_id, causation_id, metadata, status, occurred_at
      FROM %sOUTBOX AS o WHERE o.status = coalesce(?, o.status) ORDER BY o.id]]):format(self.prefix), status)
  local list = {}
  for _, row in ipairs(rows) do
    if publisher == nil or row.publisher == publisher then
      row.payload = moontide.json.decode(row.payload)
      row.metadata = row.metadata and moontide.json.decode(row.metadata)
      list[#list + 1] = row
    end
  end
  return list
end

--- undelivered([consumer]): the messages that could not be applied: a list of
-- { consumer, key, position, status, failures, reason }.
function Host:undelivered(consumer)
  local rows = self:query(([[
    SELECT c.consumer_name AS consumer, u.resolved_key AS "key", u.message_position AS position,
           u.status AS status, u.failure_count AS failures, u.failure_reason AS reason
      FROM %sCONSUMER_UNDELIVERED_MESSAGES u JOIN %sCONSUMERS c ON c.id = u.consumer_id
     ORDER BY c.consumer_name, u.message_position, u.partition_no]]):format(self.prefix, self.prefix))
  if consumer == nil then return rows end
  local some = {}
  for _, row in ipairs(rows) do
    if row.consumer == consumer then some[#some + 1] = row end
  end
  return some
end

-- What a handler could not do and the spec has not asked for; nil: nothing.
local function failure_of(host)
  for _, row in ipairs(host:undelivered()) do
    if row.reason and not row.reason:find(INJECTED, 1, true) then
      return ("%s could not apply the message at position %d: %s"):format(row.consumer, row.position, row.reason)
    end
  end
  local row = host:query(([[
    SELECT saga_type, saga_id, name, failure_reason AS reason FROM %sSAGA_DEADLINES
     WHERE attempts > 0 AND failure_reason IS NOT NULL ORDER BY due_at, id LIMIT 1]]):format(host.prefix))[1]
  return row and ("%s could not fire the deadline '%s' of '%s': %s"):format(row.saga_type, row.name, row.saga_id,
    row.reason)
end

--- run([{ failures = true }]): applies what is there. Raises when a handler
-- failed, unless the failure was asked for with host:fail or `failures` says
-- that it is expected, and as long as that failure stands. Gives the number of
-- messages applied.
function Host:run(options)
  check_words(options or {}, { "failures" }, "run")
  local applied, failed = self.core:run()
  local failure = failed > 0 and not (options and options.failures) and failure_of(self)
  if failure then error(failure, 2) end
  return applied
end

--- read(projection[, key]): the state of one read model (nil when there is
-- none), or all of them as a table by key.
function Host:read(projection, key)
  local states = {}
  for _, model in ipairs(moontide.json.decode(self.core:read(projection, key))) do
    states[model.key] = model.state
  end
  if key ~= nil then return states[key] end
  return states
end

--- query(sql, ...): rows of a statement, each a table by column; `?` takes the
-- values in order.
function Host:query(sql, ...)
  local rows = {}
  for i, row in ipairs(moontide.json.decode(self.core:query(sql, ...))) do
    rows[i] = copy(row)
  end
  return rows
end

--- advance(duration): moves the host's clock on, by seconds or "30m".
function Host:advance(duration)
  at_spec(self.core.advance, self.core, type(duration) == "number" and ("%.6fs"):format(duration) or duration)
end

--- next_retry([consumer]): when the next message is tried again, as RFC 3339
-- text; nil when none waits for that.
function Host:next_retry(consumer)
  local next_at
  for _, letter in ipairs(self:dead_letters { consumer = consumer, status = "FAILED" }) do
    local at = type(letter.next_retry_at) == "string" and letter.next_retry_at or self:now()
    if next_at == nil or at < next_at then next_at = at end
  end
  return next_at
end

--- advance_to_retry([consumer]): moves the host's clock to the next retry and
-- gives that time; the next run does it. Raises when no message waits for one.
function Host:advance_to_retry(consumer)
  local at = self:next_retry(consumer)
  if at == nil then
    error(("no message %swaits for another attempt"):format(consumer and ("of '%s' "):format(consumer) or ""), 2)
  end
  self.core:advance_to(at)
  return at
end

--- now(): the host's time as RFC 3339 text.
function Host:now()
  return self.core:now()
end

--- redeliver(): the next batch is committed, its answer is thrown away, the
-- host reconnects and goes on; then the newest batch is delivered once more.
-- Nothing may change by it.
function Host:redeliver()
  self.core:redeliver()
end

--- restart(): stops and starts the host; a halted consumer tries again.
function Host:restart()
  self.core:restart()
end

--- reload([{ accept }]): takes the scripts as they lie in the folder now, as a
-- running host does when they are saved. Gives { changed, version, changes };
-- raises, and goes on with the ones before, when they are not good or would
-- halt a consumer (`accept`: it goes on with the read models that it has).
function Host:reload(options)
  local changed, version, changes = self.core:reload(check_words(options or {}, { "accept" }, "reload").accept)
  return { changed = changed, version = version, changes = changes }
end

--- fail(consumer, type[, times]): makes the handler fail the next `times`
-- times (once unless said otherwise): each attempt of a message counts.
function Host:fail(consumer, event_type, times)
  self.core:fail(consumer, event_type, times or 1)
end

local function answer(text)
  return copy(moontide.json.decode(text))
end

local FILTER = { "consumer", "type", "key", "error", "status", "older_than", "newer_than", "id", "position", "all" }

-- A filter of dead letters as the core takes it: ages as text.
local function filter_of(filter)
  if type(filter) ~= "table" then error("dead letters are named by a table, such as { consumer = NAME }", 3) end
  check_words(filter, FILTER, "dead letters")
  local flat = copy(filter)
  for _, name in ipairs { "older_than", "newer_than" } do
    if type(flat[name]) == "number" then flat[name] = ("%.6fs"):format(flat[name]) end
  end
  return flat
end

--- command(aggregate, id, name[, args[, { id, metadata }]]): lets an aggregate
-- decide; gives { outcome = "accepted", events, version, ... } or { outcome =
-- "rejected", reason, details, ... }. options.id: the command's own id.
function Host:command(aggregate, id, command, args, options)
  options = check_words(options or {}, { "id", "metadata" }, "command")
  local outcome = answer(at_spec(self.core.command, self.core, {
    aggregate = aggregate, id = id, command = command, command_id = options.id,
    args = encode(args == nil and moontide.object() or args, "args"),
    metadata = options.metadata and encode(options.metadata, "metadata") or nil,
  }))
  for _, name in ipairs { "details", "version", "snapshot" } do
    if outcome[name] == moontide.null then outcome[name] = nil end
  end
  return outcome
end

--- pause(consumer): it applies nothing until it is resumed. This verb and the
-- ones below give what `moontide VERB --json` prints, as a table.
function Host:pause(consumer)
  return answer(self.core:pause(consumer))
end

--- resume(consumer[, { past, every_key, accept }])
function Host:resume(consumer, options)
  return answer(self.core:resume(consumer, check_words(options or {}, { "past", "every_key", "accept" }, "resume")))
end

--- rebuild(consumer[, { key, cancel, restart }]): resets its progress, or makes one read
-- model anew; the next run replays.
function Host:rebuild(consumer, options)
  return answer(self.core:rebuild(consumer, check_words(options or {}, { "key", "cancel", "restart" }, "rebuild")))
end

--- unsubscribe(consumer[, { source, force }])
function Host:unsubscribe(consumer, options)
  return answer(self.core:unsubscribe(consumer, check_words(options or {}, { "source", "force" }, "unsubscribe")))
end

--- dead_letters([filter]): the messages that could not be applied, each with
-- its message. A filter has consumer, type, key, error, status, older_than,
-- newer_than, id, position; all that is there must hold. Without status, id
-- and position only messages that failed themselves are given.
function Host:dead_letters(filter)
  return answer(self.core:dead_letters(filter_of(filter or {}))).messages
end

--- retry(filter): gives dead letters a fresh budget; the next run tries them.
-- { all = true } for all of them.
function Host:retry(filter)
  return answer(self.core:retry(filter_of(filter)))
end

--- delete(filter): skips dead letters for good.
function Host:delete(filter)
  return answer(self.core:delete(filter_of(filter)))
end

function Host:close()
  self.core:close()
  if made[self.database] then
    made[self.database] = nil
    core.drop_scratch(self.database)
  end
end

--- stream(aggregate, id, events): the events with their stream, for project.
function testing.stream(aggregate, id, events)
  local list = {}
  for i, event in ipairs(events) do
    list[i] = copy_tagged(event)
    list[i].aggregate_type, list[i].aggregate_id = aggregate, id
  end
  return list
end

-- The folder of the application and of the scripts, from a declaration's file.
local function folders(file)
  local scripts, app = file:match "^(.*)/[^/]*$", "."
  if scripts == nil then return nil end
  local parent, last = scripts:match "^(.*)/([^/]+)$"
  if parent then app, scripts = parent, last end
  return app, scripts
end

local function keys_of(declaration, event)
  if declaration.key == nil then return { event.key } end
  local keys = { declaration.key(event) }
  for i, key in ipairs(keys) do keys[i] = type(key) == "number" and ("%d"):format(key) or key end
  return keys
end

-- What a handler or a key function sees of event number `i`.
local function event_of(declaration, flat, i)
  return {
    id = flat.id, type = flat.type, revision = flat.revision or 0, position = i, topic = declaration.source,
    key = flat.aggregate_id, aggregate_type = flat.aggregate_type, aggregate_id = flat.aggregate_id,
    sequence = i - 1, part = 1, occurred_at = flat.occurred_at, payload = moontide.json.decode(flat.payload),
    metadata = flat.metadata and moontide.json.decode(flat.metadata),
  }
end

-- A declaration made inside the spec has no file of its own to load afresh:
-- its handlers run here, each event and state a copy.
local function fold_here(declaration, events)
  local states = {}
  for i, flat in ipairs(events) do
    local handler = declaration.handlers[flat.type]
    local event = event_of(declaration, flat, i)
    math.randomseed(i) -- the host seeds it by the message, too
    for _, key in ipairs(handler and keys_of(declaration, event) or {}) do
      event.payload = moontide.json.decode(flat.payload)
      event.metadata = flat.metadata and moontide.json.decode(flat.metadata)
      local state = states[key] or (declaration.initial and declaration.initial(key)) or {}
      local result = handler(state, event, { key = key, attempt = 1, replaying = false })
      if result == moontide.delete then
        states[key] = nil
      else
        states[key] = moontide.json.decode(encode(result == nil and state or result, "state of " .. key))
      end
    end
  end
  return states
end

local function project_here(declaration, events)
  local first, second = fold_here(declaration, events), fold_here(declaration, events)
  local a, b = encode(moontide.object(first), "states"), encode(moontide.object(second), "states")
  if a ~= b then
    error(("projection '%s' gives another result when it runs again: %s and %s"):format(declaration.name, a, b), 3)
  end
  return first
end

--- project(declaration, events): folds a projection without a database and
-- gives the states by key. It runs the declaration's file in fresh sandboxed
-- states, more than once, and raises when the results differ. An event without
-- id or occurred_at gets the same ones each time.
function testing.project(declaration, events)
  local app, scripts
  if type(declaration) == "table" and type(declaration.file) == "string" then
    app, scripts = folders(declaration.file)
  end
  if app == nil or type(declaration.handlers) ~= "table" then
    error("project takes a declaration of moontide.projection", 2)
  end
  local list = {}
  for i, event in ipairs(events) do
    local flat = flatten(event, event.aggregate_type or "", event.aggregate_id or event.key or "")
    flat.id = flat.id or EVENT_ID:format(i)
    flat.occurred_at = flat.occurred_at or EVENT_TIME
    list[i] = flat
  end
  if declaration.file:match "_spec%.lua$" then return project_here(declaration, list) end
  local first = core.fold(app, scripts, declaration.name, list)
  local second = core.fold(app, scripts, declaration.name, list)
  if first ~= second then
    error(("projection '%s' gives another result each time: %s and %s"):format(declaration.name, first, second), 2)
  end
  local states = {}
  for _, model in ipairs(moontide.json.decode(first)) do
    states[model.key] = model.state
  end
  return states
end

--- prove(declaration, events[, { seed, shuffles, read, ... }]): shows that a
-- projection gives the same read models after a rebuild, and when the events of
-- different keys interleave in another way and batches are delivered again.
-- Raises with the first key and member that differ, and the seed of the order;
-- gives the states by key. `read(host)` gives what is compared: an SQL
-- projection needs it. Other options are configuration keys of the hosts.
testing.prove = require "moontide.prove" {
  copy = copy, database = testing.database, event_of = event_of, flatten = flatten, fold_here = fold_here,
  folders = folders, host = testing.host, keys_of = keys_of,
}

--- given(aggregate, events[, id]): the start of a check without a database:
--   given(account, events):when("withdraw", { amount = 5 }):rejects("insufficient funds")
-- An outcome has rejects, accepts, emits, emits_nothing, leaves and another
-- when, and the fields outcome, reason, details, events and state.
testing.given = require "moontide.given" {
  core = core, decode = moontide.json.decode, encode = moontide.json.encode, event_of = event_of, flatten = flatten,
  folders = folders, object = moontide.object,
  plain = function(value)
    if value == nil then return nil end
    return moontide.json.decode(moontide.json.encode(value))
  end,
}

--- saga(declaration[, options]): one saga in a host of its own, driven step by
-- step: start, reply, duplicate, late, advance, and what it did: published,
-- emitted, state, deadlines, history, ended. Options: id, which is filled in
-- where the start event has none; host, one that is open; all others are
-- configuration keys.
testing.saga = require "moontide.testing_saga" {
  check_words = check_words, decode = moontide.json.decode, event_of = event_of, flatten = flatten, folders = folders,
  host = testing.host, keys_of = keys_of,
}

--- walk_failures(saga, { start = event }): takes an orchestrated saga through
-- every single point of failure, and raises at the first scenario that does not
-- end as it should. Each is a saga of its own, in one database when moontide.by
-- can fill in its id, else in databases of their own. Gives the names of the
-- scenarios. Options: replies (payloads of answers, by type: a table or a
-- function of the message), receivers (by publisher: a function of a message and
-- how often it has come, that gives the answer and whether it has done
-- something), check (a function of the saga and its outcome), only (a part of
-- the scenarios' names); all others are configuration keys.
testing.walk_failures = require "moontide.walk_failures" { saga = testing.saga }

require "moontide.assertions" () -- for assert.dead_lettered and its like

return testing
