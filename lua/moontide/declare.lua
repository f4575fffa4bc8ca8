--- Declarations: what projection, sql_projection, listener and saga make of the tables that
-- scripts give them, checked. A declaration is a table with the fields
--   kind name file line source revision on_change passes_gaps single_owner aggregates (list or nil)
--   types (sorted) handlers (type -> function) key initial reset (functions or
--   nil) key_field (of moontide.by) fields (list, sorted by name) table tables
--   retry (times in microseconds, or nil) on_error (word, function or nil)
--   starts_now (listener, saga) topic every_change (projection) and those of a saga
--   (declare_saga.lua)
--   returned_by (file)
-- It knows where it was made; the loader asks `collect` and `finish` which
-- ones a file returned.
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)
local saga = require "moontide.declare_saga"
local take = require "moontide.declare_take"
local types = require "moontide.types"

local fail, describe, contains, is_text = take.fail, take.describe, take.contains, take.is_text
local sorted_keys, is_identifier = take.sorted_keys, take.is_identifier
local NAME_MAX, IDENTIFIER_MAX = take.NAME_MAX, take.IDENTIFIER_MAX

local declare = {}
local Declaration = {
  __metatable = "moontide.declaration",
  __tostring = function(d)
    return ('%s "%s" (%s:%d)'):format(d.kind, d.name, d.file, d.line)
  end,
}

local made = {} -- in the order of making
local key_fields = setmetatable({}, { __mode = "k" }) -- key function of moontide.by -> field
local declared = setmetatable({}, { __mode = "k" }) -- declaration -> true

--- The caller's file and line, as `level` counts from the function that asks.
local function place(level)
  local file, line = native.where(level + 1)
  return file or "?", line or 0
end

--- Where the first function of a declaration's table stands. A call in `return
-- moontide.projection { ... }` has no line of its own to show: it is gone by then.
local function place_of_table(spec)
  local file, first
  local function look(value)
    if type(value) ~= "function" then return end
    local where, line = native.where(value)
    if where and (file == nil or where == file and line < first) then
      file, first = where, line
    end
  end
  for _, value in pairs(spec) do
    look(value)
    if type(value) == "table" then
      for _, inner in pairs(value) do
        look(inner)
      end
    end
  end
  return file, first
end

-- What each kind of consumer takes; the keys of later versions are refused.
local COMMON = { "source", "aggregates", "key", "on", "on_missing_history", "retry", "on_error", "distribution" }
local KEYS = {
  projection = { "revision", "on_change", "fields", "initial", "table", "topic", "changes" },
  sql_projection = { "revision", "on_change", "tables", "reset" },
  listener = { "start" },
  saga = saga.KEYS,
}
local LATER = { "delivery", "ordered", "renamed_from" }

local function check_keys(d, spec)
  local words = {}
  for _, list in ipairs { COMMON, KEYS[d.kind] } do
    for _, word in ipairs(list) do
      -- who gives a saga a key is told of its id
      if word ~= "key" or d.kind ~= "saga" or spec.key ~= nil then
        words[#words + 1] = word
      end
    end
  end
  for _, key in ipairs(LATER) do
    if spec[key] ~= nil then
      fail(d, "%s is not available in this version", key)
    end
  end
  take.only(d, spec, words)
end

local take_duration = take.duration

local RETRY = {
  attempts = function(d, key, value) return take.range(d, key, value, 1, 1000000, true) end,
  delay = take_duration,
  factor = function(d, key, value) return take.range(d, key, value, 1, 1000) end,
  max_delay = take_duration,
  jitter = function(d, key, value) return take.range(d, key, value, 0, 1) end,
}

--- What is left out is the configuration's.
local function take_retry(d, retry)
  if retry == nil then
    return nil
  elseif type(retry) ~= "table" then
    fail(d, "retry is %s; it must be a table like { attempts = 5, delay = \"1s\" }", describe(retry))
  end
  local copy = {}
  take.only(d, retry, sorted_keys(RETRY), "retry: ")
  for key, value in pairs(retry) do
    copy[key] = RETRY[key](d, "retry." .. key, value)
  end
  return copy
end

local ON_ERROR = { "halt", "dead_letter_key", "dead_letter", "skip" }

local function take_on_error(d, on_error)
  if on_error == nil or type(on_error) == "function" then
    return on_error
  end
  for _, word in ipairs(ON_ERROR) do
    if on_error == word then return on_error end
  end
  local near = type(on_error) == "string" and native.nearest(on_error, ON_ERROR)
  fail(d, "on_error is %s%s; it must be a function or one of %s", describe(on_error),
    near and (' (did you mean "%s"?)'):format(near) or "", table.concat(ON_ERROR, ", "))
end

local function take_handlers(d, on, steps)
  if on == nil and steps ~= nil then
    return {}, {}
  elseif on == nil then
    fail(d, "no handlers: on = { [\"some.Type\"] = function ... } is missing")
  elseif type(on) == "table" and next(on) == nil then
    fail(d, "no handlers: on is empty")
  end
  return take.by_type(d, "on", on, "a handler")
end

local SOURCES = { "event-store", "event-capture" }
local READ_MODEL = "read-model:"
local READ_MODEL_TYPES = { "read-model.Changed", "read-model.Deleted" }

local function check_source(d, source)
  if source == nil then
    return "event-store"
  elseif contains(SOURCES, source) then
    return source
  elseif type(source) == "string" and source:sub(1, #READ_MODEL) == READ_MODEL then
    return source -- what it names is looked at when all declarations are there
  elseif type(source) == "table" then
    fail(d, "source is a list, and lists are not available in this version; name one topic")
  end
  local near = type(source) == "string" and native.nearest(source, SOURCES)
  fail(d, 'source is %s%s; it must be a topic: "event-store" (the default), "event-capture" or "%s" and a '
    .. "projection's name", describe(source), near and (' (did you mean "%s"?)'):format(near) or "", READ_MODEL)
end

--- The projection whose read models a declaration reads, by its name.
local function projection_of(d)
  return d.source and d.source:sub(1, #READ_MODEL) == READ_MODEL and d.source:sub(#READ_MODEL + 1) or nil
end

local function check_read_model_types(d)
  if not projection_of(d) then return end
  for _, word in ipairs(d.types) do
    if not contains(READ_MODEL_TYPES, word) then
      local near = native.nearest(word, READ_MODEL_TYPES)
      fail(d, 'on: the topic "%s" has no messages of type %s%s; they are "%s" and "%s"', d.source, describe(word),
        near and (' (did you mean "%s"?)'):format(near) or "", READ_MODEL_TYPES[1], READ_MODEL_TYPES[2])
    end
  end
end

local function check_topic(d, topic)
  if topic ~= nil and type(topic) ~= "boolean" then
    fail(d, "topic is %s; it is true (its read models go to a topic though nothing declared reads it) or left out",
      describe(topic))
  end
  return topic == true
end

local function check_changes(d, word)
  if word ~= nil and word ~= "last" and word ~= "every" then
    fail(d, 'changes is %s; it is "every" (the topic gets the state after each event) or "last" (of a batch)',
      describe(word))
  end
  return word == "every"
end

--- What a consumer reads of others: a projection with read models, and in no circle.
local function check_read_model_source(d, consumers)
  local by_name, names = {}, {}
  for _, other in ipairs(consumers) do
    by_name[other.name] = other
    if other.kind == "projection" then
      names[#names + 1] = other.name
    end
  end
  local wanted = projection_of(d)
  if not wanted then return end
  local found = by_name[wanted]
  if found and found.kind ~= "projection" then
    fail(d, 'source is "%s", and the %s "%s" (%s:%d) keeps no read models', d.source, found.kind, found.name,
      found.file, found.line)
  elseif not found then
    local near = native.nearest(wanted, names)
    fail(d, 'source is "%s", and no projection is called "%s"%s', d.source, wanted,
      near and ('; did you mean "%s%s"?'):format(READ_MODEL, near) or "")
  end
  local chain, seen, at = { d.name }, {}, found
  while at and not seen[at] do
    seen[at] = true
    chain[#chain + 1] = at.name
    if at == d then
      fail(d, "reads its own read models%s: a change would never come to an end",
        #chain > 2 and ", by way of others: " .. table.concat(chain, " reads ") or "")
    end
    local next_name = projection_of(at)
    at = next_name and by_name[next_name]
  end
end

--- Captured events belong to no aggregate.
local function take_aggregates(d, aggregates)
  if aggregates ~= nil and d.source ~= "event-store" then
    fail(d, 'aggregates: the topic "%s" has none; leave it out', d.source)
  end
  return take.list(d, "aggregates", aggregates)
end

local function check_missing_history(d, word)
  if word ~= nil and word ~= "halt" and word ~= "continue" then
    fail(d, 'on_missing_history is %s; it is "continue" (behind the gap, marked as incomplete) or "halt"',
      describe(word))
  end
  return word == "continue"
end

local function check_distribution(d, word)
  if word ~= nil and word ~= "partitions" and word ~= "single-owner" then
    fail(d, 'distribution is %s; it is "single-owner" (one host applies all of it) or "partitions"',
      describe(word))
  end
  return word == "single-owner"
end

local function check_on_change(d, on_change)
  if on_change ~= nil and on_change ~= "rebuild" then
    fail(d, 'on_change is %s; it is "rebuild" or left out: then a changed declaration halts the projection',
      describe(on_change))
  end
  return on_change
end

local function check_start(d, start)
  if start == nil then
    fail(d, 'start is missing: "now" (only what comes from now on) or "beginning" (all that the topic holds)')
  elseif start ~= "now" and start ~= "beginning" then
    fail(d, 'start is %s; it is "now" or "beginning"', describe(start))
  end
  return start == "now"
end

local RESERVED = {
  read_model_id = "every query table has a column of that name already",
  message_id = "every query table has a column of that name already",
  state = "every query table has a column of that name already",
  key = "key is what `moontide read` calls the read model's own key; take another name",
}

local function take_fields(d, fields)
  if fields == nil then
    return {}
  elseif type(fields) ~= "table" then
    fail(d, "fields is %s; it must be a table of names and types", describe(fields))
  end
  local list, seen = {}, {}
  for _, field in ipairs(sorted_keys(fields)) do
    local t = fields[field]
    if not is_identifier(field) then
      fail(d, "fields: %s is no column name (letters, digits and _, not first a digit, at most %d)",
        type(field) == "string" and describe(field) or "[" .. tostring(field) .. "]", IDENTIFIER_MAX)
    elseif RESERVED[field:lower()] then
      fail(d, "fields.%s: %s", field, RESERVED[field:lower()])
    elseif seen[field:lower()] then
      fail(d, "fields.%s and fields.%s are one column to a database", seen[field:lower()], field)
    elseif not types.is(t) then
      fail(d, "fields.%s is %s, not a type of moontide.types%s", field, describe(t),
        type(t) == "function" and "; call the type, as in t.text()" or "")
    elseif not t.column then
      fail(d, "fields.%s: a %s cannot be a column; keep it in the state without declaring it", field, t.type)
    end
    seen[field:lower()] = field
    list[#list + 1] = take.field(field, t)
  end
  return list
end

--- A path, or one per dialect.
local function take_tables(d, tables)
  if tables == nil or type(tables) == "string" and tables ~= "" then
    return tables
  elseif type(tables) ~= "table" or next(tables) == nil then
    fail(d, "tables is %s; it must be the path of an SQL file, or one per dialect",
      type(tables) == "table" and "empty" or describe(tables))
  end
  local copy = {}
  for _, dialect in ipairs(sorted_keys(tables)) do
    declare.check_dialect(dialect, function(...)
      fail(d, "tables: " .. select(1, ...), select(2, ...))
    end)
    if type(tables[dialect]) ~= "string" or tables[dialect] == "" then
      fail(d, "tables.%s is %s; it must be the path of an SQL file", dialect, describe(tables[dialect]))
    end
    copy[dialect] = tables[dialect]
  end
  return copy
end

local DIALECTS = { "sqlite", "postgres", "mysql" }

function declare.check_dialect(dialect, raise)
  if not contains(DIALECTS, dialect) then
    local near = type(dialect) == "string" and native.nearest(dialect, DIALECTS)
    raise("%s is no dialect%s", tostring(dialect), near and ('; did you mean "%s"?'):format(near)
      or "; known are " .. table.concat(DIALECTS, ", "))
  end
end

local function check_name(kind, given, file, line)
  local control = type(given) == "string" and given:match "%c"
  if control then
    error(('%s:%d: moontide.%s "%s": the name has a control character, byte %d'):format(
      file, line, kind, (given:sub(1, NAME_MAX):gsub("%c", "?")), control:byte()), 0)
  elseif not is_text(given, NAME_MAX) then
    if line == 0 and type(given) == "table" then
      local found, first = place_of_table(given)
      file, line = found or file, first or line
    end
    local where = line > 0 and ("%s:%d: "):format(file, line) or ""
    local example = ('moontide.%s "orders" { ... }'):format(kind)
    error(("%smoontide.%s takes a name of 1 to %d characters before its table, as in %s"):format(
      where, kind, NAME_MAX, example), 0)
  end
end

local function build_consumer(d, spec)
  check_keys(d, spec)
  d.source = check_source(d, spec.source)
  d.aggregates = take_aggregates(d, spec.aggregates)
  d.revision = spec.revision == nil and 1 or take.range(d, "revision", spec.revision, 1, take.NUMBER_MAX, true)
  d.on_change = check_on_change(d, spec.on_change)
  d.passes_gaps = check_missing_history(d, spec.on_missing_history)
  d.single_owner = check_distribution(d, spec.distribution)
  if d.kind == "saga" then
    d.key = saga.key(d, spec)
  else
    d.key = take.a_function(d, spec, "key")
  end
  d.key_field = key_fields[d.key]
  d.handlers, d.types = take_handlers(d, spec.on, d.kind == "saga" and spec.steps or nil)
  check_read_model_types(d)
  d.retry = take_retry(d, spec.retry)
  d.on_error = take_on_error(d, spec.on_error)
  if d.kind == "projection" then
    d.initial = take.a_function(d, spec, "initial")
    d.fields = take_fields(d, spec.fields)
    if spec.table ~= nil and not is_identifier(spec.table) then
      fail(d, "table is %s; it must be a table's name (letters, digits and _, not first a digit, at most %d)",
        describe(spec.table), IDENTIFIER_MAX)
    end
    d.table = spec.table
    d.topic = check_topic(d, spec.topic)
    d.every_change = check_changes(d, spec.changes)
  elseif d.kind == "listener" then
    d.fields = {}
    d.starts_now = check_start(d, spec.start)
  elseif d.kind == "saga" then
    d.starts_now = spec.start ~= nil and check_start(d, spec.start)
    saga.build(d, spec)
  else
    d.fields = {}
    d.reset = take.a_function(d, spec, "reset")
    if d.on_change and not d.reset then
      fail(d, 'on_change = "rebuild" needs reset = function(ctx) ... end, which empties the tables')
    end
    d.tables = take_tables(d, spec.tables)
  end
end

-- What builds each kind, and what shares its names.
local KINDS = {
  projection = { build = build_consumer, names = "projection" },
  sql_projection = { build = build_consumer, names = "projection" },
  listener = { build = build_consumer, names = "projection" },
  saga = { build = build_consumer, names = "projection" },
  event_type = { build = require "moontide.declare_event_type", names = "event type" },
  aggregate = { build = require "moontide.declare_aggregate", names = "aggregate" },
  publisher = { build = require "moontide.declare_publisher", names = "publisher" },
}

local function build(d, spec)
  if type(spec) ~= "table" then
    fail(d, "takes a table, not %s", describe(spec))
  end
  KINDS[d.kind].build(d, spec)
end

--- declare.kind(kind) -> function(name) -> function(spec) -> declaration
function declare.kind(kind)
  return function(given)
    local file, line = place(2)
    check_name(kind, given, file, line)
    local d = { kind = kind, name = given, file = file, line = line }
    made[#made + 1] = d -- a name without a table is a declaration, too
    return function(spec)
      if declared[d] then
        fail(d, "is declared already")
      end
      build(d, spec)
      declared[d] = true
      return setmetatable(d, Declaration)
    end
  end
end

--- What a later version brings: naming it is an error of the script.
function declare.later(kind)
  return function()
    local file, line = place(2)
    error(("%s:%d: moontide.%s is not available in this version"):format(file, line, kind), 0)
  end
end

--- key_of(field, key): notes which field of the payload the key function takes.
function declare.key_of(field, key)
  key_fields[key] = field
  return key
end

--- is(value): whether it is a declaration.
function declare.is(value)
  return declared[value] == true
end

local returned = {} -- declaration -> true
local ordered = {} -- in the order of files and of their lists

local checked = 0 -- how many of `made` belong to files that were collected

--- A declaration that the file made and did not return, if there is one.
local function left_out()
  for index = checked + 1, #made do
    if not returned[made[index]] then
      return made[index]
    end
  end
end

--- Raises for a file that gives no declaration: it left one out, or it is a
-- module that lies in the wrong folder.
local function fail_file(file, message)
  local d = left_out()
  if d and not declared[d] then
    -- the call in `return moontide.saga "x"` is gone by then, and its line with it
    local known = d.line > 0
    error(('%s:%d: moontide.%s "%s" has no table after its name'):format(known and d.file or file,
      known and d.line or 1, d.kind, d.name), 0)
  elseif d then
    fail(d, "is made here but not returned from the file; add it to what the file returns")
  end
  local folder, base = file:match "^(.*/)([^/]*)$"
  error(("%s:1: %s; a module for require belongs into a folder below, such as %slib/%s"):format(
    file, message, folder or "", base or file), 0)
end

local function take_returned(file, value, path, depth)
  if declared[value] then
    if not returned[value] then
      returned[value] = true
      value.returned_by = file
      ordered[#ordered + 1] = value
    end
    return
  end
  local tag = type(value) == "table" and getmetatable(value)
  if type(value) ~= "table" or (tag and tag ~= "moontide.array") or depth > 16 then
    if type(value) ~= "table" then
      fail_file(file, ("%s is %s, not a declaration"):format(path, describe(value)))
    end
    error(("%s:1: %s is %s, not a declaration"):format(file, path, describe(value)), 0)
  end
  local count = 0
  for _ in pairs(value) do
    count = count + 1
  end
  for index = 1, count do
    if value[index] == nil then
      fail_file(file, path .. " must be a plain list of declarations")
    end
    take_returned(file, value[index], ("%s[%d]"):format(path, index), depth + 1)
  end
end

--- collect(file, ...): takes what the file's chunk returned.
function declare.collect(file, ...)
  local count = select("#", ...)
  if count == 0 or (count == 1 and (...) == nil) then
    fail_file(file, "returns nothing, and a file of the scripts folder returns its declaration or a list of them")
  elseif count > 1 then
    error(file .. ":1: returns several values; put the declarations into one list", 0)
  end
  local before = #ordered
  take_returned(file, (...), "what it returns", 0)
  if #ordered == before and not declared[(...)] then
    fail_file(file, "returns no declaration")
  end
  checked = #made
end

local function by_name(a, b)
  return a.name < b.name
end

-- Those that a declaration names, as its list `publishes` of { to, what } says.
local function check_publishers(publishers)
  local names, known = {}, {}
  for _, p in ipairs(publishers) do
    names[#names + 1], known[p.name] = p.name, true
  end
  for _, d in ipairs(ordered) do
    for _, use in ipairs(d.publishes or {}) do
      if not known[use.to] then
        local near = native.nearest(use.to, names)
        fail(d, '%s: no publisher is called "%s"%s', use.what, use.to, near and ('; did you mean "%s"?'):format(near)
          or ('; add moontide.publisher "%s" { to = "..." } to what a file returns'):format(use.to))
      end
    end
  end
end

--- finish() -> the consumers in order, the aggregates, the event types and the
-- publishers, both sorted by name; raises for one that was left out, for two of
-- one name, and for a publisher that is named and not declared.
function declare.finish()
  local names = {}
  for _, d in ipairs(made) do
    if not declared[d] then
      error(('%s:%d: moontide.%s "%s" has no table after its name'):format(d.file, d.line, d.kind, d.name), 0)
    elseif not returned[d] then
      fail(d, "is made here but not returned from the file; add it to what the file returns")
    end
    local group = KINDS[d.kind].names
    local key = group .. "\0" .. d.name
    local other = names[key]
    if other then
      fail(d, "is declared at %s:%d already; every %s has a name of its own", other.file, other.line,
        (other.kind == "listener" or other.kind == "saga") and "consumer" or group)
    end
    names[key] = d
  end
  local consumers, aggregates, event_types, publishers = {}, {}, {}, {}
  local lists = { aggregate = aggregates, event_type = event_types, publisher = publishers }
  for _, d in ipairs(ordered) do
    local list = lists[d.kind] or consumers
    list[#list + 1] = d
  end
  for _, d in ipairs(consumers) do
    check_read_model_source(d, consumers)
  end
  table.sort(event_types, by_name)
  table.sort(publishers, by_name)
  check_publishers(publishers)
  return consumers, aggregates, event_types, publishers
end

return declare
