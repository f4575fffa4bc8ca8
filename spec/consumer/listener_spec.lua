-- Listeners of log topics: consumers that cause effects, once per message, in
-- the transaction that records that the message is done.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local moontide = require "moontide"

local RELAY = [[
  return moontide.listener "relay" { start = "beginning", %s
    on = { ["spec.Put"] = function(event, ctx)
      for n = 1, event.payload.copies or 1 do
        ctx:emit("spec.Seen", { at = event.position, n = n }, { key = event.key })
      end
      if event.payload.fails then error "refused" end
    end } }]]

dialect.each(function(database)
  describe("a listener", function()
    local rig

    local function start(handlers, settings)
      rig = kit.start(database, handlers, settings)
    end

    after_each(function() rig:close() end)

    local function emitted()
      local list = {}
      for i, event in ipairs(rig.host:emitted "spec.Seen") do
        list[i] = ("%d:%d %s"):format(event.payload.at, event.payload.n, event.key)
      end
      return list
    end

    it("emits in the order of the messages, many together", function()
      start(RELAY:format "")
      rig:append_all { { "A", "spec.Put", { copies = 2 } }, { "B", "spec.Put", {} }, { "A", "spec.Put", {} } }
      rig:run()
      assert.same({ "1:1 A", "1:2 A", "2:1 B", "3:1 A" }, emitted())
    end)

    it("does so once, also when an answer is lost or the host starts anew", function()
      start(RELAY:format "")
      rig:append("A", "spec.Put", {})
      rig:redeliver()
      rig:append("A", "spec.Put", {})
      rig:restart()
      rig:run()
      assert.same({ "1:1 A", "2:1 A" }, emitted())
    end)

    it("leaves nothing of a message that fails, and the others' effects stay", function()
      start(RELAY:format "retry = { attempts = 1 }, on_error = 'dead_letter',")
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { copies = 3, fails = true } },
        { "C", "spec.Put", {} } }
      rig:run()
      assert.same({ "1:1 A", "3:1 C" }, emitted())
      assert.equal("B", rig.host:dead_letters({ consumer = "relay" })[1].key)
    end)

    it("carries on where the message came from: correlation and causation", function()
      start [[
        return moontide.listener "relay" { start = "beginning",
          on = { ["spec.Put"] = function(event, ctx)
            ctx:emit("spec.Seen", {}, { key = "a" })
            ctx:emit("spec.Seen", {}, { key = "b", metadata = { causation_id = "mine", extra = { 1 } } })
          end } }]]
      local first = rig:append("A", "spec.Put", {}).id
      local second = rig:append("A", "spec.Put", {}, { metadata = { correlation_id = "C-1" } }).id
      rig:run()
      local metadata = {}
      for i, event in ipairs(rig.host:emitted()) do metadata[i] = event.metadata end
      assert.same({
        { correlation_id = first, causation_id = first },
        { correlation_id = first, causation_id = "mine", extra = { 1 } },
        { correlation_id = "C-1", causation_id = second },
        { correlation_id = "C-1", causation_id = "mine", extra = { 1 } },
      }, metadata)
    end)

    it("hands the chain on through what it emits, what is listened to, commands and their events", function()
      start [[
        local function relay(name, source, event_type, fn)
          return moontide.listener(name) { start = "beginning", source = source, on = { [event_type] = fn } }
        end
        return {
          moontide.aggregate "spec.purse" { apply = { ["purse.Filled"] = function() end },
            commands = { fill = function(purse, args, ctx)
              local whence = ctx.metadata
              return moontide.event("purse.Filled", { told = whence.correlation_id, by = whence.causation_id })
            end } },
          relay("first", "event-store", "spec.Put", function(event, ctx) ctx:emit("spec.Asked", {}, { key = "K" }) end),
          relay("second", "event-capture", "spec.Asked", function(event, ctx)
            ctx:dispatch("spec.purse", event.key, "fill", {}, { metadata = { user = "u", causation_id = "mine" } })
          end),
          relay("third", "event-store", "purse.Filled", function(event, ctx) ctx:emit("spec.Told", event.metadata) end),
        }]]
      local begun = rig:append("A", "spec.Put", {}).id
      for _ = 1, 3 do rig:run() end -- one topic may be read before the other is written
      local asked, told = rig.host:emitted("spec.Asked")[1], rig.host:emitted("spec.Told")[1]
      local filled = rig.app:events("--type", "purse.Filled")[1]
      assert.same({ correlation_id = begun, causation_id = begun }, asked.metadata)
      assert.same({ correlation_id = begun, causation_id = asked.id, user = "u" }, filled.metadata)
      assert.same({ told = begun, by = "mine" }, filled.payload)
      assert.same({ correlation_id = begun, causation_id = filled.id }, told.metadata)
      assert.same(filled.metadata, told.payload)
    end)

    it("that starts now gets nothing of what was there, and all that comes", function()
      start [[return moontide.projection "other" { on = { ["spec.Put"] = function() end } }]]
      rig:append("A", "spec.Put", {})
      rig:append("A", "spec.Put", {})
      rig:script(((RELAY:format ""):gsub('"beginning"', '"now"')))
      rig:reopen()
      rig:run()
      assert.same({}, emitted())
      rig:append("A", "spec.Put", {})
      rig:reopen() -- what came while no host ran is not history
      rig:run()
      assert.same({ "3:1 A" }, emitted())
    end)

    it("that starts now on an empty topic misses nothing while no host runs", function()
      start(((RELAY:format ""):gsub('"beginning"', '"now"')))
      rig.host:close()
      rig.host = nil
      rig.app:append { { aggregate_id = "A", type = "spec.Put", aggregate_type = kit.aggregate } }
      rig:open()
      rig:run()
      assert.same({ "1:1 A" }, emitted())
    end)

    it("reads the capture topic, also what has no key, each by itself", function()
      start(RELAY:format 'source = "event-capture", retry = { attempts = 1 }, on_error = "dead_letter_key",')
      rig.host:emit("spec.Put", { fails = true })
      rig.host:emit("spec.Put", {})
      rig.host:emit("spec.Put", {}, { key = "K" })
      rig:run()
      local list = {}
      for i, event in ipairs(rig.host:emitted "spec.Seen") do list[i] = event.payload.at end
      assert.same({ 2, 3 }, list) -- what stands by itself holds nobody up
    end)

    it("sees what it wrote in SQL commit with what it emitted, or neither", function()
      start([[
        return moontide.listener "relay" { start = "beginning", retry = { attempts = 1 }, on_error = "skip",
          on = { ["spec.Put"] = function(event, ctx)
            ctx:emit("spec.Seen", { at = event.position, n = 1 }, { key = event.key })
            ctx:upsert("notes", { name = event.key }, { number = moontide.add(event.payload.by or 1) })
            if event.payload.sql then ctx:execute("INSERT INTO notes (name, number) VALUES ('taken', 1)") end
          end } }]])
      rig.app.db:execute(rig.app.db:ddl "CREATE TABLE notes (name TEXT NOT NULL PRIMARY KEY, number INTEGER NOT NULL)")
      rig.app.db:execute "INSERT INTO notes (name, number) VALUES ('taken', 0)"
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { sql = true } }, { "A", "spec.Put", {} } }
      rig:run()
      assert.same({ "1:1 A", "3:1 A" }, emitted())
      assert.same({ { name = "A", number = 2 }, { name = "taken", number = 0 } },
        rig:query "SELECT name, number FROM notes ORDER BY name")
    end)

    it("loses what it caused inside a ctx:try that failed, and nothing else", function()
      start([[
        return { moontide.publisher "mail" { to = "kafka:mail" },
          moontide.aggregate "spec.purse" { apply = { ["purse.Filled"] = function() end },
            commands = { fill = function(purse, args) return moontide.event("purse.Filled", args) end } },
          moontide.listener "relay" { start = "beginning", aggregates = { "spec.thing" },
            on = { ["spec.Put"] = function(event, ctx)
              local function cause(what)
                ctx:emit("spec.Seen", { at = event.position, n = what }, { key = event.key })
                ctx:publish("mail", "mail." .. what, {})
                ctx:dispatch("spec.purse", "P", "fill", { n = what })
              end
              cause(1)
              ctx:try(function() cause(2) ctx:try(function() cause(3) end) error "undo" end)
              ctx:try(function() cause(4) ctx:try(function() cause(5) error "undo" end) end)
              ctx:try(function() cause(6) ctx:execute("INSERT INTO notes (name) VALUES ('taken')") end)
              pcall(function() cause(7) error "only caught" end)
            end } } }]])
      rig.app.db:execute(rig.app.db:ddl "CREATE TABLE notes (name TEXT NOT NULL PRIMARY KEY)")
      rig.app.db:execute "INSERT INTO notes (name) VALUES ('taken')"
      rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", {} } }
      rig:run()
      assert.same({}, rig:undelivered())
      assert.same({ "1:1 A", "1:4 A", "1:7 A", "2:1 B", "2:4 B", "2:7 B" }, emitted())
      local staged, filled = {}, {}
      for i, message in ipairs(rig.host:published "mail") do staged[i] = message.type end
      assert.same({ "mail.1", "mail.4", "mail.7", "mail.1", "mail.4", "mail.7" }, staged)
      for i, event in ipairs(rig.app:events("--type", "purse.Filled")) do filled[i] = event.payload.n end
      assert.same({ 1, 4, 7, 1, 4, 7 }, filled)
    end)

    it("gives each delivery an id that stays over retries and is nobody else's", function()
      start([[
        local function note(event, ctx)
          ctx:emit("spec.Seen", { id = ctx.delivery_id, attempt = ctx.attempt })
        end
        return {
          moontide.listener "one" { start = "beginning", retry = { attempts = 3, delay = "1s" },
            on = { ["spec.Put"] = function(event, ctx)
              if ctx.attempt < 2 then
                ctx:try(function() ctx:query("SELECT 1 FROM CONSUMERS") end)
                error("id " .. ctx.delivery_id)
              end
              note(event, ctx)
            end } },
          moontide.listener "two" { start = "beginning", on = { ["spec.Put"] = note } },
          moontide.projection "none" { on = { ["spec.Put"] = function(state, event, ctx)
            state.id = ctx.delivery_id == nil and "none" or "some"
          end } },
        }]])
      rig:append("A", "spec.Put", {})
      rig:append("B", "spec.Put", {})
      rig:run()
      local failed = {}
      for _, letter in ipairs(rig.host:undelivered "one") do failed[letter.reason:match "id (%S+)"] = true end
      for _ = 1, 3 do
        rig.host:advance "1m"
        rig:run()
      end
      local ids, count = {}, 0
      for _, event in ipairs(rig.host:emitted()) do
        assert.is_nil(ids[event.payload.id])
        ids[event.payload.id] = event.payload.attempt
        count = count + 1
      end
      assert.equal(4, count)
      local kept = 0
      for id in pairs(failed) do
        assert.equal(2, ids[id])
        kept = kept + 1
      end
      assert.equal(2, kept)
      assert.equal("none", rig.host:read("none", "A").id)
    end)

    it("reads the read models of a projection, and nothing else", function()
      start([[
        return {
          moontide.projection "sums" { on = { ["spec.Put"] = function(state, event)
            state.sum = (state.sum or 0) + event.payload.by
          end } },
          moontide.listener "relay" { source = "event-capture", start = "beginning", retry = { attempts = 1 },
            on_error = "dead_letter",
            on = { ["spec.Ask"] = function(event, ctx)
              local model = ctx:read(event.payload.of, event.key)
              ctx:emit("spec.Told", { sum = model and model.sum or moontide.null })
            end } },
        }]])
      rig:append("A", "spec.Put", { by = 2 })
      rig:append("A", "spec.Put", { by = 3 })
      rig:run()
      rig.host:emit("spec.Ask", { of = "sums" }, { key = "A" })
      rig.host:emit("spec.Ask", { of = "sums" }, { key = "B" })
      rig.host:emit("spec.Ask", { of = "relay" }, { key = "C" })
      rig:run()
      local told = {}
      for i, event in ipairs(rig.host:emitted "spec.Told") do told[i] = event.payload.sum end
      assert.same({ 5, moontide.null }, told)
      assert.matches("keeps no read models", rig.host:undelivered("relay")[1].reason)
    end)

    it("is refused what an event may not be, at the line of the script", function()
      start([[
        return moontide.listener "relay" { start = "beginning", retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Put"] = function(event, ctx)
            ctx:emit("spec.Seen", event.payload.payload, event.payload.options)
          end } }]])
      local long = ("é"):rep(256)
      rig:append_all {
        { "A", "spec.Put", { options = { key = long } } }, { "B", "spec.Put", { options = { keys = "a" } } },
        { "C", "spec.Put", { options = { id = "x" } } }, { "D", "spec.Put", { options = { metadata = "m" } } },
        { "E", "spec.Put", {} },
      }
      rig:run()
      local reasons = {}
      for _, row in ipairs(rig.host:undelivered "relay") do reasons[row.key] = row.reason end
      assert.matches("handlers/spec.lua:5: ctx:emit: key has 256 characters", reasons.A, 1, true)
      assert.matches('unknown option "keys"; did you mean "key"?', reasons.B, 1, true)
      assert.matches("id is not a UUID", reasons.C, 1, true)
      assert.matches("metadata must be a table", reasons.D, 1, true)
      assert.is_nil(reasons.E)
      assert.equal(1, #rig.host:emitted())
    end)

    it("emits no event of a revision that nothing could read", function()
      start([[
        return { moontide.event_type "spec.Seen" { revision = 2, upcast = { [1] = function() end } },
          moontide.listener "relay" { start = "beginning", retry = { attempts = 1 }, on_error = "dead_letter",
            on = { ["spec.Put"] = function(event, ctx)
              ctx:emit("spec.Seen", {}, { revision = event.payload.revision })
              ctx:emit("spec.Other", {}, { revision = event.payload.revision })
            end } } }]])
      rig:append_all {
        { "A", "spec.Put", { revision = 3 } }, { "B", "spec.Put", { revision = 0 } },
        { "C", "spec.Put", { revision = 1 } }, { "D", "spec.Put", { revision = 2 } }, { "E", "spec.Put", {} },
      }
      rig:run()
      local reasons = {}
      for _, row in ipairs(rig.host:undelivered "relay") do reasons[row.key] = row.reason end
      for key, revision in pairs { A = 3, B = 0 } do
        assert.matches(('^error: handlers/spec.lua:6: ctx:emit: this is an event of type "spec.Seen" with revision %d, '
          .. "which nothing could read: its event type %%(.-handlers/spec.lua:3%%) has 1 to 2$"):format(revision),
          reasons[key])
        reasons[key] = nil
      end
      assert.same({}, reasons)
      assert.equal(6, #rig.host:emitted())
    end)

    it("emits no event that is not as its type's fields say, and is told the path", function()
      start([[
        return { moontide.event_type "spec.Seen" { revision = 1, upcast = { [0] = function() end },
            fields = { items = t.list(t.record { price = t.decimal(6, 2) }) } },
          moontide.listener "relay" { start = "beginning", retry = { attempts = 1 },
            on_error = function(event, failure) return failure.class == "emit" and "dead_letter" or "halt" end,
            on = { ["spec.Put"] = function(event, ctx)
              ctx:emit("spec.Other", {}, { key = event.key })
              ctx:emit("spec.Seen", { items = event.payload.items }, { key = event.key,
                revision = event.payload.revision })
            end } } }]])
      local array = moontide.array
      rig:append_all { { "A", "spec.Put", { items = array { { price = "1.50" }, { price = 2 } } } },
        { "B", "spec.Put", {} }, { "C", "spec.Put", { items = array { { price = "1", prise = "2" } } } },
        { "D", "spec.Put", { items = array { { price = "1.50" } } } },
        { "E", "spec.Put", { items = 5, revision = 0 } } }
      rig:run()
      assert.equal("RUNNING", rig:state "relay")
      local reasons = {}
      for _, row in ipairs(rig.host:undelivered "relay") do reasons[row.key] = row.reason end
      for key, text in pairs { A = "field payload.items[2].price: expected a decimal as a string, got 2",
        B = "payload.items: missing; expected a list",
        C = 'payload.items[1] has no field prise; did you mean "price"?' } do
        assert.matches("emit: ctx:emit of spec.Seen: ", reasons[key], 1, true)
        assert.matches(text, reasons[key], 1, true)
        assert.matches('event type "spec.Seen" (handlers/spec.lua:3) says what it is', reasons[key], 1, true)
      end
      local made = {}
      for i, event in ipairs(rig.host:emitted()) do made[i] = event.key .. " " .. event.type end
      assert.same({ "D spec.Other", "D spec.Seen", "E spec.Other", "E spec.Seen" }, made)
    end)

    it("that gives an id twice for other content fails at the second", function()
      start([[
        return moontide.listener "relay" { start = "beginning", retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Put"] = function(event, ctx)
            ctx:emit("spec.Seen", { by = event.payload.by }, { id = "0190f3a2-0000-7000-8000-000000000001" })
          end } }]])
      rig:append_all { { "A", "spec.Put", { by = 1 } }, { "B", "spec.Put", { by = 2 } } }
      rig:run()
      assert.equal(1, #rig.host:emitted())
      local rows = rig.host:undelivered "relay"
      assert.equal(1, #rows)
      assert.equal("B", rows[1].key)
      assert.matches("with another", rows[1].reason)
    end)

    it("gives commands to aggregates in its own transaction, and is told when one is rejected", function()
      start([[
        local total = { ["purse.Filled"] = function(purse, event) purse.sum = purse.sum + event.payload.by end }
        return {
          moontide.aggregate "spec.purse" {
            initial = function() return { sum = 0 } end, apply = total,
            commands = { fill = function(purse, args)
              if purse.sum + args.by > 5 then return moontide.reject("full", { room = 5 - purse.sum }) end
              if args.by < 0 then error "broken" end
              return { moontide.event("purse.Filled", { by = args.by }) }
            end } },
          moontide.listener "relay" { start = "beginning", retry = { attempts = 1 }, on_error = "dead_letter",
            aggregates = { "spec.thing" },
            on = { ["spec.Put"] = function(event, ctx)
              local made, reason, details = ctx:dispatch("spec.purse", event.key, "fill", { by = event.payload.by })
              ctx:emit("spec.Told", made and { sequence = made[1].sequence, by = made[1].payload.by }
                or { reason = reason, room = details.room })
              if event.payload.fails then error "refused" end
            end } },
        }]])
      local id = rig:append("P", "spec.Put", { by = 3 }).id
      rig:append("P", "spec.Put", { by = 1, fails = true })
      rig:append("P", "spec.Put", { by = 2 })
      rig:append("P", "spec.Put", { by = 1 })
      rig:append("P", "spec.Put", { by = -1 })
      rig:run()
      local told = {}
      for i, event in ipairs(rig.host:emitted "spec.Told") do told[i] = event.payload end
      assert.same({ { sequence = 0, by = 3 }, { sequence = 1, by = 2 }, { reason = "full", room = 0 } }, told)
      local stream = rig.app:events("--type", "purse.Filled")
      assert.equal(2, #stream)
      assert.dispatched(rig.host, "spec.purse", "P", "purse.Filled", { count = 2 })
      assert.is_not.dispatched(rig.host, "spec.purse", "Q")
      assert.emitted(rig.host, "spec.Told", { payload = { reason = "full", room = 0 }, count = 1 })
      assert.is_not.emitted(rig.host, "spec.Told", { key = "P" })
      assert.equal(id, stream[1].metadata.causation_id)
      assert.equal(id, stream[1].metadata.correlation_id)
      assert.equal(2, #rig.host:undelivered "relay")
      assert.matches("broken", rig.host:undelivered("relay")[2].reason)
    end)

    it("fails as the command failed that it gave, and waits where that would wait", function()
      start([[return {
        moontide.event_type "purse.Filled" { revision = 1 },
        moontide.aggregate "spec.purse" {
          commands = { fill = function(purse, args)
              if args.how == "permanent" then error(moontide.permanent "never") end
              if args.how == "raise" then error "broken" end
              return moontide.event("purse.Filled", args)
            end },
          apply = { ["purse.Filled"] = function() end } },
        moontide.listener "relay" { start = "beginning", aggregates = { "spec.thing" },
          retry = { attempts = 2, delay = "1s" },
          on_error = function(event, failure)
            return (failure.class == "error" or failure.permanent) and "dead_letter" or "halt"
          end,
          on = { ["spec.Put"] = function(event, ctx)
            ctx:dispatch("spec.purse", event.key, event.payload.command or "fill", event.payload)
          end } } }]])
      rig.host:append("spec.purse", "N", { moontide.event("purse.Filled", {}, { revision = 2 }) })
      rig:append_all { { "N", "spec.Put", {} }, { "R", "spec.Put", { how = "raise" } },
        { "P", "spec.Put", { how = "permanent" } }, { "U", "spec.Put", { command = "fil" } }, { "G", "spec.Put", {} } }
      for _ = 1, 4 do
        rig:run()
        rig.host:advance "1h"
      end
      assert.equal("RUNNING", rig:state "relay")
      assert.same({ "2 N FAILED", "3 R DEAD_LETTER", "4 P DEAD_LETTER", "5 U DEAD_LETTER" }, rig:waiting "relay")
      local failed = {}
      for i, row in ipairs(rig:undelivered()) do failed[i] = row.failures .. " " .. row.reason end
      assert.matches("^0 revision: .*spec.lua:%d+: ctx:dispatch: revision: newer revision", failed[1])
      assert.matches("^2 error: .*ctx:dispatch: error: .*broken", failed[2])
      assert.matches("^1 error: .*never", failed[3])
      assert.matches("^2 error: .*no command 'fil'; did you mean 'fill'", failed[4])
      assert.dispatched(rig.host, "spec.purse", "G", "purse.Filled", { count = 1 })
    end)

    it("is paused, resumed and shown like any consumer, and never rebuilt", function()
      start(RELAY:format "")
      rig.host:pause "relay"
      rig:append("A", "spec.Put", {})
      rig:run()
      assert.same({}, emitted())
      assert.equal("PAUSED", rig:state "relay")
      rig.host:resume "relay"
      rig:run()
      assert.same({ "1:1 A" }, emitted())
      assert.error_matches(function() rig.host:rebuild "relay" end, "is never rebuilt")
      assert.same({ { consumer_type = "listener", declaration_fingerprint = nil } },
        rig:query "SELECT consumer_type, declaration_fingerprint FROM CONSUMERS")
      local shown = rig.app:json("status").consumers[1]
      assert.equal("listener", shown.type)
      assert.equal("RUNNING", shown.state)
      assert.equal(0, shown.lag.messages)
      assert.is_true(shown.declared)
    end)

    it("causes nothing by what a projection does", function()
      start [[
        return moontide.projection "p" { retry = { attempts = 1 }, on_error = "dead_letter",
          on = { ["spec.Put"] = function(state, event, ctx) ctx:emit("spec.Seen", {}) end } }]]
      rig:append("A", "spec.Put", {})
      rig:run()
      assert.matches("only listeners and sagas may cause effects", rig.host:undelivered("p")[1].reason)
      assert.same({}, rig.host:emitted())
    end)
  end)
end)
