--- What all kinds of declarations are checked with. `d` is the declaration that
-- is made: kind, name, file and line name it in errors.
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)

local MICROSECONDS = 1000000
local DURATION_MAX = 365 * 86400 * MICROSECONDS

local take = { NAME_MAX = 255, TYPE_MAX = 255, IDENTIFIER_MAX = 63, NUMBER_MAX = 2147483647 }

--- Raises at the declaration, which is where the fault can be seen.
function take.fail(d, message, ...)
  error(("%s:%d: %s \"%s\": %s"):format(d.file, d.line, d.kind, d.name, message:format(...)), 0)
end
local fail = take.fail

function take.describe(value)
  return type(value) == "string" and ('"%s"'):format(value) or "a " .. type(value)
end
local describe = take.describe

--- The same with the digits of a number.
function take.show(value)
  return type(value) == "number" and tostring(value) or describe(value)
end

function take.is_text(value, max)
  local characters = type(value) == "string" and native.characters(value)
  return characters and characters >= 1 and characters <= max and not value:find("%z")
end
local is_text = take.is_text

function take.sorted_keys(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return keys
end
local sorted_keys = take.sorted_keys

function take.contains(list, word)
  for _, candidate in ipairs(list) do
    if candidate == word then
      return true
    end
  end
  return false
end
local contains = take.contains

--- "; did you mean ...?", or the words there are.
function take.hint(key, known)
  local near = type(key) == "string" and native.nearest(key, known)
  return near and ('; did you mean "%s"?'):format(near) or "; known are " .. table.concat(known, ", ")
end

--- Refuses every key that is not known, so that nothing a script says is
-- silently ignored. `where` stands before the message ("retry: ").
function take.only(d, spec, known, where)
  for _, key in ipairs(sorted_keys(spec)) do
    if not contains(known, key) then
      fail(d, "%sunknown key %s%s", where or "", type(key) == "string" and key or ("[%s]"):format(tostring(key)),
        take.hint(key, known))
    end
  end
end

function take.a_function(d, spec, key)
  local value = spec[key]
  if value ~= nil and type(value) ~= "function" then
    fail(d, "%s is %s; it must be a function", key, describe(value))
  end
  return value
end

function take.range(d, key, value, least, most, whole)
  if type(value) ~= "number" or not (value >= least and value <= most) or whole and value % 1 ~= 0 then
    fail(d, "%s is %s; it must be a %snumber from %d to %d", key, take.show(value), whole and "whole " or "", least,
      most)
  end
  return value
end

--- A duration in microseconds.
function take.duration(d, key, value)
  local amount = value
  if type(value) == "string" then
    amount = native.duration(value)
  elseif type(value) == "number" then
    amount = math.floor(value * MICROSECONDS + 0.5)
  end
  if type(amount) ~= "number" or not (amount >= 0 and amount <= DURATION_MAX) then
    fail(d, '%s is %s; it must be a duration: seconds, or text like "250ms", up to 365 days', key,
      type(value) == "number" and tostring(value) or describe(value))
  end
  return amount
end

--- A list of distinct texts without holes, copied.
function take.list(d, key, value)
  if value == nil then
    return nil
  elseif type(value) ~= "table" then
    fail(d, "%s is %s; it must be a list of strings", key, describe(value))
  elseif next(value) == nil then
    fail(d, "%s is empty; leave it out to take all", key)
  end
  local copy, seen, count = {}, {}, 0
  for _ in pairs(value) do
    count = count + 1
  end
  for index, item in ipairs(value) do
    if not is_text(item, take.NAME_MAX) then
      fail(d, "%s[%d] is %s; it must be UTF-8 text of 1 to %d characters", key, index, describe(item), take.NAME_MAX)
    elseif seen[item] then
      fail(d, '%s has "%s" twice', key, item)
    end
    seen[item] = true
    copy[index] = item
  end
  if count ~= #copy then
    fail(d, "%s must be a plain list of strings", key)
  end
  return copy
end

--- A field as C reads it: what a list, a set or a record is made of is in
-- `inner`, sorted by name.
function take.field(field, t)
  local inner
  if t.of then
    inner = { take.field("", t.of) }
  elseif t.fields then
    inner = {}
    for _, key in ipairs(sorted_keys(t.fields)) do
      inner[#inner + 1] = take.field(key, t.fields[key])
    end
  end
  return {
    name = field, type = t.type, unique = t.unique, optional = t.optional,
    precision = t.precision, scale = t.scale, values = t.values, inner = inner,
  }
end

function take.is_identifier(value)
  return type(value) == "string" and #value <= take.IDENTIFIER_MAX and value:find("^[A-Za-z_][A-Za-z0-9_]*$") ~= nil
end

--- A table of event types and functions, copied, and its sorted types. `word`
-- is what a function of it is called.
function take.by_type(d, key, on, word)
  if type(on) ~= "table" then
    fail(d, "%s is %s; it must be a table of event types and functions", key, describe(on))
  end
  local handlers, types = {}, sorted_keys(on)
  for _, event_type in ipairs(types) do
    if not is_text(event_type, take.TYPE_MAX) then
      fail(d, "%s[%s]: an event type is UTF-8 text of 1 to %d characters", key, tostring(event_type), take.TYPE_MAX)
    end
    if type(on[event_type]) ~= "function" then
      fail(d, '%s["%s"] is %s; %s is a function', key, event_type, describe(on[event_type]), word)
    end
    handlers[event_type] = on[event_type]
  end
  return handlers, types
end

return take
