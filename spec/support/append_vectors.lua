-- What an append takes, refuses and stores: the same for the host and for the
-- routines of the databases, by which programs in other languages append.
--
-- A vector is a stream of its own and calls on it. An event has `payload` (JSON
-- text, 1 unless given), `type`, `metadata`, `id`, `revision`, `occurred_at`
-- (and `stored`: that time in UTC). `fault` is a part of every writer's
-- message, small or large letters. A call without a fault is done, and
-- `repeated` of its events were there already. `partition` is of 12.
local vectors = {}

local function id(number)
  return ("0190f1d2-0000-7000-8000-%012x"):format(number)
end

local function vector(name, fields)
  fields.name = name
  fields.aggregate_type = fields.aggregate_type or "spec.thing"
  fields.aggregate_id = fields.aggregate_id or ("stream %d"):format(#vectors + 1)
  vectors[#vectors + 1] = fields
end

local function one(event, fault)
  return { { events = { event }, fault = fault } }
end

-- Streams.
for _, case in ipairs { { "order-1", 1 }, { "caf\195\169-42", 6 }, { "\195\156n\195\175code", 3 },
  { "\230\151\165\230\156\172-7", 5 } } do
  vector("the partition of " .. case[1], { aggregate_id = case[1], partition = case[2], calls = one {} })
end
vector("a stream A-1", { aggregate_id = "A-1", calls = { { expected = "none", events = { {} } } } })
vector("a stream of another case", { aggregate_id = "a-1", calls = { { expected = "none", events = { {} } } } })
vector("a stream with a blank at the end",
  { aggregate_id = "A-1 ", calls = { { expected = "none", events = { {} } } } })
vector("the id of a stream in another aggregate type",
  { aggregate_type = "spec.Thing", aggregate_id = "A-1", calls = { { expected = "none", events = { {} } } } })
vector("letters of every plane in all names",
  { aggregate_type = "\195\188.\230\151\165", aggregate_id = "\240\159\140\153 '\" \\ %", calls = one {
    type = "\230\156\172.\240\159\140\153" } })
vector("names of 255 characters", { aggregate_type = ("\195\169"):rep(255),
  aggregate_id = ("\240\159\140\153"):rep(255),
  calls = one { type = ("\230\151\165"):rep(255) } })
vector("an aggregate type of 256 characters", { aggregate_type = ("\195\169"):rep(256),
  calls = one({}, "aggregate_type") })
vector("an aggregate id of 256 characters", { aggregate_id = ("x"):rep(256), calls = one({}, "aggregate_id") })
vector("a type of 256 characters", { calls = one({ type = ("x"):rep(256) }, "type") })
vector("an empty aggregate type", { aggregate_type = "", calls = one({}, "aggregate_type") })
vector("an empty aggregate id", { aggregate_id = "", calls = one({}, "aggregate_id") })
vector("an empty type", { calls = one({ type = "" }, "type") })

-- The expected place.
vector("several events of one call", { calls = { { expected = "none", events = {
  { payload = "0" }, { payload = "1" }, { payload = "2" } } }, { expected = 2, events = { { payload = "3" } } } } })
vector("no event expected in a stream that has one", { calls = { { events = { {} } },
  { expected = "none", events = { {} }, fault = "its last event has sequence number 0" } } })
vector("a number expected in a stream without events", { calls = {
  { expected = 0, events = { {} }, fault = "expected sequence number 0, but it has no event yet" } } })
vector("a number that the stream has passed", { calls = { { events = { {}, {} } },
  { expected = 0, events = { {} }, fault = "expected sequence number 0, but its last event has sequence number 1" } } })
vector("a number that the stream has not reached", { calls = { { events = { {} } },
  { expected = 1, events = { {} }, fault = "expected sequence number 1, but its last event has sequence number 0" } } })
vector("a number below 0", { calls = { { expected = -1, events = { {} }, fault = "expected" } } })
vector("a word that is none", { calls = { { expected = "maybe", events = { {} }, fault = "expected" } } })

-- Payload and metadata.
for _, payload in ipairs {
  "null", "[true,false ,null]", "{ }", "[ ]", "-0", "-0.0", "1.50e3", "1E400", "9007199254740993",
  "123456789012345678901234567890", '{ "b" : 1.0,\t"a":[1, 2 ,3] }', '{"a":1,"a":2}', '""',
  '"\\u0000\\/\\u00e9 \195\169 \240\159\140\153"', '"\\ud83c\\udf19\\uD83C\\uDF19"', '"\\\\ud800 \\\\\\u00d8"',
  '"\'\' ` ? ; -- \\\\ $1 ${x} :a"', '{"\\"":"\\\\"}', '"' .. ("x"):rep(70000) .. '"',
} do
  vector(("the payload %s"):format(payload:sub(1, 60)),
    { calls = one { payload = payload, metadata = '{ "m" : 1.0 }' } })
end
for _, payload in ipairs {
  "nul", "{", '{"a":}', "[1,]", "01", "1.", ".5", "+1", "-", "1e", "1.5E+", "1e5.5", "1.5.5", "1e5e5", "0x1", "tru",
  "TRUE", "NaN",
  "1 2", "[1 2]", "{1:2}", "[]]", "/**/1", "'a'", '"a', '"a\tb"', '"\1"', '"\\x"', '"\\u12"', '"\\u00zz"',
  '"\\ud800"', '["\\uDC00\\ud800"]', '"\\ud83cx"',
} do
  vector(("the payload %s"):format(payload), { calls = one({ payload = payload }, "json") })
end
vector("a payload of 600 lists side by side", { calls = one { payload = "[" .. ("[],"):rep(599) .. '"[["]' } })
vector("a payload of 513 levels", { calls = one({ payload = ("["):rep(513) .. ("]"):rep(513) }, "levels") })
vector("metadata with half of a surrogate pair", { calls = one({ metadata = '{"a":"\\udc00"}' }, "json") })
vector("no payload", { calls = one({ payload = false }, "payload") })
vector("metadata that is a list", { calls = one({ metadata = "[]" }, "metadata") })
vector("metadata that is no JSON", { calls = one({ metadata = "{" }, "json") })

-- Revision and time.
vector("the largest revision", { calls = one { revision = 2147483647 } })
vector("a revision below 0", { calls = one({ revision = -1 }, "revision") })
for given, stored in pairs {
  ["2026-01-31T08:15:00Z"] = "2026-01-31 08:15:00.000000",
  ["2026-01-31T08:15:00.5+01:00"] = "2026-01-31 07:15:00.500000",
  ["2025-12-31T23:59:59.999999-00:30"] = "2026-01-01 00:29:59.999999",
  ["2024-02-29T10:00:00.000001Z"] = "2024-02-29 10:00:00.000001",
  ["1969-12-31T23:59:59.999999Z"] = "1969-12-31 23:59:59.999999",
  ["0001-01-01T00:00:00Z"] = "0001-01-01 00:00:00.000000",
  ["9999-12-31T23:59:59.999999Z"] = "9999-12-31 23:59:59.999999",
} do
  vector("the time " .. given, { calls = one { occurred_at = given, stored = stored } })
end
for _, given in ipairs { "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-31T25:00:00Z" } do
  vector("the time " .. given, { calls = one({ occurred_at = given }, given:sub(1, 10)) })
end

-- Ids.
local function full(number)
  return { id = id(number), type = "t", payload = '{"a": 1}', metadata = '{"m":1}', revision = 3,
    occurred_at = "2026-01-31T08:15:00.25Z", stored = "2026-01-31 08:15:00.250000" }
end
local function changed(number, field, value)
  local event = full(number)
  event[field] = value
  return event
end
vector("an id in large letters", { calls = { { events = { { id = id(1) } } },
  { events = { { id = id(1):upper() } }, repeated = 1 } } })
vector("the same event again", { calls = { { expected = "none", events = { full(2) } },
  { expected = "none", events = { full(2) }, repeated = 1 }, { expected = 0, events = { { type = "later" } } },
  { expected = "none", events = { full(2) }, repeated = 1 } } })
vector("an event again among new ones", { calls = { { events = { full(3) } },
  { events = { { payload = "1" }, full(3), { payload = "2" } }, repeated = 1 } } })
vector("an event again without its time", { calls = { { events = { full(4) } },
  { events = { changed(4, "occurred_at", nil) }, repeated = 1 } } })
vector("an id that is no UUID", { calls = one({ id = "7" }, "uuid") })
for field, value in pairs { type = "other", payload = '{"a":1}', metadata = '{"m": 1}', revision = 4,
  occurred_at = "2026-01-31T08:15:00.26Z" } do
  local number = 100 + #vectors
  vector("the id of an event with another " .. field, { calls = { { events = { full(number) } },
    { events = { changed(number, field, value) }, fault = id(number) } } })
end
vector("the id of an event of another stream", { calls = one({ id = id(1) }, id(1)) })
vector("a call of which one event breaks a rule",
  { calls = { { events = { {}, { payload = "{" } }, fault = "json" } } })

return vectors
