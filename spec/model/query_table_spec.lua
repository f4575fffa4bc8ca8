-- Query tables: made from the declaration, and checked when they are there.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local HANDLERS = [[
return moontide.projection "account-summary" {
  fields = { iban = t.text { unique = true, optional = true }, balance = t.integer { optional = true } },
  on = { ["spec.Set"] = function(state, event)
    state.iban, state.balance = event.payload.iban, event.payload.balance
  end } }
]]

local GOOD = [[CREATE TABLE account_summary (read_model_id TEXT NOT NULL PRIMARY KEY, message_id TEXT NOT NULL,
  state TEXT NOT NULL, iban TEXT, balance INTEGER) STRICT;
  CREATE UNIQUE INDEX idx_account_summary_iban ON account_summary (iban);]]

dialect.each(function(database)
  describe("a query table", function()
    local rig

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    -- A database whose table was made by somebody else, and what the host
    -- says to it.
    local function with_table(sql, settings)
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "other" { on = { x = function() end } }]] }
      rig.host:close()
      rig.host = nil
      rig.app.db:execute(rig.app.db:ddl(sql))
      rig:script(HANDLERS)
      local good, problem = pcall(rig.open, rig, settings)
      return not good and tostring(problem) or nil
    end

    local function remedy(problem)
      assert.matches("DROP TABLE account_summary;", problem, 1, true)
      local last = 0
      for _, name in ipairs {
        "CONSUMER_SKIPPED_MESSAGES", "CONSUMER_UNDELIVERED_MESSAGES", "CONSUMER_CHECKPOINTS", "READ_MODEL_EPOCHS",
        "CONSUMERS",
      } do
        local at = problem:find("DELETE FROM " .. name .. " ", last + 1, true)
        assert.is_truthy(at, name .. " is not named in its place: " .. problem)
        last = at
      end
    end

    it("is made with its key, guard, state, fields and their indexes", function()
      rig = kit.new { database = database, handlers = HANDLERS }
      local columns = {}
      for i, row in ipairs(rig:query "SELECT name, type FROM pragma_table_info('account_summary')") do
        columns[i] = row.name .. " " .. row.type
      end
      assert.same({ "read_model_id TEXT", "message_id TEXT", "state TEXT", "balance INTEGER", "iban TEXT" }, columns)
      local indexes = {}
      for _, row in ipairs(rig:query [[SELECT name, "unique" AS u FROM pragma_index_list('account_summary')
          WHERE origin = 'c' ORDER BY name]]) do
        indexes[#indexes + 1] = row.name .. " " .. row.u
      end
      assert.same({ "idx_account_summary_balance 0", "idx_account_summary_iban 1" }, indexes)
    end)

    it("that fits is taken as it is, more columns and other indexes included", function()
      assert.is_nil(with_table(GOOD .. "ALTER TABLE account_summary ADD COLUMN more TEXT DEFAULT 'kept';"
        .. "CREATE INDEX mine ON account_summary (more, iban);"))
      rig:append("A", "spec.Set", { iban = "X", balance = 1 })
      rig:run()
      assert.same({ { iban = "X", balance = 1, more = "kept" } },
        rig:query "SELECT iban, balance, more FROM account_summary")
    end)

    -- what is wrong · statements instead of GOOD · what the error says
    for _, case in ipairs {
      { "is something else", "CREATE TABLE account_summary (id TEXT PRIMARY KEY, balance INTEGER)",
        { "read_model_id", "no query table", "`table`" } },
      { "has no message_id", GOOD:gsub("message_id TEXT NOT NULL,", ""),
        { "message_id", "no query table", "`table`" } },
      { "has a message_id that cannot hold an id", GOOD:gsub("message_id TEXT", "message_id INTEGER"),
        { '"message_id"', "INTEGER" }, true },
      { "has no column for the state", GOOD:gsub("state TEXT NOT NULL, ", ""), { '"state"', "missing" }, true },
      { "lacks a field", GOOD:gsub(", balance INTEGER", ""), { '"balance"', "missing" }, true },
      { "has a field of a type that is too narrow", GOOD:gsub("balance INTEGER", "balance REAL"),
        { '"balance"', "REAL", "cannot hold every value" }, true },
      { "has a text field that is no text", GOOD:gsub("iban TEXT", "iban BLOB"), { '"iban"', "BLOB" }, true },
      { "lacks the unique index of a unique field", GOOD:gsub("CREATE UNIQUE INDEX", "CREATE INDEX"),
        { '"iban"', "no unique index" }, true },
      { "has a unique index of two columns instead of its own", GOOD:gsub("%(iban%);", "(iban, balance);"),
        { '"iban"', "no unique index" }, true },
      { "has a unique index on a field that is not unique",
        GOOD .. "CREATE UNIQUE INDEX u ON account_summary (balance);",
        { '"balance"', "not unique" }, true },
      { "has another key", GOOD:gsub("read_model_id TEXT NOT NULL PRIMARY KEY", "read_model_id TEXT NOT NULL"),
        { '"read_model_id"', "primary key" }, true },
      { "compares keys without case", GOOD:gsub("read_model_id TEXT", "read_model_id TEXT COLLATE NOCASE"),
        { '"read_model_id"' }, true },
    } do
      it("that " .. case[1] .. " stops the start and tells so", function()
        local problem = with_table(case[2])
        assert.is_string(problem)
        assert.matches('projection "account-summary"', problem, 1, true)
        assert.matches('table "account_summary"', problem, 1, true)
        for _, words in ipairs(case[3]) do assert.matches(words, problem, 1, true) end
        if case[4] then remedy(problem) end
        -- nothing was touched, nobody was registered
        assert.equal("0", rig.app.db:value "SELECT count(*) FROM CONSUMERS WHERE consumer_name = 'account-summary'")
      end)
    end

    it("that is missing stops the start when schema.create is off, with the statement that makes it", function()
      local problem = with_table("SELECT 1", { schema = { create = false } })
      assert.matches('table "account_summary" is missing', problem, 1, true)
      local statement = problem:match "CREATE TABLE.*"
      assert.is_string(statement)
      rig.app.db:execute(statement)
      rig:open { schema = { create = false } }
      rig:append("A", "spec.Set", { iban = "X", balance = 1 })
      rig:run()
      assert.same({ iban = "X", balance = 1 }, rig.host:read("account-summary", "A"))
    end)

    it("belongs to one projection", function()
      for _, second in ipairs {
        '"account_summary" {', '"third" { table = "account_summary",', '"third" { table = "ACCOUNT_SUMMARY",',
      } do
        local good, problem = pcall(kit.new, { database = database, handlers = ([[
          local on = { x = function() end }
          return { moontide.projection "account-summary" { on = on },
            moontide.projection %s on = on } }]]):format(second) })
        assert.is_false(good)
        assert.matches("account-summary", tostring(problem), 1, true)
        assert.matches("account_summary", tostring(problem):lower(), 1, true)
      end
    end)

    it("may not be one of the host's own", function()
      for _, name in ipairs { "EVENT_STORE", "consumers", "READ_MODEL_EPOCHS" } do
        local good, problem = pcall(kit.new, { database = database, handlers = ([[
          return moontide.projection "mine" { table = "%s", on = { x = function() end } }]]):format(name) })
        assert.is_false(good)
        assert.matches("mine", tostring(problem), 1, true)
        assert.matches(name, tostring(problem), 1, true)
      end
    end)

    it("has a name of 63 characters at most, and so have its indexes", function()
      local good, problem = pcall(kit.new, { database = database, handlers = ([[
        return moontide.projection "%s" { on = { x = function() end } }]]):format(("n"):rep(64)) })
      assert.is_false(good)
      assert.matches("63", tostring(problem), 1, true)
      good, problem = pcall(kit.new, { database = database, handlers = ([[
        return moontide.projection "%s" { fields = { f = t.text() },
          on = { x = function() end } }]]):format(("n"):rep(60)) })
      assert.is_false(good)
      assert.matches("index", tostring(problem), 1, true)
      rig = kit.new { database = database, handlers = ([[
        return moontide.projection "%s" { fields = { f = t.text { optional = true } },
          on = { x = function() end } }]]):format(("n"):rep(57)) }
    end)

    it("is refused a decimal that it cannot hold exactly", function()
      local good, problem = pcall(kit.new, { database = database, handlers = [[
        return moontide.projection "mine" { fields = { d = t.decimal(19, 2) }, on = { x = function() end } }]] })
      assert.is_false(good)
      assert.matches("18", tostring(problem), 1, true)
    end)
  end)
end)
