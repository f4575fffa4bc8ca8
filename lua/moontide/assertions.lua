--- Assertions of the testing kit, for luassert (busted's `assert`):
--
--   assert.retried(host, "orders", { key = "O-1", failures = 2 })
--   assert.waiting(host, "orders", { key = "O-1", count = 3 })
--   assert.dead_lettered(host, "orders", { type = "order.Paid", error = "no such price" })
--   assert.skipped(host, "orders", { position = 7 })
--   assert.emitted(host, "mail.Wanted", { key = "A-1", payload = { iban = "X" }, count = 1 })
--   assert.published(host, "mail", "mail.Send", { key = "A-1", payload = { iban = "X" } })
--   assert.scheduled_in(saga, "payment", "30m")
--   assert.saga_state(saga, { total = 10 })
--   assert.ended(saga)
--   assert.dispatched(host, "bank.account", "A-1", "account.Closed")
--   assert.in_state(host, "orders", "HALTED", "APPLY_ERROR")
--   assert.rejected(host:command("account", "A-1", "withdraw", { amount = 5 }), "insufficient funds")
--   assert.emitted(host:command("account", "A-1", "deposit", { amount = 5 }), "account.Deposited", { amount = 5 })
--
-- Each can be negated: assert.is_not.dead_lettered(host, "orders").
local FIELDS = { key = true, type = true, position = true, status = true, failures = true }
local WORDS = "key, type, position, status, failures, error, count"

local microseconds = require "moontide.testing_time"

local assertions = {}

local function describe(filter)
  local words = {}
  for name, value in pairs(filter) do
    words[#words + 1] = ("%s = %s"):format(name, type(value) == "string" and ("%q"):format(value) or tostring(value))
  end
  table.sort(words)
  return #words > 0 and " with " .. table.concat(words, ", ") or ""
end

local function matches(letter, filter)
  for name, value in pairs(filter) do
    if FIELDS[name] and letter[name] ~= value then return false end
    if name == "error" and not (letter.reason or ""):find(value, 1, true) then return false end
  end
  return true
end

local function check_filter(filter, name)
  if filter == nil then return {} end
  if type(filter) ~= "table" then error(("%s takes a table such as { key = \"A-1\" }"):format(name), 0) end
  for word in pairs(filter) do
    if not FIELDS[word] and word ~= "error" and word ~= "count" then
      error(("%s: unknown word '%s'; known are %s"):format(name, tostring(word), WORDS), 0)
    end
  end
  return filter
end

-- What a spec's reader sees when an assertion fails: all there is.
local function all_of(host, consumer)
  local lines = {}
  for _, row in ipairs(host:undelivered(consumer)) do
    lines[#lines + 1] = ("  %d %s %s, %d failures%s"):format(row.position, row.key, row.status, row.failures,
      row.reason and ": " .. row.reason or "")
  end
  if #lines == 0 then return "\nit has no undelivered messages" end
  return "\nits undelivered messages:\n" .. table.concat(lines, "\n")
end

-- An assertion about messages: `find` gives those of the consumer.
local function about_messages(name, what, find)
  assertions[name] = function(state, arguments)
    local host, consumer = arguments[1], arguments[2]
    local filter = check_filter(arguments[3], name)
    local count = 0
    for _, letter in ipairs(find(host, consumer, filter)) do
      if matches(letter, filter) then count = count + 1 end
    end
    state.failure_message = ("'%s' has %d %s%s%s"):format(consumer, count, what, describe(filter),
      all_of(host, consumer))
    if filter.count ~= nil then return count == filter.count end
    return count > 0
  end
end

about_messages("dead_lettered", "dead letters", function(host, consumer)
  local list = {}
  for _, letter in ipairs(host:dead_letters { consumer = consumer }) do
    if letter.status:find "^DEAD" then list[#list + 1] = letter end
  end
  return list
end)

about_messages("retried", "messages that are tried again", function(host, consumer)
  return host:dead_letters { consumer = consumer, status = "FAILED" }
end)

-- Also what lies dead behind a dead letter. Types stand in the messages only,
-- which are read where a type is asked for.
about_messages("waiting", "messages that wait behind another one", function(host, consumer, filter)
  local list = {}
  for _, row in ipairs(host:undelivered(consumer)) do
    if row.reason == nil and (row.status == "WAITING" or row.status == "DEAD_LETTER_KEY") then
      if filter.type ~= nil then
        local letter = host:dead_letters({ consumer = consumer, position = row.position })[1]
        row.type = letter and letter.type
      end
      list[#list + 1] = row
    end
  end
  return list
end)

about_messages("skipped", "skipped messages", function(host, consumer)
  return host:query(([[
    SELECT s.message_position AS position, s.resolved_key AS "key"
      FROM %sCONSUMER_SKIPPED_MESSAGES s JOIN %sCONSUMERS c ON c.id = s.consumer_id
     WHERE c.consumer_name = ?]]):format(host.prefix, host.prefix), consumer)
end)

function assertions.in_state(state, arguments)
  local host, consumer, wanted, reason = arguments[1], arguments[2], arguments[3], arguments[4]
  local row = host:query(("SELECT state, halt_reason AS reason FROM %sCONSUMERS WHERE consumer_name = ?"):format(
    host.prefix), consumer)[1]
  local found = row and (row.state or "RUNNING") or "NEW"
  state.failure_message = ("'%s' is %s%s, not %s%s%s"):format(consumer, found,
    row and row.reason and " with " .. row.reason or "", wanted, reason and " with " .. reason or "",
    all_of(host, consumer))
  return found == wanted and (reason == nil or row ~= nil and row.reason == reason)
end

-- What a command did, for the reader of a failed assertion.
local function decided(outcome)
  if type(outcome) ~= "table" or outcome.outcome == nil then
    error("the first argument is what host:command or testing.given():when() gives", 0)
  end
  if outcome.outcome == "rejected" then return ("it was rejected: %s"):format(outcome.reason) end
  local types = {}
  for i, event in ipairs(outcome.events) do types[i] = event.type end
  return #types == 0 and "it was accepted without an event" or "it emitted " .. table.concat(types, ", ")
end

-- By what JSON makes of them: that is what is stored.
local function same(value, expected)
  local json = require("moontide").json
  return json.encode(value) == json.encode(expected)
end

function assertions.rejected(state, arguments)
  local outcome, reason, details = arguments[1], arguments[2], arguments[3]
  state.failure_message = decided(outcome) .. (reason and ("; expected: %s"):format(reason) or "")
  return outcome.outcome == "rejected" and (reason == nil or outcome.reason == reason)
    and (details == nil or same(outcome.details, details))
end

local EVENT_WORDS = { key = true, payload = true, count = true }

-- Whether the list has such an event: by key and payload, as often as `count`.
local function has_event(state, name, list, event_type, filter)
  for word in pairs(filter or {}) do
    if not EVENT_WORDS[word] then
      error(("%s: unknown word '%s'; known are key, payload, count"):format(name, tostring(word)), 0)
    end
  end
  filter = filter or {}
  local count, lines = 0, {}
  for _, event in ipairs(list) do
    lines[#lines + 1] = ("  %d %s %s %s"):format(event.position, event.type, tostring(event.key),
      require("moontide").json.encode(event.payload))
    if (event_type == nil or event.type == event_type) and (filter.key == nil or event.key == filter.key)
      and (filter.payload == nil or same(event.payload, filter.payload)) then
      count = count + 1
    end
  end
  state.failure_message = ("%d of these are %s%s:\n%s"):format(count, tostring(event_type),
    filter.key and " of " .. filter.key or "", #lines > 0 and table.concat(lines, "\n") or "  none")
  if filter.count ~= nil then return count == filter.count end
  return count > 0
end

--- dispatched(host, aggregate, id[, type[, { payload, count }]]): the stream has
-- an event that a command of a listener has made.
function assertions.dispatched(state, arguments)
  local host, aggregate, id, event_type, filter = unpack(arguments, 1, 5)
  local json = require("moontide").json
  local list = {}
  for _, row in ipairs(host:query(([[
    SELECT global_position AS position, event_type AS type, aggregate_id AS "key", payload, metadata
      FROM %sEVENT_STORE WHERE aggregate_type = ? AND aggregate_id = ?
     ORDER BY sequence_no]]):format(host.prefix), aggregate, id)) do
    local metadata = row.metadata and json.decode(row.metadata)
    row.payload = json.decode(row.payload)
    if metadata and metadata.causation_id then list[#list + 1] = row end
  end
  return has_event(state, "dispatched", list, event_type, filter)
end

--- published(host, publisher[, type[, { key, payload, count }]]): a message for
-- the publisher is staged; `key` is its ordering key.
function assertions.published(state, arguments)
  local host, publisher, message_type, filter = unpack(arguments, 1, 4)
  local list = host:published(publisher)
  for i, message in ipairs(list) do
    message.key, message.position = message.ordering_key, i
  end
  return has_event(state, "published", list, message_type, filter)
end

function assertions.emitted(state, arguments)
  local outcome, event_type, payload = arguments[1], arguments[2], arguments[3]
  if type(outcome) == "table" and type(outcome.emitted) == "function" then -- a host: what was captured
    return has_event(state, "emitted", outcome:emitted(), event_type, payload)
  end
  state.failure_message = ("%s; expected %s%s"):format(decided(outcome), event_type,
    payload ~= nil and " " .. require("moontide").json.encode(payload) or "")
  for _, event in ipairs(outcome.outcome == "accepted" and outcome.events or {}) do
    if event.type == event_type and (payload == nil or same(event.payload, payload)) then return true end
  end
  return false
end

local function saga_of(value, name)
  if type(value) ~= "table" or type(value.deadlines) ~= "function" then
    error(("%s takes what testing.saga gives first"):format(name), 0)
  end
  return value
end

local function deadlines_of(saga)
  local lines = {}
  for _, deadline in ipairs(saga:deadlines()) do
    lines[#lines + 1] = ("  %s at %s"):format(deadline.name, deadline.due_at)
  end
  return #lines > 0 and "its deadlines:\n" .. table.concat(lines, "\n") or "it has no deadlines"
end

-- The database's clock, which sets deadlines, and the host's are two.
local CLOCKS_APART = 1000000

--- scheduled_in(saga, name[, duration[, { payload }]]): the deadline stands, due
-- so long after what the saga has done last.
function assertions.scheduled_in(state, arguments)
  local saga, name, duration, filter = saga_of(arguments[1], "scheduled_in"), arguments[2], arguments[3], arguments[4]
  local wanted = type(duration) == "number" and duration * 1000000
    or duration ~= nil and require("moontide.core").duration(duration)
  if duration ~= nil and not wanted then
    error(('scheduled_in: "%s" is no duration; it is seconds or text like "30m"'):format(tostring(duration)), 0)
  end
  state.failure_message = ("the saga has no deadline '%s'%s%s; it did something last at %s, and %s"):format(
    tostring(name), duration ~= nil and " in " .. tostring(duration) or "",
    filter and filter.payload ~= nil and " with that payload" or "", saga.acted and saga.acted.to or "no time",
    deadlines_of(saga))
  for _, deadline in ipairs(saga:deadlines()) do
    if deadline.name == name and (not filter or filter.payload == nil or same(deadline.payload, filter.payload)) then
      if not wanted then return true end
      local set = microseconds(deadline.due_at) - wanted
      return saga.acted ~= nil and set >= microseconds(saga.acted.from) - CLOCKS_APART
        and set <= microseconds(saga.acted.to) + CLOCKS_APART
    end
  end
  return false
end

--- saga_state(saga, expected): what it remembers is exactly that.
function assertions.saga_state(state, arguments)
  local saga, found = saga_of(arguments[1], "saga_state"), arguments[1]:state()
  local json = require("moontide").json
  state.failure_message = ("the saga '%s' remembers %s, not %s"):format(tostring(saga.id),
    found == nil and "nothing" or json.encode(found), json.encode(arguments[2]))
  return found ~= nil and same(found, arguments[2])
end

--- ended(saga): it is completed.
function assertions.ended(state, arguments)
  local saga = saga_of(arguments[1], "ended")
  local found = saga:state()
  state.failure_message = found == nil and ("there is no saga '%s'"):format(tostring(saga.id))
    or ("the saga '%s' goes on; it remembers %s, and %s"):format(tostring(saga.id),
      require("moontide").json.encode(found), deadlines_of(saga))
  return saga:ended()
end

--- Teaches luassert the words, where it is there.
return function()
  local found, luassert = pcall(require, "luassert")
  if not found then return end
  for name, check in pairs(assertions) do
    luassert:register("assertion", name, check)
  end
end
