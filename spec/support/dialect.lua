-- The databases that specs run on. A spec says what it needs once and runs on
-- each of them:
--
--   dialect.each(function(database)
--     it("...", function()
--       local app = application.new { database = database }
--
-- A database that cannot be started fails the run; none is left out in silence.
local json = require("moontide").json
local other_session = require "spec.support.other_session"
local own_words = require "spec.support.words"
local process = require "spec.support.process"

local dialect = {}

-- SQLite -- a file in the folder of the spec; looked into from outside with
-- the program sqlite3.
local Sqlite = {
  name = "sqlite",
  gap_free = true, -- a position that was drawn and not kept is drawn again
}
Sqlite.__index = Sqlite

function Sqlite.check()
  if os.execute "sqlite3 -version >/dev/null 2>&1" ~= 0 then
    error "the program sqlite3 is missing: specs look into the database with it"
  end
end

--- A fresh database of this folder (a spec.support.folder). Not made yet: the
-- program under test does that.
function Sqlite:create(folder, name)
  local path = folder:file(name or "moontide.db")
  return setmetatable({ folder = folder, path = path, url = "sqlite:" .. path }, { __index = self })
end

--- query(sql): the rows, each a table by column.
function Sqlite:query(sql)
  local result = self.folder:exec("sqlite3", "-batch", "-bail", "-json", "-cmd", ".timeout 10000", self.path,
    { stdin = sql })
  if result.code ~= 0 then error(("%s\n%s"):format(result.err, sql), 2) end
  if not result.out:find "%S" then return {} end
  return json.decode(result.out)
end

--- value(sql): the first column of the only row.
function Sqlite:value(sql)
  local result = self.folder:exec("sqlite3", "-batch", "-bail", "-cmd", ".timeout 10000", self.path, { stdin = sql })
  if result.code ~= 0 then error(("%s\n%s"):format(result.err, sql), 2) end
  return (result.out:gsub("\n$", ""))
end

Sqlite.execute = Sqlite.value

--- command(sql): sends one statement as it is, as a driver does and as no
-- client that looks for the end of a statement.
Sqlite.command = Sqlite.value
Sqlite.client = Sqlite.value

--- hold(sql): another session that ran this and keeps its locks until
-- release() is called on the result, or commit().
function Sqlite:hold(sql)
  return other_session(self, "sqlite3 -batch -bail " .. process.quote(self.path), ".timeout 10000\n" .. sql, ".quit")
end

--- hold_snapshot(): another session that reads for long.
function Sqlite:hold_snapshot()
  return self:hold "BEGIN; SELECT count(*) FROM EVENT_STORE;"
end

--- translate(sql): the types of a spec's own tables, which are those of SQLite
-- and UUID, in the words of this database.
function Sqlite.translate(sql)
  return (sql:gsub("%f[%w]UUID%f[%W]", "TEXT"))
end

--- ddl(sql): SQL of a spec, written for SQLite, in the words of this database.
function Sqlite.ddl(_, sql)
  return Sqlite.translate(sql)
end

--- made(): whether anything is there.
function Sqlite:made()
  return process.read_file(self.path) ~= nil
end

--- wipe(): back to what create() gave.
function Sqlite:wipe()
  for _, ending in ipairs { "", "-wal", "-shm" } do os.remove(self.path .. ending) end
end

--- set_counter(position), drop_counter(): that of the event store, as after a
-- restore or a mistake.
function Sqlite:set_counter(position)
  self:execute("UPDATE EVENT_STORE_GLOBAL_POSITION SET val = " .. position)
end

function Sqlite:drop_counter()
  self:execute "DELETE FROM EVENT_STORE_GLOBAL_POSITION"
end

--- shape(): all that the scripts made, comparable with another database's.
function Sqlite:shape()
  return self:query "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
end

--- hex(column): an expression for the bytes of a text as hexadecimal digits.
function Sqlite.hex(_, column)
  return ("hex(%s)"):format(column)
end

--- moment(time): an RFC 3339 time in UTC as this database takes it.
function Sqlite.moment(_, time)
  return time
end

--- lock_for_writers(): as another program that writes for long.
function Sqlite:lock_for_writers()
  return self:hold "BEGIN EXCLUSIVE;"
end

--- tables(): the names of all tables, sorted.
function Sqlite:tables()
  local names = {}
  for i, row in ipairs(self:query [[
      SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name]]) do
    names[i] = row.name
  end
  return names
end

--- intact(): raises unless the engine finds its file whole.
function Sqlite:intact()
  local answer = self:value "PRAGMA integrity_check"
  if answer ~= "ok" then error(answer, 2) end
  return true
end

-- PostgreSQL -- a schema of the spec on the server that POSTGRES_URL names;
-- looked into from outside with the program psql.
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
  folder:on_close(function()
    os.execute(("psql %s -Xq -c 'SET client_min_messages = error' -c 'DROP SCHEMA %s CASCADE'"):format(
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

Postgres.moment = Sqlite.moment

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
  return setmetatable({ folder = folder, path = name, schema = "public", url = of(server "POOLED_URL") },
    { __index = self })
end

-- MariaDB -- a database of its own on the server that MARIADB_URL names; looked
-- into from outside with the program mariadb, whose session quotes and adds
-- text as the host's does.
local Mysql = { name = "mysql", gap_free = true }
Mysql.__index = Mysql

local MODE = "SET sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES',"
  .. " time_zone = '+00:00'"

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- The parts of the server's URL, as words of the program mariadb.
local function server_of(url)
  local user_part, host = url:match "^%w+://([^/?]*)@([^@/?]*)"
  if user_part == nil then user_part, host = "", url:match "^%w+://([^/?]*)" end
  local user, password = user_part:match "^([^:]*):?(.*)$"
  local name, port = host:match "^%[?([^%]]-)%]?:?(%d*)$"
  local words = { "--no-defaults", "--default-character-set=utf8mb4", "--init-command=" .. MODE, "--comments",
    "--batch" }
  local function add(option, value)
    if value ~= nil and value ~= "" then words[#words + 1] = option .. decoded(value) end
  end
  add("--user=", user)
  add("--host=", name)
  add("--port=", port)
  add("--socket=", url:match "[?&]socket=([^&]*)")
  return words, decoded(password)
end

--- translate(sql): column types of a spec's own tables, which are written for
-- SQLite; none of their texts is longer than a key.
function Mysql.translate(sql)
  return (sql:gsub("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT AUTO_INCREMENT PRIMARY KEY")
    :gsub("%f[%w]TEXT%f[%W]", "VARCHAR(255)"):gsub("%f[%w]INTEGER%f[%W]", "BIGINT")
    :gsub("%f[%w]UUID%f[%W]", "CHAR(36)"))
end

function Mysql.check()
  local url = os.getenv "MARIADB_URL"
  if url == nil or url == "" then
    error "MARIADB_URL names no server for the specs on mysql"
  end
  if os.execute "mariadb --version >/dev/null 2>&1" ~= 0 then
    error "the program mariadb is missing: specs look into the database with it"
  end
end

function Mysql.at(folder, url)
  local words, password = server_of(url)
  return setmetatable({ folder = folder, words = words, password = password, url = url,
    database = url:match "^%w+://[^/]*/([^?]*)" }, Mysql)
end

function Mysql:create(folder, name)
  local url = os.getenv "MARIADB_URL"
  local database = "spec" .. folder.root:gsub("%W", "_") .. (name and name:gsub("%W", "_") or "")
  local words, password = server_of(url)
  local made = setmetatable({
    folder = folder, database = database, words = words, password = password,
    url = (url:gsub("^(%w+://[^/?]*)/?[^?]*", "%1/" .. database)),
  }, { __index = self })
  made:run("", "DROP DATABASE IF EXISTS " .. database .. "; CREATE DATABASE " .. database)
  folder:on_close(function() made:run("", "DROP DATABASE IF EXISTS " .. database) end)
  return made
end

function Mysql:run(database, sql, ...)
  local words = { unpack(self.words) }
  for _, word in ipairs { ... } do words[#words + 1] = word end
  words[#words + 1] = "--database=" .. database
  words[#words + 1] = { stdin = sql, env = { MYSQL_PWD = self.password } }
  local result = self.folder:exec("mariadb", unpack(words))
  if result.code ~= 0 then error(("%s\n%s"):format(result.err, sql), 3) end
  return result.out
end

-- A field of a line: NULL is nil, whole numbers are numbers.
local SIGNS = { n = "\n", t = "\t", ["0"] = "\0", ["\\"] = "\\" }
local function field_of(text)
  if text == "NULL" then return nil end
  if text:match "^-?%d+$" and #text < 16 then return tonumber(text) end
  return (text:gsub("\\(.)", SIGNS))
end

local function split(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do fields[#fields + 1] = field end
  return fields
end

function Mysql:query(sql)
  local rows, names = {}, nil
  for line in self:run(self.database, sql):gmatch "[^\n]+" do
    local fields = split(line)
    if names == nil then
      names = fields
    else
      local row = {}
      for i, name in ipairs(names) do row[name] = field_of(fields[i]) end
      rows[#rows + 1] = row
    end
  end
  return rows
end

function Mysql:value(sql)
  local out = self:run(self.database, sql, "--skip-column-names"):gsub("\n$", "")
  out = out:gsub("\t", "|"):gsub("%f[^|%z]NULL%f[|%z]", "")
  return (out:gsub("\\(.)", SIGNS))
end

Mysql.execute = Mysql.value

--- client(sql): in the server's own mode, as a person with the client does.
function Mysql:client(sql)
  self:run(self.database, sql, "--init-command=SET sql_mode = DEFAULT", "--comments")
end

function Mysql:command(sql)
  self:run(self.database, sql .. "\n;;;;\n", "--delimiter=;;;;")
end

function Mysql:hold(sql)
  local words = { "MYSQL_PWD=" .. process.quote(self.password), "mariadb" }
  for _, word in ipairs(self.words) do words[#words + 1] = process.quote(word) end
  words[#words + 1] = "--unbuffered --skip-column-names " .. self.database
  local held = other_session(self, table.concat(words, " "),
    "SELECT concat('session ', connection_id());\n" .. sql:gsub("BEGIN %u+", "BEGIN"), "\\q")
  function held.blocks()
    process.pause(150) -- who asks more often than every 100 ms is told the same
    return self:value(([[SELECT count(*) FROM information_schema.innodb_lock_waits w
      JOIN information_schema.innodb_trx t ON t.trx_id = w.blocking_trx_id WHERE t.trx_mysql_thread_id = %s]]):format(
      held.said():match "session (%d+)")) ~= "0"
  end
  return held
end

function Mysql:hold_snapshot()
  return self:hold "START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT count(*) FROM EVENT_STORE;"
end

function Mysql.ddl(_, sql)
  return (Mysql.translate(sql):gsub("%) STRICT", ")"))
end

function Mysql.moment(_, time)
  return (time:gsub("T", " "):gsub("Z$", ""))
end

function Mysql:made()
  return #self:tables() > 0
end

function Mysql:wipe()
  self:run("", ("DROP DATABASE %s; CREATE DATABASE %s"):format(self.database, self.database))
end

function Mysql:set_counter(position)
  self:execute("UPDATE EVENT_STORE_GLOBAL_POSITION SET val = " .. position)
end

function Mysql:drop_counter()
  self:execute "DELETE FROM EVENT_STORE_GLOBAL_POSITION"
end

function Mysql:shape()
  local shape = self:query [[
    SELECT routine_name, parameter_style, routine_definition FROM information_schema.routines
     WHERE routine_schema = DATABASE() ORDER BY routine_name]]
  for _, name in ipairs(self:tables()) do
    shape[#shape + 1] = self:value(("SHOW CREATE TABLE %q"):format(name))
  end
  return shape
end

function Mysql.hex(_, column)
  return ("hex(%s)"):format(column)
end

--- lock_for_writers(): nobody can append or move a checkpoint meanwhile.
function Mysql:lock_for_writers()
  return self:hold "BEGIN; SELECT val FROM EVENT_STORE_GLOBAL_POSITION FOR UPDATE;"
end

function Mysql:tables()
  local names = {}
  for name in self:value("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
      .. " AND table_type = 'BASE TABLE' ORDER BY BINARY table_name"):gmatch "[^\n]+" do
    names[#names + 1] = name
  end
  return names
end

function Mysql:intact()
  for _, name in ipairs(self:tables()) do
    local answer = self:value(("CHECK TABLE %q"):format(name))
    if not answer:find "status|OK" then error(answer, 2) end
  end
  return true
end

local KNOWN = { sqlite = Sqlite, postgres = Postgres, mysql = Mysql }
for name, database in pairs(KNOWN) do
  for word, value in pairs(own_words[name]) do database[word] = value end
end
KNOWN.pooled = Pooled -- with the words of PostgreSQL
local DEFAULT = "sqlite"

--- list(): the databases of this run: MOONTIDE_DIALECTS, or all there are.
function dialect.list()
  local list = {}
  local wanted = os.getenv "MOONTIDE_DIALECTS"
  for name in (wanted ~= nil and wanted ~= "" and wanted or DEFAULT):gmatch "[^%s,]+" do
    local database = KNOWN[name]
    if database == nil then error(("there is no database %q for specs"):format(name)) end
    database.check()
    list[#list + 1] = database
  end
  if #list == 0 then error "specs need at least one database" end
  return list
end

local function run_on(fn, wanted)
  local describe = getfenv(fn).describe -- busted gives its words to spec files only
  for _, database in ipairs(dialect.list()) do
    if wanted(database.name) then
      describe("on " .. database.name, function() fn(setmetatable({}, database)) end)
    end
  end
end

--- each(fn): fn(database) inside a describe of its own, per database.
function dialect.each(fn)
  run_on(fn, function() return true end)
end

--- servers(fn): the same for rules that only locks of single rows can break.
function dialect.servers(fn)
  run_on(fn, function(name) return name ~= "sqlite" end)
end

--- only(name, fn): the same for rules that one kind of database has.
function dialect.only(name, fn)
  run_on(fn, function(found) return found == name end)
end

--- at(name, folder, url): a database that is there already.
function dialect.at(name, folder, url)
  return KNOWN[name].at(folder, url)
end

--- sqlite(): for rules that only a file can break.
function dialect.sqlite()
  Sqlite.check()
  return setmetatable({}, Sqlite)
end

return dialect
