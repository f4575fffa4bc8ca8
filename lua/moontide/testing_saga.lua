--- testing.saga: one saga, driven step by step in a host of its own.
--
--   local saga = testing.saga(require "handlers.order")
--   saga:start(moontide.event("order.Placed", { order_id = "O-1", total = 10 }))
--   assert.published(saga, "payments", "payment.Authorize", { payload = { amount = 10 } })
--   assert.scheduled_in(saga, "payment", "30m")
--   saga:reply "payment.Authorized"
--   assert.ended(saga)
--   saga:close()
local microseconds = require "moontide.testing_time"

local AGGREGATE = "testing.saga" -- of events whose saga names none

local SECOND = 1000000 -- microseconds

local STEPS_MAX = 1000 -- of one advance: what sets itself again each second would take a day of them

local OF_HOST = "moontide:" -- begins the names of the host's own deadlines

local Saga = {}
Saga.__index = Saga

--- The id that the declaration's `id` gives for the event; raises unless it is
-- exactly one.
local function id_of(self, event)
  local kit = self.kit
  local flat = kit.flatten(event, event.aggregate_type or "", event.aggregate_id or event.key or "")
  local keys = kit.keys_of(self.declaration, kit.event_of(self.declaration, flat, 1))
  if #keys ~= 1 then
    error(("the id of saga '%s' gives %d ids for %s; this event is for one saga"):format(
      self.declaration.name, #keys, event.type), 4)
  end
  return keys[1]
end

local function copy_event(event)
  if type(event) ~= "table" or type(event.type) ~= "string" then
    error("an event is what moontide.event(type, payload) gives", 4)
  end
  local copy = {}
  for key, value in pairs(event) do copy[key] = value end
  return copy
end

-- Puts the saga's id where moontide.by takes it from, and checks that the event
-- is for this saga. Another `id` may take it from the stream: an event that names
-- none is of one that is called as the saga.
local function address(self, event)
  local field = self.declaration.key_field
  local nameless = field == nil and event.aggregate_id == nil and event.key == nil
  if nameless then event.key = self.id or self.first_id end
  if field and type(event.payload) == "table" and event.payload[field] == nil then
    local payload = {}
    for key, value in pairs(event.payload) do payload[key] = value end
    payload[field] = self.id
    event.payload = payload
  end
  local good, id = pcall(id_of, self, event)
  if not good then error(id, 0) end
  if self.id ~= nil and id ~= self.id then
    error(("%s is for the saga '%s', not for '%s'; give its payload what the saga's id is made of"):format(
      event.type, tostring(id), self.id), 4)
  end
  if nameless and id ~= event.key then event.key = nil end
  return id
end

--- Gives the event to the topic that the saga reads.
local function feed(self, event)
  local source = self.declaration.source
  if source == "event-capture" then
    self.host:emit(event.type, event.payload, { key = event.key or self.id, id = event.id,
      metadata = event.metadata, revision = event.revision, occurred_at = event.occurred_at })
  elseif source == "event-store" then
    local aggregates = self.declaration.aggregates
    self.host:append(event.aggregate_type or aggregates and aggregates[1] or AGGREGATE,
      event.aggregate_id or event.key or self.id, { event })
  else
    error(("saga '%s' reads %s; the kit gives events to event-store and event-capture"):format(
      self.declaration.name, tostring(source)), 4)
  end
  self.given = event
end

-- Between which times the host has worked: what it schedules counts from there.
local function act(self, work)
  local from = self.host:now()
  if work then work(self.host) else self.host:run() end
  self.acted = { from = from, to = self.host:now() }
  return self
end

--- give(event[, work]): gives any event to the saga and runs, or does `work` with
-- the host. The saga's id is filled in where moontide.by takes it from.
function Saga:give(event, work)
  event = copy_event(event)
  if event.payload == nil then event.payload = {} end
  self.id = address(self, event)
  feed(self, event)
  return act(self, work)
end

--- start(event[, work]): gives the event that begins the saga, and runs. Where the id
-- comes from a field (moontide.by) and the payload has none, options.id or "S-1"
-- is filled in, and so where another `id` takes the stream's and the event names
-- none; else the event says it.
function Saga:start(event, work)
  local field = self.declaration.key_field
  event = copy_event(event)
  if not self.declaration.starts[event.type] then
    error(("saga '%s' does not start with %s"):format(self.declaration.name, event.type), 2)
  end
  if field == nil or type(event.payload) == "table" and event.payload[field] ~= nil then
    self.id = nil
  end
  return self:give(event, work)
end

local REPLY_WORDS = { "to", "metadata", "aggregate_type", "aggregate_id", "key", "id", "revision", "occurred_at" }

-- The newest message that the saga has sent, of the type if one is wanted.
local function newest(self, message_type)
  local list = self:published()
  for i = #list, 1, -1 do
    if message_type == nil or list[i].type == message_type then return list[i] end
  end
  if message_type ~= nil then
    error(("saga '%s' has published no %s"):format(self.declaration.name, message_type), 4)
  end
end

local function reply_of(self, event_type, payload, options)
  if self.id == nil then error("the saga has not started", 4) end
  options = self.kit.check_words(options or {}, REPLY_WORDS, "reply")
  local event = { type = event_type, payload = payload == nil and {} or payload }
  for word, value in pairs(options) do
    if word ~= "to" then event[word] = value end
  end
  local message = newest(self, options.to)
  if message then
    local metadata = { causation_id = message.id, correlation_id = message.correlation_id }
    for key, value in pairs(options.metadata or {}) do metadata[key] = value end
    event.metadata = metadata
  end
  address(self, event)
  return event
end

--- reply(type, payload, options): an event for the saga, as the receiver of its
-- newest message (or of the newest of type options.to) would answer, and runs.
-- The saga's id is filled in where moontide.by takes it from.
function Saga:reply(event_type, payload, options)
  feed(self, reply_of(self, event_type, payload, options))
  return act(self)
end

--- relay(): the messages that were staged since the last call, in order. They
-- count as sent from here on; one that the saga sends again comes again.
function Saga:relay()
  local pending = self:published(nil, "pending")
  if #pending > 0 then
    self.host:query(("UPDATE %sOUTBOX SET status = 'published', published_at = created_at WHERE status = 'pending'")
      :format(self.host.prefix))
  end
  return pending
end

--- duplicate(): what was given last comes once more, with an id of its own.
function Saga:duplicate()
  if self.given == nil then error("nothing was given yet that could come twice", 2) end
  local event = copy_event(self.given)
  event.id = nil
  feed(self, event)
  return act(self)
end

local function rows_of(self, sql, order)
  return self.host:query(("SELECT %s FROM %s%s WHERE saga_type = ? AND saga_id = ?%s"):format(
    sql.columns, self.host.prefix, sql.table, order or ""), self.declaration.name, self.id)
end

-- What happens first behind the host's time, as RFC 3339 text: a deadline of the
-- saga, a timeout of a step, another attempt of one of these or of a message.
local function next_time(self)
  local now, first = microseconds(self.host:now()), nil
  local function may_be(time)
    -- what was due before was tried, and waits for something else
    if time and microseconds(time) > now and (first == nil or microseconds(time) < microseconds(first)) then
      first = time
    end
  end
  may_be(self.host:next_retry(self.declaration.name))
  for _, deadline in ipairs(rows_of(self, { columns = "next_retry_at, status", table = "SAGA_DEADLINES" })) do
    if deadline.status ~= "DEAD_LETTER" then may_be(deadline.next_retry_at) end
  end
  return first
end

-- What tells the settings that stand from later ones.
local function settings_of(self)
  local list = {}
  for i, row in ipairs(rows_of(self, { columns = "id, due_at", table = "SAGA_DEADLINES" }, " ORDER BY id")) do
    list[i] = row.id .. " " .. row.due_at
  end
  return table.concat(list, ",")
end

--- advance(duration): time passes, by seconds or "30m", from one deadline of the
-- saga to the next, and what became due happens at the time when it is due.
function Saga:advance(duration)
  local host, count = self.host, 0
  local target = microseconds(host:now()) + (type(duration) == "number" and duration * SECOND
    or require("moontide.core").duration(duration)
    or error(('advance: "%s" is no duration; it is seconds or text like "30m"'):format(tostring(duration)), 2))
  local due = next_time(self)
  while due and microseconds(due) <= target do
    count = count + 1
    if count > STEPS_MAX then
      error(("saga '%s' had %d deadlines in less than %s; advance by less, unless a handler sets its deadline again "
        .. "too soon"):format(self.declaration.name, STEPS_MAX, tostring(duration)), 2)
    end
    host.core:advance_to(due)
    act(self)
    due = next_time(self)
  end
  host:advance((target - microseconds(host:now())) / SECOND)
  if count == 0 then return act(self) end
  -- what was set on the way counts from there
  local acted, before = self.acted, settings_of(self)
  act(self)
  if settings_of(self) == before then self.acted = acted end
  return self
end

--- advance_to_deadline([work]): time passes up to the saga's next deadline, or to
-- the next timeout of its steps, which happens; or `work` is done with the host.
function Saga:advance_to_deadline(work)
  local due = self:next_due()
  if due == nil then error(("saga '%s' has no deadline"):format(self.declaration.name), 2) end
  self.host.core:advance_to(due)
  return act(self, work)
end

--- late(type, payload, options): a reply that comes after the deadline that was
-- next has passed.
function Saga:late(event_type, payload, options)
  local event = reply_of(self, event_type, payload, options)
  if self:next_due() == nil then
    error(("saga '%s' has no deadline, so %s cannot be late"):format(self.declaration.name, event_type), 2)
  end
  self:advance_to_deadline()
  feed(self, event)
  return act(self)
end

--- run(): what is there happens, such as a message that is tried again.
function Saga:run()
  return act(self)
end

--- redeliver(): as host:redeliver: nothing may change by it.
function Saga:redeliver()
  return act(self, function(host) host:redeliver() end)
end

--- restart(): as host:restart.
function Saga:restart()
  return act(self, function(host)
    host:restart()
    host:run()
  end)
end

--- published([publisher[, status]]): the messages that this saga has staged, in
-- order, as host:published gives them.
function Saga:published(publisher, status)
  local list = {}
  for _, message in ipairs(self.host:published(publisher, status)) do
    local metadata = message.metadata or {}
    if metadata.saga_type == self.declaration.name and metadata.saga_id == self.id then list[#list + 1] = message end
  end
  return list
end

--- emitted([type]): the events that this saga has captured, as host:emitted.
function Saga:emitted(event_type)
  local list = {}
  for _, event in ipairs(self.host:emitted(event_type)) do
    local metadata = event.metadata or {}
    if metadata.saga_type == self.declaration.name and metadata.saga_id == self.id then list[#list + 1] = event end
  end
  return list
end

--- state(): what the saga remembers; nil when there is none.
function Saga:state()
  local row = rows_of(self, { columns = "state_json AS state", table = "SAGA_INSTANCES" })[1]
  return row and self.kit.decode(row.state)
end

--- ended(): whether it is completed.
function Saga:ended()
  local row = rows_of(self, { columns = "completed_at", table = "SAGA_INSTANCES" })[1]
  return row ~= nil and row.completed_at ~= nil
end

--- deadlines([all]): those that stand, by due time: a list of { name, due_at,
-- payload, status, attempts, reason }; `all`: those of the host, too, such as
-- the timeout of a step.
function Saga:deadlines(all)
  local list = {}
  for _, deadline in ipairs(rows_of(self, { table = "SAGA_DEADLINES",
    columns = "name, due_at, payload_json AS payload, status, attempts, failure_reason AS reason",
  }, " ORDER BY due_at, name")) do
    deadline.payload = deadline.payload and self.kit.decode(deadline.payload)
    if all or not deadline.name:find(OF_HOST, 1, true) then list[#list + 1] = deadline end
  end
  return list
end

--- history(): the steps of an orchestrated saga, one per step and round, in the
-- order of the declaration.
function Saga:history()
  return rows_of(self, { columns = "step_name AS step, round, state, command_id, compensation_id, sends, "
    .. "compensation_sends, deadline_at, failure_reason AS reason", table = "SAGA_STEPS" }, " ORDER BY step_no, round")
end

--- next_due(): when its next deadline or the next timeout of a step is, as RFC
-- 3339 text; nil: there is none.
function Saga:next_due()
  for _, deadline in ipairs(self:deadlines(true)) do
    if deadline.status ~= "DEAD_LETTER" then return deadline.due_at end
  end
end

--- now(): the host's time as RFC 3339 text.
function Saga:now()
  return self.host:now()
end

function Saga:close()
  if self.owned then self.host:close() else self.host.core:stand(false) end
end

local OPTIONS = { id = true, host = true }

return function(kit)
  return function(declaration, options)
    if type(declaration) ~= "table" or declaration.kind ~= "saga" then
      error("testing.saga takes a declaration of moontide.saga", 2)
    end
    options = options or {}
    local settings = { app = kit.folders(declaration.file) }
    for key, value in pairs(options) do
      if not OPTIONS[key] then settings[key] = value end
    end
    if options.host == nil and declaration.file:match "_spec%.lua$" then
      error(("saga '%s' is declared in a spec; the host needs it in the application's scripts"):format(
        declaration.name), 2)
    end
    local host = options.host or kit.host(settings)
    host.core:stand(true) -- else what the machine takes would come to each deadline that is set
    return setmetatable({
      kit = kit, declaration = declaration, id = options.id or "S-1", first_id = options.id or "S-1",
      host = host, owned = options.host == nil,
    }, Saga)
  end
end
