-- Dead letters by the thousand: retry and delete take them a stretch at a time.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local MANY = 1100 -- more than one transaction takes
local HANDLER = [[
  return require("moontide").projection "notes" { on_error = "dead_letter_key", on = {
    ["spec.Put"] = function(_, event) error("no good: " .. event.key) end } }]]
local LETTERS = "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES"

dialect.each(function(database)
  describe("very many dead letters", function()
    local app

    before_each(function()
      app = application.new { database = database, config = "partitions = 12", handlers = { ["notes.lua"] = HANDLER } }
      local events = {}
      for i = 1, MANY do events[i] = { aggregate_id = "k" .. i, type = "spec.Put" } end
      for i = 1, 5 do events[MANY + i] = { aggregate_id = "k" .. i, type = "spec.Put" } end -- lie behind
      app:append(events)
      app:ok("run", "--until-idle")
      assert.equal(tostring(MANY + 5), app.db:value(LETTERS))
    end)

    after_each(function() app:close() end)

    local function verb(...)
      local result = app:json("dead-letters", ...)
      assert.is_true(#result.consumers <= 1)
      return result
    end

    it("are retried and deleted, each once", function()
      local result = verb("retry", "--all")
      assert.same({ MANY, 0, 0 }, { result.retried, result.due, result.waiting })
      assert.same({ "notes", MANY }, { result.consumers[1].consumer, result.consumers[1].retried })
      assert.equal(tostring(MANY), app.db:value(LETTERS .. " WHERE status = 'FAILED' AND failure_count = 0"))
      result = verb("retry", "--all")
      assert.same({ 0, MANY }, { result.retried, result.due })
      assert.equal(1, verb("delete", "--key", "k1050").deleted)
      assert.equal(1, verb("delete", "7").deleted)
      assert.equal(110, verb("delete", "--consumer", "notes", "--error", "k7").deleted) -- k70 to k79, k700 to k799
      assert.equal(MANY - 112, verb("delete", "--all").deleted)
      assert.equal("5", app.db:value(LETTERS))
      assert.equal(tostring(MANY), app.db:value "SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES")
      result = verb("delete", "--all")
      assert.same({ 0, {} }, { result.deleted, result.consumers })
    end)
  end)
end)
