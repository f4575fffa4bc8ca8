-- Text that some layer might refuse which another one has taken: NUL, bytes
-- that are no UTF-8, surrogates, control characters, long keys of wide letters.
-- Each place where a handler can put a text decides at once, in the same way on
-- every database; what it takes comes back as it was.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local WIDE = "\240\159\152\128"
local TEXTS = {
  nul = "a\0b", byte = "a\255b", overlong = "\192\175", surrogate = "\237\160\128", beyond = "\244\144\128\128",
  cut = "abc\226\130", control = "a\1b\31\127", last = "\239\191\191\244\143\191\191", long = WIDE:rep(255),
  longer = WIDE:rep(256), empty = "",
}
local NO_UTF8 = { byte = true, overlong = true, surrogate = true, beyond = true, cut = true }


-- What a place takes, or a part of its error.
local function value(name) return NO_UTF8[name] and "not valid UTF%-8" end
local function parameter(name)
  return (name == "nul" or NO_UTF8[name]) and "NUL or invalid UTF%-8; wrap binary data in moontide.bytes"
end
local function named(name)
  return (name == "nul" or NO_UTF8[name]) and "UTF%-8" or name == "longer" and "25[56]" or name == "empty" and "empty"
end
local function key(name)
  if name == "nul" then return "NUL" end
  return NO_UTF8[name] and "not valid UTF%-8" or name == "longer" and "25[56]" or name == "empty" and "empty"
end
local function column(name)
  return (name == "nul" or NO_UTF8[name]) and "UTF%-8" or name == "longer" and "takes 255"
end
local function anything() return false end

-- { what judges, declaration with TEXT(event) for the text }
local function listener(body)
  return ("moontide.listener(NAME) { start = 'beginning', on = { ['spec.Text'] = function(event, ctx) %s end } }")
    :format(body)
end
local function saga(body, of)
  return ("moontide.saga(NAME) { id = %s, starts = { 'spec.Text' }, deadlines = { one = function() end }, "
    .. "on = { ['spec.Text'] = function(saga, event, ctx) %s end } }"):format(of or "moontide.by 'name'", body)
end
local function projection(body, more)
  return ("moontide.projection(NAME) { %s on = { ['spec.Text'] = function(state, event) %s end } }")
    :format(more or "", body)
end
local function sql(body)
  return ("moontide.sql_projection(NAME) { on = { ['spec.Text'] = function(event, ctx) %s end } }"):format(body)
end
local PLACES = {
  ["a value of a state"] = { value, projection "state.text = TEXT(event)" },
  ["a name in a state"] = { value, projection "state[TEXT(event)] = 1" },
  ["a key"] = { key, projection("state.n = 1", "key = TEXT,") },
  ["a field"] = { column, projection("state.text = TEXT(event)", "fields = { text = t.text() },") },
  ["a parameter"] = { parameter, sql "ctx:query('SELECT ? AS text', TEXT(event))" },
  ["a value of an upsert"] = { parameter, sql [[
    local text = TEXT(event)
    ctx:upsert("texts", { id = event.position }, { text = #text <= 1020 and text or "" })]] },
  ["an emitted value"] = { value, listener "ctx:emit('a.Value', { text = TEXT(event) }, { key = event.key })" },
  ["emitted metadata"] = { value, listener "ctx:emit('a.Header', {}, { metadata = { text = TEXT(event) } })" },
  ["an emitted key"] = { key, listener "ctx:emit('a.Key', {}, { key = TEXT(event) })" },
  ["an emitted type"] = { key, listener "ctx:emit(TEXT(event), {})" },
  ["a published value"] = { value, listener "ctx:publish('mail', 'a.Mail', { text = TEXT(event) })" },
  ["a published type"] = { named, listener "ctx:publish('mail', TEXT(event), {})" },
  ["an ordering key"] = { named, listener "ctx:publish('mail', 'a.Key', {}, { ordering_key = TEXT(event) })" },
  ["an argument"] = { value, listener "ctx:dispatch('spec.store', 'A', 'put', { text = TEXT(event) })" },
  ["an aggregate's id"] = { function(name) return name == "empty" and "0 characters" or key(name) end,
    listener "ctx:dispatch('spec.store', TEXT(event), 'put', {})" },
  ["a key to read by"] = {
    function(name) return (name == "nul" or NO_UTF8[name]) and "not valid UTF%-8 without NUL" end,
    listener "assert(ctx:read('a key', TEXT(event) .. '+') == nil)" },
  ["a saga's id"] = { key, saga("saga.state.n = 1", "TEXT") },
  ["a saga's state"] = { value, saga "saga.state.text = TEXT(event)" },
  ["a deadline's payload"] = { value, saga "saga:deadline('one', '1h', { text = TEXT(event) })" },
  ["a log line"] = { anything, listener "ctx.log.info(TEXT(event), { text = TEXT(event) })" },
  ["an error"] = { function(name) return name == "empty" and "spec.lua" or "E." end,
    listener "error('E' .. TEXT(event))" },
}

local HEAD = [[
local TEXTS = { %s }
local function TEXT(event) return TEXTS[event.payload.name] end
local list = {
  moontide.publisher "mail" { to = "https://mail.example/" },
  moontide.aggregate "spec.store" {
    commands = { put = function(_, args) return moontide.event("store.Put", args) end },
    apply = { ["store.Put"] = function(store, event) store.text = event.payload.text end },
    snapshot = { every = 1 } },
}
list[#list + 1] = moontide.sql_projection "tables" { tables = "sql/texts.sql", on = { ["spec.None"] = function() end } }
local NAME
]]
local TABLES = "CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, text TEXT);"

local function literal(text)
  return (text:gsub(".", function(c) return ("\\%03d"):format(c:byte()) end))
end

local function handlers()
  local parts, texts = {}, {}
  for name, text in pairs(TEXTS) do texts[#texts + 1] = ('%s = "%s"'):format(name, literal(text)) end
  parts[1] = HEAD:format(table.concat(texts, ", "))
  for name, place in pairs(PLACES) do
    parts[#parts + 1] = ("NAME = %q\nlist[#list + 1] = %s"):format(name, place[2])
  end
  parts[#parts + 1] = "return list"
  return table.concat(parts, "\n")
end

dialect.each(function(database)
  describe("text from a handler", function()
    local rig

    after_each(function()
      if rig then rig:close() end
      rig = nil
    end)

    local function names()
      local list = {}
      for name in pairs(TEXTS) do list[#list + 1] = name end
      table.sort(list)
      return list
    end

    it("is taken or refused where it is given, and comes back as it was", function()
      rig = kit.new { database = database, handlers = handlers(), files = { ["sql/texts.sql"] = TABLES },
        on_error = "dead_letter", retry = { attempts = 1 } }
      local at, events = {}, {}
      for i, name in ipairs(names()) do
        at[i] = name
        events[i] = { name, "spec.Text", { name = name } }
      end
      rig:append_all(events)
      rig:run()
      local reasons = {}
      for place in pairs(PLACES) do
        reasons[place] = {}
        for _, row in ipairs(rig:undelivered(place)) do reasons[place][at[row.position]] = row.reason end
        for _, name in ipairs(at) do
          local wanted, found = PLACES[place][1](name), reasons[place][name]
          local what = ("%s of %s: %s"):format(name, place, tostring(found))
          if wanted then
            assert.matches(wanted, found or "it was taken", 1, false, what)
            assert.is_nil(found:find("%z"), what)
          else
            assert.is_nil(found, what)
          end
        end
      end
      local states = rig.host:read "a value of a state"
      for _, name in ipairs(at) do
        if not value(name) then assert.equal(TEXTS[name], states[name].text) end
      end
      local found = {}
      for _, event in ipairs(rig.host:emitted "a.Value") do found[event.key] = event.payload.text end
      for _, message in ipairs(rig.host:published()) do
        if message.type == "a.Mail" then found[#found + 1] = message.payload.text end
      end
      for _, name in ipairs(at) do
        if not value(name) then assert.equal(TEXTS[name], found[name]) end
      end
      assert.equal(#at - 5, #found)
    end)

    it("that names something is compared to its end", function()
      local tried = {
        'ctx:read("seen\\0x", "A")', 'ctx:upsert("texts\\0x", { id = 1 }, { text = "x" })',
        'ctx:upsert("texts", { ["id\\0x"] = 1 }, { text = "x" })', 'ctx:publish("mail\\0x", "a.Mail", {})',
        'ctx:emit("a.Value", {}, { ["key\\0x"] = "K" })', 'ctx:dispatch("spec.store\\0x", "A", "put", {})',
        'ctx:dispatch("spec.store", "A", "put\\0x", {})',
        'ctx:dispatch("spec.store", "A", "put", {}, { ["metadata\\0x"] = {} })',
        'ctx:publish("mail", "a.Mail", {}, { ["id\\0x"] = "" })', 'local _ = ctx["key\\0x"]',
        'ctx:execute("INSERT INTO texts (id, text) VALUES (1, \'a\\0b\')")',
      }
      local parts = { HEAD:format "", 'list[#list + 1] = moontide.projection "seen" { on = { ["spec.Text"] = '
        .. "function(state) state.n = 1 end } }" }
      for i, body in ipairs(tried) do
        parts[#parts + 1] = ("NAME = 'tries-%02d'\nlist[#list + 1] = %s"):format(i, listener(body))
      end
      parts[#parts + 1] = "NAME = 'waits'\nlist[#list + 1] = " .. saga "saga:deadline('one\\0x', '1h')"
      parts[#parts + 1] = "return list"
      rig = kit.new { database = database, handlers = table.concat(parts, "\n"),
        files = { ["sql/texts.sql"] = TABLES }, on_error = "dead_letter" }
      rig:append("A", "spec.Text", { name = "nul" })
      rig:run()
      for i, body in ipairs(tried) do
        local row = rig:undelivered(("tries-%02d"):format(i))[1]
        assert.is_truthy(row, body)
        assert.is_truthy(row.reason:find "%?x" or row.reason:find "NUL", row.reason)
      end
      assert.matches("no deadline is called \"one?x\"", rig:undelivered("waits")[1].reason, 1, true)
      assert.equal(0, rig:value "SELECT count(*) AS value FROM texts")
      assert.equal(1, rig:value "SELECT count(*) AS value FROM EVENT_STORE")
      assert.same({}, rig.host:emitted())
      assert.same({}, rig.host:published())
    end)
  end)
end)
