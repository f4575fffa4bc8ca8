-- Where tables lie on PostgreSQL: the current schema, which has to be there.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local VERBS = { { "run", "--until-idle" }, { "append" }, { "status" }, { "schema", "upgrade" }, { "read", "notes" } }

dialect.only("postgres", function(database)
  describe("a search_path", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = { ["notes.lua"] = [[
        return require("moontide").projection "notes" { on = { ["thing.Happened"] = function() end } }]] } }
    end)

    after_each(function() app:close() end)

    local function refused(url)
      local said
      for _, verb in ipairs(VERBS) do
        said = app:fails(69, "--database", url, unpack(verb))
        assert.is_nil(said:find("SQLSTATE", 1, true), said)
        assert.matches("CREATE SCHEMA", said, 1, true)
        assert.matches("GRANT USAGE ON SCHEMA", said, 1, true)
        assert.matches("options=-csearch_path%3DNAME", said, 1, true)
      end
      return said
    end

    it("of schemas that are not there says so, and what to do", function()
      local said = refused((app.db.url:gsub("search_path%%3D[%w_]+", "search_path%%3Dnowhere%%2Cneither")))
      assert.matches("is nowhere,neither, and no schema of it is there", said, 1, true)
    end)

    it("takes the first schema that is there", function()
      app:ok("append", { stdin = application.event() })
      local url = app.db.url:gsub("search_path%%3D", "search_path%%3Dnowhere%%2C")
      assert.equal(1, #app:events("--database", url))
    end)

    it("of a schema that the role may not use names the role", function()
      local role = "spec_" .. app.root:match("(%w+)$"):lower()
      app.db:execute(("CREATE ROLE %s LOGIN"):format(role))
      app:on_close(function() app.db:execute(("DROP ROLE %s"):format(role)) end)
      local said = refused((app.db.url:gsub("://[^/@]*@", "://" .. role .. "@")))
      assert.matches(("for role '%s'"):format(role), said, 1, true)
    end)
  end)
end)
