-- MariaDB -- a database of its own on the server that MARIADB_URL names; looked
-- into from outside with the program mariadb, whose session quotes and adds
-- text as the host's does.
local other_session = require "spec.support.other_session"
local process = require "spec.support.process"

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
    :gsub("%f[%w]UUID%f[%W]", "CHAR(36)"):gsub("%) STRICT", ")"))
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
  folder:on_close(function() -- nobody waits for it
    local line = { "MYSQL_PWD=" .. process.quote(password), "mariadb" }
    for _, word in ipairs(words) do line[#line + 1] = process.quote(word) end
    os.execute(("%s --execute='DROP DATABASE IF EXISTS %s' &"):format(table.concat(line, " "), database))
  end)
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
  return Mysql.translate(sql)
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

return Mysql
