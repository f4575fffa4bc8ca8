-- Topics of read models: what a projection appends to its own, and consumers
-- whose source it is.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local TOTALS = [[
  local totals = moontide.projection "totals" { %s
    initial = function() return { n = 0 } end,
    on = {
      ["spec.Add"] = function(state, event) state.n = state.n + event.payload.by end,
      ["spec.Fail"] = function() error "refused" end,
      ["spec.Drop"] = function(state) state.n = -1; return moontide.delete end } }]]

-- What it meets of one read model, in order: "=3" for a state, "x3" for a tombstone.
local READER = [[
  local seen = moontide.projection "seen" { source = "read-model:totals", %s
    on = {
      ["read-model.Changed"] = function(state, event)
        state.log = (state.log and state.log .. " " or "") .. "=" .. event.payload.n
        state.by = event.metadata and event.metadata.correlation_id
        state.topic, state.id, state.key = event.topic, event.id, event.key
      end,
      ["read-model.Deleted"] = function(state, event)
        state.log = (state.log and state.log .. " " or "") .. "x" .. event.payload.n
      end } }]]

local function pair(totals, reader)
  return TOTALS:format(totals or "") .. READER:format(reader or "") .. " return { totals, seen }"
end

dialect.each(function(database)
  describe("a topic of read models", function()
    local rig

    local function start(handlers, settings)
      rig = kit.start(database, handlers, settings)
    end

    local function add(key, by, options) rig:append(key, "spec.Add", { by = by }, options) end
    local function drop(key) rig:append(key, "spec.Drop", {}) end

    local function log(key)
      local state = rig.host:read("seen", key)
      return state and state.log
    end

    -- The rows of the topic: key, state's n, deleted, depth, in order.
    local function records(topic)
      local list = {}
      for _, row in ipairs(rig:query(([[SELECT read_model_key AS k, payload AS p, deleted AS d, cascade_depth AS c
          FROM READ_MODEL_CAPTURE_RECORDS WHERE topic = '%s' ORDER BY topic_position]]):format(topic or "totals"))) do
        local gone = row.d == true or row.d == 1
        list[#list + 1] = ("%s%s%s/%d"):format(row.k, gone and "x" or "=", row.p:match '"n":(-?%d+)', row.c)
      end
      return table.concat(list, " ")
    end

    after_each(function() rig:close() end)

    it("is off until something reads it", function()
      start(TOTALS:format "" .. " return totals")
      add("A", 1)
      rig:run()
      assert.equal("", records())
      rig:script(pair())
      rig:reopen()
      rig:run()
      assert.equal("A=1/1", records())
      assert.equal("=1", log "A")
    end)

    it("is on without a reader where its projection says so", function()
      start(TOTALS:format "topic = true," .. " return totals")
      add("A", 1)
      rig:run()
      assert.equal("A=1/1", records())
    end)

    it("gives the last state of a batch under its message_id, with the metadata of its last event", function()
      start(pair())
      rig:append_all { { "A", "spec.Add", { by = 1 }, { metadata = { correlation_id = "first" } } },
        { "B", "spec.Add", { by = 5 } },
        { "A", "spec.Add", { by = 2 }, { metadata = { correlation_id = "last" } } } }
      rig:run()
      assert.equal("B=5/1 A=3/1", records())
      assert.equal("=3", log "A")
      local state = rig.host:read("seen", "A")
      assert.equal("last", state.by)
      assert.equal("read-model:totals", state.topic)
      assert.equal("A", state.key)
      assert.equal(state.id, tostring(rig:value "SELECT message_id AS value FROM totals WHERE read_model_id = 'A'"))
      assert.is_nil(rig.host:read("seen", "B").by)
    end)

    it("gives each state where its projection says so", function()
      start(pair 'changes = "every",')
      rig:append_all { { "A", "spec.Add", { by = 1 } }, { "B", "spec.Add", { by = 5 } },
        { "A", "spec.Add", { by = 2 } } }
      rig:run()
      assert.equal("A=1/1 B=5/1 A=3/1", records())
      assert.equal("=1 =3", log "A")
      assert.equal(2, rig:value [[SELECT count(*) AS value FROM totals t
        JOIN READ_MODEL_CAPTURE_RECORDS r ON r.id = t.message_id]])
    end)

    for _, every in ipairs { false, true } do
      it("never passes over a delete within a batch" .. (every and ", each state given" or ""), function()
        start(pair(every and 'changes = "every",' or ""))
        add("A", 7)
        add("D", 1)
        rig:run()
        rig:reopen() -- or its next batch may be a smaller one, where the last took long
        rig:append_all { { "A", "spec.Add", { by = 1 } }, { "A", "spec.Drop", {} }, { "A", "spec.Add", { by = 2 } },
          { "B", "spec.Add", { by = 3 } }, { "B", "spec.Drop", {} },
          { "C", "spec.Drop", {} }, { "D", "spec.Drop", {} } }
        rig:run()
        assert.equal(every and "=7 =8 x8 =2" or "=7 x8 =2", log "A")
        assert.equal(every and "=3 x3" or "x3", log "B") -- the last state is that before the delete
        assert.is_nil(log "C")
        assert.equal("=1 x1", log "D")
        assert.is_nil(rig.host:read("totals", "B"))
        assert.same({ n = 2 }, rig.host:read("totals", "A"))
      end)

      it("tells nothing of a message that fails, and all of its neighbours" .. (every and ", each state given" or ""),
        function()
          start(pair((every and 'changes = "every",' or "") .. 'on_error = "dead_letter", retry = { attempts = 1 },'))
          rig:append_all { { "A", "spec.Add", { by = 1 } }, { "A", "spec.Fail", {} }, { "A", "spec.Drop", {} },
            { "A", "spec.Fail", {} }, { "A", "spec.Add", { by = 4 } }, { "B", "spec.Add", { by = 2 } } }
          rig:run()
          assert.equal(every and "=1 x1 =4" or "x1 =4", log "A")
          assert.equal("=2", log "B")
        end)
    end

    it("is filled with what is there, each read model once or newer", function()
      start(TOTALS:format "" .. " return totals")
      local events = {}
      for i = 1, 1203 do events[i] = { "K" .. i, "spec.Add", { by = i } } end
      rig:append_all(events)
      rig:run()
      rig:script(pair())
      rig:reopen()
      add("K5", 1000)
      add("K700", 1000)
      drop "K9"
      rig:run()
      assert.equal("=1700", log "K700") -- newer before it was filled in, or both
      assert.equal("=1005", log "K5")
      assert.matches("x9$", log "K9")
      assert.equal("=1203", log "K1203")
      -- every read model has its message, none twice
      assert.equal(1202, rig:value [[SELECT count(*) AS value FROM totals t
        JOIN READ_MODEL_CAPTURE_RECORDS r ON r.id = t.message_id AND r.read_model_key = t.read_model_id]])
      assert.equal(1203, rig:value "SELECT count(*) AS value FROM seen")
    end)

    it("gives a listener that starts now what changes from then on", function()
      start(TOTALS:format "" .. " return totals")
      add("A", 1)
      rig:run()
      rig:script(TOTALS:format "" .. [[
        return { totals, moontide.listener "told" { source = "read-model:totals", start = "now", on = {
          ["read-model.Changed"] = function(event, ctx) ctx:emit("spec.Told", { n = event.payload.n }) end } } }]])
      rig:reopen()
      rig:run()
      assert.same({}, rig.host:emitted())
      add("A", 2)
      rig:run()
      local emitted = rig.host:emitted()
      assert.equal(1, #emitted)
      assert.equal(3, emitted[1].payload.n)
    end)

    it("goes on through a chain of three, each counted, up to limits.cascade", function()
      local chain = [[ local function link(name, source)
          return moontide.projection(name) { source = source, retry = { attempts = 5, delay = "1h" }, on = {
            ["read-model.Changed"] = function(state, event) state.n = event.payload.n + 1 end,
            ["read-model.Deleted"] = function() return moontide.delete end } }
        end
        return { link("three", "read-model:two"), link("two", "read-model:one"), link("one", "read-model:totals"),
          totals, moontide.projection "last" { source = "read-model:three", on = {
            ["read-model.Changed"] = function(state, event) state.n = event.payload.n end } } }]]
      start(TOTALS:format "" .. chain)
      add("A", 1)
      rig:run()
      assert.equal("A=1/1", records "totals")
      assert.equal("A=2/2", records "one")
      assert.equal("A=3/3", records "two")
      assert.equal("A=4/4", records "three")
      assert.same({ n = 4 }, rig.host:read("last", "A"))
      drop "A"
      rig:run()
      assert.equal("A=4/4 Ax4/4", records "three")
      rig:reopen { limits = { cascade = 2 } }
      add("B", 1)
      rig:run()
      assert.same({ n = 2 }, rig.host:read("one", "B"))
      assert.is_nil(rig.host:read("two", "B"))
      local held = rig.host:undelivered()
      assert.equal(1, #held)
      assert.equal("two", held[1].consumer)
      assert.matches("limits.cascade allows 2", held[1].failure_reason or held[1].reason, 1, true)
    end)

    it("has a tombstone of what a rebuild does not make anew", function()
      start(pair())
      add("A", 1)
      add("B", 2)
      rig:run()
      rig:script((pair():gsub('%["spec.Add"%] = function%(state, event%)',
        '%0 if event.aggregate_id == "A" then return moontide.delete end')))
      rig:reopen()
      rig.host:rebuild "totals"
      rig:run()
      assert.equal("=1 x1", log "A")
      assert.equal("=2 =2", log "B")
    end)

    it("is read anew by a rebuild of its reader", function()
      start(pair())
      add("A", 1)
      rig:run()
      add("A", 2)
      rig:run()
      rig.host:rebuild "seen"
      rig:run()
      assert.equal("=1 =3", log "A")
    end)

    it("tells of the delete and the new state of one read model that is rebuilt", function()
      start(pair())
      add("A", 1)
      add("A", 2)
      rig:run()
      rig.host:rebuild("totals", { key = "A" })
      rig:run()
      assert.equal("=3 x3 =3", log "A")
    end)

    it("stays on while its reader is paused, and when the last one is gone", function()
      start(pair())
      rig:run()
      rig.host:pause "seen"
      add("A", 1)
      rig:run()
      assert.equal("A=1/1", records())
      rig.host:unsubscribe("seen", { force = true })
      rig:script(TOTALS:format "" .. " return totals")
      rig:reopen()
      add("A", 1)
      rig:run()
      assert.equal("A=1/1 A=2/1", records())
    end)

    it("keeps what failed in its reader with its depth, which a retry has", function()
      start(TOTALS:format "" .. [[
        local one = moontide.projection "one" { source = "read-model:totals", on_error = "dead_letter",
          retry = { attempts = 2, delay = "1m" }, on = {
            ["read-model.Changed"] = function(state, event, ctx)
              if ctx.attempt == 1 then error "not yet" end
              state.n = event.payload.n
            end } }
        return { totals, one, moontide.projection "two" { source = "read-model:one", on = {
          ["read-model.Changed"] = function(state, event) state.n = event.payload.n end } } }]])
      add("A", 1)
      rig:run()
      assert.is_nil(rig.host:read("one", "A"))
      rig.host:advance "2m"
      rig:run()
      assert.equal("A=1/2", records "one")
      assert.same({ n = 1 }, rig.host:read("two", "A"))
    end)

    it("is read by SQL projections and sagas alike", function()
      start(kit.LEDGER .. TOTALS:format "" .. [[
        return { totals,
          moontide.sql_projection "notes" { source = "read-model:totals", tables = "sql/ledger.sql", on = {
            ["read-model.Changed"] = function(event, ctx) ledger("notes", event, ctx) end } },
          moontide.saga "watch" { source = "read-model:totals", id = function(event) return event.key end,
            starts = { "read-model.Changed" }, on = {
              ["read-model.Changed"] = function(saga, event, ctx) saga.state.n = event.payload.n end,
              ["read-model.Deleted"] = function(saga, event, ctx)
                ctx:emit("spec.Gone", { n = saga.state.n, last = event.payload.n })
                saga:complete()
              end } } }]], { files = { ["sql/ledger.sql"] = kit.LEDGER_SQL } })
      add("A", 2)
      rig:run()
      drop "A"
      rig:run()
      assert.equal(1, #rig:ledger "notes")
      local emitted = rig.host:emitted()
      assert.equal(1, #emitted)
      assert.same({ n = 2, last = 2 }, emitted[1].payload)
    end)

    it("is heeded by the very next batch when another host has switched it on", function()
      start(TOTALS:format "" .. " return totals")
      for i = 1, 5 do add("A", i) rig:run() end -- by now a batch is sent without a look before
      rig:query([[INSERT INTO READ_MODEL_TOPICS (topic, switched_on_at, filled_at)
        SELECT 'totals', state_since, state_since FROM CONSUMERS]])
      if rig.app.db.name ~= "postgres" then
        rig:query "INSERT INTO READ_MODEL_CAPTURE_POSITIONS (topic, val) VALUES ('totals', 0)"
      end
      add("A", 1)
      rig:run()
      assert.equal("A=16/1", records())
    end)

    it("takes a sequence or counter that was made anew past what is stored", function()
      start(pair())
      add("A", 1)
      rig:run()
      add("A", 1)
      rig:run()
      rig.host:close()
      rig.host = nil
      rig.app.db:execute(rig.app.db.name == "postgres" and
        "SELECT setval('READ_MODEL_CAPTURE_POSITIONS', 1, false)" or "UPDATE READ_MODEL_CAPTURE_POSITIONS SET val = 0")
      rig:reopen()
      add("A", 1)
      rig:run()
      assert.equal("=1 =2 =3", log "A")
    end)
  end)
end)

describe("what reads a topic of read models", function()
  local application = require "spec.support.application"

  local function refused(handlers)
    local app = application.new { handlers = { ["spec.lua"] = 'local moontide = require "moontide"\n' .. handlers } }
    finally(function() app:close() end)
    return app:fails(78, "check")
  end

  local LINK = [[local function link(name, source)
    return moontide.projection(name) { source = source, on = { ["read-model.Changed"] = function() end } }
  end ]]
  local PLAIN = '{ on = { ["spec.Put"] = function() end } }'

  it("must name a projection that is declared", function()
    local said = refused(LINK .. 'return { moontide.projection "totals" ' .. PLAIN ..
      ', link("seen", "read-model:total") }')
    assert.matches('source is "read-model:total", and no projection is called "total"; ' ..
      'did you mean "read-model:totals"?', said, 1, true)
  end)

  it("must name one that keeps read models", function()
    local said = refused(LINK .. 'return { moontide.sql_projection "notes" ' .. PLAIN ..
      ', link("seen", "read-model:notes") }')
    assert.matches('source is "read-model:notes", and the sql_projection "notes" (handlers/spec.lua:4) ' ..
      'keeps no read models', said, 1, true)
  end)

  it("must not lead back to itself", function()
    assert.matches("reads its own read models", refused(LINK .. 'return link("one", "read-model:one")'), 1, true)
    assert.matches("reads its own read models, by way of others: one reads three reads two reads one",
      refused(LINK .. [[return { link("one", "read-model:three"), link("two", "read-model:one"),
        link("three", "read-model:two") }]]), 1, true)
  end)

  it("is no event type of the script's own", function()
    assert.matches('names that begin with "read-model." are those of messages of read models',
      refused 'return moontide.event_type "read-model.Changed" { revision = 1 }', 1, true)
  end)
end)
