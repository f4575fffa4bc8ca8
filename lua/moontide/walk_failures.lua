--- testing.walk_failures: an orchestrated saga through every single point of
-- failure, before receivers that do a command once however often it comes.
--
-- The kit is relay and receivers here: it takes what is staged, answers as the
-- steps say, and lets time pass when nothing else is left to do. A scenario is
-- one walk through the saga, with one thing that goes wrong.
local TURNS = 150 -- of one walk; a saga that takes more goes round in circles
local SHOWN = 40 -- lines of what happened
local AT_REST = { SUCCEEDED = true, FAILED = true, TIMED_OUT = true, COMPENSATED = true }

-- ---------------------------------------------------------------- scenarios

local function describe(step, what)
  return ('step "%s" %s'):format(step.name, what)
end

--- What may go wrong with the command of step i.
local function of_command(add, i, step)
  local undone = not step.pivot and not step.retriable
  if #step.forward.succeeds > 0 then
    for _, event_type in ipairs(step.fails) do
      local how = #step.fails > 1 and ("is declined by %s"):format(event_type) or "is declined"
      add(describe(step, how), { step = i, fault = "declined", by = event_type },
        step.retriable and "completed" or "cancelled")
    end
    local silence = undone and "cancelled" or "completed"
    add(describe(step, "times out, its command is lost"), { step = i, fault = "lost" }, silence)
    add(("the worker is killed after the timeout of step %q"):format(step.name),
      { step = i, fault = "lost", killed = true }, silence)
    add(describe(step, "times out, its answer is lost"), { step = i, fault = "silent" }, silence)
    add(describe(step, "is answered late"), { step = i, fault = "late" }, silence)
    if undone then
      add(describe(step, "is done and answered only after the end"), { step = i, fault = "after the end" }, silence)
    end
    add(describe(step, "is answered twice"), { step = i, fault = "twice" }, "completed")
    add(("the worker is killed after the answer to step %q"):format(step.name), { step = i, fault = "killed" },
      "completed")
  end
end

--- The last step whose failure has the others undone, and how it fails.
local function last_failure(steps)
  for i = #steps, 1, -1 do
    local step = steps[i]
    if not step.retriable and #step.forward.succeeds > 0 then
      if #step.fails > 0 then return { step = i, fault = "declined", by = step.fails[1] } end
      if not step.pivot then return { step = i, fault = "lost" } end
    end
  end
end

local BACK = {
  { "lost", "is lost" }, { "silent", "is not answered" }, { "late", "is confirmed late" },
  { "twice", "is confirmed twice" },
}

local function scenarios_of(steps)
  local list = {}
  local function add(name, first, outcome, second)
    list[#list + 1] = { name = name, outcome = outcome, faults = { first, second } }
  end
  add("nothing fails", {}, "completed")
  add("the start comes twice", { fault = "twice" }, "completed")
  add("the worker is killed after the start", { fault = "killed" }, "completed")
  for i, step in ipairs(steps) do of_command(add, i, step) end
  local failure = last_failure(steps)
  for i, step in ipairs(steps) do
    if failure and step.back and i < failure.step then
      for _, what in ipairs(BACK) do
        add(("the compensation of %s %s"):format(describe(step, ""):sub(1, -2), what[2]), failure, "cancelled",
          { step = i, back = true, fault = what[1] })
      end
      add(("the worker is killed after the compensation of step %q"):format(step.name), failure, "cancelled",
        { step = i, back = true, fault = "killed" })
    end
  end
  return list
end

-- ------------------------------------------------------------------- a walk

local Walk = {}
Walk.__index = Walk

local function REDELIVER(host)
  host:redeliver()
end

local function fail(message, ...)
  error(message:format(...), 0)
end

local function declines(step, event)
  for _, event_type in ipairs(step.fails) do
    if event.type == event_type then return true end
  end
  return false
end

function Walk:note(text, ...)
  self.trace[#self.trace + 1] = text:format(...)
end

--- The fault that is due for that step (nil: for the start), once.
function Walk:fault(step, back)
  for _, fault in ipairs(self.scenario.faults) do
    if fault.fault and fault.step == step and (fault.back or false) == (back or false) and not self.happened[fault] then
      self.happened[fault] = true
      return fault.fault, fault
    end
  end
end

--- Gives an event to the saga; `kill`: the worker that handles it dies when it
-- has committed, and its memory is gone.
function Walk:give(event, kill)
  local saga = self.saga
  self:note("%s comes%s", event.type, kill and ", and the worker is killed after it" or "")
  if saga.given == nil then
    saga:start(event, kill and REDELIVER)
  else
    saga:give(event, kill and REDELIVER)
  end
  if kill then saga:restart() end
end

--- A deadline whose handler fails is no message, so host:run says nothing.
function Walk:check_failed()
  for _, deadline in ipairs(self.saga:deadlines(true)) do
    if deadline.reason then fail("what was due at %s failed: %s", deadline.due_at, deadline.reason) end
  end
end

--- Which step and round a message is of; nil: of none, the saga published it.
function Walk:place(message)
  local names = {}
  for i, step in ipairs(self.declaration.steps) do names[step.name] = i end
  for _, row in ipairs(self.saga:history()) do
    if row.command_id == message.id then return names[row.step], false, tonumber(row.round) end
    if row.compensation_id == message.id then return names[row.step], true, tonumber(row.round) end
  end
end

--- What the receiver answers: the event, and whether it has done something.
-- `declined`: the type by which it says no, as the scenario wants it.
function Walk:answer(message, step, back, seen, declined)
  local receiver = self.options.receivers and self.options.receivers[message.publisher]
  local sent = back and step.back or step.forward
  local event_type = declined or sent.succeeds[1]
  if receiver and not declined then
    local event, changed = receiver(message, seen.deliveries)
    if event ~= nil and (type(event) ~= "table" or type(event.type) ~= "string") then
      fail("the receiver '%s' answers %s with a %s; it returns moontide.event(type, payload) and whether it has done "
        .. "something", message.publisher, message.type, type(event))
    end
    if changed == nil then changed = not seen.changed and event ~= nil and not declines(step, event) end
    return event, changed
  end
  local changed = not seen.changed and not declined
  if event_type == nil then return nil, changed end
  local payload = (self.options.replies or {})[event_type]
  if type(payload) == "function" then payload = payload(message) end
  return { type = event_type, payload = payload }, changed
end

local function effect_of(step, back, round)
  return ("%s of step %q in round %d"):format(back and "the compensation" or "the command", step.name, round)
end

--- The receiver gets a message: it does its work, and answers.
function Walk:receive(message, i, back, round, declined)
  local step = self.declaration.steps[i]
  local seen = self.seen[message.id] or { deliveries = 0 }
  self.seen[message.id] = seen
  seen.deliveries = seen.deliveries + 1
  local event, changed = self:answer(message, step, back, seen, declined)
  if changed then
    if seen.changed then
      fail("%s took effect twice: %s %s was delivered again under the same id, and the receiver '%s' did it again; "
        .. "a receiver has to know a command by its id", effect_of(step, back, round), message.type, message.id,
        message.publisher)
    end
    seen.changed = true
    self.effects[#self.effects + 1] = { step = i, back = back, round = round, id = message.id }
  end
  if event then
    self.declines = self.declines or not declined and declines(step, event)
    event.metadata = { causation_id = message.id, correlation_id = message.correlation_id }
  end
  return event
end

--- A message that is staged reaches its receiver, or what the scenario says.
function Walk:deliver(message)
  local i, back, round = self:place(message)
  if i == nil then return end
  local fault, with = self:fault(i, back)
  self:note("%s goes to %s%s", message.type, message.publisher, fault and " (" .. fault .. ")" or "")
  if fault == "lost" then
    self.kill_at_timeout = with.killed
    return
  end
  if fault == "after the end" then
    self.delayed[#self.delayed + 1] = { at_end = true, message = message, place = { i, back, round } }
    return
  end
  local event = self:receive(message, i, back, round, fault == "declined" and with.by or nil)
  if event == nil or fault == "silent" then return end
  if fault == "late" then
    self.delayed[#self.delayed + 1] = { event = event }
    return
  end
  self.queue[#self.queue + 1] = { event = event, kill = fault == "killed" }
  if fault == "twice" then self.queue[#self.queue + 1] = { event = event } end
end

--- Whether the saga still waits for something by itself.
function Walk:waits()
  for _, row in ipairs(self.saga:history()) do
    if not AT_REST[row.state] then return true end
  end
  return not self.saga:ended()
end

function Walk:why_it_waits()
  for _, row in ipairs(self.saga:history()) do
    if not AT_REST[row.state] then
      local back = row.state == "COMPENSATING" or row.state == "STUCK"
      return ("the saga does not come to an end: %s of step %q was sent %d times, and no answer came that it takes")
        :format(back and "the compensation" or "the command", row.step, back and row.compensation_sends or row.sends)
    end
  end
  return "the saga does not come to an end: no step awaits an answer, and no timeout stands"
end

--- What was delayed comes now: answers, or at the end the messages.
function Walk:release(at_end)
  local kept, any = {}, false
  for _, item in ipairs(self.delayed) do
    if (item.at_end or false) ~= at_end then
      kept[#kept + 1] = item
    elseif item.message then
      any = true
      self:note("%s reaches %s at last", item.message.type, item.message.publisher)
      local event = self:receive(item.message, unpack(item.place))
      if event then self.queue[#self.queue + 1] = { event = event } end
    else
      any = true
      self.queue[#self.queue + 1] = { event = item.event }
    end
  end
  self.delayed = kept
  return any
end

--- One thing that can happen; false: nothing can any more.
function Walk:turn()
  local pending = self.saga:relay()
  if #pending > 0 then
    for _, message in ipairs(pending) do self:deliver(message) end
    return true
  end
  local next_one = table.remove(self.queue, 1)
  if next_one then
    self:give(next_one.event, next_one.kill)
    return true
  end
  if self:waits() then
    if self.saga:next_due() == nil then fail("%s", self:why_it_waits()) end
    local kill = self.kill_at_timeout
    self.kill_at_timeout = nil
    self:note("time passes%s", kill and ", and the worker is killed after what it did then" or "")
    self.saga:advance_to_deadline(kill and REDELIVER)
    if kill then self.saga:restart() end
    self:check_failed()
    self:release(false)
    return true
  end
  return self:release(false) or self:release(true)
end

-- ------------------------------------------------------------------ verdict

--- Effects of a kind by step: a list of them, with their place among all.
function Walk:effects_of(back)
  local found = {}
  for at, effect in ipairs(self.effects) do
    if effect.back == back then
      found[effect.step] = found[effect.step] or {}
      table.insert(found[effect.step], { at = at, round = effect.round, id = effect.id })
    end
  end
  return found
end

function Walk:check_once()
  local seen = {}
  for _, effect in ipairs(self.effects) do
    local name = effect_of(self.declaration.steps[effect.step], effect.back, effect.round)
    if seen[name] then
      fail("%s took effect twice, under the ids %s and %s", name, seen[name], effect.id)
    end
    seen[name] = effect.id
  end
end

function Walk:check_completed(done, undone)
  for i, step in ipairs(self.declaration.steps) do
    if undone[i] then fail("step %q was undone although the saga completed", step.name) end
    if not done[i] then fail("step %q was never done although the saga completed", step.name) end
  end
end

function Walk:check_cancelled(done, undone)
  local last, last_step
  for i = #self.declaration.steps, 1, -1 do
    local step = self.declaration.steps[i]
    local forward, back = done[i], undone[i]
    if forward and not back and step.back then fail("step %q was done and never undone", step.name) end
    if forward and (step.pivot or step.retriable) then fail("the saga was cancelled, and step %q done", step.name) end
    if back and forward and back[#back].at < forward[#forward].at then
      fail("step %q was done after it was undone, and not undone again", step.name)
    end
    if back then
      if last and back[1].at < last then
        fail("step %q was undone before step %q, which came later", step.name, last_step)
      end
      last, last_step = back[1].at, step.name
    end
  end
end

function Walk:outcome()
  for _, row in ipairs(self.saga:history()) do
    if row.state ~= "SUCCEEDED" then return "cancelled" end
  end
  return "completed"
end

function Walk:judge()
  local outcome = self:outcome()
  if outcome ~= self.scenario.outcome and not self.declines then
    fail("the saga was %s, and should be %s", outcome, self.scenario.outcome)
  end
  for _, fault in ipairs(self.scenario.faults) do
    if fault.fault and not self.happened[fault] and not self.declines then
      fail("nothing was sent to step %q, so it could not fail", self.declaration.steps[fault.step].name)
    end
  end
  self:check_once()
  local done, undone = self:effects_of(false), self:effects_of(true)
  if outcome == "completed" then
    self:check_completed(done, undone)
  else
    self:check_cancelled(done, undone)
  end
  if self.options.check then self.options.check(self.saga, outcome) end
end

function Walk:run()
  local start = self:fault(nil)
  self:give(self.options.start, start == "killed")
  if start == "twice" then
    self:note("%s comes again", self.options.start.type)
    self.saga:duplicate()
  end
  local turns = 0
  while self:turn() do
    turns = turns + 1
    if turns > TURNS then fail("%s", self:why_it_waits()) end
  end
  self:judge()
end

local OPTIONS = { start = true, replies = true, receivers = true, check = true, only = true }

local function check_arguments(declaration, options)
  if type(declaration) ~= "table" or declaration.kind ~= "saga" or #(declaration.steps or {}) == 0 then
    error("walk_failures takes a declaration of moontide.saga with steps", 3)
  elseif type(options) ~= "table" or type(options.start) ~= "table" then
    error("walk_failures takes the event that begins the saga: { start = moontide.event(type, payload) }", 3)
  elseif options.database ~= nil then
    error("walk_failures makes its databases itself; DATABASE_URL names the server for them", 3)
  end
end

--- Whether each scenario can have a saga of its own in one database: the kit
-- fills in the id where the start leaves it out.
local function ids_are_free(declaration, start)
  local field = declaration.key_field
  return field ~= nil and start.aggregate_id == nil and start.key == nil and start.id == nil
    and (start.payload == nil or start.payload[field] == nil)
end

return function(kit)
  --- One scenario, on a saga that has not begun.
  local function walk(saga, options, scenario)
    local self = setmetatable({
      saga = saga, declaration = saga.declaration, options = options, scenario = scenario, effects = {}, seen = {},
      queue = {}, delayed = {}, happened = {}, trace = {},
    }, Walk)
    local good, why = pcall(self.run, self)
    if good then return end
    local from = math.max(1, #self.trace - SHOWN + 1)
    return ("walk_failures of saga '%s', when %s: %s\nwhat happened:\n  %s\nthis walk alone: only = '%s'"):format(
      self.declaration.name, scenario.name, tostring(why), table.concat(self.trace, "\n  ", from), scenario.name)
  end

  return function(declaration, options)
    check_arguments(declaration, options)
    local settings, names, first = {}, {}, nil
    for key, value in pairs(options) do
      if not OPTIONS[key] then settings[key] = value end
    end
    local why
    for i, scenario in ipairs(scenarios_of(declaration.steps)) do
      if why == nil and (options.only == nil or scenario.name:find(options.only, 1, true)) then
        names[#names + 1] = scenario.name
        local saga = first and kit.saga(declaration, { host = first.host, id = "S-" .. i })
          or kit.saga(declaration, settings)
        if first == nil and ids_are_free(declaration, options.start) then first = saga end
        why = walk(saga, options, scenario)
        if saga ~= first then saga:close() end
      end
    end
    if first then first:close() end
    if why then error(why, 2) end
    if #names == 0 then error(("walk_failures: no scenario's name has %q"):format(options.only), 2) end
    return names
  end
end
