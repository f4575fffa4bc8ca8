--- Orchestrated sagas: what moontide.saga makes of `steps`, checked. The
-- declaration gets steps (a list of tables with name, pivot, retriable, forward,
-- fails and, if it can be undone, back; forward and back have to, command,
-- succeeds, timeout in microseconds and message, a function), on_end, and the
-- types that are answers among its types.
local take = require "moontide.declare_take"

local fail, describe = take.fail, take.describe

local STEP = { "name", "to", "command", "message", "succeeds", "fails", "timeout", "compensate", "pivot", "retriable" }
local COMPENSATION = { "to", "command", "message", "succeeds", "timeout" }

local steps = {}

local function take_text(d, where, key, value, what)
  if value == nil then
    fail(d, "%s has no %s: %s", where, key, what)
  elseif not take.is_text(value, take.NAME_MAX) then
    fail(d, "%s: %s is %s; it must be UTF-8 text of 1 to %d characters", where, key, take.show(value), take.NAME_MAX)
  end
  return value
end

local function take_boolean(d, where, key, value)
  if value ~= nil and type(value) ~= "boolean" then
    fail(d, "%s: %s is %s; it must be true or left out", where, key, take.show(value))
  end
  return value == true
end

--- A type, or a list of them.
local function take_types(d, where, key, value)
  if value == nil then
    return {}
  elseif type(value) == "string" then
    value = { value }
  elseif type(value) == "table" and next(value) == nil then
    fail(d, "%s: %s is empty; it names at least one type", where, key)
  end
  return take.list(d, ("%s: %s"):format(where, key), value)
end

local function take_timeout(d, where, value)
  local timeout = take.duration(d, where .. ": timeout", value)
  if timeout < 1000 then
    fail(d, "%s: timeout is %s; it must be at least a millisecond", where, take.show(value))
  end
  return timeout
end

--- What a message holds that no function makes: the field that the saga's id
-- is taken from.
local function plain_message(d)
  local field = d.key_field or "saga_id"
  return function(instance)
    return { [field] = instance.id }
  end
end

local function take_message(d, where, spec)
  local message = spec.message
  if message ~= nil and type(message) ~= "function" then
    fail(d, "%s: message is %s; it must be a function", where, take.show(message))
  end
  return message or plain_message(d)
end

local function take_forward(d, where, spec)
  local forward = {
    to = take_text(d, where, "to", spec.to, "the publisher that its command goes to"),
    command = take_text(d, where, "command", spec.command, "the type of the message that it sends"),
    message = take_message(d, where, spec),
    succeeds = take_types(d, where, "succeeds", spec.succeeds),
    timeout = 0,
  }
  if #forward.succeeds > 0 then
    if spec.timeout == nil then
      fail(d, '%s awaits an answer and has no timeout, as in timeout = "10m"', where)
    end
    forward.timeout = take_timeout(d, where, spec.timeout)
  elseif spec.timeout ~= nil then
    fail(d, "%s has a timeout and no succeeds: it awaits nothing, it is done when it is sent", where)
  elseif spec.fails ~= nil then
    fail(d, "%s has fails and no succeeds: the type that says that it was done", where)
  end
  return forward
end

local function take_back(d, where, spec, forward)
  local compensate = spec.compensate
  where = where .. ": compensate"
  if type(compensate) ~= "table" then
    fail(d, '%s is %s; it must be a table like { command = "payment.Void", succeeds = "payment.Voided" }, or false',
      where, take.show(compensate))
  end
  take.only(d, compensate, COMPENSATION, where .. ": ")
  local back = {
    to = compensate.to == nil and forward.to or take_text(d, where, "to", compensate.to),
    command = take_text(d, where, "command", compensate.command, "the type of the message that undoes the step"),
    message = take_message(d, where, compensate),
    succeeds = take_types(d, where, "succeeds", compensate.succeeds),
    timeout = forward.timeout,
  }
  if #back.succeeds == 0 then
    fail(d, "%s has no succeeds: it is sent again until that type says that it was done", where)
  end
  if compensate.timeout ~= nil then
    back.timeout = take_timeout(d, where, compensate.timeout)
  end
  return back
end

--- Whether the step is undone when the saga fails, which it must say itself.
local function is_compensated(d, where, spec, step)
  if step.pivot or step.retriable then
    if spec.compensate then
      fail(d, "%s is %s and has compensate: nothing is undone once the pivot has succeeded", where,
        step.pivot and "the pivot" or "retriable")
    end
    return false
  elseif spec.compensate == nil then
    fail(d, "%s says nothing about compensate: what undoes it, or false if nothing has to", where)
  elseif spec.compensate and #step.forward.succeeds == 0 then
    fail(d, "%s has compensate and no succeeds: what may arrive behind its compensation must say that it was done",
      where)
  end
  return spec.compensate ~= false
end

local function take_step(d, spec, index)
  local where = ("steps[%d]"):format(index)
  if type(spec) ~= "table" then
    fail(d, "%s is %s; it must be a table", where, describe(spec))
  end
  take.only(d, spec, STEP, where .. ": ")
  local step = { name = take_text(d, where, "name", spec.name, "every step has one of its own") }
  where = ('step "%s"'):format(step.name)
  step.pivot = take_boolean(d, where, "pivot", spec.pivot)
  step.retriable = take_boolean(d, where, "retriable", spec.retriable)
  step.forward = take_forward(d, where, spec)
  step.fails = take_types(d, where, "fails", spec.fails)
  if is_compensated(d, where, spec, step) then
    step.back = take_back(d, where, spec, step.forward)
  end
  return step
end

--- At most one pivot; what is behind it is retriable, and nothing else is.
local function check_pivot(d, list)
  local pivot
  for _, step in ipairs(list) do
    if step.pivot and pivot then
      fail(d, 'steps "%s" and "%s" are both the pivot; there is one, behind which nothing is undone', pivot, step.name)
    elseif step.pivot and step.retriable then
      fail(d, 'step "%s" is the pivot and retriable; the pivot may fail', step.name)
    elseif pivot and not step.retriable then
      fail(d, 'step "%s" is behind the pivot "%s" and must be retriable: it cannot be undone any more', step.name,
        pivot)
    elseif step.retriable and not pivot then
      fail(d, 'step "%s" is retriable and no pivot is before it; say pivot = true where nothing is undone any more',
        step.name)
    end
    pivot = pivot or step.pivot and step.name
  end
end

--- A type that could answer two commands would be taken for the wrong one.
local function note_answers(d, answers, step, types, what)
  for _, event_type in ipairs(types) do
    local said = ('%s of step "%s"'):format(what, step.name)
    if answers[event_type] then
      fail(d, '"%s" is %s and %s; each answer has a type of its own', event_type, answers[event_type], said)
    elseif d.starts[event_type] then
      fail(d, '"%s" begins the saga and is %s', event_type, said)
    end
    answers[event_type] = said
  end
end

local function find_answers(d, list)
  local answers, names = {}, {}
  for _, step in ipairs(list) do
    if names[step.name] then
      fail(d, 'two steps are called "%s"; every step has a name of its own', step.name)
    end
    names[step.name] = true
    note_answers(d, answers, step, step.forward.succeeds, "succeeds")
    note_answers(d, answers, step, step.fails, "fails")
    if step.back then
      note_answers(d, answers, step, step.back.succeeds, "compensate.succeeds")
    end
  end
  return answers
end

--- Whom the steps publish to, checked when all declarations are there.
local function note_publishers(d, list)
  d.publishes = d.publishes or {}
  for _, step in ipairs(list) do
    for _, message in ipairs { step.forward, step.back } do
      d.publishes[#d.publishes + 1] = { to = message.to, what = ('step "%s"'):format(step.name) }
    end
  end
end

--- build(d, spec): checks and fills the steps of a saga whose id, starts and
-- handlers are there; `types` gets what answers and what begins it.
function steps.build(d, spec)
  d.on_end = take.a_function(d, spec, "on_end")
  if spec.steps == nil then
    if d.on_end then
      fail(d, "on_end is of sagas with steps")
    end
    d.steps = {}
    return
  elseif type(spec.steps) ~= "table" or #spec.steps == 0 then
    fail(d, "steps is %s; it must be a list of steps", type(spec.steps) == "table" and "empty" or describe(spec.steps))
  end
  local list, count = {}, 0
  for key in pairs(spec.steps) do
    if type(key) ~= "number" then
      fail(d, "steps must be a plain list; it has the key %s", tostring(key))
    end
    count = count + 1
  end
  for index, step in ipairs(spec.steps) do
    list[index] = take_step(d, step, index)
  end
  if count ~= #list then
    fail(d, "steps must be a plain list; there is nothing at %d", #list + 1)
  end
  check_pivot(d, list)
  note_publishers(d, list)
  d.steps = list
  local wanted = find_answers(d, list)
  for event_type in pairs(d.starts) do
    wanted[event_type] = true
  end
  for _, event_type in ipairs(d.types) do
    wanted[event_type] = true
  end
  d.types = take.sorted_keys(wanted)
end

return steps
