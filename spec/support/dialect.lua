-- The databases that specs run on. A spec says what it needs once and runs on
-- each of them:
--
--   dialect.each(function(database)
--     it("...", function()
--       local app = application.new { database = database }
--
-- A database that cannot be started fails the run; none is left out in silence.
local mysql = require "spec.support.dialect_mysql"
local own_words = require "spec.support.words"
local postgres = require "spec.support.dialect_postgres"
local sqlite = require "spec.support.dialect_sqlite"

local dialect = {}

local KNOWN = { sqlite = sqlite, postgres = postgres.postgres, mysql = mysql }
for name, database in pairs(KNOWN) do
  for word, value in pairs(own_words[name]) do database[word] = value end
end
KNOWN.pooled = postgres.pooled -- with the words of PostgreSQL
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
  sqlite.check()
  return setmetatable({}, sqlite)
end

return dialect
