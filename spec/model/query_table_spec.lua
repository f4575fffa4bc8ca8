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

-- The table of these handlers as somebody else makes it; `change` gets its
-- columns by name and its indexes, and alters or removes what it wants.
local function table_of(database, change)
  local columns = {
    read_model_id = { "read_model_id", "key", "NOT NULL PRIMARY KEY" },
    message_id = { "message_id", "uuid", "NOT NULL" },
    state = { "state", "document", "NOT NULL" },
    iban = { "iban", "text" },
    balance = { "balance", "integer" },
  }
  local indexes = { { "idx_account_summary_iban", "iban", unique = true } }
  if change then change(columns, indexes) end
  local list = {}
  for _, name in ipairs { "read_model_id", "message_id", "state", "iban", "balance", "more", "id" } do
    list[#list + 1] = columns[name]
  end
  return database:make_table("account_summary", list, indexes)
end

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
      rig.app.db:execute(sql)
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
      local wanted = {}
      for i, column in ipairs { { "read_model_id", "key" }, { "message_id", "uuid" }, { "state", "document" },
        { "balance", "integer" }, { "iban", "text" } } do
        wanted[i] = { name = column[1], type = database:type_name(column[2]) }
      end
      assert.same(wanted, rig.app.db:columns "account_summary")
      assert.same({ { name = "idx_account_summary_balance", is_unique = 0 },
        { name = "idx_account_summary_iban", is_unique = 1 } }, rig.app.db:indexes "account_summary")
    end)

    it("that fits is taken as it is, more columns and other indexes included", function()
      assert.is_nil(with_table(table_of(database, function(columns, indexes)
        columns.more = { "more", "text", "DEFAULT 'kept'" }
        indexes[2] = { "mine", "more, iban" }
      end)))
      rig:append("A", "spec.Set", { iban = "X", balance = 1 })
      rig:run()
      assert.same({ { iban = "X", balance = 1, more = "kept" } },
        rig:query "SELECT iban, balance, more FROM account_summary")
    end)

    -- A column of this kind instead, as the error names it.
    local function column(name, kind)
      return function(columns) columns[name][2] = kind end, database:column_type(kind)
    end

    local narrow, narrow_type = column("balance", "double")
    local no_id, no_id_type = column("message_id", "integer")
    local no_text, no_text_type = column("iban", "bytes")

    -- what is wrong · what is changed · what the error says · with a remedy
    for _, case in ipairs {
      { "is something else", function(columns, indexes)
        columns.id = { "id", "key", "PRIMARY KEY" }
        columns.read_model_id, columns.message_id, columns.state, columns.iban, indexes[1] = nil, nil, nil, nil, nil
      end, { "read_model_id", "no query table", "`table`" } },
      { "has no message_id", function(columns) columns.message_id = nil end,
        { "message_id", "no query table", "`table`" } },
      { "has a message_id that cannot hold an id", no_id, { '"message_id"', no_id_type }, true },
      { "has no column for the state", function(columns) columns.state = nil end, { '"state"', "missing" }, true },
      { "lacks a field", function(columns) columns.balance = nil end, { '"balance"', "missing" }, true },
      { "has a field of a type that is too narrow", narrow,
        { '"balance"', narrow_type, "cannot hold every value" }, true },
      { "has a text field that is no text", no_text, { '"iban"', no_text_type }, true },
      { "lacks the unique index of a unique field", function(_, indexes) indexes[1].unique = false end,
        { '"iban"', "no unique index" }, true },
      { "has a unique index of two columns instead of its own",
        function(_, indexes) indexes[1][2] = "iban, balance" end, { '"iban"', "no unique index" }, true },
      { "has a unique index on a field that is not unique",
        function(_, indexes) indexes[2] = { "u", "balance", unique = true } end, { '"balance"', "not unique" }, true },
      { "has another key", function(columns) columns.read_model_id[3] = "NOT NULL" end,
        { '"read_model_id"', "primary key" }, true },
      { "compares keys without case", function(columns) columns.read_model_id[2] = "key_without_case" end,
        { '"read_model_id"' }, true },
    } do
      it("that " .. case[1] .. " stops the start and tells so", function()
        local problem = with_table(table_of(database, case[2]))
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
      local good, problem = pcall(kit.new, { database = database, handlers = ([[
        return moontide.projection "mine" { fields = { d = t.decimal(%d, 2) }, on = { x = function() end } }]])
          :format(database.decimal_digits + 1) })
      assert.is_false(good)
      assert.matches(tostring(database.decimal_digits), tostring(problem), 1, true)
    end)
  end)
end)
