--- Days of the calendar as text, YYYY-MM-DD, in UTC: what handlers need of a
-- date library without a clock.
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)

local date = {}

--- Days since 1970-01-01 of a proleptic Gregorian date; the year starts in
-- March, so that the leap day comes last.
local function to_days(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local era = math.floor(year / 400)
  local of_era = year - era * 400
  local of_year = math.floor((153 * (month - 3) + 2) / 5) + day - 1
  return era * 146097 + of_era * 365 + math.floor(of_era / 4) - math.floor(of_era / 100) + of_year - 719468
end

local function from_days(days)
  days = days + 719468
  local era = math.floor(days / 146097)
  local of_era = days - era * 146097
  local leap = math.floor(of_era / 1460) - math.floor(of_era / 36524) + math.floor(of_era / 146096)
  local year = math.floor((of_era - leap) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * of_year + 2) / 153)
  local day = of_year - math.floor((153 * month + 2) / 5) + 1
  year, month = year + era * 400, month + 3
  if month > 12 then
    year, month = year + 1, month - 12
  end
  return year, month, day
end

local function parse(day, what)
  local instant = type(day) == "string" and #day == 10 and native.timestamp(day .. "T00:00:00Z")
  if not instant then
    error(("%s: a day is text like 2024-05-31, not %s"):format(what, tostring(day)), 3)
  end
  return to_days(tonumber(day:sub(1, 4)), tonumber(day:sub(6, 7)), tonumber(day:sub(9, 10)))
end

--- of(timestamp): the day of an RFC 3339 time in UTC.
function date.of(timestamp)
  if type(timestamp) ~= "string" then
    error(("moontide.date.of: an RFC 3339 time expected, got a %s"):format(type(timestamp)), 2)
  end
  local instant, why = native.timestamp(timestamp)
  if not instant then
    error("moontide.date.of: " .. why, 2)
  end
  return instant:sub(1, 10)
end

--- add(day, days): the day that many days later (earlier when negative).
function date.add(day, days)
  local from = parse(day, "moontide.date.add")
  if type(days) ~= "number" or days % 1 ~= 0 then
    error("moontide.date.add: a whole number of days expected", 2)
  end
  local year, month, of_month = from_days(from + days)
  if year < 0 or year > 9999 then
    error("moontide.date.add: years go from 0000 to 9999", 2)
  end
  return ("%04d-%02d-%02d"):format(year, month, of_month)
end

--- days(from, to): how many days lie between two days.
function date.days(from, to)
  return parse(to, "moontide.date.days") - parse(from, "moontide.date.days")
end

--- weekday(day): 1 for Monday to 7 for Sunday.
function date.weekday(day)
  return (parse(day, "moontide.date.weekday") + 3) % 7 + 1
end

return date
