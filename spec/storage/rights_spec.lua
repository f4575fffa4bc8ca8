-- The rights of a host's user: those that the manual lists are enough, and one
-- that is lacking is told at the start, before the host is anything to others.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local folder = require "spec.support.folder"
local process = require "spec.support.process"

local HANDLERS = [[
local moontide = require "moontide"
local t = moontide.types
return {
  moontide.projection "sums" { fields = { n = t.integer() },
    on = { ["thing.Happened"] = function(state, event)
      if event.payload.last then return nil end
      return { n = (state and state.n or 0) + 1 }
    end } },
  moontide.publisher "mail" { to = "stdout:" },
  moontide.listener "relay" { start = "beginning",
    on = { ["thing.Happened"] = function(event, ctx)
      ctx:emit("thing.Seen", {}, { key = event.key })
      ctx:publish("mail", "mail.Send", {})
    end } },
  moontide.saga "watch" { id = function(event) return event.aggregate_id end, start = "beginning",
    starts = { "thing.Happened" },
    on = { ["thing.Happened"] = function(saga, event)
      if event.payload.last then return saga:complete() end
      saga:deadline("later", "1h")
    end },
    deadlines = { later = function() end } },
}]]

-- The table of the manual: { table, right } each, beside SELECT on all.
local function documented()
  local text = assert(process.read_file(folder.source "docs/schema.md"))
  local list = {}
  for rights, tables in assert(text:match "| rights | on |(.-)\n\n"):gmatch "\n| ([^|]+) | ([^|]+) |" do
    for right in rights:gmatch "%f[%w]%u%u%u+%f[%W]" do
      if right == "SELECT" then tables = "" end
      for name in tables:gmatch "%f[%w_]%u[%u_]+%f[^%w_]" do list[#list + 1] = { name, right } end
    end
  end
  assert(#list > 30, "the manual has no table of rights")
  return list
end

dialect.servers(function(database)
  local postgres = database.name == "postgres"

  describe("a host's user who owns no table", function()
    local app, role, url

    local function on_sequence(name)
      return postgres and name:find "_POSITIONS?$"
    end

    -- The manual has both words where they differ.
    local function statement(verb, name, right)
      if right == "USAGE" and not postgres or right ~= "USAGE" and right ~= "SELECT" and on_sequence(name) then
        return nil
      end
      local kind = on_sequence(name) and "SEQUENCE " or ""
      local who = postgres and role or ("%s@'%%'"):format(role)
      return ("%s %s ON %s%s %s %s"):format(verb, right, kind, name, verb == "GRANT" and "TO" or "FROM", who)
    end

    before_each(function()
      app = application.new { database = database, config = "partitions = 12", handlers = { ["all.lua"] = HANDLERS } }
      app:ok("run", "--until-idle")
      app:configure "partitions = 12, schema = { create = false }"
      role = ("spec_%s"):format(app.root:match "(%w+)$"):lower()
      url = app.db.url:gsub("://[^/@]*@", "://" .. role .. ":secret@")
      if postgres then
        app.db:execute(("CREATE ROLE %s LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA %s TO %s"):format(role,
          app.db.schema, role))
        app:on_close(function() app.db:execute(("DROP OWNED BY %s; DROP ROLE %s"):format(role, role)) end)
      else
        app.db:execute(("CREATE USER %s@'%%' IDENTIFIED BY 'secret'"):format(role))
        app:on_close(function() app.db:execute(("DROP USER %s@'%%'"):format(role)) end)
      end
      local grants = {}
      for _, name in ipairs(app.db:tables()) do grants[#grants + 1] = statement("GRANT", name, "SELECT") end
      for _, wanted in ipairs(documented()) do grants[#grants + 1] = statement("GRANT", wanted[1], wanted[2]) end
      for _, right in ipairs { "SELECT", "INSERT", "UPDATE", "DELETE" } do
        grants[#grants + 1] = statement("GRANT", "sums", right)
      end
      app.db:execute(table.concat(grants, ";\n"))
    end)

    after_each(function() app:close() end)

    it("can do all with the rights that the manual lists", function()
      app:append { {}, {}, { aggregate_id = "A-2" }, { aggregate_id = "A-2", payload = '{"last":true}' } }
      app:ok("run", "--until-idle", "--database", url)
      assert.equal(2, app:json("read", "sums", "A-1")[1].state.n)
      assert.equal(4, app:count "EVENT_CAPTURE_RECORDS")
      assert.equal(4, app:count "OUTBOX")
      assert.equal(2, app:count "SAGA_INSTANCES")
      assert.equal(1, app:count "SAGA_DEADLINES")
      local host = app:start("run", "--workers", "1", "--database", url)
      app:append { {} }
      process.wait_until(function() return app:count "OUTBOX" == 5 end, 30, function() return host:err() end)
      host:signal "TERM"
      assert.equal(0, host:wait(30).code, host:err())
    end)

    it("can read with the rights of a reader that the manual lists, and is told the GRANT of a lacking one", function()
      app:append { {} }
      app:ok("run", "--until-idle")
      local who = postgres and role or ("%s@'%%'"):format(role)
      for _, wanted in ipairs(documented()) do
        if wanted[2] ~= "SELECT" then
          local revoke = statement("REVOKE", wanted[1], wanted[2])
          if revoke then app.db:execute(revoke) end
        end
      end
      app.db:execute(("REVOKE INSERT, UPDATE, DELETE ON sums FROM %s"):format(who))
      app:ok("status", "--database", url)
      assert.equal(1, app:json("read", "sums", "A-1", "--database", url)[1].state.n)
      app:ok("events", "--database", url)
      app:ok("topics", "--database", url)
      app:ok("dead-letters", "--database", url)
      if postgres then
        app.db:execute(("REVOKE SELECT ON SEQUENCE EVENT_STORE_GLOBAL_POSITION FROM %s"):format(role))
        assert.matches(("; GRANT SELECT ON SEQUENCE event_store_global_position TO %s"):format(role),
          app:fails(1, "status", "--database", url), 1, true)
      end
    end)

    it("is refused without any one of them, told the right and the table, and has begun nothing", function()
      app:append { {} }
      local versions = app:count "SCRIPT_VERSIONS"
      for _, wanted in ipairs {
        { "sums", "DELETE" }, { "sums", "INSERT" }, { "CONSUMERS", "INSERT" }, { "CONSUMER_CHECKPOINTS", "UPDATE" },
        { "CONSUMER_SKIPPED_MESSAGES", "SELECT" }, { "PARTITION_MEMBERS", "DELETE" }, { "READ_MODEL_EPOCHS", "UPDATE" },
        { "SAGA_STEPS", "DELETE" }, { "COMMAND_RESULTS", "DELETE" }, { "EVENT_CAPTURE_RECORDS", "INSERT" },
        { "EVENT_CAPTURE_GLOBAL_POSITION", postgres and "USAGE" or "UPDATE" }, { "OUTBOX", "INSERT" },
      } do
        local name, right = unpack(wanted)
        app.db:execute(statement("REVOKE", name, right))
        local err = app:fails(3, "run", "--database", url)
        assert.matches(name:lower(), err:lower(), 1, true)
        assert.matches(right, err, 1, true)
        assert.matches("GRANT", err, 1, true)
        app.db:execute(statement("GRANT", name, right))
      end
      assert.equal(0, app:count "PARTITION_INSTANCES")
      assert.equal(0, app:count "PARTITION_MEMBERS")
      assert.equal(versions, app:count "SCRIPT_VERSIONS")
      app:ok("run", "--until-idle", "--database", url)
    end)
  end)
end)
