-- What one handler call cannot leave to the next, and what a projection gives
-- whenever and however it is run.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

dialect.each(function(database)
  describe("a handler call", function()
    local rig

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    -- `first` runs for key A, `then_do` for key B; B's state is what is seen.
    local function after(first, then_do, setup)
      rig = kit.new { database = database, handlers = ([[
        %s
        return moontide.projection "seen" { on = {
          ["spec.First"] = function(state, event, ctx) %s end,
          ["spec.Then"] = function(state, event, ctx) %s end,
        } }]]):format(setup or "", first, then_do) }
      rig:append_all { { "A", "spec.First", { n = 1 } }, { "B", "spec.Then", { n = 2 } } }
      rig:run()
      return rig.host:read("seen", "B")
    end

    local function refused(what)
      local rows = rig:undelivered()
      assert.equal(1, rows[1] and rows[1].position)
      if what then assert.matches(what, rows[1].reason) end
    end

    for _, name in ipairs {
      "_G.leak = 1", "leak = 1", "string.format = nil", "table.insert = print", "math.random = nil",
      "moontide.delete = nil", "getmetatable('').__index = nil", "moontide.null.x = 1",
    } do
      it("cannot change what all see: " .. name, function()
        local state = after(name, [[
          state.fine = leak_or_nil == nil and ("%d"):format(7) == "7" and #table.concat { "a" } == 1
            and type(math.random()) == "number" and moontide.delete ~= nil]], "local leak_or_nil")
        assert.same({ fine = true }, state)
        refused "handlers/spec.lua:%d+: "
      end)
    end

    it("can do nothing with a ctx that is not its own", function()
      rig = kit.new { database = database, handlers = [[
        local kept
        local function try(fn)
          local good, problem = pcall(fn)
          return good and "good" or tostring(problem)
        end
        return {
          moontide.sql_projection "writes" { on = { ["spec.Put"] = function(_, ctx) kept = ctx end } },
          moontide.projection "reads" {
            initial = function() return { initial = try(function() return kept.key end) } end,
            on = { ["spec.Put"] = function(state, event, ctx)
              state.field = try(function() return kept.key end)
              state.query = try(function() return kept:query "SELECT 1 AS one" end)
              state.write = try(function() kept:execute "DELETE FROM EVENT_STORE" end)
            end } },
        }]] }
      rig:append("A", "spec.Put")
      rig:run()
      local state = rig.host:read("reads", "A")
      for _, name in ipairs { "initial", "field", "query", "write" } do
        assert.matches("ctx is only usable inside its handler", state[name], 1, true)
      end
    end)

    it("is what a ctx kept from an earlier one of its projection tells of", function()
      assert.same({ key = "B" }, after("kept = ctx", "state.key = kept.key", "local kept"))
    end)

    it("cannot keep its event's payload unread for a later one", function()
      local state = after("kept = event", [[
        local good, problem = pcall(function() return kept.payload end)
        state.good, state.problem = good, tostring(problem)]], "local kept")
      assert.is_false(state.good)
      assert.matches("event", state.problem, 1, true)
    end)

    it("may keep a copy of its event", function()
      assert.same({ n = 1, type = "spec.First", key = "A" }, after("kept = event:copy()",
        "state.n, state.type, state.key = kept.payload.n, kept.type, kept.key", "local kept"))
    end)

    it("sees the event as it is stored, whatever another consumer did to its payload", function()
      rig = kit.new { database = database, handlers = [[
        local on = function(state, event)
          state.n = event.payload.n
          event.payload.n = 99
          event.payload.list[1] = "changed"
        end
        return {
          moontide.projection "first" { on = { ["spec.Put"] = on } },
          moontide.projection "second" { key = function(event) return "k1", "k2" end, on = { ["spec.Put"] = on } },
        }]] }
      rig:append("A", "spec.Put", { n = 1, list = { 1 } })
      rig:run()
      assert.same({ A = { n = 1 } }, rig.host:read "first")
      assert.same({ k1 = { n = 1 }, k2 = { n = 1 } }, rig.host:read "second")
    end)

    it("that failed leaves nothing of what it did to the state", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "seen" { key = function(event) return event.payload.key end, on = {
          ["spec.Put"] = function(state, event)
            state.list = state.list or moontide.array()
            state.list[#state.list + 1] = event.position
            if event.payload.bad then error "bad" end
          end } }]] }
      rig:append("-", "spec.Put", { key = "k" })
      rig:run()
      rig:reopen() -- or its next batch may be a smaller one, where the first took long
      rig:append_all { { "-", "spec.Put", { key = "k" } }, { "-", "spec.Put", { key = "k", bad = true } },
        { "-", "spec.Put", { key = "k" } }, { "-", "spec.Put", { key = "other" } } }
      rig:run()
      assert.same({ k = { list = { 1, 2 } }, other = { list = { 5 } } }, rig.host:read "seen")
    end)

    it("gets no state that another key's handler has in hand", function()
      rig = kit.new { database = database, handlers = [[
        local last
        return moontide.projection "seen" {
          initial = function() return { list = moontide.array() } end,
          on = { ["spec.Put"] = function(state, event)
            if last then last.list[#last.list + 1] = "leaked" end
            state.list[#state.list + 1] = event.position
            last = { list = {} }
          end } }]] }
      rig:append_all { { "A", "spec.Put" }, { "B", "spec.Put" }, { "A", "spec.Put" } }
      rig:run()
      assert.same({ A = { list = { 1, 3 } }, B = { list = { 2 } } }, rig.host:read "seen")
    end)

    it("has numbers by chance that hang on the message alone", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "seen" { on = { ["spec.Put"] = function(state, event)
          if event.payload.burn then for _ = 1, 10 do math.random() end end
          state.chance = math.random(1e9)
        end } }]] }
      local id = "0190b3c0-0000-7000-8000-0000000000a%d"
      rig:append_all { { "A", "spec.Put", { burn = true }, { id = id:format(1) } },
        { "B", "spec.Put", {}, { id = id:format(2) } } }
      rig:run()
      local b = rig.host:read("seen", "B").chance
      rig:close()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "seen" { on = { ["spec.Put"] = function(state, event)
          state.chance = math.random(1e9)
        end } }]] }
      rig:append_all { { "B", "spec.Put", {}, { id = id:format(2) } }, { "C", "spec.Put", {}, { id = id:format(3) } } }
      rig:run()
      assert.equal(b, rig.host:read("seen", "B").chance)
      assert.not_equal(b, rig.host:read("seen", "C").chance)
    end)

    it("may not set the seed, nor see the clock", function()
      for _, text in ipairs { "math.randomseed(1)", "state.now = os.time()", "state.now = os.clock()" } do
        rig = kit.new { database = database, handlers = ([[
          return moontide.projection "seen" { on = { ["spec.Put"] = function(state) %s end } }]]):format(text) }
        rig:append("A", "spec.Put")
        rig:run()
        assert.same({ "1 A HALTED" }, rig:waiting(), text)
        rig:close()
        rig = nil
      end
    end)

    it("has the event's time as its own", function()
      rig = kit.new { database = database, handlers = [[
        return moontide.projection "seen" { on = { ["spec.Put"] = function(state, event, ctx)
          state.now, state.at = ctx:now(), event.occurred_at
        end } }]] }
      rig:append("A", "spec.Put", {}, { occurred_at = "2001-02-03T04:05:06.000007+01:00" })
      rig:run()
      local at = "2001-02-03T03:05:06.000007Z"
      assert.same({ now = at, at = at }, rig.host:read("seen", "A"))
    end)
  end)

  -- Handlers that do whatever could differ: chance, time, order of pairs,
  -- integers of 64 bits, bits, unpack with holes, text in loops.
  local MIXED = [[
    local bit = bit
    local function digest(s)
      local h = 5381
      for i = 1, #s do h = (h * 33 + s:byte(i)) % 4294967296 end
      return h
    end
    return {
      moontide.projection "mixed" { fields = { n = t.integer(), x = t.double() },
        initial = function(key) return { n = 0, x = 0, born = key, parts = {} } end,
        on = {
          ["spec.Put"] = function(state, event, ctx)
            local p = event.payload
            state.n = state.n + p.n
            state.x = state.x / 3 + p.n * math.random()
            state.at = ctx:now()
            local words = {}
            for name in pairs(p.parts) do words[#words + 1] = name end
            table.sort(words)
            for i, name in ipairs(words) do state.parts[name] = (state.parts[name] or 0) + p.parts[name] * i end
            state.big = p.big
            state.bits = bit.tohex(bit.bxor(p.n * 2654435761 % 4294967296, 0xdeadbeef))
            state.text = (("x"):rep(p.n % 5) .. event.id):sub(-20)
            state.count = select("#", unpack({ 1, nil, 3, nil }, 1, 4))
            state.hash = digest(state.text .. state.n)
            if p.n % 17 == 0 then return moontide.delete end
          end } },
      moontide.sql_projection "sums" { tables = "sql/sums.sql", on = {
        ["spec.Put"] = function(event, ctx)
          ctx:upsert("sums", { day = ctx:now():sub(1, 10), key = ctx.key },
            { n = moontide.add(event.payload.n), chance = moontide.add(math.random(1000)), last = event.payload.big })
          if event.payload.n % 5 == 0 then
            ctx:execute('UPDATE sums SET n = n + ? WHERE "key" = ?', event.payload.big, ctx.key)
          end
        end } },
    }]]
  local SUMS = [[CREATE TABLE IF NOT EXISTS sums (day TEXT NOT NULL, "key" TEXT NOT NULL, n INTEGER, chance INTEGER,
    last INTEGER, PRIMARY KEY (day, "key"));]]

  describe("a projection", function()
    local rig

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function lines()
      local list = {}
      for i = 1, 300 do
        list[i] = { aggregate_id = "k" .. i * 7 % 13, type = "spec.Put",
          id = ("0190b3c0-0000-7000-8000-%012x"):format(i),
          occurred_at = ("2024-01-%02dT00:00:%02d.%06dZ"):format(i % 28 + 1, i % 60, i),
          payload = ('{"n":%d,"big":900719925474%05d,"parts":{"b":%d,"a":2,"c":%d,"é":1}}')
            :format(i, 993 + i, i, i * 3) }
      end
      return list
    end

    -- The whole of what is stored, message ids apart.
    local function result(settings)
      local options = { database = database, handlers = MIXED, files = { ["sql/sums.sql"] = SUMS } }
      for key, value in pairs(settings) do options[key] = value end
      rig = kit.new(options)
      rig.app:append(lines())
      rig:run()
      assert.same({}, rig:waiting())
      local all = {}
      for _, row in ipairs(rig:query "SELECT read_model_id, state, n, CAST(x AS TEXT) AS x FROM mixed ORDER BY 1") do
        all[#all + 1] = ("%s %s %d %s"):format(row.read_model_id, row.state, row.n, row.x)
      end
      for _, row in ipairs(rig:query [[
          SELECT day, "key", CAST(n AS TEXT) AS n, chance, CAST(last AS TEXT) AS last FROM sums
           ORDER BY day, "key"]]) do
        all[#all + 1] = ("%s %s %s %d %s"):format(row.day, row.key, row.n, row.chance, row.last)
      end
      rig:close()
      rig = nil
      assert.is_true(#all > 100)
      return all
    end

    it("gives the same from scratch each time, in batches of any size, years later", function()
      local first = result { batch = 500 }
      assert.same(first, result { batch = 500, clock_offset = "90000h" })
      assert.same(first, result { batch = 7 })
      assert.same(first, result { batch = 1 })
    end)

    it("gives the same when it is rebuilt, and rebuilt again", function()
      rig = kit.new { database = database, handlers = MIXED, files = { ["sql/sums.sql"] = SUMS }, batch = 40 }
      rig.app:append(lines())
      local function states()
        rig:run()
        assert.equal("RUNNING", rig:state "mixed")
        local all = {}
        for _, row in ipairs(rig:query "SELECT read_model_id, state FROM mixed ORDER BY 1") do
          all[#all + 1] = row.read_model_id .. " " .. row.state
        end
        return all
      end
      local first = states()
      assert.is_true(#first > 5)
      for epoch = 1, 2 do
        assert.equal(epoch, rig.host:rebuild("mixed").epoch)
        rig:query "UPDATE mixed SET state = '{}'" -- nothing of before may do
        assert.same(first, states())
      end
    end)

    it("gives the same with the compiler on as with it off", function()
      assert.same(result { jit = false }, result { jit = true })
    end)
  end)
end)
