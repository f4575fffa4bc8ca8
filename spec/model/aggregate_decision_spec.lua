-- Aggregates: what a command may not decide, what is said about it, and what
-- many commands at the same time leave behind.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local moontide = require "moontide"

local PURSE = [[return { moontide.aggregate "spec.purse" {
  initial = function() return { sum = 0, late = 0 } end,
  commands = {
    fill = function(purse, args) return moontide.event("purse.Filled", { by = args.by }) end,
    state = function(purse) return moontide.reject("as asked", purse) end,
    dated = function(purse, args)
      return moontide.event("purse.Filled", { by = 1 }, { occurred_at = "2001-02-03T04:05:06Z" })
    end,
    of_revision = function(purse, args)
      return moontide.event("purse.Filled", { by = 1 }, { revision = args.revision, aggregate_id = args.id })
    end,
    change = function(purse, args)
      return moontide.event("purse.Changed", args, { revision = 0, aggregate_id = args.id })
    end,
    with = function(purse, args) return moontide.event("purse.Filled", { by = 1 }, args) end,
    elsewhere = function(purse, args)
      return moontide.event(args.type, { by = 1 }, { aggregate_id = "B", aggregate_type = args.aggregate })
    end,
    reject = function(purse, args) return moontide.reject(args.reason, args.details) end,
    binary = function() return moontide.reject("\255") end,
    huge = function() return moontide.reject("no", { text = ("x"):rep(2000) }) end,
    lua_style = function() return nil, "no" end,
    two = function() return moontide.event("purse.Filled", { by = 1 }), moontide.event("purse.Filled", { by = 1 }) end,
  },
  apply = { ["purse.Filled"] = function(purse, event)
    if event.occurred_at < "2002" then purse.late = purse.late + 1 end
    if event.occurred_at >= "2002" and event.payload.by == 13 then error "thirteen" end
    purse.sum = purse.sum + event.payload.by
  end },
  %s }, moontide.aggregate "spec.closed" { apply = {} }, %s }]]

dialect.each(function(database)
  describe("a command", function()
    local rig

    local function start(more, settings, others)
      rig = kit.new { database = database, handlers = PURSE:format(more or "", others or ""), limits = settings }
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function refused(...)
      local good, problem = pcall(rig.host.command, rig.host, "spec.purse", "A", ...)
      assert.is_false(good)
      return problem
    end

    local function events()
      return rig:value "SELECT count(*) AS value FROM EVENT_STORE"
    end

    it("gives no event to an aggregate that has no apply for it", function()
      start()
      assert.matches('event of type "purse.Burnt", but aggregate "spec.purse" has no apply for "purse.Burnt"',
        refused("elsewhere", { type = "purse.Burnt" }), 1, true)
      assert.matches('aggregate "spec.closed" has no apply for "purse.Filled"',
        refused("elsewhere", { type = "purse.Filled", aggregate = "spec.closed" }), 1, true)
      assert.equal(0, events())
      rig.host:command("spec.purse", "A", "elsewhere", { type = "purse.Filled" })
      rig.host:command("spec.purse", "A", "elsewhere", { type = "any.Thing", aggregate = "not.declared" })
      assert.equal(2, events())
    end)

    it("returns one value: nil and a reason is no acceptance", function()
      start()
      assert.matches('command "lua_style" returned several values; it returns one: moontide.reject(reason)',
        refused "lua_style", 1, true)
      assert.matches("returned several values", refused "two", 1, true)
      assert.equal(0, events())
    end)

    it("rejects with a reason for a person, and with details that can be stored", function()
      start(nil, { payload = "1KiB" })
      for _, args in ipairs { { reason = "" }, {}, { reason = 5 } } do
        assert.matches("handlers/spec.lua:%d+: moontide.reject takes a reason first", refused("reject", args))
      end
      for _, reason in ipairs { "a\0b", ("x"):rep(1001) } do
        assert.matches("a reason is UTF-8 without NUL, at most 1000 characters",
          refused("reject", { reason = reason }), 1, true)
      end
      assert.matches("a reason is UTF-8", refused "binary", 1, true)
      assert.matches("details of 2011 bytes, and limits.payload allows 1024", refused "huge", 1, true)
      local longest = ("é"):rep(1000)
      assert.equal(longest, rig.host:command("spec.purse", "A", "reject", { reason = longest }).reason)
    end)

    it("gives no older event of which the steps make what the aggregate has no apply for", function()
      start(nil, nil, [[moontide.event_type "purse.Changed" { revision = 1, into = { "purse.Filled", "purse.Burnt" },
        upcast = { [0] = function(payload)
          local parts = { moontide.event("purse.Filled", { by = payload.by }) }
          if payload.by == 13 then error "unlucky" end
          if payload.burnt then parts[2] = moontide.event("purse.Burnt", {}) end
          return moontide.split(parts)
        end } }]])
      for _, id in ipairs { "A", "B" } do
        assert.matches('handlers/spec.lua:%d+: command "change" gives an event of type "purse.Burnt", but aggregate '
          .. '"spec.purse" has no apply for "purse.Burnt"', refused("change", { by = 1, burnt = true, id = id }))
        assert.matches("unlucky", refused("change", { by = 13, id = id }), 1, true)
      end
      assert.equal(0, events())
      for _, id in ipairs { "A", "B" } do
        rig.host:command("spec.purse", "A", "change", { by = 2, id = id })
        assert.equal(2, rig.host:command("spec.purse", id, "state").details.sum)
      end
    end)

    it("gives no event a revision that is none", function()
      start()
      for _, revision in ipairs { 1.5, -1, "2", 2 ^ 31, { 1 } } do
        assert.matches("revision is no whole number from 0", refused("of_revision", { revision = revision }), 1, true)
      end
      assert.equal(7, rig.host:command("spec.purse", "A", "of_revision", { revision = 7 }).events[1].revision)
    end)

    it("gives no event a revision that its type cannot be read from, whoever's stream it is for", function()
      start(nil, nil, [[moontide.event_type "purse.Filled" { revision = 3, upcast = { [2] = function() end } }]])
      for _, revision in ipairs { 1, 4 } do
        for _, id in ipairs { "A", "B" } do
          assert.matches(('gives an event of type "purse.Filled" with revision %d, which nothing could read: its '
            .. "event type %%(handlers/spec.lua:%%d+%%) has 2 to 3"):format(revision),
            refused("of_revision", { revision = revision, id = id }))
        end
      end
      assert.equal(0, events())
      assert.equal(2, rig.host:command("spec.purse", "A", "of_revision", { revision = 2, id = "B" }).events[1].revision)
      assert.equal(1, rig.host:command("spec.purse", "B", "state").details.sum)
    end)

    it("is told what an event has that no event can have", function()
      start()
      for text, args in pairs {
        ["an event whose aggregate_id is a number, not a string"] = { aggregate_id = 7 },
        ["an event whose metadata is a list, not a table by name"] = { metadata = moontide.array { 1 } },
        ["an event whose metadata is 7 (a number), not a table by name"] = { metadata = 7 },
        ["an event whose occurred_at is no RFC 3339 time"] = { occurred_at = "noon" },
        ["an event whose id is no UUID"] = { id = "7" },
        ['moontide.event: unknown option aggregat_id; did you mean "aggregate_id"?'] = { aggregat_id = "B" },
      } do
        assert.matches(text, refused("with", args), 1, true)
        assert.matches("handlers/spec.lua:%d+: ", refused("with", args))
      end
      assert.matches("moontide.event takes a table of options last, not a string", refused("with", "B"), 1, true)
      assert.equal(0, events())
    end)

    it("has its events tried as they will be read: with their own time", function()
      start()
      rig.host:command("spec.purse", "A", "dated")
      assert.equal(1, rig.host:command("spec.purse", "A", "state").details.late)
      assert.matches("thirteen; at event 1 that command 'fill' gives, which is not appended: purse.Filled",
        refused("fill", { by = 13 }), 1, true)
      assert.equal(1, events())
    end)

    it("names the stored event that the aggregate cannot be made of", function()
      start()
      rig.host:append("spec.purse", "A", { moontide.event("purse.Filled", { by = 1 }),
        moontide.event("purse.Filled", { by = 13 }) })
      assert.matches("handlers/spec.lua:%d+: thirteen; at event 1 of spec.purse A: purse.Filled, "
        .. "revision 0, position 2", refused "state")
    end)

    it("loses no race to a snapshot that another one stores", function()
      start "snapshot = { every = 1 }"
      rig.host:append("spec.purse", "A", { moontide.event("purse.Filled", { by = 1 }) })
      rig.host:close()
      local children, codes = {}, {}
      for i = 1, 24 do
        children[i] = rig.app:start("command", "spec.purse", "A", i % 3 == 0 and "state" or "fill", '{"by":1}')
      end
      for _, child in ipairs(children) do
        local done = child:wait()
        codes[done.code] = (codes[done.code] or 0) + 1
        assert.is_true(done.code == 0 or done.code == 3, done.err)
      end
      assert.same({ [0] = 16, [3] = 8 }, codes)
      rig:open()
      assert.equal(17, rig.host:command("spec.purse", "A", "state").details.sum)
    end)
  end)
end)
