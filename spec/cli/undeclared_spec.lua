-- A consumer that was renamed or removed in the scripts begins anew under its
-- new name, and what it has left behind waits for ever: an operator is told.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local SAGA = [[
return require("moontide").saga "%s" { starts = { "spec.Placed" }, id = function(event) return event.key end,
  on = { ["spec.Placed"] = function() end, ["spec.Paid"] = function(saga) saga:complete() end } }
]]
local COUNTS = [[
return require("moontide").projection "%s" { on = {
  ["spec.Placed"] = function(state) state.n = (state.n or 0) + 1 end } }
]]

dialect.each(function(database)
  describe("a consumer that no script declares", function()
    local app

    before_each(function()
      app = application.new { database = database, config = "partitions = 4",
        handlers = { ["order.lua"] = SAGA:format "order", ["counts.lua"] = COUNTS:format "counts" } }
      app:append { { aggregate_id = "O-1", type = "spec.Placed" }, { aggregate_id = "O-2", type = "spec.Placed" },
        { aggregate_id = "O-3", type = "spec.Placed" }, { aggregate_id = "O-1", type = "spec.Paid" } }
      app:ok("run", "--until-idle")
    end)

    after_each(function() app:close() end)

    local function rename()
      app:write("handlers/order.lua", SAGA:format "orders")
      app:write("handlers/counts.lua", COUNTS:format "totals")
    end

    local RENAMED = "; if it was renamed, give it its former name back, for under another one it begins anew; if it is "
      .. "to go, `moontide unsubscribe %s` forgets how far it has read"
    local SAGA_REST = ", and 2 sagas under way wait for ever (`moontide sagas list order` shows them)"
      .. RENAMED:format "order" .. ", and `moontide sagas delete order ID --force` takes a saga away"
    local COUNTS_REST = RENAMED:format "counts"

    it("is told by the status, with its sagas that are under way, and by what it says all can be mended", function()
      rename()
      local known = " is known to the database, but no script declares it: nobody runs it"
      assert.same({ "projection 'counts'" .. known .. COUNTS_REST, "saga 'order'" .. known .. SAGA_REST },
        app:json "status".problems)
      app:ok("unsubscribe", "order")
      app:ok("unsubscribe", "counts")
      assert.same({}, app:json "status".problems)
      app:ok("sagas", "delete", "order", "O-2", "--force")
      app:write("handlers/order.lua", SAGA:format "order")
      assert.equal(2, app:json("sagas", "list", "order").total)
    end)

    it("is not rebuilt, and said to be declared nowhere, in every state that it may be left in", function()
      rename()
      for _, state in ipairs { "NULL", "'PAUSED'", "'REBUILDING'" } do
        app.db:execute("UPDATE CONSUMERS SET state = " .. state)
        for _, word in ipairs { "--restart", "--cancel" } do
          assert.matches("no script declares a consumer 'counts', so nothing can rebuild it", app:fails(64, "rebuild",
            "counts", word), 1, true)
        end
      end
      app:write("handlers/counts.lua", COUNTS:format "counts")
      app:write("handlers/order.lua", SAGA:format "order")
      app:ok("rebuild", "counts", "--cancel")
    end)

    it("is told in the log by a run, once for each", function()
      assert.is_nil(app:moontide("run", "--until-idle").err:find("no script", 1, true))
      rename()
      local err = app:moontide("run", "--until-idle").err
      local known = "the database knows the %s, but no script of this host declares it: it does not run here"
      assert.matches(known:format "saga" .. SAGA_REST, err, 1, true)
      assert.matches(known:format "projection" .. COUNTS_REST, err, 1, true)
      assert.equal(2, select(2, err:gsub("no script of this host", "")))
    end)

    it("is told by a host with workers when it starts, and when a reload takes the declaration away", function()
      app:configure("partitions = 4, workers = " .. (database.name == "sqlite" and 1 or 2))
      local host = app:start "run"
      local function said(times)
        process.wait_until(function() return select(2, host:err():gsub("no script of this host", "")) == times end, 60,
          function() return host:err() end)
      end
      process.wait_until(function() return host:err():find("running 2 consumers", 1, true) end, 60,
        function() return host:err() end)
      app:write("handlers/counts.lua", COUNTS:format "totals")
      said(1)
      host:signal "TERM"
      assert.equal(0, host:wait(60).code, host:err())
      host = app:start "run"
      said(1)
      host:signal "TERM"
      assert.equal(0, host:wait(60).code, host:err())
    end)
  end)
end)
