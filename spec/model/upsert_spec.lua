-- ctx:upsert: a batch merges what it can, and nobody can tell by the result.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local moontide = require "moontide"

local ROUNDS = tonumber(os.getenv "MOONTIDE_SPEC_ROUNDS") or 4

-- `b` has a default that is not nothing, so that it matters who makes a row.
local TABLES = [[
CREATE TABLE IF NOT EXISTS cells ("key" TEXT NOT NULL, part INTEGER NOT NULL,
  a INTEGER, b INTEGER NOT NULL DEFAULT 100, c REAL, d TEXT, PRIMARY KEY ("key", part));
]]

-- One event is one call of upsert, or an `execute` that reads the table.
local HANDLERS = [[
return moontide.sql_projection "cells" { tables = "sql/cells.sql", on = {
  ["spec.Upserted"] = function(event, ctx)
    local values = {}
    for name, v in pairs(event.payload.set or {}) do values[name] = v end
    for name, v in pairs(event.payload.add or {}) do values[name] = moontide.add(v) end
    ctx:upsert("cells", { key = event.payload.key, part = event.payload.part }, values)
    if event.payload.bad then error "bad" end
  end,
  ["spec.Executed"] = function(event, ctx)
    ctx:execute([=[UPDATE cells SET a = coalesce(a, 0) * 2, d = coalesce(d, '') || 'x' WHERE "key" = ?]=],
      event.payload.key)
  end } }
]]

dialect.each(function(database)
  describe("ctx:upsert", function()
    local rig

    local function start(settings)
      local options = { database = database, files = { ["sql/cells.sql"] = TABLES }, handlers = HANDLERS }
      for key, value in pairs(settings or {}) do options[key] = value end
      rig = kit.new(options)
    end

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function upsert(values, key, part)
      return { "S", "spec.Upserted",
        { key = key or "k", part = part or 1, set = values.set, add = values.add, bad = values.bad } }
    end

    local function cells()
      local list = {}
      for i, row in ipairs(rig:query 'SELECT "key", part, a, b, c, d FROM cells ORDER BY "key", part') do
        list[i] = ("%s %d: a=%s b=%s c=%s d=%s"):format(row.key, row.part, tostring(row.a), tostring(row.b),
          tostring(row.c), tostring(row.d))
      end
      return list
    end

    it("makes the row with what is set and added, or changes it", function()
      start()
      rig:append_all { upsert { set = { a = 1, d = "x" }, add = { b = 5, c = 0.5 } } }
      rig:run()
      assert.same({ "k 1: a=1 b=5 c=0.5 d=x" }, cells())
      rig:append_all { upsert { set = { d = "y" }, add = { a = 2, c = 0.25 } } }
      rig:run()
      assert.same({ "k 1: a=3 b=5 c=0.75 d=y" }, cells())
    end)

    it("takes nothing for nothing when it adds to NULL", function()
      start()
      rig:append_all { upsert { set = { d = "x" } } }
      rig:run()
      rig:append_all { upsert { add = { a = 2 } } }
      rig:run()
      assert.same({ "k 1: a=2 b=100 c=nil d=x" }, cells())
    end)

    it("sends one row per key and batch", function()
      start()
      rig:query "CREATE TABLE written (n INTEGER)"
      for _, kind in ipairs { "INSERT", "UPDATE" } do
        rig:trigger { name = "note_" .. kind, at = "AFTER " .. kind, on = "cells",
          body = "INSERT INTO written VALUES (1)" }
      end
      local list = {}
      for i = 1, 40 do list[i] = upsert({ set = { d = "v" .. i }, add = { a = i } }, "k" .. i % 4) end
      rig:append_all(list)
      rig:run()
      assert.equal(4, rig:value "SELECT count(*) AS value FROM written")
      assert.same({ "k0 1: a=220 b=100 c=nil d=v40", "k1 1: a=190 b=100 c=nil d=v37",
        "k2 1: a=200 b=100 c=nil d=v38", "k3 1: a=210 b=100 c=nil d=v39" }, cells())
    end)

    it("keeps the order of a sum and a value of one column", function()
      start()
      rig:append_all { upsert { add = { a = 5 } }, upsert { set = { a = 0 } }, upsert { add = { a = 5 } } }
      rig:run()
      assert.same({ "k 1: a=5 b=100 c=nil d=nil" }, cells())
    end)

    it("lets the upsert that comes first make the row", function()
      start()
      rig:append_all {
        upsert({ set = { d = "x" } }, "other"), upsert({ add = { b = 1 } }, "k"), upsert({ set = { d = "y" } }, "k"),
        upsert({ set = { d = "z" } }, "m"), upsert({ add = { b = 1 } }, "m"),
      }
      rig:run()
      assert.same({ "k 1: a=nil b=1 c=nil d=y", "m 1: a=nil b=101 c=nil d=z", "other 1: a=nil b=100 c=nil d=x" },
        cells())
    end)

    it("adds exactly up to 64 bits, and fails the message that goes beyond, alone", function()
      start()
      local large = moontide.json.decode "9223372036854775806"
      rig:append_all { upsert({ add = { a = large } }, "k"), upsert({ add = { a = 1 } }, "k") }
      rig:run()
      assert.equal("9223372036854775807", rig:query("SELECT CAST(a AS TEXT) AS a FROM cells")[1].a)
      rig.host:append(kit.aggregate, "T", { moontide.event("spec.Upserted", { key = "k", part = 1, add = { a = 1 } }) })
      rig.host:append(kit.aggregate, "U", { moontide.event("spec.Upserted", { key = "u", part = 1, add = { a = 1 } }) })
      rig:run()
      assert.equal("9223372036854775807", rig:query("SELECT CAST(a AS TEXT) AS a FROM cells WHERE \"key\" = 'k'")[1].a)
      assert.equal(1, rig:value "SELECT a AS value FROM cells WHERE \"key\" = 'u'")
      assert.same({ "3 T HALTED" }, rig:waiting())
    end)

    it("names the table that does not take a value", function()
      rig = kit.new { database = database, handlers = [[
return moontide.sql_projection "sums" { tables = "sql/sums.sql", on = {
  ["spec.Summed"] = function(event, ctx) ctx:upsert("sums", { id = event.key }, { n = event.payload.n }) end } }]],
        files = { ["sql/sums.sql"] = "CREATE TABLE IF NOT EXISTS sums (id TEXT PRIMARY KEY, n INTEGER) STRICT" } }
      rig:append_all { { "A", "spec.Summed", { n = "none" } } }
      rig:run()
      assert.matches("%f[%w]sums%f[^%w_]", rig:undelivered()[1].reason)
    end)

    -- A sequence of random upserts over few keys, columns and shapes, some of
    -- messages that fail, applied in one batch and one by one.
    local function sequence(seed)
      local value = seed % 2147483646 + 1
      local function random(n)
        value = value * 16807 % 2147483647
        return value % n + 1
      end
      for _ = 1, 5 do random(2) end
      local list = {}
      for i = 1, 60 do
        local id, key = "S" .. random(5), "k" .. random(3)
        if random(12) == 1 then
          list[i] = { id, "spec.Executed", { key = key } }
        else
          local set, add = {}, {}
          local shape = random(7)
          if shape == 1 then add.a = random(9) end
          if shape == 2 then set.a = random(9) end
          if shape == 3 then add.b = random(9) end
          if shape == 4 then add.a, add.b = random(9), random(9) end
          if shape == 5 then set.a, add.b, set.d = random(9), random(9), "t" .. random(9) end
          if shape == 6 then set.d = "t" .. random(9) end
          if shape == 7 then set.b, add.c = random(9), random(9) / 4 end
          list[i] = { id, "spec.Upserted", { key = key, part = random(2), set = moontide.object(set),
            add = moontide.object(add), bad = id == "S5" and random(4) == 1 or nil } }
        end
      end
      return list
    end

    -- What program order makes of the table.
    local function model(list)
      local rows, held = {}, {}
      for _, item in ipairs(list) do
        local id, event_type, p = item[1], item[2], item[3]
        if p.bad then held[id] = true end
        if not held[id] then
          for part = 1, 2 do
            local name = p.key .. " " .. part
            local row = rows[name]
            if event_type == "spec.Executed" and row then
              row.a, row.d = (row.a or 0) * 2, (row.d or "") .. "x"
            elseif event_type == "spec.Upserted" and p.part == part then
              local fresh = row == nil
              row = row or { b = 100 }
              rows[name] = row
              if fresh and (p.add.b or p.set.b) then row.b = 0 end
              for column, v in pairs(p.set) do row[column] = v end
              for column, v in pairs(p.add) do row[column] = (row[column] or 0) + v end
            end
          end
        end
      end
      local lines = {}
      for name, row in pairs(rows) do
        lines[#lines + 1] = ("%s: a=%s b=%s c=%s d=%s"):format(name, tostring(row.a), tostring(row.b),
          tostring(row.c), tostring(row.d))
      end
      table.sort(lines)
      return lines
    end

    local function result(list, batch)
      start { batch = batch }
      rig:append_all(list)
      rig:run()
      local lines = cells()
      rig:close()
      rig = nil
      return lines
    end

    local base = tonumber(os.getenv "MOONTIDE_SPEC_SEED") or os.time()
    for seed = base, base + ROUNDS - 1 do
      it(("leaves what the same calls one by one leave (seed %d)"):format(seed), function()
        local list = sequence(seed)
        local good = {}
        for _, item in ipairs(list) do
          if not item[3].bad then good[#good + 1] = item end
        end
        assert.same(model(list), result(list, 500))
        assert.same(model(good), result(good, 500))
        assert.same(model(good), result(good, 1))
      end)
    end
  end)
end)

-- Only here a table is cut by the values of its rows.
local PARTITIONED = {
  postgres = [[CREATE TABLE IF NOT EXISTS days (day BIGINT PRIMARY KEY, n BIGINT) PARTITION BY RANGE (day);
    CREATE TABLE IF NOT EXISTS days_of_old PARTITION OF days FOR VALUES FROM (0) TO (10);]],
  mysql = [[CREATE TABLE IF NOT EXISTS days (day BIGINT PRIMARY KEY, n BIGINT)
    PARTITION BY RANGE (day) (PARTITION days_of_old VALUES LESS THAN (10));]],
}

for dialect_name, tables in pairs(PARTITIONED) do
  dialect.only(dialect_name, function(database)
    it("ctx:upsert names the table that lacks the partition for a row", function()
      local rig = kit.new { database = database, files = { ["sql/days.sql"] = tables }, handlers = [[
return moontide.sql_projection "days" { tables = "sql/days.sql", on = {
  ["spec.Counted"] = function(event, ctx)
    ctx:upsert("days", { day = event.payload.day }, { n = moontide.add(1) })
  end } }]] }
      rig:append_all { { "A", "spec.Counted", { day = 9 } }, { "B", "spec.Counted", { day = 10 } } }
      rig:run()
      local reason, rows = rig:undelivered()[1].reason, rig:query "SELECT day, n FROM days"
      rig:close()
      assert.same({ { day = 9, n = 1 } }, rows)
      assert.matches("%f[%w]days%f[^%w_]", reason)
    end)
  end)
end

-- The other databases write such rows one by one.
dialect.only("postgres", function(database)
  it("ctx:upsert says why keys that are written differently cannot be one row in one batch", function()
    local rig = kit.new { database = database, handlers = [[
return moontide.sql_projection "ids" { tables = "sql/ids.sql", on = {
  ["spec.Seen"] = function(event, ctx)
    for _, id in ipairs(event.payload.ids) do ctx:upsert("ids", { id = id }, { n = moontide.add(1) }) end
  end } }]], files = { ["sql/ids.sql"] = "CREATE TABLE IF NOT EXISTS ids (id UUID PRIMARY KEY, n BIGINT)" } }
    local small = "0192f0c0-0000-7000-8000-00000000000a"
    rig:append_all { { "A", "spec.Seen", { ids = { small } } }, { "B", "spec.Seen", { ids = { small:upper() } } },
      { "C", "spec.Seen", { ids = { small, small:upper() } } } }
    rig:run()
    local waiting, reason, rows = rig:waiting(), rig:undelivered()[1].reason, rig:query "SELECT n FROM ids"
    rig:close()
    assert.same({ "3 C HALTED" }, waiting)
    assert.same({ { n = 2 } }, rows)
    assert.matches("a UUID in small and in capital letters, may be one for the database: write a key in one way",
      reason, 1, true)
    assert.matches("table ids", reason, 1, true)
  end)
end)
