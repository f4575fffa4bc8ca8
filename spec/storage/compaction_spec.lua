-- Topics of read models are compacted: what a newer message of its key
-- supersedes goes, and nothing else; tombstones go by age, and only behind all.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local TOPIC, SOURCE = "totals", "read-model:totals"
local FIRST, SECOND = "0190f3a2-0000-7000-8000-0000000000a1", "0190f3a2-0000-7000-8000-0000000000a2"

dialect.each(function(database)
  local app

  local function start(config)
    app = application.new { database = database, config = config or "" }
    app:ok("run", "--until-idle")
  end

  after_each(function()
    app:close()
  end)

  local function time_ago(seconds)
    local text = os.date("!%Y-%m-%dT%H:%M:%S", os.time() - seconds)
    return database.name == "mysql" and text:gsub("T", " ") .. ".000000" or text .. ".000000Z"
  end

  -- The topic is readable up to here.
  local function set_mark(position, topic)
    if database.name == "postgres" then
      app.db:execute(("SELECT setval('read_model_capture_positions', %d)"):format(position))
      app.db:execute "DELETE FROM high_water_mark_store WHERE topic_name = 'read-model-topics'"
      app.db:execute(([[INSERT INTO high_water_mark_store (topic_name, high_water_mark)
        VALUES ('read-model-topics', %d)]]):format(position))
    else
      topic = topic or TOPIC
      app.db:execute(("DELETE FROM READ_MODEL_CAPTURE_POSITIONS WHERE topic = '%s'"):format(topic))
      app.db:execute(("INSERT INTO READ_MODEL_CAPTURE_POSITIONS (topic, val) VALUES ('%s', %d)"):format(topic,
        position))
    end
  end

  -- Messages by position: a key, "-key" for its tombstone. They are an hour old
  -- unless something else is said.
  local function write(messages, fields)
    fields = fields or {}
    local topic, rows, last = fields.topic or TOPIC, {}, 0
    for position, key in pairs(messages) do
      local deleted, name = key:match "^(%-?)(.*)$"
      local dead = deleted == "-"
      rows[#rows + 1] = ("('%08x-0000-7000-8000-%012d', '%s', %d, %d, '%s', 'total', '{}', 1, %s, '%s')"):format(
        #topic + topic:byte(-1), position, topic, position, #name % 3, name,
        database.name == "postgres" and tostring(dead) or dead and "1" or "0", time_ago(fields.age or 3600))
      last = math.max(last, position)
    end
    for first = 1, #rows, 2000 do
      app.db:execute(([[INSERT INTO READ_MODEL_CAPTURE_RECORDS (id, topic, topic_position, partition_key,
        read_model_key, read_model_type, payload, cascade_depth, deleted, occurred_at) VALUES %s]]):format(
        table.concat(rows, ",", first, math.min(first + 1999, #rows))))
    end
    set_mark(fields.mark or last, topic)
  end

  local function kept(topic)
    local list = {}
    for i, row in ipairs(app.db:query(([[SELECT topic_position AS p FROM READ_MODEL_CAPTURE_RECORDS
      WHERE topic = '%s' ORDER BY topic_position]]):format(topic or TOPIC))) do
      list[i] = tonumber(row.p)
    end
    return list
  end

  local function through(source)
    local row = app.db:query(([[SELECT compacted_through AS p FROM TOPIC_COMPACTION
      WHERE topic_name = '%s']]):format(source or SOURCE))[1]
    return row and tonumber(row.p)
  end

  -- A consumer of the topic as its rows say it.
  local function subscribe(id, positions)
    app.db:execute(([[INSERT INTO CONSUMERS (id, consumer_type, consumer_name, state_since)
      VALUES ('%s', 'listener', 'c%s', '%s')]]):format(id, id, time_ago(0)))
    for partition, position in ipairs(positions) do
      app.db:execute(([[INSERT INTO CONSUMER_CHECKPOINTS (consumer_id, source_name, partition_no, position)
        VALUES ('%s', '%s', %d, %s)]]):format(id, SOURCE, partition - 1, position))
    end
  end

  local function compact()
    app:ok("run", "--until-idle")
  end

  describe("compaction", function()
    it("keeps the latest message of each key, and says how far it has come", function()
      start()
      write { "a", "b", "a", "-b", "c", "a" }
      assert.is_nil(through())
      compact()
      assert.same({ 4, 5, 6 }, kept())
      assert.equal(6, through())
    end)

    it("goes on where it was, over what came meanwhile and what that supersedes", function()
      start()
      write { "a", "b", "a" }
      compact()
      write { [4] = "b", [7] = "d", [9] = "b" }
      compact()
      assert.same({ 3, 7, 9 }, kept())
      assert.equal(9, through())
    end)

    it("looks no further than the topic is readable", function()
      start()
      write({ "a", "b", "a", "b" }, { mark = 3 })
      compact()
      assert.same({ 2, 3, 4 }, kept())
      assert.equal(3, through())
    end)

    it("takes each topic by itself", function()
      start()
      write { "a", "a", "b" }
      write({ [5] = "a", [6] = "b", [7] = "b" }, { topic = "others" })
      compact()
      assert.same({ 2, 3 }, kept())
      assert.same({ 5, 7 }, kept "others")
      assert.equal(7, through "read-model:others")
    end)

    it("takes keys as they are, case and trailing spaces included", function()
      start()
      write { "a", "A", "a ", "ä", "a" }
      compact()
      assert.same({ 2, 3, 4, 5 }, kept())
    end)

    it("goes through thousands in batches, and over long gaps", function()
      start()
      local messages, wanted = {}, {}
      for i = 1, 6000 do messages[i] = "key-" .. i % 50 end
      for i = 1, 50 do messages[9000000 + i], wanted[i] = "key-" .. i % 50, 9000000 + i end
      write(messages)
      compact()
      assert.same(wanted, kept())
      assert.equal(9000050, through())
    end)

    it("does not wait for a consumer, which has missed nothing", function()
      start()
      write { "a", "b", "a" }
      subscribe(FIRST, { "NULL", "1" })
      compact()
      assert.same({ 2, 3 }, kept())
      assert.equal("0", app.db:value [[SELECT coalesce(max(topic_start), 0) FROM HIGH_WATER_MARK_STORE
        WHERE topic_name LIKE 'read-model%']])
    end)

    it("leaves what is younger than the schedule to a host that stays", function()
      start 'compaction = { schedule = "10m" }'
      write({ "a", "a", "b" }, { age = 500 })
      compact()
      assert.same({ 1, 2, 3 }, kept())
      assert.is_nil(through())
      app:configure 'compaction = { schedule = "8m" }'
      compact()
      assert.same({ 2, 3 }, kept())
    end)

    it("is not done when its schedule is none", function()
      start 'compaction = { schedule = "none" }'
      write { "a", "a" }
      compact()
      assert.same({ 1, 2 }, kept())
      assert.is_nil(through())
    end)

    it("is done by a running host as scheduled", function()
      start 'compaction = { schedule = "50ms" }, poll = { max_interval = "20ms" }'
      write({ "a", "b", "a" }, { age = 0 })
      local host = app:start("run")
      local function reaches(position)
        process.wait_until(function() return through() == position end, 30, function()
          return ("compaction up to %d, it is at %s\n%s"):format(position, through(), host:err())
        end)
      end
      reaches(3)
      write({ [4] = "b" }, { age = 0 })
      reaches(4)
      assert.same({ 3, 4 }, kept())
      host:signal "TERM"
      assert.equal(0, host:wait(20).code)
      assert.matches("1 superseded messages and 0 tombstones deleted", host:err(), 1, true)
    end)
  end)

  describe("a tombstone", function()
    it("stays for good unless an age is set", function()
      start()
      write { "a", "-a" }
      compact()
      assert.same({ 2 }, kept())
    end)

    it("that is older than that goes, once the topic is compacted so far", function()
      start 'tombstones = { max_age = "30m" }'
      write({ "a", "-a", "b", "-b" }, { mark = 3 })
      compact()
      assert.same({ 3, 4 }, kept())
      set_mark(4)
      compact()
      assert.same({}, kept())
    end)

    it("that is younger stays, and so do those behind it until it goes", function()
      start 'tombstones = { max_age = "2h" }'
      write { "a", "-a", "-b" }
      compact()
      assert.same({ 2, 3 }, kept())
      app:configure 'tombstones = { max_age = "30m" }'
      compact()
      assert.same({}, kept())
    end)

    it("waits for every consumer that is subscribed, gone or not", function()
      start 'tombstones = { max_age = "30m" }'
      write { "a", "-a", "b", "-b", "c", "-c" }
      subscribe(FIRST, { "6", "2" })
      subscribe(SECOND, { "5" })
      compact()
      assert.same({ 4, 6 }, kept())
      app.db:execute(("UPDATE CONSUMER_CHECKPOINTS SET position = 6 WHERE consumer_id = '%s'"):format(FIRST))
      compact()
      assert.same({ 6 }, kept())
      app:ok("unsubscribe", "c" .. SECOND, "--force")
      compact()
      assert.same({}, kept())
    end)

    it("waits for a consumer that has recorded no position", function()
      start 'tombstones = { max_age = "30m" }'
      write { "-a" }
      subscribe(FIRST, { "NULL" })
      compact()
      assert.same({ 1 }, kept())
    end)
  end)

  describe("the status", function()
    it("says how far each topic is compacted, and who holds tombstones", function()
      start 'tombstones = { max_age = "30m" }'
      assert.same({}, app:json("status").compaction)
      write { "a", "b", "-a" }
      local null = require("moontide").null
      local before = app:json("status").compaction
      assert.same({ SOURCE, null, 3, null }, { before[1].topic, before[1].through, before[1].mark, before[1].held_by })
      assert.is_true(before[1].behind_seconds >= 3600 and before[1].behind_seconds < 4200)
      subscribe(FIRST, { "2", "3" })
      compact()
      assert.same({ { topic = SOURCE, through = 3, mark = 3, behind_seconds = 0,
        held_by = { type = "listener", name = "c" .. FIRST, position = 2 } } }, app:json("status").compaction)
      assert.matches("read%-model:totals%s+3%s+3%s+%-%s+listener 'c.-' at 2", app:ok "status")
    end)
  end)

  -- The tables were never analyzed, and then they were.
  describe("the statements of compaction", function()
    local function statement(name, values)
      local text = process.read_file(("sql/%s/statement/%s.sql"):format(database.name, name)):gsub("%-%-[^\n]*\n", "")
      text = text:gsub("%${(.-)_table}", function(table_name) return table_name:upper() end)
      return (text:gsub("%?(%d)", function(n) return values[tonumber(n)] end))
    end

    -- The list of positions is the one table that is read as a whole.
    local function plan(sql)
      local word = database.name == "sqlite" and "EXPLAIN QUERY PLAN " or "EXPLAIN "
      return (app.db:value(word .. sql):gsub("[^\n]*|gone|[^\n]*", ""))
    end

    local SCANS = { sqlite = { "SCAN [noR]", "TEMP B%-TREE" }, postgres = { "Seq Scan on read_model", "Sort" },
      mysql = { "|[norR][_%u]*|ALL|", "|[norR][_%u]*|[^\n]*filesort" } }
    local POSITIONS = { sqlite = "'[17,400,5000]'", postgres = "'{17,400,5000}'", mysql = "'[17,400,5000]'" }

    it("walk indexes, and sort nothing", function()
      start()
      local messages = {}
      for i = 1, 40000 do messages[i] = "key-" .. i % 9000 end
      write(messages)
      local topic = "'" .. TOPIC .. "'"
      local statements = {
        compaction_topic = { "''" },
        compaction_first = { topic, "100", "30000" },
        compaction_superseded = { topic, "100", "20100", "500" },
        compaction_tombstones = { topic, "100", "20100", "500" },
        compaction_delete = { topic, POSITIONS[database.name] },
      }
      for _, analyzed in ipairs { false, true } do
        if analyzed then app.db:execute(database.name == "mysql" and "ANALYZE TABLE READ_MODEL_CAPTURE_RECORDS"
          or "ANALYZE") end
        for name, values in pairs(statements) do
          local found = plan(statement(name, values))
          for _, scan in ipairs(SCANS[database.name]) do
            assert.is_nil(found:find(scan), ("%s %s\n%s"):format(name, analyzed and "analyzed" or "", found))
          end
        end
      end
    end)
  end)
end)
