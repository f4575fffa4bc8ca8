-- What a handler raises may be any text or value. It is recorded as text that
-- every database, JSON and terminal takes, and the host goes on.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

-- The line of handlers/spec.lua that all of them are raised in.
local LINE = 2 + 4 + 5
local WHERE = ("handlers/spec.lua:%d: "):format(LINE)
local LONG = 1024 * 1024

-- name · Lua of the value that is raised · the recorded text behind the class
-- and the place, or a pattern of it
local CASES = {
  { "quotes", [==[ [[it's "so" `and` \so \\ %s ?1 $1 ${x} :y -- /* ; ' OR '1'='1]] ]==],
    [[it's "so" `and` \so \\ %s ?1 $1 ${x} :y -- /* ; ' OR '1'='1]] },
  { "lines", [["one\ntwo\r\n\tthree\n"]], "one\ntwo\r\n\tthree\n" },
  { "escapes", [["\27[2J\27]0;title\7 \8\127"]], "\27[2J\27]0;title\7 \8\127" },
  { "nul", [["a\0b\0"]], "a?b?" },
  { "bytes", [["a\255\254b\192\175c\237\160\128d\240\159\152e\128"]], "a??b??c???d???e?" },
  { "characters", [["é日本😀"]], "é日本😀" },
  { "spaces", [["  before and after  "]], "  before and after  " },
  { "empty", [[""]], "" },
  { "a position of its own", [["elsewhere.lua:7: told"]], "elsewhere.lua:7: told" },
  { "nil", "nil", "error value is nil" },
  { "false", "false", "error value is false" },
  { "a number", "42.5", "42.5" },
  { "an integer", "9223372036854775807LL", "9223372036854775807LL" },
  { "a function", "error", "error value is function" },
  { "a coroutine", "coroutine.create(function() end)", "error value is thread" },
  { "a table", "{ code = 7 }", "error value is table" },
  { "a table with a message", "{ message = 'what happened' }", "what happened" },
  { "the event", "event", nil, "^error: " .. WHERE:gsub("%p", "%%%0") .. "." },
  { "an object", "setmetatable({}, { __tostring = function() return 'a \"story\"\\n' end })", "a \"story\"\n" },
  { "an object whose text fails", "setmetatable({}, { __tostring = function() error 'again' end })",
    "error value whose __tostring gives no text" },
  { "an object whose text fails with such an object",
    "(function() local m = {} m.__tostring = function() error(setmetatable({}, m)) end "
      .. "return setmetatable({}, m) end)()",
    "error value whose __tostring gives no text" },
  { "an object whose text is none", "setmetatable({}, { __tostring = function() return {} end })",
    "error value whose __tostring gives no text" },
  { "an object whose __tostring is no function", "setmetatable({}, { __tostring = 5 })",
    "error value whose __tostring gives no text" },
  { "an object whose text calls itself",
    "(function() local m = {} m.__tostring = function(o) return '' .. tostring(o) end "
      .. "return setmetatable({}, m) end)()",
    "error value whose __tostring gives no text" },
  { "an object whose text never ends", "setmetatable({}, { __tostring = function() while true do end end })",
    nil, "^timeout: handlers/spec.lua:%d+: handler ran longer than limits.time = 300ms$" },
  { "an object whose text never ends and catches its end",
    "setmetatable({}, { __tostring = function() while true do pcall(function() while true do end end) end end })",
    nil, "^timeout: handlers/spec.lua:%d+: handler ran longer than limits.time = 300ms$" },
  { "an object whose text eats all memory",
    "setmetatable({}, { __tostring = function() local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e5) .. i end end })",
    "error value whose __tostring gives no text" },
}

-- Texts of 1 MB whose cut would fall on each byte of a character.
for _, character in ipairs { "x", "é", "日", "😀" } do
  for shift = 0, #character - 1 do
    local start = ("-"):rep(shift)
    CASES[#CASES + 1] = { ("1 MB of %s behind %d bytes"):format(character, shift),
      ("%q .. (%q):rep(%d)"):format(start, character, LONG / #character), nil, nil, start, character }
  end
end
CASES[#CASES + 1] = { "1 MB of an object's text",
  "setmetatable({}, { __tostring = function() return ('é'):rep(5e5) end })", nil, nil, "", "é" }
CASES[#CASES + 1] = { "1 MB of bytes that are no text", ("('\\255'):rep(%d)"):format(LONG), nil, nil, "", "?" }

local function handlers()
  local values = {}
  for i, case in ipairs(CASES) do values[i] = ("  function(event) return %s end,"):format(case[2]) end
  -- one line each, so that the line of the raise is known
  return kit.LEDGER .. ([[
    return (function(values) return moontide.sql_projection "notes" { tables = "sql/ledger.sql", on = {
      ["spec.Put"] = function(event, ctx)
        if event.payload.case == nil then return ledger("notes", event, ctx) end
        local value = values[event.payload.case](event)
        if event.payload.permanent then error(moontide.permanent(value)) end error(value)
      end } } end)({
%s
    })]]):format(table.concat(values, "\n"))
end

local function characters(text)
  return select(2, text:gsub("[^\128-\191]", ""))
end

--- expected(case, reason): raises unless the reason is the case's.
local function check(case, reason)
  local what = case[1] .. ": " .. tostring(reason):sub(1, 200)
  assert.is_true(characters(reason) <= 1000, what)
  assert.is_nil(reason:find "%z", what)
  if case[3] then
    assert.equal("error: " .. WHERE .. case[3], reason, what)
  elseif case[4] then
    assert.is_truthy(reason:find(case[4]), what)
  else
    local head = "error: " .. WHERE .. case[5]
    assert.equal(head, reason:sub(1, #head), what)
    assert.equal("", (reason:sub(#head + 1):gsub(case[6]:gsub("%p", "%%%0"), "")), what)
    assert.equal(1000, characters(reason), what)
  end
end

dialect.each(function(database)
  describe("what a handler raises", function()
    local rig

    local function start(options)
      options = options or {}
      options.database = database
      options.files = { ["sql/ledger.sql"] = kit.LEDGER_SQL }
      options.handlers = handlers()
      options.limits = { time = "300ms", memory = "24MiB" }
      options.on_error = "dead_letter"
      rig = kit.new(options)
    end

    after_each(function() rig:close() end)

    local function append(permanent)
      local list = {}
      for i in ipairs(CASES) do
        list[#list + 1] = { "good", "spec.Put", {} }
        list[#list + 1] = { "case-" .. i, "spec.Put", { case = i, permanent = permanent } }
      end
      rig:append_all(list)
    end

    --- each_row(fn): fn(case, row) for the row of every case.
    local function each_row(fn)
      local rows = {}
      for _, row in ipairs(rig:undelivered()) do rows[row.key] = row end
      for i, case in ipairs(CASES) do fn(case, assert(rows["case-" .. i], case[1])) end
    end

    it("is recorded as text, at the first attempt and at the next, and nothing else is harmed", function()
      start { retry = { attempts = 2, delay = "10m", jitter = 0 } }
      append()
      for attempt, status in ipairs { "FAILED", "DEAD_LETTER" } do
        rig:run()
        each_row(function(case, row)
          assert.equal(status, row.status, case[1])
          assert.equal(attempt, row.failures, case[1])
          check(case, row.reason)
        end)
        assert.equal("RUNNING", rig:state "notes")
        assert.equal(#CASES, #rig:ledger "notes")
        rig.host:advance "11m"
      end
      -- it still applies what comes, and tries the dead ones again when it is told to
      rig:append("good", "spec.Put", {})
      rig:script(handlers():gsub("error%(value%)\n", "return ledger('notes', event, ctx)\n"))
      rig:reopen()
      rig.host:retry { all = true }
      rig:run()
      assert.same({}, rig:waiting())
      assert.equal(2 * #CASES + 1, #rig:ledger "notes")
    end)

    it("is shown by status and dead-letters as valid JSON, and on a terminal without control characters", function()
      start { retry = { attempts = 1 } }
      append()
      rig:run()
      local shown = rig.app:json("dead-letters", "list", "--limit", "1000")
      assert.equal(#CASES, #shown.messages)
      for _, letter in ipairs(shown.messages) do
        check(CASES[tonumber(letter.key:match "%d+")], letter.reason)
      end
      for _, failed in ipairs(rig.app:json("status", "notes").consumers[1].failed) do
        check(CASES[tonumber(failed.key:match "%d+")], failed.reason)
      end
      for _, words in ipairs { { "dead-letters", "list", "--limit", "1000" }, { "status", "notes" },
        { "dead-letters", "show", "--all", "--limit", "1000" } } do
        local out = rig.app:ok(unpack(words))
        assert.is_nil(out:find "[%z\1-\9\11-\31\127]")
        assert.has_no.errors(function() application.json.decode(application.json.encode(out)) end) -- it is UTF-8
      end
    end)

    it("may be for good: moontide.permanent takes text, and refuses what is none", function()
      start { retry = { attempts = 5 } }
      append(true)
      rig:run()
      each_row(function(case, row)
        local text = case[3] and (case[2]:find '^ ?[%["]' or case[1] == "a number")
          or case[5] and not case[2]:find "^setm"
        if text then
          assert.equal("DEAD_LETTER", row.status, case[1])
          assert.equal(1, row.failures)
          check(case, row.reason)
        else
          assert.is_truthy(row.status == "FAILED" or row.status == "DEAD_LETTER", case[1])
          assert.is_truthy(row.reason:find "^%l+: .", case[1])
        end
      end)
      assert.equal("RUNNING", rig:state "notes")
      assert.equal(#CASES, #rig:ledger "notes")
    end)

    for _, case in ipairs {
      { "nil", "nil" }, { "1 MB of text", "('é'):rep(5e5)" }, { "lines and quotes", "'a\\n\"b\"\\27[2J\\255'" },
      { "an object whose text never ends", "setmetatable({}, { __tostring = function() while true do end end })" },
    } do
      it("is one log line and a halt when it comes from an error policy: " .. case[1], function()
        rig = kit.new { database = database, files = { ["sql/ledger.sql"] = kit.LEDGER_SQL },
          retry = { attempts = 1 }, limits = { time = "300ms" }, handlers = kit.LEDGER .. ([[
          return moontide.sql_projection "notes" { tables = "sql/ledger.sql",
            on_error = function() error(%s) end,
            on = { ["spec.Put"] = function(event, ctx)
              ledger("notes", event, ctx)
              if event.payload.bad then error "the reason" end
            end } }]]):format(case[2]) }
        rig:append_all { { "A", "spec.Put", {} }, { "B", "spec.Put", { bad = true } }, { "C", "spec.Put", {} } }
        rig:run()
        assert.equal("HALTED APPLY_ERROR", rig:state "notes")
        assert.same({ "2 B HALTED" }, rig:waiting())
        assert.matches("^error: handlers/spec.lua:%d+: the reason$", rig:undelivered()[1].reason)
        assert.same({ "A:1", "C:3" }, rig:ledger "notes")
        local lines = 0
        for line in rig:log():gmatch "[^\n]+" do
          assert.matches("^ts=%S+ level=%l+ msg=", line)
          assert.is_nil(line:find "[%z\1-\31\127]")
          if line:find("on_error", 1, true) then lines = lines + 1 end
        end
        assert.equal(1, lines)
      end)
    end
  end)
end)
