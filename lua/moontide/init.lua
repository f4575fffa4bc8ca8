--- What `require "moontide"` gives, to scripts in the host and to specs under
-- a plain LuaJIT alike.
local name, native = ...
if type(native) ~= "table" then
  -- Another Lua would load the core all the same, and crash in it.
  if not jit then
    error("moontide needs LuaJIT: run `moontide test` or `busted --lua=luajit`", 0)
  end
  native = require "moontide.core"
end
assert(name)
local declare = require "moontide.declare"
local strict = require "moontide.strict"
local types = require "moontide.types"

local moontide = {
  types = types,
  date = require "moontide.date",
  json = { decode = native.json_decode, encode = native.json_encode },
  null = native.null,
  delete = native.delete,
  array = native.array,
  object = native.object,
  add = native.add,
  bytes = native.bytes,
  split = native.split,
  reject = native.reject,
}

for _, kind in ipairs {
  "projection", "sql_projection", "listener", "saga", "event_type", "aggregate", "publisher",
} do
  moontide[kind] = declare.kind(kind)
end
for _, kind in ipairs { "route" } do
  moontide[kind] = declare.later(kind)
end

--- permanent(message): to be raised; the message's retries are spent at once.
moontide.permanent = native.permanent
  or function(message)
    local file, line = native.where(2)
    local where = file and ("%s:%d: "):format(file, line) or ""
    return setmetatable({ message = where .. message, permanent = true }, {
      __tostring = function(value)
        return value.message
      end,
    })
  end

--- by(field): a key function that takes the key from the payload.
function moontide.by(field)
  local file, line = native.where(2)
  local where = file and ("%s:%d: "):format(file, line) or ""
  if type(field) ~= "string" or field == "" then
    error(where .. "moontide.by takes the name of a payload's field", 0)
  end
  return declare.key_of(field, function(event)
    local payload = event.payload
    local key = type(payload) == "table" and payload[field]
    if key == nil or key == false or key == native.null then
      error(('%sthe payload of %s has no "%s" to take the key from'):format(where, tostring(event.type), field), 0)
    end
    return key
  end)
end

local EVENT_OPTIONS = { "id", "key", "metadata", "revision", "occurred_at", "aggregate_type", "aggregate_id" }

--- event(type, payload, options): an event to append or to test a handler with.
function moontide.event(event_type, payload, options)
  if type(event_type) ~= "string" or event_type == "" then
    error("moontide.event takes the event's type first", 2)
  end
  if options ~= nil and type(options) ~= "table" then
    error(("moontide.event takes a table of options last, not a %s"):format(type(options)), 2)
  end
  local event = { type = event_type, payload = payload == nil and native.object() or payload }
  for key, value in pairs(options or {}) do
    local known = false
    for _, word in ipairs(EVENT_OPTIONS) do
      known = known or word == key
    end
    if not known then
      local near = type(key) == "string" and native.nearest(key, EVENT_OPTIONS)
      error(("moontide.event: unknown option %s%s"):format(tostring(key),
        near and ('; did you mean "%s"?'):format(near) or ""), 2)
    end
    event[key] = value
  end
  return event
end

--- A name that is not there is a slip of the pen: it raises where it is used.
return strict(moontide, "moontide")
