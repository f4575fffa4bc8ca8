--- testing.prove: shows that a projection gives the same read models however
-- its events come to it, as long as each key's events stay in order.
local EVENT_ID = "00000000-0000-7000-8000-%012x"
local EVENT_TIME = "1970-01-01T00:00:00.000000Z"
local SHUFFLES = 3
local MODULUS = 2147483647 -- of the generator: the same numbers everywhere

local function generator(seed)
  local state = seed % (MODULUS - 1) + 1
  return function(n)
    state = state * 16807 % MODULUS
    return state % n + 1
  end
end

--- The events in another interleaving: two events that share a stream or a key
-- keep their order, all others may pass each other. chains[i]: names of what
-- event i belongs to.
local function shuffle(events, chains, random)
  local queues, heads = {}, {}
  for i = 1, #events do
    for _, name in ipairs(chains[i]) do
      queues[name] = queues[name] or {}
      table.insert(queues[name], i)
      heads[name] = 1
    end
  end
  local function is_next(i)
    for _, name in ipairs(chains[i]) do
      if queues[name][heads[name]] ~= i then return false end
    end
    return true
  end
  local free, result = {}, {}
  for i = 1, #events do
    if is_next(i) then free[#free + 1] = i end
  end
  while #free > 0 do
    local i = table.remove(free, random(#free))
    result[#result + 1] = events[i]
    local followers = {}
    for _, name in ipairs(chains[i]) do
      heads[name] = heads[name] + 1
      followers[#followers + 1] = queues[name][heads[name]]
    end
    for n, follower in ipairs(followers) do
      local again = false
      for m = 1, n - 1 do again = again or followers[m] == follower end
      if not again and is_next(follower) then free[#free + 1] = follower end
    end
  end
  return result
end

local function show(value)
  if value == nil then return "missing" end
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

local function sorted_keys(...)
  local seen, list = {}, {}
  for _, value in ipairs { ... } do
    for key in pairs(value) do
      if not seen[key] then
        seen[key] = true
        list[#list + 1] = key
      end
    end
  end
  table.sort(list, function(a, b) return type(a) == type(b) and a < b or type(a) ~= type(b) and type(a) == "number" end)
  return list
end

--- The first member in which two values differ: its path and both values.
local function difference(a, b, path)
  if type(a) ~= "table" or type(b) ~= "table" then
    if a == b then return nil end
    return path, a, b
  end
  for _, key in ipairs(sorted_keys(a, b)) do
    local inner = type(key) == "number" and ("%s[%d]"):format(path, key)
      or path == "" and tostring(key) or ("%s.%s"):format(path, tostring(key))
    local found, x, y = difference(a[key], b[key], inner)
    if found then return found, x, y end
  end
end

local function compare(name, reference, found, how)
  for _, key in ipairs(sorted_keys(reference, found)) do
    local member, a, b = difference(reference[key], found[key], "")
    if member == "" then
      error(("projection '%s': the read model of key %s is %s in order and %s %s"):format(name, show(key),
        a == nil and "missing" or "there", b == nil and "missing" or "there", how), 0)
    elseif member then
      error(("projection '%s': key %s, member '%s' is %s in order and %s %s"):format(name, show(key), member, show(a),
        show(b), how), 0)
    end
  end
end

--- What makes two events of a projection keep their order.
local function chains_of(kit, declaration, events)
  local chains = {}
  for i, flat in ipairs(events) do
    local names = { "stream " .. flat.aggregate_type .. "\0" .. flat.aggregate_id }
    if declaration.handlers[flat.type] then
      for _, key in ipairs(kit.keys_of(declaration, kit.event_of(declaration, flat, i))) do
        local name, twice = "key " .. tostring(key), false
        for _, other in ipairs(names) do twice = twice or other == name end
        if not twice then names[#names + 1] = name end
      end
    end
    chains[i] = names
  end
  return chains
end

--- Runs on a host with a database of its own. deliver(host) brings the events.
local function on_host(kit, app, deliver, read, settings)
  local options = kit.copy(settings)
  options.app = app
  local url = os.getenv "DATABASE_URL" or ""
  options.database = url:find "^sqlite" and "sqlite::memory:" or kit.database()
  local host = kit.host(options)
  local good, result = pcall(function()
    deliver(host)
    host:run()
    return read(host)
  end)
  if not good then
    host:close()
    error(result, 0)
  end
  return result, host
end

local function prove_on_hosts(kit, declaration, events, chains, options)
  local name, app = declaration.name, kit.folders(declaration.file)
  local read = options.read or function(host) return host:read(name) end
  local reference, host = on_host(kit, app, function(fresh) fresh.core:append(events) end, read, options.settings)
  local good, problem = pcall(function()
    host:rebuild(name)
    host:run()
    compare(name, reference, read(host), "after a rebuild")
  end)
  host:close()
  if not good then error(problem, 0) end

  for round = 1, options.shuffles do
    local seed = options.seed + round - 1
    local random = generator(seed)
    local order = shuffle(events, chains, random)
    local found, other = on_host(kit, app, function(fresh)
      local at = 1
      while at <= #order do
        local piece = {}
        for _ = 1, random(5) do
          piece[#piece + 1] = order[at]
          at = at + 1
        end
        fresh.core:append(piece)
        fresh:redeliver()
      end
    end, read, options.settings)
    other:close()
    compare(name, reference, found, ("when keys interleave in another way and batches are delivered again (seed = %d)")
      :format(seed))
  end
  return reference
end

-- A declaration that a spec makes has no file that a host could load.
local function prove_here(kit, declaration, events, chains, options)
  local reference = kit.fold_here(declaration, events)
  compare(declaration.name, reference, kit.fold_here(declaration, events), "when it runs again")
  for round = 1, options.shuffles do
    local seed = options.seed + round - 1
    compare(declaration.name, reference, kit.fold_here(declaration, shuffle(events, chains, generator(seed))),
      ("when keys interleave in another way (seed = %d)"):format(seed))
  end
  return reference
end

return function(kit)
  return function(declaration, events, options)
    if type(declaration) ~= "table" or type(declaration.file) ~= "string" or type(declaration.handlers) ~= "table" then
      error("prove takes a declaration of moontide.projection or moontide.sql_projection", 2)
    end
    local settings = kit.copy(options or {})
    local how = {
      seed = settings.seed or os.time() % 1000000,
      shuffles = settings.shuffles or SHUFFLES,
      read = settings.read,
      settings = settings,
    }
    settings.seed, settings.shuffles, settings.read = nil, nil, nil
    local list = {}
    for i, event in ipairs(events) do
      local flat = kit.flatten(event, event.aggregate_type or "", event.aggregate_id or event.key or "")
      flat.id = flat.id or EVENT_ID:format(i)
      flat.occurred_at = flat.occurred_at or EVENT_TIME
      list[i] = flat
    end
    local here = declaration.file:match "_spec%.lua$"
    local good, result = pcall(here and prove_here or prove_on_hosts, kit, declaration, list,
      chains_of(kit, declaration, list), how)
    if not good then error(result, 2) end
    return result
  end
end
