-- The prompt of `moontide console`: reads Lua from standard input, runs each
-- chunk with the application at hand, prints what it gives.

local HELP = [[
read(projection)              all read models of a projection, by key
read(projection, key)         the state of one, nil when there is none
query(sql, ...)               rows of a statement; ? takes a value
append(type, id, events)      appends events: a list of moontide.event(type, payload)
run()                         applies what is there; gives applied and failed messages
status()                      topics and consumers, what is wrong first
help()                        this text
exit()                        the end; so do quit() and Ctrl-D
Everything else is Lua; `moontide` is loaded, a global stays.]]

local DEPTH_MAX = 8
local EXIT = {} -- raised by exit()

local function is_name(key)
  return type(key) == "string" and key:find("^[%a_][%w_]*$") ~= nil
end

local function sorted_keys(value)
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
    return type(a) < type(b)
  end)
  return keys
end

local show

local function show_table(value, null, depth, seen)
  if seen[value] then return "{ ... }" end
  if next(value) == nil then return "{}" end
  if depth > DEPTH_MAX then return "{ ... }" end
  seen[value] = true
  local parts = {}
  for _, item in ipairs(value) do
    parts[#parts + 1] = show(item, null, depth + 1, seen)
  end
  local listed = #parts
  for _, key in ipairs(sorted_keys(value)) do
    local in_list = type(key) == "number" and key >= 1 and key <= listed and key % 1 == 0
    if not in_list then
      local left = is_name(key) and key or ("[%s]"):format(show(key, null, depth + 1, seen))
      parts[#parts + 1] = ("%s = %s"):format(left, show(value[key], null, depth + 1, seen))
    end
  end
  seen[value] = nil
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escape(text, characters)
  return (text:gsub(characters, function(c)
    return ESCAPES[c] or ("\\%03d"):format(c:byte())
  end))
end

-- A value as one could type it; control characters never reach the terminal.
function show(value, null, depth, seen)
  if value == null then return "null" end
  if type(value) == "string" then return '"' .. escape(value, '["\\%c]') .. '"' end
  if type(value) == "number" then return (("%.17g"):format(value):gsub("^(.*)$", function(long)
    local short = ("%.14g"):format(value)
    return tonumber(short) == value and short or long
  end)) end
  if type(value) == "table" and not (getmetatable(value) or {}).__tostring then
    return show_table(value, null, depth, seen)
  end
  return tostring(value)
end

local function encode_event(moontide, aggregate_type, aggregate_id, event)
  if type(event) ~= "table" or type(event.type) ~= "string" then
    error("an event is made by moontide.event(type, payload)", 3)
  end
  local out = {}
  for key, value in pairs(event) do
    out[key] = value
  end
  out.aggregate_type = aggregate_type
  out.aggregate_id = aggregate_id
  out.payload = moontide.json.encode(event.payload)
  out.metadata = event.metadata and moontide.json.encode(event.metadata)
  return out
end

local function environment(host, moontide, status)
  local env = { moontide = moontide }

  function env.read(projection, key)
    local states = {}
    for _, model in ipairs(moontide.json.decode(host:read(projection, key))) do
      states[model.key] = model.state
    end
    if key ~= nil then return states[key] end
    return states
  end

  function env.query(sql, ...)
    return moontide.json.decode(host:query(sql, ...))
  end

  function env.append(aggregate_type, aggregate_id, events)
    if type(aggregate_type) ~= "string" or type(aggregate_id) ~= "string" or type(events) ~= "table" then
      error('append takes a type, an id and events: append("shop.order", "O-1", '
        .. '{ moontide.event("order.Paid", {}) })', 2)
    end
    if events.type then events = { events } end
    local list = {}
    for i, event in ipairs(events) do
      list[i] = encode_event(moontide, aggregate_type, aggregate_id, event)
    end
    return host:append(list)
  end

  function env.run()
    return host:run()
  end

  env.status = status

  function env.exit()
    error(EXIT, 0)
  end

  env.quit = env.exit

  function env.help()
    print(HELP)
  end

  return setmetatable(env, { __index = _G })
end

local function ends_early(problem)
  return problem:find("near '<eof>'", 1, true) ~= nil
end

-- The function of a chunk; or nil, whether more lines may complete it, and
-- what is wrong with it as it stands.
local function compile(source, env)
  local expression = source:gsub("^%s*=", "")
  local chunk, as_expression = loadstring("return " .. expression, "=console")
  if chunk then return setfenv(chunk, env) end
  local statement, as_statement = loadstring(source, "=console")
  if statement then return setfenv(statement, env) end
  return nil, ends_early(as_expression) or ends_early(as_statement), as_statement
end

local function print_values(null, good, ...)
  if not good then return false, (...) end
  local count = select("#", ...)
  local parts = {}
  for i = 1, count do
    parts[i] = show((select(i, ...)), null, 0, {})
  end
  if count > 0 then print(table.concat(parts, "\t")) end
  return true
end

-- start(host, status, interactive) gives the exit code. Without a person at
-- the other end the first error ends it.
return function(host, status, interactive)
  local moontide = require "moontide"
  local env = environment(host, moontide, status)
  local source

  local function prompt()
    if not interactive then return end
    io.stdout:write(source and ">> " or "> ")
    io.stdout:flush()
  end

  -- What the console's own line was is nothing to the person at it.
  local function report(problem)
    local text = tostring(problem):gsub("^moontide/%w+%.lua:%d+: ", "")
    io.stdout:flush()
    io.stderr:write("moontide: ", escape(text, "%c"), "\n")
    return interactive
  end

  local function run_chunk(chunk)
    local good, problem = print_values(moontide.null, pcall(chunk))
    io.stdout:flush()
    if problem == EXIT then return EXIT end
    return good or report(problem)
  end

  if interactive then print "Moontide console; help() lists what there is." end
  prompt()
  for line in io.lines() do
    source = source and source .. "\n" .. line or line
    local chunk, incomplete, problem = compile(source, env)
    if chunk then
      source = nil
      local outcome = run_chunk(chunk)
      if outcome == EXIT then return 0 end
      if not outcome then return 1 end
    elseif not incomplete or (interactive and line == "") then
      source = nil
      if not report(problem) then return 1 end
    end
    prompt()
  end
  if source and source:find "%S" then
    report "the input ends inside a statement"
    return 1
  end
  if interactive then print() end
  return 0
end
