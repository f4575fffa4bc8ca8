-- What `moontide schema print` gives is taken apart here as Flyway and
-- Liquibase take it apart, and run statement by statement.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local HANDLER = [[
local moontide = require "moontide"
return moontide.projection "things" {
  fields = { n = moontide.types.integer { optional = true } },
  on = { ["thing.Happened"] = function(state) state.n = (state.n or 0) + 1 end },
}]]

local OWN = [[schema = { prefix = "acme_", aggregates = { ["shop.order"] = { events = "order_events" } } }]]

local KINDS = {
  "^CREATE TABLE IF NOT EXISTS ", "^CREATE INDEX IF NOT EXISTS ", "^CREATE SEQUENCE IF NOT EXISTS ",
  "^INSERT INTO ", "^CREATE OR REPLACE FUNCTION .*AS %$append%$.*%$append%$", "^CREATE OR REPLACE PROCEDURE .*END $",
}

-- The changesets: a list of { id, attributes, lines }.
local function changesets(ddl)
  local sets, ignored = {}, 0
  assert.equal("-- liquibase formatted sql", ddl:match "^[^\n]*")
  for line in ddl:gmatch "([^\n]*)\n" do
    local id, rest = line:match "^%-%- changeset moontide:(%S+)(.*)$"
    if id then
      local set = { id = id, lines = {}, attributes = {} }
      for name, value in rest:gmatch "(%w+):(%S+)" do set.attributes[name] = value end
      sets[#sets + 1] = set
    elseif line:find "^%-%- ignoreLines:%d" then
      ignored = tonumber(line:match "%d+")
    elseif ignored > 0 then
      ignored = ignored - 1
    elseif sets[1] then
      table.insert(sets[#sets].lines, line)
    end
  end
  return sets
end

-- The statements of one, without comments between them.
local function statements(set)
  local list, current = {}, {}
  local delimiter = set.attributes.endDelimiter or ";"
  local whole = set.attributes.splitStatements == "false"
  local function close()
    local text = table.concat(current, "\n")
    if text:find "%S" then list[#list + 1] = text:gsub("^%s+", "") end
    current = {}
  end
  for _, line in ipairs(set.lines) do
    local comment = line:find "^%-%-"
    if not whole and not comment and line:sub(-#delimiter) == delimiter then
      current[#current + 1] = line:sub(1, -#delimiter - 1)
      close()
    elseif current[1] or not comment and line:find "%S" then
      current[#current + 1] = line
    end
  end
  close()
  return list
end

dialect.each(function(database)
  local app

  before_each(function()
    app = application.new { database = database, handlers = { ["things.lua"] = HANDLER } }
  end)

  after_each(function()
    app:close()
  end)

  describe("a migration tool", function()
    it("finds a changeset for each script, each of its own name", function()
      app:configure(OWN)
      local seen, first = {}, nil
      for _, set in ipairs(changesets(app:ok("schema", "print"))) do
        assert.is_nil(seen[set.id], set.id)
        assert.is_true(#statements(set) > 0, set.id)
        first = first or set.id
        seen[set.id] = set
      end
      assert.equal("schema-version", first)
      assert.truthy(seen["event-store"])
      assert.truthy(seen["event-store-order_events"])
    end)

    it("finds statements of which each is one command", function()
      for _, set in ipairs(changesets(app:ok("schema", "print"))) do
        for _, statement in ipairs(statements(set)) do
          local kind = false
          for _, beginning in ipairs(KINDS) do kind = kind or statement:find(beginning) end
          assert.is_truthy(kind, statement)
        end
      end
    end)

    it("makes the tables that the host makes, and the host needs no more", function()
      for _, config in ipairs { "", OWN } do
        local other = application.new { database = database, handlers = { ["things.lua"] = HANDLER }, config = config }
        finally(function() other:close() end)
        local made = database:create(other, "made.db")
        for _, set in ipairs(changesets(other:ok("schema", "print"))) do
          for _, statement in ipairs(statements(set)) do made:command(statement) end
        end
        other:ok("schema", "upgrade")
        assert.same(other.db:tables(), made:tables())
        other:write("events.ndjson", application.ndjson { {} })
        other:ok("append", "events.ndjson", "--database", made.url, { env = { MOONTIDE_SCHEMA_CREATE = "false" } })
      end
    end)

    it("fills the placeholders with the names that schema names gives", function()
      app:configure [[schema = { prefix = "acme_", tables = { CONSUMERS = "readers" } }]]
      local names = app:json("schema", "names")
      assert.equal("acme_readers", names.consumers_table)
      local filled = app:ok("schema", "print", "--raw"):gsub("%${([%w_]+)}", names)
      assert.equal(app:ok("schema", "print"), filled)
      for line in app:ok("schema", "names"):gmatch "[^\n]+" do
        local name, value = line:match "^([%w_]+)=([%w_]+)$"
        assert.equal(names[name], value)
        names[name] = nil
      end
      assert.same({}, names)
    end)
  end)
end)
