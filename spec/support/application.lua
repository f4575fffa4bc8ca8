-- An application in a temporary folder, with a database of its own, driven by
-- the program under test.
--
--   local app = application.new { database = database, config = "batch = 3",
--                                 handlers = { ["orders.lua"] = "return ..." } }
--   app:ok("append", "--batch", "2", { stdin = app.ndjson { {...}, {...} } })
--   assert.same({ 1, 2 }, app:positions())
--   app:close()
local folder = require "spec.support.folder"
local json = require("moontide").json

local application = { json = json }

local Application = setmetatable({}, { __index = folder.class })
Application.__index = Application

--- new(options): `database` (from spec.support.dialect), `config` (the fields
-- inside of the table that moontide.conf.lua returns), `handlers` (texts by
-- file name). All may be missing.
function application.new(options)
  options = options or {}
  local self = setmetatable(folder.new(), Application)
  if options.database then
    self.db = options.database:create(self)
  end
  self:configure(options.config or "")
  self:exec("mkdir", "handlers")
  for name, text in pairs(options.handlers or {}) do
    self:write("handlers/" .. name, text)
  end
  return self
end

--- write(name, text): as in any folder. Statements in a .sql file are written
-- for SQLite and put into the database's own words.
function Application:write(name, text)
  if self.db and self.db.translate and name:find "%.sql$" then text = self.db.translate(text) end
  return folder.class.write(self, name, text)
end

--- configure(fields): writes moontide.conf.lua; the database stays.
function Application:configure(fields)
  local database = self.db and ("database = %q,\n  %s"):format(self.db.url, self.db.configuration or "") or ""
  -- most specs want to see at once what a failure ends in
  local once = fields:find "retry" and "" or "retry = { attempts = 1 },\n  "
  -- what a killed host has held is not waited for long
  local lease = fields:find "lease" and "" or ' lease = { duration = "1s", heartbeat = "200ms", rebalance = "200ms" },'
  -- nor is what a host that has nothing to do comes to see
  local poll = fields:find "poll" and "" or ' poll = { max_interval = "20ms" },'
  -- and a batch in hand may take long on a busy machine
  local stop = fields:find "stop_timeout" and "" or ' stop_timeout = "2m",'
  self:write("moontide.conf.lua", ("return {%s%s%s\n  %s%s%s\n}\n"):format(lease, poll, stop, database, once, fields))
end

local function show(words, result)
  local parts = {}
  for i, word in ipairs(words) do parts[i] = tostring(word) end
  return ("moontide %s ended with %d\n%s%s"):format(table.concat(parts, " "), result.code, result.out, result.err)
end

--- expect(code, ...): runs the program and raises on another exit code.
function Application:expect(code, ...)
  local result = self:moontide(...)
  if result.code ~= code then error(show({ ... }, result) .. ("\nand not with %d"):format(code), 2) end
  return result
end

--- ok(...): runs the program, which must end with 0; gives its output.
function Application:ok(...)
  local result = self:moontide(...)
  if result.code ~= 0 then error(show({ ... }, result), 2) end
  return result.out
end

--- json(...): the same with --json; gives the document.
function Application:json(...)
  local result = self:moontide("--json", ...)
  if result.code ~= 0 then error(show({ ... }, result), 2) end
  return json.decode(result.out)
end

--- fails(code, ...): the program must end with this code; gives its errors.
function Application:fails(code, ...)
  local result = self:moontide(...)
  if result.code ~= code then error(show({ ... }, result) .. ("\nand not with %d"):format(code), 2) end
  return result.err
end

--- lines(text): the documents of NDJSON.
function application.lines(text)
  local documents = {}
  for line in text:gmatch "[^\n]+" do documents[#documents + 1] = json.decode(line) end
  return documents
end

--- event(fields): the JSON text of an event to append; `payload` and
-- `metadata` are JSON text, whatever is not given is some event of stream A-1.
function application.event(fields)
  fields = fields or {}
  local members = {}
  local function add(name, text)
    members[#members + 1] = json.encode(name) .. ":" .. text
  end
  local function take(name, fallback)
    local value = fields[name]
    if value == nil then value = fallback end
    if value ~= nil then add(name, json.encode(value)) end
  end
  take("aggregate_type", "spec.thing")
  take("aggregate_id", "A-1")
  take("type", "thing.Happened")
  take "id"
  take "revision"
  take "occurred_at"
  take "expected"
  add("payload", fields.payload or "{}")
  if fields.metadata then add("metadata", fields.metadata) end
  return "{" .. table.concat(members, ",") .. "}"
end

--- ndjson(list): lines of what `event` makes of each item; texts stay.
function application.ndjson(list)
  local lines = {}
  for i, item in ipairs(list) do
    lines[i] = type(item) == "string" and item or application.event(item)
  end
  return table.concat(lines, "\n") .. "\n"
end

--- append(list[, ...]): appends events or lines, with more arguments if
-- wanted; gives the JSON answer.
function Application:append(list, ...)
  local words = { ... }
  words[#words + 1] = { stdin = application.ndjson(list) }
  return self:json("append", unpack(words))
end

--- refuses(list, code[, ...]): append must end so; gives the error.
function Application:refuses(list, code, ...)
  local words = { ... }
  words[#words + 1] = { stdin = type(list) == "string" and list or application.ndjson(list) }
  return self:fails(code, "append", unpack(words))
end

--- events(...): what `events --json` prints, decoded.
function Application:events(...)
  return application.lines(self:ok("events", "--json", ...))
end

--- payloads(...): the bytes of these events' payloads as `events --json`
-- prints them; their metadata must not be there.
function Application:payloads(...)
  local payloads = {}
  for line in self:ok("events", "--json", ...):gmatch "[^\n]+" do
    payloads[#payloads + 1] = assert(line:match '"payload":(.*),"metadata":null,"occurred_at":"[^"]*"}$', line)
  end
  return payloads
end

--- positions(...): of these events.
function Application:positions(...)
  local positions = {}
  for i, event in ipairs(self:events(...)) do positions[i] = event.position end
  return positions
end

--- count(): how many events the store has, by SQL.
function Application:count(table_name)
  return tonumber(self.db:value("SELECT count(*) FROM " .. (table_name or "EVENT_STORE")))
end

return application
