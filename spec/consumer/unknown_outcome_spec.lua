-- A connection that is lost around a COMMIT leaves the host without an answer:
-- the transaction may have been done or not. Whatever it was, at whichever of
-- the product's commits, everything ends as if nothing had happened.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"
local proxy = require "spec.support.proxy"

local CONFIG = 'partitions = 12, batch = 3'

local HANDLERS = {
  ["notes.lua"] = [[
    local moontide = require "moontide"
]] .. kit.LEDGER .. [[
    return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
      ["spec.Put"] = function(event, ctx)
        %s
        ledger("notes", event, ctx)
        ctx:upsert("sums", { key = ctx.key }, { total = moontide.add(event.payload.i) })
      end } }]],
  ["counts.lua"] = [[
    local moontide = require "moontide"
    return moontide.projection "counts" { on = {
      ["spec.Put"] = function(state, event)
        state.n = (state.n or 0) + 1
        state.i = event.payload.i
      end } }]],
}

local TABLES = kit.LEDGER_SQL .. [[
CREATE TABLE IF NOT EXISTS sums ("key" TEXT NOT NULL PRIMARY KEY, total INTEGER NOT NULL);
]]

-- What stays the same however often a transaction was tried: a sequence leaves
-- gaps, and ids are made by the host.
local RESULTS = {
  [[SELECT aggregate_id AS a, sequence_no AS n, event_type AS t, payload AS p FROM EVENT_STORE
     ORDER BY global_position]],
  [[SELECT l."key" AS k, l.attempt AS a, e.payload AS p FROM ledger l JOIN EVENT_STORE e
     ON e.global_position = l.position WHERE l.consumer = 'notes' ORDER BY l.position, l.n]],
  [[SELECT l."key" AS k, count(*) AS c, max(e.sequence_no) AS s FROM ledger l JOIN EVENT_STORE e
     ON e.global_position = l.position GROUP BY l."key" ORDER BY l."key"]],
  [[SELECT "key" AS k, total AS t FROM sums ORDER BY "key"]],
  [[SELECT read_model_id AS id, state AS s FROM counts ORDER BY read_model_id]],
  [[SELECT projection AS p, read_model_key AS k, epoch AS e FROM READ_MODEL_EPOCHS ORDER BY 1, 2]],
  [[SELECT c.consumer_name AS c, c.state AS s, c.halt_reason AS r, count(*) AS n,
      min(k.position) - (SELECT max(global_position) FROM EVENT_STORE) AS low,
      max(k.position) - (SELECT max(global_position) FROM EVENT_STORE) AS high
     FROM CONSUMERS c JOIN CONSUMER_CHECKPOINTS k ON k.consumer_id = c.id
     GROUP BY c.consumer_name, c.state, c.halt_reason ORDER BY 1]],
  [[SELECT high_water_mark - (SELECT max(global_position) FROM EVENT_STORE) AS behind FROM HIGH_WATER_MARK_STORE
     WHERE topic_name = 'event-store']],
  [[SELECT count(*) AS n FROM CONSUMER_UNDELIVERED_MESSAGES]],
  [[SELECT e.payload AS p FROM CONSUMER_SKIPPED_MESSAGES s JOIN EVENT_STORE e ON e.global_position = s.message_position
     ORDER BY e.global_position]],
}

local function events(first, last)
  local list = {}
  for i = first, last do
    list[#list + 1] = { aggregate_id = "key-" .. i % 4, type = "spec.Put", payload = ('{"i":%d}'):format(i) }
  end
  return application.ndjson(list)
end

local function set_fault(app, fault)
  for name, text in pairs(HANDLERS) do app:write("handlers/" .. name, (text:gsub("%%s", fault))) end
end

-- One message is refused by the database, one by the handler itself.
local FAULT = [[
  if event.payload.i == 5 then ctx:execute("INSERT INTO sums (total) VALUES (NULL)") end
  if event.payload.i == 4 then error "cannot price this" end]]

-- All that commits: tables, appends in several batches, registration, pages of
-- which messages fail, what an operator does about it, a retry, checkpoints over
-- nothing to apply, and a consumer that is taken away.
local function steps(app)
  return {
    { 0, "schema", "upgrade" },
    { 0, "append", "--batch", "3", { stdin = events(1, 9) } },
    { 1, "run", "--until-idle", before = function() set_fault(app, FAULT) end },
    { 0, "pause", "counts" },
    { 0, "resume", "counts" },
    { 0, "dead-letters", "delete", "--error", "cannot price" },
    { 0, "dead-letters", "retry", "--all" },
    { 0, "run", "--until-idle", before = function() set_fault(app, "") end },
    { 0, "append", { stdin = application.ndjson { { aggregate_id = "key-0", type = "spec.Ignored" } } } },
    { 0, "run", "--until-idle" },
    { 0, "rebuild", "counts" },
    { 0, "run", "--until-idle" },
    { 0, "unsubscribe", "counts", "--force" },
  }
end

-- Verbs after which a second try may find that there is nothing left to do.
local OPERATES = { pause = true, resume = true, ["dead-letters"] = true, rebuild = true, unsubscribe = true }

-- A program that could not start, or was cut off at its end, says so with 69 and
-- is started again, as whoever watches over it would. An append must find out
-- by itself: a second one would store more events.
local function run_step(app, url, step)
  local words = { unpack(step, 2) }
  local options = type(words[#words]) == "table" and table.remove(words) or nil
  words[#words + 1] = "--database"
  words[#words + 1] = url
  words[#words + 1] = options
  if step.before then step.before() end
  local result = app:moontide(unpack(words))
  if result.code == 69 and step[2] ~= "append" then
    assert(result.err:find "the connection to the database is lost", result.err)
    result = app:moontide(unpack(words))
    if OPERATES[step[2]] and result.code ~= 69 then return end
  end
  if result.code ~= step[1] then
    error(("%s ended with %d: %s%s"):format(table.concat({ step[2], step[3] }, " "), result.code, result.out,
      result.err), 0)
  end
end

dialect.each(function(database)
  if database.name == "sqlite" then return end -- its file is on this side of any wire

  describe("a lost answer", function()
    local app

    local function close()
      if app then app:close() end
      app = nil
    end

    after_each(close)

    local function fresh()
      close()
      app = application.new { database = database, config = CONFIG }
      app:write("sql/ledger.sql", app.db:ddl(TABLES))
      -- while somebody is in flight the mark takes each of its steps
      if database.name == "postgres" then app.db:hold "BEGIN; SELECT pg_current_xact_id();" end
    end

    local function results()
      local all = {}
      for i, sql in ipairs(RESULTS) do all[i] = app.db:query(sql) end
      return all
    end

    -- Runs all steps through a proxy; gives it.
    local function run_all(list, options)
      local proxied = proxy.start(app, options)
      for _, step in ipairs(list) do run_step(app, proxied.url, step) end
      return proxied
    end

    -- What commits wrote, in the order of the first of each kind.
    local function sites(proxied)
      local list, seen = {}, {}
      for _, event in ipairs(proxied:trace()) do
        if event.ends and not seen[event.ends] then
          seen[event.ends] = true
          list[#list + 1] = event.ends
        end
      end
      return list
    end

    local function is_at(site, statement)
      return (site:lower():gsub("if not exists ", "")):find(statement) ~= nil
    end

    -- Every place of the code that commits, by what only it does.
    local PLACES = {
      ["the tables of a projection"] = 'create table .counts.',
      ["an append"] = 'insert into "event_store"',
      ["a registration with its checkpoints"] = "insert into consumer_checkpoints",
      ["a consumer that is paused or let go on"] = "update consumers",
      ["the mark"] = "update high_water_mark_store",
      ["the mark, when nobody holds it"] = database.name == "postgres" and "with locks" or "high_water_mark",
      ["a page of a projection"] = 'insert into "counts"',
      ["the registry of read models"] = 'insert into "read_model_epochs"',
      ["a page of an SQL projection"] = "insert into ledger",
      ["a message that failed, unit by unit"] = "savepoint moontide_1",
      ["its record"] = 'insert into "consumer_undelivered_messages"',
      ["its retry"] = "delete%s[^;]*consumer_undelivered_messages",
      ["a message that is given up"] = "insert [^;]*consumer_skipped_messages",
      ["checkpoints"] = "update consumer_checkpoints",
      ["a rebuild that begins"] = "set position = null, epoch",
      ["a rebuild that is over"] = "set replay_through = null",
      ["a consumer that is taken away"] = "delete[^;]*consumer_checkpoints",
    }

    -- Runs all steps with one cut; what a commit writes together depends on the
    -- moment here and there, so it may not be met.
    local function cut_at(site, cut, calm)
      fresh()
      local told = ("%s the commit of: %s"):format(cut, site)
      local good, outcome = pcall(run_all, steps(app), { cut = cut, like = site })
      assert(good, told .. "\n" .. tostring(outcome))
      assert.same(calm, results(), told)
      return outcome:has_cut()
    end

    it("of any COMMIT, done or not, leaves what would be there without it", function()
      fresh()
      local list, met = sites(run_all(steps(app), {})), {}
      local calm = results()
      assert.equal(9 + 1, #calm[1])
      for place, statement in pairs(PLACES) do
        -- behind the answer something is still on its way where tables are made
        for _, cut in ipairs { "before", "after", statement:find "create table" and "behind" or nil } do
          local done = false
          for _, site in ipairs(list) do
            if not done and is_at(site, statement) then
              local name = cut .. " " .. site
              if met[name] == nil then met[name] = cut_at(site, cut, calm) end
              done = met[name]
            end
          end
          assert.is_true(done, ("no cut %s the commit of %s"):format(cut, place))
        end
      end
    end)

    if database.name ~= "mysql" then return end -- elsewhere tables are made in one transaction

    it("of a statement that commits by itself leaves tables that the next start completes", function()
      local MAKES = "^(CREATE|ALTER|INSERT)"
      fresh()
      local proxied, count = proxy.start(app, {}), 0
      app:ok("schema", "upgrade", "--database", proxied.url)
      for _, event in ipairs(proxied:trace()) do
        if event.statement and (event.statement:find "^CREATE" or event.statement:find "^INSERT") then
          count = count + 1
        end
      end
      local calm = app.db:tables()
      assert.is_true(#calm > 15 and count > #calm)
      for nth = 1, count, 5 do
        for _, cut in ipairs { "before", "after" } do
          fresh()
          proxied = proxy.start(app, { cut = cut, at = MAKES, nth = nth })
          app:expect(69, "schema", "upgrade", "--database", proxied.url)
          assert.is_true(proxied:has_cut())
          app:ok("schema", "upgrade", "--database", proxied.url)
          assert.same(calm, app.db:tables(), ("%s statement %d"):format(cut, nth))
          assert.matches("nothing to do", app:ok("schema", "upgrade"), 1, true)
          app:append { {} }
        end
      end
    end)
  end)
end)
