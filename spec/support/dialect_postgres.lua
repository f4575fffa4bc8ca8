-- PostgreSQL -- a schema of the spec on the server that POSTGRES_URL names;
-- looked into from outside with the program psql.
local json = require("moontide").json
local other_session = require "spec.support.other_session"
local process = require "spec.support.process"

local Postgres = { name = "postgres", gap_free = false }
Postgres.__index = Postgres

local function server(variable)
  local url = os.getenv(variable)
  if url == nil or url == "" then error(variable .. " must name a server for the specs") end
  return url
end

function Postgres.check()
  server "POSTGRES_URL"
  if os.execute "psql --version >/dev/null 2>&1" ~= 0 then
    error "the program psql is missing: specs look into the database with it"
  end
end

--- psql(folder, url, sql): its result.
local function psql(folder, url, sql)
  return folder:exec("psql", url, "-XqAtb", "-v", "ON_ERROR_STOP=1", { stdin = sql })
end

local schemas = 0

function Postgres.at(folder, url)
  return setmetatable({ folder = folder, schema = "public", database = url:match "^%w+://[^/]*/([^?]*)", url = url },
    Postgres)
end

function Postgres:create(folder, name)
  local server_url = server "POSTGRES_URL"
  schemas = schemas + 1
  local schema = ("spec_%s_%d"):format(folder.root:match "(%w+)$" or "x", schemas):lower()
  local url = ("%s%soptions=-csearch_path%%3D%s"):format(server_url, server_url:find "?" and "&" or "?", schema)
  local made = setmetatable({ folder = folder, path = name, schema = schema, url = url }, { __index = self })
  local result = psql(folder, server_url, ("CREATE SCHEMA %s;"):format(schema))
  if result.code ~= 0 then error(result.err, 2) end
  folder:on_close(function() -- nobody waits for it
    os.execute(("psql %s -Xq -c 'SET client_min_messages = error' -c 'DROP SCHEMA %s CASCADE' &"):format(
      process.quote(server_url), schema))
  end)
  return made
end

--- create_alone(folder): a database instead of a schema, for rules about who else
-- is in it.
function Postgres:create_alone(folder)
  local made = self:create(folder)
  local server_url = server "POSTGRES_URL"
  local name = made.schema
  local result = psql(folder, server_url, ("CREATE DATABASE %s;"):format(name))
  if result.code ~= 0 then error(result.err, 2) end
  folder:on_close(function()
    os.execute(("psql %s -Xq -c 'DROP DATABASE %s WITH (FORCE)'"):format(process.quote(server_url), name))
  end)
  return Postgres.at(folder, (server_url:gsub("^(%w+://[^/?]*)/?[^?]*", "%1/" .. name)))
end

function Postgres:query(sql)
  sql = sql:gsub(";%s*$", "")
  local result = psql(self.folder, self.url, ("SELECT coalesce(json_agg(q), '[]') FROM (%s) AS q;"):format(sql))
  if result.code ~= 0 then error(("%s\n%s"):format(result.err, sql), 2) end
  return json.decode(result.out)
end

function Postgres:value(sql)
  local result = psql(self.folder, self.url, sql)
  if result.code ~= 0 then error(("%s\n%s"):format(result.err, sql), 2) end
  return (result.out:gsub("\n$", ""))
end

Postgres.execute = Postgres.value

Postgres.client = Postgres.value

function Postgres:command(sql)
  local result = self.folder:exec("psql", self.url, "-XqAtb", "-v", "ON_ERROR_STOP=1", "-c", sql)
  if result.code ~= 0 then error(("%s\n%s"):format(result.err, sql), 2) end
end

function Postgres:hold(sql)
  local held = other_session(self, ("psql %s -XqAtb -v ON_ERROR_STOP=1"):format(process.quote(self.url)),
    "SELECT 'session ' || pg_backend_pid();\n" .. sql:gsub("BEGIN IMMEDIATE", "BEGIN"), "\\q")
  --- blocks(): whether some other session waits for it.
  function held.blocks()
    return self:value(("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"):format(
      held.said():match "session (%d+)")) ~= "0"
  end
  return held
end

function Postgres:hold_snapshot()
  return self:hold "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM EVENT_STORE;"
end

function Postgres.translate(sql)
  return (sql:gsub("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
    :gsub("%) STRICT", ")"):gsub("%f[%w]INTEGER%f[%W]", "BIGINT"):gsub("message_id TEXT", "message_id UUID"))
end

function Postgres.ddl(_, sql)
  return Postgres.translate(sql)
end

function Postgres:made()
  return #self:tables() > 0
end

function Postgres:wipe()
  self:execute(("SET client_min_messages = error; DROP SCHEMA %s CASCADE; CREATE SCHEMA %s"):format(
    self.schema, self.schema))
end

function Postgres:set_counter(position)
  self:value(("SELECT setval('EVENT_STORE_GLOBAL_POSITION', %d)"):format(position))
end

function Postgres:drop_counter()
  self:execute "DROP SEQUENCE EVENT_STORE_GLOBAL_POSITION"
end

function Postgres:shape()
  local result = self.folder:exec("pg_dump", self.url, "--schema-only", "--schema=" .. self.schema)
  if result.code ~= 0 then error(result.err, 2) end
  return (result.out:gsub(self.schema, "spec"):gsub("\\%l*restrict %w+", ""))
end

function Postgres.hex(_, column)
  return ("upper(encode(convert_to(%s::text, 'UTF8'), 'hex'))"):format(column)
end

function Postgres.moment(_, time)
  return time
end

function Postgres:lock_for_writers()
  local tables = {}
  for i, row in ipairs(self:query [[
      SELECT relname AS name FROM pg_class
       WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace]]) do
    tables[i] = row.name
  end
  return self:hold(("BEGIN; LOCK TABLE %s IN EXCLUSIVE MODE;"):format(table.concat(tables, ", ")))
end

--- tables(): in upper case, as the configuration names them; sequences stand
-- for counter tables.
function Postgres:tables()
  local names = {}
  for i, row in ipairs(self:query [[
      SELECT upper(relname) AS name FROM pg_class
       WHERE relkind IN ('r', 'S') AND relnamespace = current_schema()::regnamespace ORDER BY 1]]) do
    names[i] = row.name
  end
  return names
end

function Postgres.intact()
  return true
end

-- PostgreSQL behind pgbouncer in transaction mode (POOLED_URL), which takes no
-- `options`: a database of the spec instead of a schema.
local Pooled = setmetatable({ configuration = "prepare = false, " }, { __index = Postgres })
Pooled.__index = Pooled

function Pooled.check()
  server "POOLED_URL"
  Postgres.check()
end

function Pooled:create(folder, name)
  local server_url = server "POSTGRES_URL"
  schemas = schemas + 1
  local database = ("spec_%s_%d"):format(folder.root:match "(%w+)$" or "x", schemas):lower()
  local result = psql(folder, server_url, ("CREATE DATABASE %s;"):format(database))
  if result.code ~= 0 then error(result.err, 2) end
  folder:on_close(function()
    os.execute(("psql %s -Xq -c 'DROP DATABASE %s WITH (FORCE)'"):format(process.quote(server_url), database))
  end)
  local function of(url)
    return (url:gsub("/[^/]*$", "/" .. database))
  end
  return setmetatable({ folder = folder, path = name, schema = "public", url = of(server "POOLED_URL"),
    direct = of(server_url) }, { __index = self })
end

return { postgres = Postgres, pooled = Pooled }
