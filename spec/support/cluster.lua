-- Database servers of one spec, which may crash, stand by and be turned into
-- read-only ones without a harm to others. Their programs are those that
-- scripts/servers uses; their data lies beside the folder of the spec.
--
--   local primary = cluster.postgres(app)
--   local standby = primary:standby()
--   app.db = dialect.at("postgres", app, primary.url)
local process = require "spec.support.process"

local cluster = {}

local LIMIT = 900 -- seconds that a server lives at most, whatever becomes of the spec
local START_LIMIT = 60

local function command(text)
  local pipe = assert(io.popen(text))
  local line = pipe:read "*l"
  pipe:close()
  return line or ""
end

-- Servers refuse to run as root: as the user then that their package made.
local function as(user)
  if command "id -u" ~= "0" then return {} end
  return { "setpriv", "--reuid", user, "--regid", user, "--init-groups", "--" }
end

local function join(...)
  local words = {}
  for _, list in ipairs { ... } do
    for _, word in ipairs(list) do words[#words + 1] = word end
  end
  return words
end

local function run(folder, words)
  local result = folder:exec(unpack(words))
  if result.code ~= 0 then error(("%s\n%s%s"):format(table.concat(words, " "), result.out, result.err), 3) end
end

-- A folder for a server's data that its user may write to.
local function place(folder, user, name)
  folder.clusters = (folder.clusters or 0) + 1
  local path = ("%s/%s-%d"):format(folder.root, name, folder.clusters)
  run(folder, { "mkdir", path })
  run(folder, { "chmod", "755", folder.root })
  if command "id -u" == "0" then run(folder, { "chown", user, path }) end
  return path
end

local function free_port()
  return tonumber(command [[python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])']])
end

local Server = {}
Server.__index = Server

--- start(): gives it when it answers.
function Server:start()
  local words = { unpack(self.words) }
  words[#words + 1] = { timeout = LIMIT }
  self.process = self.folder:launch(unpack(words))
  process.wait_until(function()
    if not self.process:alive() then error("the server has ended\n" .. self.process:err()) end
    return self.folder:exec(unpack(self.probe)).code == 0
  end, START_LIMIT, function() return "the start of a server\n" .. self.process:err() end)
  return self
end

--- stop(signal): and waits until it is gone.
function Server:stop(signal)
  self.process:signal(signal)
  self.process:wait(START_LIMIT)
end

-- PostgreSQL
local Postgres = setmetatable({}, { __index = Server })
Postgres.__index = Postgres

local function bin()
  local path = command "ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1"
  assert(path ~= "", "the programs of a PostgreSQL server are missing")
  return path
end

local function postgres_at(folder, path)
  local self = setmetatable({ folder = folder, path = path, port = free_port() }, Postgres)
  self.host = "127.0.0.1:" .. self.port
  self.url = ("postgresql://moontide@%s/postgres"):format(self.host)
  self.words = join(as "postgres", { bin() .. "/postgres", "-D", path .. "/data", "-p", self.port,
    "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" .. path, "-c", "fsync=off" })
  self.probe = { "psql", self.url, "-Xqc", "SELECT 1" }
  return self
end

--- postgres(folder): a running server with a cluster of its own.
function cluster.postgres(folder)
  local path = place(folder, "postgres", "postgres")
  run(folder, join(as "postgres", { bin() .. "/initdb", "-D", path .. "/data", "-U", "moontide", "-A", "trust",
    "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", { cwd = path } }))
  return postgres_at(folder, path):start()
end

--- crash(): without a word to anybody; what was committed is there again.
function Postgres:crash()
  self:stop "QUIT"
end

--- standby(): a running server that follows this one, and may be asked.
function Postgres:standby()
  local path = place(self.folder, "postgres", "standby")
  run(self.folder, join(as "postgres", { bin() .. "/pg_basebackup", "-D", path .. "/data", "-d", self.url, "-R",
    "-X", "stream", "-c", "fast", "--no-sync", { cwd = path } }))
  return postgres_at(self.folder, path):start()
end

--- age(transaction): the stopped server goes on with this transaction id, a
-- multiple of 32768 (where a page of the commit log begins).
function Postgres:age(transaction)
  run(self.folder, join(as "postgres", { bin() .. "/pg_resetwal", "-x", transaction, self.path .. "/data" }))
end

--- copy_to(other): as with a dump and a restore.
function Postgres:copy_to(other)
  local dump = self.folder:exec("pg_dump", self.url, "--no-owner")
  if dump.code ~= 0 then error(dump.err, 2) end
  local result = self.folder:exec("psql", other.url, "-Xq", "-v", "ON_ERROR_STOP=1", { stdin = dump.out })
  if result.code ~= 0 then error(result.err, 2) end
end

--- value(sql): the first column of the only row.
function Postgres:value(sql)
  local result = self.folder:exec("psql", self.url, "-XqAtc", sql)
  if result.code ~= 0 then error(result.err, 2) end
  return (result.out:gsub("\n$", ""))
end

--- await(other): until this standby has applied all that the other has written.
function Postgres:await(other)
  local written = other:value "SELECT pg_current_wal_lsn()"
  process.wait_until(function()
    return self:value(("SELECT pg_last_wal_replay_lsn() >= '%s'"):format(written)) == "t"
  end, 30, "the standby to follow")
end

--- promote(): this standby takes writes from now on.
function Postgres:promote()
  assert(self:value "SELECT pg_promote(true, 30)" == "t", "the standby was not promoted")
end

-- MariaDB
local Mariadb = setmetatable({}, { __index = Server })
Mariadb.__index = Mariadb

function Mariadb:crash()
  self:stop "KILL"
end

--- mariadb(folder): a running server with data of its own. `user` may do
-- everything but write to a read-only server.
function cluster.mariadb(folder)
  local path = place(folder, "mysql", "mariadb")
  run(folder, join(as "mysql", { "mariadb-install-db", "--no-defaults", "--datadir=" .. path .. "/data",
    "--auth-root-authentication-method=normal", "--skip-test-db", { cwd = path } }))
  local port = free_port()
  local self = setmetatable({ folder = folder, path = path, port = port }, Mariadb)
  self.words = join(as "mysql", { "/usr/sbin/mariadbd", "--no-defaults", "--datadir=" .. path .. "/data",
    "--socket=" .. path .. "/socket", "--port=" .. port, "--bind-address=127.0.0.1", "--pid-file=" .. path .. "/pid",
    "--skip-log-bin", "--innodb-flush-log-at-trx-commit=2" })
  self.probe = { "mariadb", "--no-defaults", "--user=root", "--socket=" .. path .. "/socket", "-e", "SELECT 1" }
  self:start()
  self:execute [[
    CREATE DATABASE moontide;
    CREATE USER moontide@'127.0.0.1'; GRANT ALL ON moontide.* TO moontide@'127.0.0.1';
    CREATE USER admin@'127.0.0.1'; GRANT ALL ON *.* TO admin@'127.0.0.1']]
  self.url = ("mysql://moontide@127.0.0.1:%d/moontide"):format(port)
  self.admin_url = ("mysql://admin@127.0.0.1:%d/moontide"):format(port)
  return self
end

--- execute(sql): as the server's administrator.
function Mariadb:execute(sql)
  local words = { unpack(self.probe) }
  words[#words] = sql
  run(self.folder, words)
end

return cluster
