--- testing.given: given some events, when a command comes, then what.
--
--   testing.given(account, { moontide.event("account.Opened") })
--     :when("withdraw", { amount = 5 }):rejects("insufficient funds", { missing = 5 })
local ID = "A-1"

--- The first member in which two values differ: its path and both values.
local function difference(a, b, path)
  if type(a) ~= "table" or type(b) ~= "table" then
    if a == b then return nil end
    return path, a, b
  end
  for _, pair in ipairs { { a, b }, { b, a } } do
    for key in pairs(pair[1]) do
      local inner = type(key) == "number" and ("%s[%d]"):format(path, key)
        or path == "" and tostring(key) or ("%s.%s"):format(path, tostring(key))
      local found, x, y = difference(a[key], b[key], inner)
      if found then return found, x, y end
    end
  end
end

local function show(kit, value)
  if value == nil then return "nothing" end
  local good, text = pcall(kit.encode, value)
  return good and text or tostring(value)
end

local Given, Outcome = {}, {}
Given.__index, Outcome.__index = Given, Outcome

local function describe(self)
  if self.outcome == "rejected" then
    return ("rejects with %q%s"):format(self.reason,
      self.details ~= nil and " " .. show(self.kit, self.details) or "")
  end
  local list = {}
  for i, event in ipairs(self.events) do
    list[i] = event.type .. " " .. show(self.kit, event.payload)
  end
  return #list == 0 and "accepts without an event" or "emits " .. table.concat(list, ", ")
end

local function fail(self, message, ...)
  error(("'%s' %s; %s"):format(self.command, describe(self), message:format(...)), 3)
end

--- rejects(reason[, details]): the command is rejected so.
function Outcome:rejects(reason, details)
  if self.outcome ~= "rejected" or self.reason ~= reason then
    fail(self, "expected that it rejects with %q", reason)
  end
  if details ~= nil then
    local path, x, y = difference(self.details, self.kit.plain(details), "details")
    if path then fail(self, "expected %s = %s, not %s", path, show(self.kit, y), show(self.kit, x)) end
  end
  return self
end

--- accepts(): the command is accepted, whatever it emits.
function Outcome:accepts()
  if self.outcome ~= "accepted" then fail(self, "expected that it accepts") end
  return self
end

--- emits(...): the command is accepted with exactly these events, by type and
-- payload; what else an expected event names is compared too.
function Outcome:emits(...)
  local expected = { ... }
  if self.outcome ~= "accepted" then fail(self, "expected that it accepts") end
  if #expected ~= #self.events then fail(self, "expected %d events", #expected) end
  for i, event in ipairs(expected) do
    if type(event) ~= "table" or type(event.type) ~= "string" then
      error("emits takes what moontide.event(type, payload) gives", 2)
    end
    for key, value in pairs(event) do
      local path, x, y = difference(self.events[i][key], self.kit.plain(value), key)
      if path then
        fail(self, "expected event %d with %s = %s, not %s", i, path, show(self.kit, y), show(self.kit, x))
      end
    end
  end
  return self
end

--- emits_nothing(): the command is accepted without an event.
function Outcome:emits_nothing()
  if self.outcome ~= "accepted" or #self.events > 0 then fail(self, "expected that it accepts without an event") end
  return self
end

--- leaves(state): the state after the events it emitted.
function Outcome:leaves(state)
  local path, x, y = difference(self.state, self.kit.plain(state), "state")
  if path then fail(self, "expected %s = %s, not %s", path, show(self.kit, y), show(self.kit, x)) end
  return self
end

--- when(command[, args[, options]]): another command, after those events.
function Outcome:when(command, args, options)
  local events = {}
  for i, event in ipairs(self.given.events) do events[i] = event end
  for _, event in ipairs(self.events) do events[#events + 1] = event end
  return Given.when(setmetatable({ kit = self.kit, aggregate = self.given.aggregate, id = self.given.id,
    events = events }, Given), command, args, options)
end

-- What the host would make of it, for a declaration that a spec has made.
local function decide_here(kit, d, asked)
  local state = d.initial and d.initial(asked.id) or {}
  local function apply(list, from)
    for i, flat in ipairs(list) do
      local fold = d.handlers[flat.type]
      if not fold then error(('aggregate "%s" has no apply for "%s"'):format(d.name, flat.type), 0) end
      state = fold(state, kit.event_of(d, flat, from + i)) or state
    end
  end
  apply(asked.events, 0)
  local before = kit.encode(state)
  local metadata = asked.metadata and kit.decode(asked.metadata) or {}
  local result = d.command_functions[asked.command](state, kit.decode(asked.args), {
    metadata = metadata, command_id = "00000000-0000-7000-8000-000000000000",
    now = function() return "1970-01-01T00:00:00.000000Z" end,
    log = setmetatable({}, { __index = function() return function() end end }),
  })
  if kit.encode(state) ~= before then
    error(("command '%s' changes the state; only apply does"):format(asked.command), 0)
  end
  if type(result) == "table" and getmetatable(result) == "moontide.reject" then
    return { outcome = "rejected", reason = result[1], details = kit.plain(result[2]), events = {}, state = state }
  end
  if type(result) == "table" and result.type then result = { result } end
  local events, flat = {}, {}
  for i, event in ipairs(result or {}) do
    events[i] = { type = event.type, payload = kit.plain(event.payload), metadata = kit.plain(event.metadata) or {} }
    flat[i] = kit.flatten(event, d.name, asked.id)
  end
  apply(flat, #asked.events)
  return { outcome = "accepted", events = events, state = kit.plain(state) }
end

local function decide(kit, d, asked)
  if d.file:match "_spec%.lua$" then return decide_here(kit, d, asked) end
  local app, scripts = kit.folders(d.file)
  return kit.decode(kit.core.decide(app, scripts, asked))
end

--- when(command[, args[, { metadata }]]): what the command makes of the events.
function Given:when(command, args, options)
  local kit, d = self.kit, self.aggregate
  if not d.command_functions[command] then
    error(("aggregate '%s' has no command '%s'"):format(d.name, tostring(command)), 2)
  end
  local asked = {
    aggregate = d.name, id = self.id, command = command, events = {},
    args = kit.encode(args == nil and kit.object() or args),
    metadata = options and options.metadata and kit.encode(options.metadata) or nil,
  }
  for i, event in ipairs(self.events) do asked.events[i] = kit.flatten(event, d.name, self.id) end
  local good, result = pcall(decide, kit, d, asked)
  if not good then error(result, 2) end
  result.kit, result.given, result.command = kit, self, command
  return setmetatable(result, Outcome)
end

return function(kit)
  return function(aggregate, events, id)
    if type(aggregate) ~= "table" or aggregate.kind ~= "aggregate" then
      error("given takes a declaration of moontide.aggregate", 2)
    end
    return setmetatable({ kit = kit, aggregate = aggregate, events = events or {}, id = id or ID }, Given)
  end
end
