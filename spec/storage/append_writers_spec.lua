-- The host's append and the routine for programs in other languages keep the
-- same rules: one list of cases, every writer of every database.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local vectors = require "spec.support.append_vectors"

local encode = application.json.encode

local function quoted(text)
  return "'" .. text:gsub("'", "''") .. "'"
end

-- The members of an event as JSON text.
local function members(event)
  local list = {}
  local function add(name, text)
    if text ~= nil then list[#list + 1] = encode(name) .. ":" .. text end
  end
  add("type", encode(event.type or "thing.Happened"))
  if event.payload ~= false then add("payload", event.payload or "1") end
  add("metadata", event.metadata)
  add("id", event.id and encode(event.id))
  add("revision", event.revision and tostring(event.revision))
  add("occurred_at", event.occurred_at and encode(event.occurred_at))
  return list
end

-- Writers: how a call ended: the number of repeated events, or nil and why.
local function by_the_host(app, stream, call)
  local lines = {}
  for i, event in ipairs(call.events) do
    local list = members(event)
    table.insert(list, 1, '"aggregate_type":' .. encode(stream.aggregate_type))
    table.insert(list, 2, '"aggregate_id":' .. encode(stream.aggregate_id))
    if i == 1 and call.expected then list[#list + 1] = '"expected":' .. encode(call.expected) end
    lines[i] = "{" .. table.concat(list, ",") .. "}\n"
  end
  local result = app:moontide("append", "--json", { stdin = table.concat(lines) })
  if result.code ~= 0 then return nil, result.err end
  return application.json.decode(result.out).repeated
end

local CALLS = {}

function CALLS.postgres(stream, call)
  local function list(kind, name, fallback)
    local items = {}
    for i, event in ipairs(call.events) do
      local value = event[name]
      if value == nil then value = fallback end
      items[i] = value and quoted(tostring(value)) or "NULL"
    end
    return ("ARRAY[%s]::%s[]"):format(table.concat(items, ","), kind)
  end
  return ([[SELECT count(*) FILTER (WHERE repeated) FROM moontide_append(NULL::event_store, %s, %s, %s, %s, %s,
    metadata => %s, ids => %s, revisions => %s, times => %s)]]):format(
    quoted(stream.aggregate_type), quoted(stream.aggregate_id), quoted(tostring(call.expected or "any")),
    list("text", "type", "thing.Happened"), list("json", "payload", "1"), list("json", "metadata"), list("uuid", "id"),
    list("integer", "revision"), list("timestamptz", "occurred_at"))
end

function CALLS.mysql(stream, call)
  local items = {}
  for i, event in ipairs(call.events) do items[i] = "{" .. table.concat(members(event), ",") .. "}" end
  return ("CALL moontide_append(%s, %s, %s, %s)"):format(quoted(stream.aggregate_type), quoted(stream.aggregate_id),
    quoted(tostring(call.expected or "any")), quoted("[" .. table.concat(items, ",") .. "]"))
end

-- Databases where a routine keeps the mode of the session that made it.
local MODES = { mysql = true }

local function by_its_routine(app, stream, call)
  local good, answer = pcall(app.db.value, app.db, CALLS[app.db.name](stream, call))
  if not good then return nil, answer end
  if app.db.name == "postgres" then return tonumber(answer) end
  local repeated = 0
  for row in (answer .. "\n"):gmatch "([^\n]+)\n" do
    repeated = repeated + tonumber(row:match "|([01])$")
  end
  return repeated
end

-- 2026-01-31 08:15:00.250000, however the database writes it.
local function time_of(text)
  local date, time, fraction = tostring(text):match "^(%d+%-%d+%-%d+)[T ](%d+:%d+:%d+)%.?(%d*)"
  return ("%s %s.%s"):format(date, time, (fraction .. "000000"):sub(1, 6))
end

local function hex(text)
  return (text or ""):gsub(".", function(c) return ("%02X"):format(c:byte()) end)
end

-- All rows, in lists by stream.
local function rows_of(app)
  local streams = {}
  for _, row in ipairs(app.db:query(([[
      SELECT id, aggregate_type, aggregate_id, sequence_no, event_type, event_revision, occurred_at, partition_key,
             %s AS payload, coalesce(%s, '') AS metadata
        FROM EVENT_STORE ORDER BY global_position]]):format(app.db:hex "payload", app.db:hex "metadata"))) do
    local key = row.aggregate_type .. "\n" .. row.aggregate_id
    streams[key] = streams[key] or {}
    table.insert(streams[key], row)
  end
  return streams
end

dialect.each(function(database)
  local function writer(title, prepare, append)
    describe("appending " .. title, function()
      local app, answers, streams

      setup(function()
        app = application.new { database = database, config = "partitions = 12" }
        app:ok("schema", "upgrade")
        prepare(app)
        answers = {}
        for i, vector in ipairs(vectors) do
          answers[i] = {}
          for j, call in ipairs(vector.calls) do
            local repeated, fault = append(app, vector, call)
            answers[i][j] = { repeated = repeated, fault = fault }
          end
        end
        streams = rows_of(app)
      end)

      teardown(function()
        app:close()
      end)

      for i, vector in ipairs(vectors) do
        it(vector.name .. (vector.calls[#vector.calls].fault and " is refused" or " is kept"), function()
          local wanted = {}
          for j, call in ipairs(vector.calls) do
            local answer = answers[i][j]
            if call.fault then
              assert.is_nil(answer.repeated)
              assert.matches(call.fault:lower(), answer.fault:lower(), 1, true)
            else
              assert.equal(call.repeated or 0, answer.repeated, answer.fault)
              for _, event in ipairs(call.events) do
                local seen = false
                for _, before in ipairs(wanted) do seen = seen or event.id and before.id == event.id:lower() end
                if not seen then wanted[#wanted + 1] = event end
              end
            end
          end

          local rows = streams[vector.aggregate_type .. "\n" .. vector.aggregate_id] or {}
          assert.equal(#wanted, #rows)
          for j, event in ipairs(wanted) do
            local row = rows[j]
            assert.equal(j - 1, row.sequence_no)
            assert.equal(event.type or "thing.Happened", row.event_type)
            assert.equal(event.revision or 0, row.event_revision)
            assert.equal(hex(event.payload or "1"), tostring(row.payload))
            assert.equal(hex(event.metadata), tostring(row.metadata))
            assert.matches("^%x+%-%x+%-7%x+%-[89ab]%x+%-%x+$", row.id)
            if event.id then assert.equal(event.id:lower(), row.id) end
            if event.stored then assert.equal(event.stored, time_of(row.occurred_at)) end
            if vector.partition then assert.equal(vector.partition, row.partition_key) end
          end
        end)
      end
    end)
  end

  writer("by the host", function() end, by_the_host)
  if CALLS[database.name] then
    writer("by the routine that the host made", function() end, by_its_routine)
  end
  if MODES[database.name] then
    writer("by the routine that a client made of the printed schema", function(app)
      app.db:client(app:ok("schema", "print"))
    end, by_its_routine)
  end
end)
