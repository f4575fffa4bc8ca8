--- Event types: what moontide.event_type makes of its table, checked.
--
--   moontide.event_type "account.Opened" { revision = 2, upcast = { [1] = function(payload) ... end } }
--
-- A declaration of kind event_type has the fields revision, oldest (the lowest
-- stored revision that can be read), steps (functions; the first one leads from
-- oldest to the next), into (sorted types of parts) and fields (of the payload,
-- or nil; see `fields_of`).
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)
local take = require "moontide.declare_take"
local types = require "moontide.types"

local fail, describe, show = take.fail, take.describe, take.show

local RESERVED = "read-model." -- of the messages that topics of read models have

local KEYS = { "revision", "upcast", "into", "fields" }
local LATER = { "store", "recorded" }
local STEP_KEYS = { "rename", "default", "remove" }

--- The fields of a payload as lists sorted by name, nested ones included.
local function fields_of(d, fields, path)
  local list = {}
  for _, field in ipairs(take.sorted_keys(fields)) do
    local t = fields[field]
    local here = path .. "." .. tostring(field)
    if type(field) ~= "string" then
      fail(d, "%s: a field's name is a string", here)
    elseif not types.is(t) then
      fail(d, "%s is %s, not a type of moontide.types%s", here, describe(t),
        type(t) == "function" and "; call the type, as in t.text()" or "")
    elseif t.unique then
      fail(d, "%s: only a column can be unique", here)
    end
    list[#list + 1] = take.field(field, t)
  end
  return list
end

local function check_step(d, key, step)
  take.only(d, step, STEP_KEYS, key .. ": ")
  if next(step) == nil then
    fail(d, "%s is empty; it takes rename, default and remove, or is a function", key)
  end
  for _, word in ipairs { "rename", "default" } do
    if step[word] ~= nil and type(step[word]) ~= "table" then
      fail(d, "%s.%s is %s; it must be a table by field", key, word, describe(step[word]))
    end
  end
  for from, to in pairs(step.rename or {}) do
    if type(from) ~= "string" or type(to) ~= "string" then
      fail(d, '%s.rename takes names, as in { old_name = "new_name" }', key)
    end
  end
  local given = {}
  for _, from in ipairs(take.sorted_keys(step.rename or {})) do
    local to = step.rename[from]
    if given[to] then
      fail(d, '%s.rename calls both "%s" and "%s" "%s", and one of them would be lost', key, given[to], from, to)
    end
    given[to] = from
  end
  for field, value in pairs(step.default or {}) do
    if type(field) ~= "string" then
      fail(d, "%s.default takes values by field's name", key)
    end
    local good, problem = pcall(native.json_encode, value)
    if not good then
      fail(d, "%s.default.%s is no JSON: %s", key, field, problem)
    end
  end
  return take.list(d, key .. ".remove", step.remove) or {}
end

--- The function of a declarative step: renames, then defaults, then removes.
local function step_function(d, key, step)
  local removed = check_step(d, key, step)
  local renamed, values, tables = {}, {}, {}
  for _, from in ipairs(take.sorted_keys(step.rename or {})) do
    renamed[#renamed + 1] = { from, step.rename[from] }
  end
  for _, field in ipairs(take.sorted_keys(step.default or {})) do
    local value = step.default[field]
    if type(value) == "table" then -- each payload has its own
      tables[#tables + 1] = { field, native.json_encode(value) }
    else
      values[#values + 1] = { field, value }
    end
  end
  local taken = {}
  return function(payload)
    if type(payload) ~= "table" then
      error(("%s:%d: event type \"%s\": %s needs a payload with fields"):format(d.file, d.line, d.name, key), 0)
    end
    for i = 1, #renamed do -- all at once: two names can be swapped
      local from = renamed[i][1]
      taken[i], payload[from] = payload[from], nil
    end
    for i = 1, #renamed do
      if taken[i] ~= nil then payload[renamed[i][2]] = taken[i] end
      taken[i] = nil
    end
    for i = 1, #values do
      local default = values[i]
      if payload[default[1]] == nil then payload[default[1]] = default[2] end
    end
    for i = 1, #tables do
      local default = tables[i]
      if payload[default[1]] == nil then payload[default[1]] = native.json_decode(default[2]) end
    end
    for i = 1, #removed do
      payload[removed[i]] = nil
    end
  end
end

--- Each revision below the newest, from the oldest on, has its step.
local function take_steps(d, upcast)
  if upcast == nil then
    upcast = {}
  elseif type(upcast) ~= "table" then
    fail(d, "upcast is %s; it must be a table of steps by the revision they start from", describe(upcast))
  end
  local oldest = d.revision
  for from in pairs(upcast) do
    if type(from) ~= "number" or from % 1 ~= 0 or from < 0 then
      fail(d, "upcast[%s]: a step is named by the revision it starts from, a whole number", tostring(from))
    elseif from >= d.revision then
      fail(d, "upcast[%d] starts from a revision that is not below revision = %d", from, d.revision)
    end
    oldest = math.min(oldest, from)
  end
  local steps = {}
  for from = oldest, d.revision - 1 do
    local step, key = upcast[from], ("upcast[%d]"):format(from)
    if step == nil then
      fail(d, "upcast has a gap: no step leads from revision %d to %d", from, from + 1)
    elseif type(step) == "table" then
      step = step_function(d, key, step)
    elseif type(step) ~= "function" then
      fail(d, "%s is %s; it must be a function or a table with rename, default and remove", key, describe(step))
    end
    steps[#steps + 1] = step
  end
  if #steps == 0 and d.revision > 1 then
    fail(d, "upcast has a gap: no step leads from revision %d to %d", d.revision - 1, d.revision)
  end
  d.oldest, d.steps = oldest, steps
end

--- build(d, spec): checks and fills the declaration.
return function(d, spec)
  if d.name:sub(1, #RESERVED) == RESERVED then
    fail(d, 'names that begin with "%s" are those of messages of read models', RESERVED)
  end
  for _, key in ipairs(LATER) do
    if spec[key] ~= nil and not (key == "store" and spec[key] == "log") then
      fail(d, "%s is not available in this version", key)
    end
  end
  local known = { "store" }
  for _, key in ipairs(KEYS) do
    known[#known + 1] = key
  end
  take.only(d, spec, known)
  d.revision = spec.revision == nil and 0 or take.range(d, "revision", spec.revision, 0, take.NUMBER_MAX, true)
  take_steps(d, spec.upcast)
  d.into = take.list(d, "into", spec.into) or {}
  table.sort(d.into)
  if #d.into > 0 and #d.steps == 0 then
    fail(d, "into names the types that a step of upcast splits an event into, and there is no step")
  end
  if spec.fields ~= nil then
    if type(spec.fields) ~= "table" or types.is(spec.fields) then
      fail(d, "fields is %s; it must be a table of names and types", show(spec.fields))
    end
    d.fields = fields_of(d, spec.fields, "fields")
  end
end
