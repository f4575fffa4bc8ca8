-- The databases that specs run on. A spec says what it needs once and runs on
-- each of them:
--
--   dialect.each(function(database)
--     it("...", function()
--       local app = application.new { database = database }
--
-- A database that cannot be started fails the run; none is left out in silence.
local json = require("moontide").json
local process = require "spec.support.process"

local dialect = {}

-- SQLite -- a file in the folder of the spec; looked into from outside with
-- the program sqlite3.
local Sqlite = { name = "sqlite" }
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

--- hold(sql): another session that ran this and keeps its locks until
-- release() is called on the result.
function Sqlite:hold(sql)
  self.holds = (self.holds or 0) + 1
  local said = ("%s/hold-%d"):format(self.folder.root, self.holds)
  local pipe = assert(io.popen(("sqlite3 -batch -bail %s >%s 2>&1"):format(
    process.quote(self.path), process.quote(said)), "w"))
  assert(pipe:write(".timeout 10000\n", sql, "\nSELECT 'it is held';\n"))
  pipe:flush()
  local held = {}
  function held.release()
    if pipe == nil then return end
    pipe:write "ROLLBACK;\n"
    pipe:close()
    pipe = nil
  end
  self.folder:on_close(held.release)
  process.wait_until(function()
    return (process.read_file(said) or ""):find("it is held", 1, true)
  end, 15, function() return "the lock of another session: " .. (process.read_file(said) or "") end)
  return held
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

local KNOWN = { sqlite = Sqlite }
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

--- each(fn): fn(database) inside a describe of its own, per database.
function dialect.each(fn)
  local describe = getfenv(fn).describe -- busted gives its words to spec files only
  for _, database in ipairs(dialect.list()) do
    describe("on " .. database.name, function()
      fn(setmetatable({}, database))
    end)
  end
end

--- sqlite(): for rules that only a file can break.
function dialect.sqlite()
  Sqlite.check()
  return setmetatable({}, Sqlite)
end

return dialect
