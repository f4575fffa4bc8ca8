--- Sagas: what moontide.saga adds to a consumer's declaration, checked. Such a
-- declaration has, beside those of a consumer, the fields key (its `id`),
-- starts (type -> true), unknown (word), deadlines (sorted names),
-- deadline_functions (name -> function), starts_now, and those of its steps
-- (declare_steps.lua).
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)
local steps = require "moontide.declare_steps"
local take = require "moontide.declare_take"

local fail, describe = take.fail, take.describe

local UNKNOWN = { "ignore", "dead_letter", "error" }

local RESERVED = "moontide:" -- beginning of the names of the host's own deadlines

local saga = { KEYS = { "id", "starts", "unknown", "initial", "deadlines", "start", "steps", "on_end" } }

local function take_id(d, spec)
  if spec.key ~= nil then
    fail(d, 'key is no key of a saga; its id is: id = moontide.by "order_id"')
  elseif spec.id == nil then
    fail(d, 'id is missing: which saga an event is for, as in id = moontide.by "order_id"')
  end
  return take.a_function(d, spec, "id")
end

local function take_starts(d, starts, orchestrated)
  if starts == nil or type(starts) == "table" and next(starts) == nil then
    fail(d, 'starts is missing: the types that begin a saga, as in starts = { "order.Placed" }')
  end
  local set = {}
  for _, event_type in ipairs(take.list(d, "starts", starts)) do
    if not d.handlers[event_type] and not orchestrated then
      local near = native.nearest(event_type, d.types)
      fail(d, 'starts has "%s", which `on` has no handler for%s', event_type,
        near and ('; did you mean "%s"?'):format(near) or "")
    end
    set[event_type] = true
  end
  return set
end

local function take_unknown(d, word)
  if word == nil then
    return "ignore"
  elseif not take.contains(UNKNOWN, word) then
    local near = type(word) == "string" and native.nearest(word, UNKNOWN)
    fail(d, "unknown is %s%s; what becomes of an event that finds no saga is one of %s", describe(word),
      near and (' (did you mean "%s"?)'):format(near) or "", table.concat(UNKNOWN, ", "))
  end
  return word
end

local function take_deadlines(d, deadlines)
  if deadlines == nil then
    deadlines = {}
  elseif type(deadlines) ~= "table" then
    fail(d, "deadlines is %s; it must be a table of names and functions", describe(deadlines))
  end
  local names, functions = take.sorted_keys(deadlines), {}
  for _, deadline in ipairs(names) do
    if not take.is_text(deadline, take.NAME_MAX) then
      fail(d, "deadlines[%s]: a deadline's name is UTF-8 text of 1 to %d characters", tostring(deadline), take.NAME_MAX)
    elseif type(deadlines[deadline]) ~= "function" then
      fail(d, 'deadlines["%s"] is %s; the handler of a deadline is a function', deadline,
        describe(deadlines[deadline]))
    elseif deadline:sub(1, #RESERVED) == RESERVED then
      fail(d, 'deadlines["%s"]: names that begin with "%s" are the host\'s own', deadline, RESERVED)
    end
    functions[deadline] = deadlines[deadline]
  end
  return names, functions
end

--- key(d, spec): the function that tells the id of an event's saga.
saga.key = take_id

--- build(d, spec): checks and fills what a consumer does not have.
function saga.build(d, spec)
  d.fields = {}
  d.initial = take.a_function(d, spec, "initial")
  d.starts = take_starts(d, spec.starts, spec.steps ~= nil)
  d.unknown = take_unknown(d, spec.unknown)
  d.deadlines, d.deadline_functions = take_deadlines(d, spec.deadlines)
  steps.build(d, spec)
end

return saga
