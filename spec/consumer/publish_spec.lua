-- ctx:publish: messages for declared publishers, staged in the outbox in the
-- transaction of what caused them.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local PUBLISHER = [[moontide.publisher "mail" { to = "https://mail.example/hook" }]]

local MAILER = [[
  return { ]] .. PUBLISHER .. [[, moontide.publisher "carrier" { to = "amqp:carrier" },
    moontide.listener "mailer" { start = "beginning", %s
      on = { ["spec.Put"] = function(event, ctx)
        for n = 1, event.payload.copies or 1 do
          ctx:publish(event.payload.to or "mail", event.payload.type or "mail.Send",
            event.payload.long and ("x"):rep(event.payload.long) or event.payload.text
              or { at = event.position, n = n },
            event.payload.options)
        end
        if event.payload.fails then error "refused" end
      end } } }]]

local ONCE = "retry = { attempts = 1 }, on_error = 'dead_letter',"
local ID, OTHER = "0190f6a0-0000-7000-8000-00000000000a", "0190f6a0-0000-7000-8000-00000000000b"

dialect.each(function(database)
  describe("ctx:publish", function()
    local rig

    local function start(handlers, settings)
      rig = kit.start(database, handlers, settings)
    end

    after_each(function() rig:close() end)

    local function staged()
      local list = {}
      for i, message in ipairs(rig.host:published()) do
        list[i] = ("%s %s %s:%s"):format(message.publisher, message.type, message.payload.at, message.payload.n)
      end
      return list
    end

    local function reason()
      return rig.host:dead_letters({ consumer = "mailer" })[1].reason
    end

    it("stages in the order of the messages, many together", function()
      start(MAILER:format "")
      rig:append_all { { "A", "spec.Put", { copies = 2 } }, { "B", "spec.Put", { to = "carrier" } },
        { "A", "spec.Put", {} } }
      rig:run()
      assert.same({ "mail mail.Send 1:1", "mail mail.Send 1:2", "carrier mail.Send 2:1", "mail mail.Send 3:1" },
        staged())
    end)

    it("does so once, also when an answer is lost or the host starts anew", function()
      start(MAILER:format "")
      rig:append("A", "spec.Put", {})
      rig:redeliver()
      rig:append("A", "spec.Put", {})
      rig:restart()
      rig:run()
      assert.same({ "mail mail.Send 1:1", "mail mail.Send 2:1" }, staged())
    end)

    it("leaves nothing of a message that fails, and the others' messages stay", function()
      start(MAILER:format(ONCE))
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { copies = 3, fails = true } },
        { "C", "spec.Put", {} } }
      rig:run()
      assert.same({ "mail mail.Send 1:1", "mail mail.Send 3:1" }, staged())
    end)

    it("fills what the message says of where it comes from", function()
      start(MAILER:format "")
      local options = { tenant_id = ID, execution_id = OTHER, ordering_key = "K", id = OTHER }
      local first = rig:append("A", "spec.Put", {}).id
      local second = rig:append("A", "spec.Put", { options = options }, { metadata = { correlation_id = ID } }).id
      local third = rig:append("A", "spec.Put", {}, { metadata = { correlation_id = "C-1" } }).id
      rig:run()
      local list = {}
      for i, m in ipairs(rig.host:published()) do
        list[i] = { m.ordering_key, m.correlation_id or "none", m.causation_id, m.metadata or "none",
          m.tenant_id or "none", m.execution_id or "none" }
      end
      assert.same({
        { "A", first, first, "none", "none", "none" },
        { "K", ID, second, "none", ID, OTHER },
        { "A", "none", third, { correlation_id = "C-1" }, "none", "none" },
      }, list)
      assert.equal(OTHER, rig.host:published()[2].id)
      assert.equal(first, rig.host:published()[1].causation_id)
    end)

    it("gives a message that belongs to no aggregate no key", function()
      start(MAILER:format 'source = "event-capture",')
      rig.host:emit("spec.Put", {}, { key = "K" })
      rig:run()
      assert.is_nil(rig.host:published()[1].ordering_key)
    end)

    it("orders by its saga what the handler of a deadline publishes, unless that says a key", function()
      start("return { " .. PUBLISHER .. [[, moontide.saga "order" { id = moontide.by "order", starts = { "spec.Put" },
        on = { ["spec.Put"] = function(saga, event, ctx)
          ctx:publish("mail", "mail.Placed")
          saga:deadline("late", "1m")
        end },
        deadlines = { late = function(saga, deadline, ctx)
          ctx:publish("mail", "mail.Late")
          ctx:publish("mail", "mail.Own", {}, { ordering_key = "K" })
        end } } }]])
      rig:append("A", "spec.Put", { order = "O-1" })
      rig:run()
      rig.host:advance "2m"
      rig:run()
      local list = {}
      for i, m in ipairs(rig.host:published()) do list[i] = m.type .. " " .. m.ordering_key end
      assert.same({ "mail.Placed A", "mail.Late O-1", "mail.Own K" }, list)
    end)

    it("stages the same id with the same content once", function()
      start(MAILER:format "")
      local payload = { text = { a = 1 }, options = { id = ID } }
      rig:append_all { { "A", "spec.Put", payload }, { "A", "spec.Put", payload } }
      rig:run()
      rig:append("A", "spec.Put", payload)
      rig:append("A", "spec.Put", { to = "carrier", text = { a = 1 }, options = { id = ID } })
      rig:run()
      assert.equal(2, #rig.host:published())
      assert.same({}, rig.host:undelivered())
    end)

    it("fails the message that gives an id other content, and says what to do", function()
      start(MAILER:format(ONCE))
      rig:append_all { { "A", "spec.Put", { text = { a = 1 }, options = { id = ID } } },
        { "B", "spec.Put", { text = { a = 2 }, options = { id = ID } } }, { "C", "spec.Put", {} } }
      rig:run()
      assert.equal(2, #rig.host:published())
      assert.matches(("publish: the message %s for 'mail' is in the outbox with another payload; give the new one "
        .. "an id of its own"):format(ID):gsub("%-", "%%-"), reason())
    end)

    for name, case in pairs {
      ["an unknown publisher"] = { { to = "mial" }, 'no publisher is called "mial"; did you mean "mail"?' },
      ["an id that is no UUID"] = { { options = { id = "1" } }, 'id is not a UUID: "1"' },
      ["an unknown option"] = { { options = { ordering_kye = "K" } },
        'unknown option "ordering_kye"; did you mean "ordering_key"?' },
      ["a type that is too long"] = { { type = ("x"):rep(256) }, "the message type has 256 characters" },
      ["a payload above the limit"] = { { long = 2000 }, "payload has 2002 bytes; limits.payload allows 1500" },
    } do
      it("refuses " .. name, function()
        start(MAILER:format(ONCE), { limits = { payload = 1500 } })
        rig:append("A", "spec.Put", case[1])
        rig:run()
        assert.same({}, staged())
        assert.truthy(reason():find(case[2], 1, true), reason())
        assert.truthy(reason():find("handlers/", 1, true), reason())
      end)
    end

    it("says so where no publisher is declared", function()
      start((MAILER:format(ONCE):gsub("moontide.publisher.-},.-},", "")))
      rig:append("A", "spec.Put", {})
      rig:run()
      assert.truthy(reason():find('no publisher is declared; add moontide.publisher "mail"', 1, true), reason())
    end)
  end)
end)
