-- How much of its tables the database reads for a statement that hosts run all
-- the time: what it gives, or what belongs to one consumer or window, and never
-- a whole table or the whole rest of a topic. The tables are large, and nobody
-- has analyzed them but a host; then somebody has.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local ROWS, CONSUMERS, PARTITIONS = 40000, 300, 64
local WITH_BACKLOG = 4 -- consumers that share the undelivered messages
local END = "\n ORDER BY global_position\n LIMIT ?3" -- topic/event_page.c

-- Rows that are read, by what the database counts.
local READ = {}

-- It counts the steps of its machine: some 8 to pass over a row, more to give it.
function READ.sqlite(db, sql)
  return tonumber(db:value(".stats on\n" .. sql .. ";"):match "Virtual Machine Steps:%s+(%d+)") / 8
end

-- Rows and index entries that are walked over; conditions that are put to an
-- entry are counted apart.
function READ.mysql(db, sql)
  local said = db:value("FLUSH STATUS;\n" .. sql .. ";\nSHOW STATUS LIKE 'Handler\\_%';")
  local function count(name) return tonumber(said:match("\nHandler_" .. name .. "|(%d+)")) end
  return math.max(count "read_next", count "icp_attempts") + count "read_prev" + count "read_rnd_next"
end

-- What each scan gives, and what it throws away.
local function rows_of_plan(plan)
  local read, loops = 0, 1
  for line in plan:gmatch "[^\n]+" do
    local rows, times = line:match "rows=(%d+) loops=(%d+)"
    if rows then loops = tonumber(times) end
    if rows and line:find "Scan" then read = read + rows * times end
    read = read + (line:match "Rows Removed by [%a ]+: (%d+)" or 0) * loops
  end
  return read
end

-- The server plans for the values a few times, and may go on without them.
function READ.postgres(db, sql, values)
  local explain = ("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE p(%s);"):format(table.concat(values, ", "))
  local said = db:value(("PREPARE p AS %s;\n%s"):format(sql, (explain .. "\nSELECT '---';\n"):rep(7)))
  local most = 0
  for plan in said:gmatch "(.-)%-%-%-" do most = math.max(most, rows_of_plan(plan)) end
  return most
end

dialect.each(function(database)
  describe("a statement that is run all the time", function()
    local app
    local postgres = database.name == "postgres"

    local function uuid(i) return ("'00000000-0000-7000-8000-%012d'"):format(i) end

    local function time(seconds)
      return os.date(database.name == "mysql" and "!'%Y-%m-%d %H:%M:%S.000000'" or "!'%Y-%m-%dT%H:%M:%S.000000Z'",
        1767225600 + seconds)
    end

    local function bool(value) return postgres and tostring(value) or value and "1" or "0" end

    local function list(...)
      local texts = { ... }
      if postgres then return "'{" .. table.concat(texts, ",") .. "}'" end
      for i, text in ipairs(texts) do texts[i] = type(text) == "string" and '"' .. text .. '"' or text end
      return "'[" .. table.concat(texts, ",") .. "]'"
    end

    local function fill(name, columns, count, row)
      for first = 1, count, 4000 do
        local rows = {}
        for i = first, math.min(first + 3999, count) do rows[#rows + 1] = "(" .. row(i) .. ")" end
        app.db:execute(("INSERT INTO %s (%s) VALUES %s"):format(name, columns, table.concat(rows, ",")))
      end
    end

    local function fill_topics()
      -- half of the events are of one aggregate
      fill("EVENT_STORE", [[id, aggregate_id, aggregate_type, sequence_no, event_type, payload, partition_key,
        global_position]], ROWS, function(i)
        local key = i % 2 == 0 and "large" or "key-" .. i % 900
        return ("%s, '%s', 'order', %d, 'order.T%d', '{}', %d, %d"):format(uuid(i), key, i, i % 5,
          key == "large" and 3 or i % 900 % 12, i)
      end)
      fill("EVENT_CAPTURE_RECORDS", [[id, global_position, partition_key, event_type, payload, occurred_at,
        message_key]], ROWS, function(i)
        return ("%s, %d, %d, 'order.T%d', '{}', %s, 'key-%d'"):format(uuid(i), i, i % 900 % 12, i % 5, time(i),
          i % 900)
      end)
      fill("READ_MODEL_CAPTURE_RECORDS", [[id, topic, topic_position, partition_key, read_model_key, read_model_type,
        payload, cascade_depth, deleted, occurred_at]], 2 * ROWS, function(n)
        local i = math.ceil(n / 2)
        return ("%s, '%s', %d, %d, 'key-%d', 'total', '{}', 1, %s, %s"):format(uuid(n), n % 2 == 0 and "totals" or
          "others", i, i % 900 % 12, i % 900, bool(i % 3 == 0), time(i))
      end)
      app.db:execute(([[INSERT INTO READ_MODEL_TOPICS (topic, switched_on_at, switched_off_at)
        VALUES ('totals', %s, %s)]]):format(time(0), time(1)))
    end

    -- Of the backlog one message of a hundred has failed, and the others wait.
    local function fill_consumers()
      fill("CONSUMERS", "id, consumer_type, consumer_name, state_since", CONSUMERS, function(i)
        return ("%s, 'listener', 'c%d', %s"):format(uuid(i), i, time(0))
      end)
      fill("CONSUMER_CHECKPOINTS", "consumer_id, source_name, partition_no, position", CONSUMERS * PARTITIONS,
        function(i)
          local consumer = 1 + (i - 1) % CONSUMERS
          return ("%s, '%s', %d, %d"):format(uuid(consumer), consumer > 290 and "read-model:totals" or "event-store",
            math.floor((i - 1) / CONSUMERS), ROWS)
        end)
      fill("CONSUMER_UNDELIVERED_MESSAGES", [[id, consumer_id, source_name, resolved_key, key_hash, message_position,
        partition_no, status, failure_count, next_retry_at, failure_reason, recorded_at, unresolved]], ROWS, function(i)
        local failed = i % 100 < WITH_BACKLOG
        return ("%s, %s, 'event-store', 'key-%d', %d, %d, %d, '%s', %d, %s, %s, %s, %s"):format(uuid(i),
          uuid(1 + i % WITH_BACKLOG), i % 900, i, i, i % 900 % 12, failed and "FAILED" or "WAITING", failed and 1 or 0,
          failed and time(i) or "NULL", failed and "'refused'" or "NULL", time(i), bool(false))
      end)
    end

    local function fill_deadlines()
      fill("SAGA_DEADLINES", "id, saga_type, saga_id, name, instance_id, due_at, partition_no, next_retry_at", ROWS,
        function(i)
          return ("%s, 'saga-%d', 'i%d', 'd', %s, %s, %d, %s"):format(uuid(i), i % 3, i, uuid(i), time(i), i % 12,
            time(i))
        end)
    end

    -- A host would not start beside messages that no counter has given out.
    local function set_counters()
      app.db:set_counter(ROWS)
      if postgres then
        app.db:execute(([[SELECT setval('event_capture_global_position', %d),
          setval('read_model_capture_positions', %d)]]):format(ROWS, ROWS))
      else
        app.db:execute(("UPDATE EVENT_CAPTURE_GLOBAL_POSITION SET val = %d"):format(ROWS))
        app.db:execute(("INSERT INTO READ_MODEL_CAPTURE_POSITIONS (topic, val) VALUES ('totals', %d), ('others', %d)")
          :format(ROWS, ROWS))
      end
    end

    local function analyze()
      if database.name ~= "mysql" then return app.db:execute "ANALYZE" end
      app.db:value("ANALYZE TABLE " .. table.concat(app.db:tables(), ", "))
    end

    local function read_by(name, values, ending)
      local text = process.read_file(("sql/%s/statement/%s.sql"):format(database.name, name)):gsub("%-%-[^\n]*\n", "")
      text = (text .. (ending or "")):gsub("%${(.-)_table}", function(word) return word:upper() end)
      return READ[database.name](app.db, (text:gsub("%?(%d)", function(n)
        return postgres and "$" .. n or values[tonumber(n)]
      end)), values)
    end

    -- Statement, values, the most rows that it may read, what ends it.
    local function statements()
      local some, held, none = list("order.T1", "order.T2"), list(1, 2, 7), "NULL"
      local changed, topic, mine, source = list "read-model.Changed", "'totals'", uuid(1), "'event-store'"
      local after, upto, window = "20000", "40000", 21000 -- as topic/event_page.c looks through what is filtered
      local backlog = ROWS / WITH_BACKLOG
      return {
        { "event_page", { "30000", upto, "500", none, none, none }, 1500, END },
        { "event_page", { after, upto, "500", some, none, held }, window, END },
        { "event_page_aggregate", { after, upto, "500", none, none, none, "'key-7'", "7" }, window, END },
        { "event_page_aggregate", { "30000", upto, "500", none, none, none, "'large'", "3" }, 1500, END },
        { "event_stream", { "'order'", "'large'", "36000", "500" }, 1500 },
        { "capture_page", { "30000", upto, "500", none, none, none }, 1500, END },
        { "capture_page", { after, upto, "500", some, none, held }, window, END },
        { "capture_page_key", { after, upto, "500", none, none, none, "'key-7'", "7" }, 500, END },
        { "read_model_page", { "30000", "40000", "500", none, topic, none }, 1500, END },
        { "read_model_page", { after, upto, "500", changed, topic, held }, window, END },
        { "read_model_page_key", { after, upto, "500", none, topic, none, "'key-7'", "7" }, 500, END },
        { "read_model_count", { "30000", "40000", "500", none, topic, none, none }, 1500 },
        { "read_model_census", { "30000", "40000", "500", topic }, 2500 },
        { "read_model_topic_left", { topic, "1000" }, 2500 },
        { "compaction_first", { topic, "30000", "40000" }, 10 },
        { "compaction_superseded", { topic, "30000", "40000", "500" }, 6000 },
        { "compaction_tombstones", { topic, "30000", "40000", "500" }, 1500 },
        { "compaction_slowest", { "'read-model:totals'" }, 5 * CONSUMERS + 10 * PARTITIONS },
        { "undelivered_due", { mine, source, time(0), "500", held }, 2.5 * backlog },
        { "undelivered_recorded", { mine, source, "39000", "40000" }, 1500 },
        { "undelivered_next", { mine, source, held }, database.name == "mysql" and 2 * backlog or 1500 },
        { "deadline_due", { "'saga-1'", time(0), held, "100" }, 50 },
        { "deadline_due", { "'saga-1'", time(ROWS), held, "100" }, 1000 },
        { "deadline_next", { "'saga-1'", held }, 50 },
        { "deadline_firsts", { list("saga-0", "saga-1", "saga-2") }, 50 },
      }
    end

    it("reads what it needs of large tables", function()
      app = application.new { database = database, config = 'compaction = { schedule = "none" }' }
      finally(function() app:close() end)
      app:ok("run", "--until-idle")
      fill_topics()
      fill_consumers()
      fill_deadlines()
      set_counters()
      app:ok("run", "--until-idle") -- has the server look at its tables, where that is needed
      for _, when in ipairs { "as a host has left it", "analyzed" } do
        if when == "analyzed" then analyze() end
        for _, s in ipairs(statements()) do
          local read = read_by(s[1], s[2], s[4])
          assert(read <= s[3], ("%s, %s, with %s: reads %d rows, %d at most are right"):format(s[1], when,
            table.concat(s[2], " "), read, s[3]))
        end
      end
    end)
  end)
end)
