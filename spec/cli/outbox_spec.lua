-- `moontide outbox`, and what `check` and `status` say of publishers and of
-- what is staged for them.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"

local HANDLERS = { ["mail.lua"] = [[
  local moontide = require "moontide"
  return {
    moontide.publisher "mail" { to = "https://mail.example/hook" },
    moontide.publisher "log" { to = function() end },
    moontide.listener "mailer" { start = "beginning", on = { ["account.Opened"] = function(event, ctx)
      ctx:publish("mail", "mail.Send", { iban = event.payload.iban }, { id = event.id })
      if event.payload.twice then ctx:publish("log", "log.Line", {}, { ordering_key = "all" }) end
    end } } }]] }

dialect.each(function(database)
  describe("outbox", function()
    local app

    before_each(function()
      app = application.new { database = database, handlers = HANDLERS }
      app:append {
        { aggregate_type = "bank.account", aggregate_id = "A-1", type = "account.Opened", payload = '{"iban":"X"}' },
        { aggregate_type = "bank.account", aggregate_id = "A-2", type = "account.Opened",
          payload = '{"iban":"Y","twice":true}' },
      }
      app:ok("run", "--until-idle")
    end)

    after_each(function() app:close() end)

    local function listed(...)
      local list = {}
      for i, message in ipairs(app:json("outbox", "list", ...).messages) do
        list[i] = ("%s %s %s %s"):format(message.publisher, message.type, message.ordering_key, message.status)
      end
      return list
    end

    it("lists what is staged, in the order of staging", function()
      assert.same({ "mail mail.Send A-1 pending", "mail mail.Send A-2 pending", "log log.Line all pending" }, listed())
      assert.same({ "log log.Line all pending" }, listed("--publisher", "log"))
      assert.same({ "log log.Line all pending" }, listed("--type", "log.Line"))
      assert.same({}, listed("--status", "parked"))
      local some = app:json("outbox", "list", "--limit", "2")
      assert.same({ 2, true }, { #some.messages, some.more })
      local text = app:ok("outbox")
      assert.matches("publisher +type +key +status +age +event id", text)
      assert.matches("log +log.Line +all +pending", text)
    end)

    it("shows one message with its payload, by its id or its row's", function()
      local row = app:json("outbox").messages[1]
      for _, id in ipairs { row.id, row.event_id } do
        local shown = app:json("outbox", "show", id).messages
        assert.equal(1, #shown)
        assert.same({ iban = "X" }, shown[1].payload)
        assert.equal(row.event_id, shown[1].causation_id)
        assert.matches('payload +{"iban":"X"}', app:ok("outbox", "show", id))
      end
      local other = "0190f6a0-0000-7000-8000-00000000000a"
      assert.matches("the outbox has no message", app:fails(1, "outbox", "show", other))
      assert.matches("is not a UUID", app:fails(64, "outbox", "show", "A-1"))
      assert.matches("takes the id of a message", app:fails(64, "outbox", "show"))
    end)

    it("has parked messages tried again, those that are asked for", function()
      local function park()
        app.db:command "UPDATE OUTBOX SET status = 'parked', attempts = 5, last_error = 'too big'"
      end
      assert.matches("no parked message matches: nothing changed", app:ok("outbox", "retry", "--all"))
      park()
      local row = app:json("outbox").messages[1]
      assert.same({ changed = 1 }, app:json("outbox", "retry", row.event_id))
      local retried = app:json("outbox", "show", row.id).messages[1]
      assert.same({ "pending", 0, "too big" }, { retried.status, retried.attempts, retried.last_error })
      assert.is_true(retried.available_at > retried.created_at)
      assert.matches("1 message pending again", app:ok("outbox", "retry", "--publisher", "log"))
      assert.matches("1 message pending again", app:ok("outbox", "retry", "--type", "mail.Send"))
      park()
      assert.same({ changed = 3 }, app:json("outbox", "retry", "--all", "--status", "parked"))
      assert.matches("needs to know which messages", app:fails(64, "outbox", "retry"))
      assert.matches("is of messages that are parked", app:fails(64, "outbox", "retry", "--status", "pending"))
      assert.matches("do not go together", app:fails(64, "outbox", "retry", row.id, "--all"))
      assert.matches("%-%-all is for outbox retry", app:fails(64, "outbox", "list", "--all"))
    end)

    it("is counted in the status, which says that nothing is sent", function()
      local status = app:json "status"
      assert.same({ "log 1", "mail 2" }, { status.outbox[1].publisher .. " " .. status.outbox[1].pending,
        status.outbox[2].publisher .. " " .. status.outbox[2].pending })
      local text = app:ok "status"
      assert.matches("note: 3 messages are staged in the outbox, and this version sends none", text)
      assert.matches("mail +2 ", text)
    end)
  end)

  describe("check", function()
    it("shows the publishers and where they send", function()
      local app = application.new { database = database, handlers = HANDLERS }
      local text, found = app:ok "check", app:json("check").publishers
      app:close()
      assert.matches("publisher log %(handlers/mail.lua:%d+%)\n +to a function\n", text)
      assert.matches("publisher mail %(handlers/mail.lua:%d+%)\n +to https://mail.example/hook\n", text)
      assert.same({ "log", "mail" }, { found[1].name, found[2].name })
      assert.equal("https://mail.example/hook", found[2].to)
    end)
  end)
end)
