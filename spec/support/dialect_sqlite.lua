-- SQLite -- a file in the folder of the spec; looked into from outside with
-- the program sqlite3.
local json = require("moontide").json
local other_session = require "spec.support.other_session"
local process = require "spec.support.process"

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

return Sqlite
