--- Types of declared fields. Each is called: t.text(), t.decimal(12, 2). Every
-- type takes a table of options last: optional, and for columns unique.
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)
local strict = require "moontide.strict"

local TEXT_MAX = 255 -- characters of a text column
local PRECISION_MAX, SCALE_MAX = 65, 30 -- what every dialect but SQLite holds

local types = {}
local Type = {
  __metatable = "moontide.types",
  __tostring = function(t)
    return "t." .. t.type .. "()"
  end,
}
local made = setmetatable({}, { __mode = "k" })

--- Raises at the line of the script that called the type.
local function fail(message, ...)
  local file, line
  for level = 3, 12 do
    file, line = native.where(level)
    if file and not file:find("moontide/types.lua", 1, true) then
      break
    end
  end
  local where = file and file .. ":" .. line .. ": " or ""
  error(where .. message:format(...), 0)
end

local COLUMN_OPTIONS = { "optional", "unique" }
local NESTED_OPTIONS = { "optional" }

local function take_options(kind, options, known)
  if options == nil then
    return {}
  end
  if type(options) ~= "table" or made[options] then
    fail("t.%s takes a table of options, not %s", kind, made[options] and tostring(options) or type(options))
  end
  local taken = {}
  for key, value in pairs(options) do
    local found = false
    for _, word in ipairs(known) do
      found = found or word == key
    end
    if not found then
      local near = type(key) == "string" and native.nearest(key, known)
      fail("t.%s has no option %s%s", kind, tostring(key), near and ('; did you mean "%s"?'):format(near) or "")
    end
    if type(value) ~= "boolean" then
      fail("option %s of t.%s is true or false, not a %s", key, kind, type(value))
    end
    taken[key] = value
  end
  return taken
end

--- column: whether a read model can keep it in a column of its own.
local function make(kind, column, options, more)
  local t = take_options(kind, options, column and COLUMN_OPTIONS or NESTED_OPTIONS)
  t.type, t.column = kind, column
  t.optional, t.unique = t.optional or false, t.unique or false
  for key, value in pairs(more or {}) do
    t[key] = value
  end
  made[t] = true
  return setmetatable(t, Type)
end

local function check_type(kind, what, value)
  if not made[value] then
    local hint = type(value) == "function" and "; call the type, as in t.text()" or ""
    fail("t.%s: %s is a %s, not a type%s", kind, what, type(value), hint)
  end
end

for _, kind in ipairs { "text", "integer", "double", "boolean", "date", "time", "timestamp", "uuid", "bytes" } do
  types[kind] = function(options)
    return make(kind, true, options)
  end
end

--- decimal(precision, scale, options): all digits, digits behind the point.
function types.decimal(precision, scale, options)
  local function whole(value, low, high)
    return type(value) == "number" and value % 1 == 0 and value >= low and value <= high
  end
  if not whole(precision, 1, PRECISION_MAX) then
    fail("t.decimal(precision, scale): precision is a whole number from 1 to %d", PRECISION_MAX)
  end
  if not whole(scale, 0, math.min(SCALE_MAX, precision)) then
    fail("t.decimal(precision, scale): scale is a whole number from 0 to %d", math.min(SCALE_MAX, precision))
  end
  return make("decimal", true, options, { precision = precision, scale = scale })
end

--- enum({ "open", "closed" }, options)
function types.enum(values, options)
  if type(values) ~= "table" or #values == 0 then
    fail('t.enum takes a list of words, as in t.enum { "open", "closed" }')
  end
  local words, seen, count = {}, {}, 0
  for key in pairs(values) do
    count = count + 1
    if type(key) ~= "number" then
      fail("t.enum takes a list of words; options follow as a table of their own")
    end
  end
  for index, word in ipairs(values) do
    local characters = type(word) == "string" and native.characters(word)
    if not characters or characters < 1 or characters > TEXT_MAX or word:find("%z") then
      fail("t.enum: word %d is no UTF-8 text of 1 to %d characters", index, TEXT_MAX)
    end
    if seen[word] then
      fail('t.enum: "%s" is there twice', word)
    end
    seen[word] = true
    words[index] = word
  end
  if count ~= #words then
    fail("t.enum takes a list without holes")
  end
  return make("enum", true, options, { values = words })
end

--- list(type, options) and set(type, options)
for _, kind in ipairs { "list", "set" } do
  types[kind] = function(of, options)
    check_type(kind, "its argument", of)
    return make(kind, false, options, { of = of })
  end
end

--- record({ name = type }, options)
function types.record(fields, options)
  if type(fields) ~= "table" or made[fields] or next(fields) == nil then
    fail("t.record takes a table of fields, as in t.record { lat = t.double() }")
  end
  local copy = {}
  for key, value in pairs(fields) do
    if type(key) ~= "string" then
      fail("t.record: a field's name is a string, not a %s", type(key))
    end
    check_type("record", "field " .. key, value)
    copy[key] = value
  end
  return make("record", false, options, { fields = copy })
end

--- is(value): whether the value was made by one of the functions above.
function types.is(value)
  return made[value] == true
end

-- What other languages call them.
local ELSEWHERE = {
  string = "text", varchar = "text", int = "integer", long = "integer", bigint = "integer", number = "double",
  float = "double", bool = "boolean", datetime = "timestamp", array = "list", map = "record", object = "record",
  table = "record", blob = "bytes", binary = "bytes", numeric = "decimal", money = "decimal",
}

return strict(types, "moontide.types", ELSEWHERE)
