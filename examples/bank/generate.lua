-- Writes a stream of bank events as NDJSON, one event a line, for
-- `moontide append`:
--
--   luajit generate.lua COUNT [--seed N] [--accounts N] > events.ndjson
--
-- The same arguments give the same bytes on every machine. An account is
-- opened before it is used, is never overdrawn, and is closed only when it is
-- empty; its place is then taken by a new account. Money is in cents. The
-- events are spread over one year; movements may carry a time up to 36 hours
-- before that of their neighbours, as late bookings do.
local bit = require "bit"
local bxor, lshift, rshift, rol = bit.bxor, bit.lshift, bit.rshift, bit.rol
local tobit, floor, format = bit.tobit, math.floor, string.format

local YEAR_START_MS = 1735689600000 -- 2025-01-01T00:00:00Z
local DAY_MS = 86400000
local YEAR_MS = 365 * DAY_MS
local LATE_MS = 36 * 3600000
local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
local MAX_COUNT, MAX_ACCOUNTS = 100000000, 1000000

-- Written as they stand, so that stored payloads can be compared byte for
-- byte: other alphabets, escapes, and blanks that a JSON writer would not make.
local OWNERS = {
  "Ada Brandt", "Jos\\u00e9 Álvarez", "Zoë Müller", "Søren Kjær", "Łucja Nowak",
  "Σοφία Παππά", "Ольга Белова", "山田 太郎", "Nuala O'Brien", "Tom \\\"Ted\\\" Hill",
}
local NOTES_IN = {
  "incoming transfer", "salary", "rent for two rooms", "refund no. 7",
  "sale of a used bicycle", "caf\\u00e9 \\\"Bären\\\"", "Überweisung", "cash \\/ coins",
}
local NOTES_OUT = {
  "cash machine", "groceries", "electricity", "railway ticket",
  "book shop", "Bäckerei am Markt", "phone bill", "gift \\ud83c\\udf81",
}
local CHANNELS = { "web", "app", "branch", "phone" }

local function fail(message)
  io.stderr:write("generate.lua: ", message, "\n",
    "usage: luajit generate.lua COUNT [--seed N] [--accounts N]\n")
  os.exit(64)
end

local function whole_number(text, what, low, high)
  local value = tonumber(text)
  if not value or value ~= floor(value) or value < low or value > high then
    fail(format("%s must be a whole number from %d to %d, not %s", what, low,
      high, text and "'" .. text .. "'" or "missing"))
  end
  return value
end

local function options(arguments)
  local count, seed, accounts
  local i = 1
  while arguments[i] do
    local word = arguments[i]
    if word == "--seed" then
      i = i + 1
      seed = whole_number(arguments[i], "--seed", 0, 4294967295)
    elseif word == "--accounts" then
      i = i + 1
      accounts = whole_number(arguments[i], "--accounts", 1, MAX_ACCOUNTS)
    elseif word:sub(1, 1) == "-" or count then
      fail(format("unknown argument '%s'", word))
    else
      count = whole_number(word, "COUNT", 0, MAX_COUNT)
    end
    i = i + 1
  end
  if not count then fail("COUNT is missing") end
  accounts = accounts or math.max(1, math.min(10000, floor(count / 10)))
  return count, seed or 1, accounts
end

-- A small generator on 32-bit words: additions, shifts and xors are exact in
-- LuaJIT's bit operations, so no double is ever rounded.
local function random_source(seed)
  local a, b, c, counter = 0, tobit(seed), tobit(0x6d6f6f6e), 1
  local function word()
    local out = tobit(tobit(a + b) + counter)
    counter = tobit(counter + 1)
    a = bxor(b, rshift(b, 9))
    b = tobit(c + lshift(c, 3))
    c = tobit(rol(c, 21) + out)
    return out
  end
  for _ = 1, 16 do word() end
  -- A whole number from 0 to n - 1, n up to 2^21.
  local function below(n)
    return floor((word() % 4294967296) * n / 4294967296)
  end
  return word, below
end

-- The text of every day of the year, by number from 0.
local function day_texts()
  local days, n = {}, 0
  for month, length in ipairs(MONTH_DAYS) do
    for day = 1, length do
      days[n] = format("2025-%02d-%02d", month, day)
      n = n + 1
    end
  end
  return days
end

local DAYS = day_texts()

local function time_text(ms, micros)
  local day = floor(ms / DAY_MS)
  local rest = ms - day * DAY_MS
  local seconds = floor(rest / 1000)
  return format("%sT%02d:%02d:%02d.%03d%03dZ", DAYS[day],
    floor(seconds / 3600), floor(seconds / 60) % 60, seconds % 60,
    rest % 1000, micros)
end

-- An IBAN whose check digits are right. The remainder is taken in two steps
-- because the whole number has more digits than a double keeps.
local function iban_of(serial)
  local head = 50010517 % 97
  local rest = (head * 10000000000 + serial) % 97 -- bank code and account
  local check = 98 - (rest * 1000000 + 131400) % 97 -- "DE" is 13 14
  return format("DE%02d50010517%010d", check, serial)
end

local function generate(count, seed, naccounts, write)
  local word, below = random_source(seed)
  local serials, opened_at = {}, {} -- by place; nil: no open account
  local balances, closing = {}, {}
  local last_serial = 0
  local step = YEAR_MS / math.max(count, 1)

  local function uuid(ms)
    local high = floor(ms / 65536)
    local r1, r2, r3 = word(), word(), word()
    return format("%08x-%04x-7%03x-%04x-%04x%08x", high, ms % 65536,
      bit.band(r1, 0xfff), bit.bor(0x8000, bit.band(rshift(r1, 12), 0x3fff)),
      bit.band(r2, 0xffff), r3 % 4294967296)
  end

  local function event(place, kind, ms, id_ms, payload)
    write(format('{"id":"%s","aggregate_type":"bank.account",'
      .. '"aggregate_id":"A-%07d","type":"account.%s","occurred_at":"%s",'
      .. '"metadata":{"user":"u%03d","correlation":"%08x%08x"},'
      .. '"payload":%s}\n', uuid(id_ms), serials[place], kind,
      time_text(ms, below(1000)), below(500), word() % 4294967296,
      word() % 4294967296, payload))
  end

  local function open(place, ms)
    last_serial = last_serial + 1
    serials[place], opened_at[place] = last_serial, ms
    balances[place], closing[place] = 0, false
    event(place, "Opened", ms, YEAR_START_MS + ms, format(
      '{"iban":"%s","owner":"%s","currency":"EUR","branch":"b%03d",'
      .. '"limits":{"day":%d, "card":[500,1000]},"active":true,"closed":null}',
      iban_of(last_serial), OWNERS[below(#OWNERS) + 1], below(200),
      100000 + 50000 * below(8)))
  end

  local function close(place, ms)
    event(place, "Closed", ms, YEAR_START_MS + ms, format(
      '{"account":"A-%07d","reason":"asked for by the owner"}',
      serials[place]))
    serials[place] = nil
  end

  local function move(place, kind, amount, notes, ms)
    local late = below(4) == 0 and below(1800000) * (LATE_MS / 1800000) or 0
    local at = math.max(opened_at[place], ms - late)
    event(place, kind, at, YEAR_START_MS + ms, format(
      '{"account":"A-%07d","amount":%d,"currency":"EUR",'
      .. '"reference":"ref-%08x","channel":"%s","rate":1.0,"note":"%s"}',
      serials[place], amount, word() % 4294967296,
      CHANNELS[below(#CHANNELS) + 1], notes[below(#notes) + 1]))
  end

  for i = 0, count - 1 do
    local ms = floor(i * step)
    local place = below(naccounts) + 1
    if not serials[place] then
      open(place, ms)
    elseif closing[place] then
      close(place, ms)
    elseif below(100) == 0 and balances[place] > 0 then
      -- Takes all of it out, to be closed next time.
      move(place, "Withdrawn", balances[place], NOTES_OUT, ms)
      balances[place], closing[place] = 0, true
    elseif below(4) == 0 and balances[place] > 0 then
      local amount = below(math.min(balances[place], 50000)) + 1
      balances[place] = balances[place] - amount
      move(place, "Withdrawn", amount, NOTES_OUT, ms)
    else
      local amount = below(50000) + 1
      balances[place] = balances[place] + amount
      move(place, "Deposited", amount, NOTES_IN, ms)
    end
  end
end

-- Lines are written in blocks: one call per event would cost more than it.
local function block_writer(out)
  local block, n = {}, 0
  local function flush()
    if n > 0 then
      assert(out:write(table.concat(block, "", 1, n)))
      n = 0
    end
  end
  local function write(line)
    n = n + 1
    block[n] = line
    if n == 1024 then flush() end
  end
  return write, flush
end

local write, flush = block_writer(io.stdout)
local count, seed, accounts = options(arg)
generate(count, seed, accounts, write)
flush()
assert(io.stdout:flush())
