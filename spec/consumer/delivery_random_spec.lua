-- Random histories of appends, failures, retries, operators, restarts and
-- rebuilds, judged row by row against a plain model of the delivery rules.
--
-- The seed is printed; MOONTIDE_SPEC_SEED repeats a run, MOONTIDE_SPEC_ROUNDS
-- makes it longer.
local dialect = require "spec.support.dialect"
local kit = require "spec.support.kit"

local ROUNDS = tonumber(os.getenv "MOONTIDE_SPEC_ROUNDS") or 4
local STEPS = 16
local KEYS = { "a", "b", "c", "é", "F", "f" }
local DELAY, FACTOR = 10, 2 -- seconds
local EVER = 1000 -- attempts that fail

-- A message that is to fail says in its payload how often.
local HANDLERS = [[
return moontide.projection "list" {
  retry = { attempts = %d, delay = "%ds", factor = %d, jitter = 0 }, on_error = "%s",
  initial = function() return { seen = moontide.array() } end,
  on = { ["spec.Put"] = function(state, event, ctx)
    state.seen[#state.seen + 1] = event.position
    if ctx.attempt <= event.payload.fails then error "to fail" end
  end } }]]

-- A generator of its own, so that a seed means the same everywhere.
local function generator(seed)
  local value = seed % 2147483647
  return function(upto)
    value = value * 16807 % 2147483647
    return value % upto + 1
  end
end

-- --- the model ----------------------------------------------------------------

local Model = {}
Model.__index = Model

local function model(attempts, on_error)
  return setmetatable({
    attempts = attempts, on_error = on_error, now = 0, events = {}, read = 0, rows = {}, seen = {}, skipped = {},
    paused = false, replay = nil,
  }, Model)
end

-- The row that holds a key: none, or its first one that is not dead alone.
function Model:head(key)
  for _, row in ipairs(self.rows) do
    if row.key == key and row.status ~= "DEAD_LETTER" then return row end
  end
end

local function holds(row, now)
  return row.status == "HALTED" or row.status == "DEAD_LETTER_KEY" and row.failed
    or row.status == "FAILED" and row.at > now
end

function Model:fail(row)
  row.count, row.failed = row.count + 1, true
  if row.count < self.attempts then
    row.status, row.at = "FAILED", self.now + DELAY * FACTOR ^ (row.count - 1)
    return true
  end
  if self.on_error == "skip" then
    self.skipped[row.position] = true
    return false
  end
  row.status = self.on_error == "dead_letter" and "DEAD_LETTER" or "DEAD_LETTER_KEY"
  if row.status == "DEAD_LETTER_KEY" then
    for _, other in ipairs(self.rows) do
      if other.key == row.key and other.status == "WAITING" then other.status = "DEAD_LETTER_KEY" end
    end
  end
  return true
end

-- One attempt at a message: true when it is applied.
function Model:try(position, attempt)
  local event = self.events[position]
  if attempt <= event.fails then return false end
  self.seen[event.key] = self.seen[event.key] or {}
  table.insert(self.seen[event.key], position)
  return true
end

function Model:add(row)
  table.insert(self.rows, row)
  table.sort(self.rows, function(x, y) return x.position < y.position end)
end

function Model:remove(row)
  for i, other in ipairs(self.rows) do
    if other == row then return table.remove(self.rows, i) end
  end
end

function Model:read_events(upto)
  for position = self.read + 1, upto do
    local event = self.events[position]
    local holder
    for _, row in ipairs(self.rows) do
      if row.key == event.key and row.status ~= "DEAD_LETTER" then
        holder = holder == "DEAD_LETTER_KEY" and holder or row.failed and row.status or holder or row.status
      end
    end
    if self.skipped[position] then -- luacheck: ignore 542
      -- passed over
    elseif holder then
      self:add { position = position, key = event.key, count = 0,
        status = holder == "DEAD_LETTER_KEY" and holder or "WAITING" }
    elseif not self:try(position, 1) then
      local row = { position = position, key = event.key, count = 0 }
      if self:fail(row) then self:add(row) end
    end
    self.read = position
  end
end

-- Whatever is due, key by key: what is tried does not depend on other keys.
function Model:retry_due()
  local again = true
  while again do
    again = false
    local held = {}
    for _, row in ipairs(self.rows) do
      if row.status ~= "DEAD_LETTER" and holds(row, self.now) then held[row.key] = true end
    end
    for _, row in ipairs { unpack(self.rows) } do
      if row.status ~= "DEAD_LETTER" and not held[row.key] then
        again = true
        if self:try(row.position, row.count + 1) then
          self:remove(row)
        elseif self:fail(row) then
          if row.status ~= "DEAD_LETTER" then held[row.key] = true end
        else
          self:remove(row)
        end
      end
    end
  end
end

function Model:run()
  if self.paused then return end
  self:retry_due()
  if self.replay then
    self:read_events(self.replay)
    self.replay = nil
  end
  self:read_events(#self.events)
  self:retry_due()
end

function Model:rebuild()
  if self.replay then return end
  local upto = self.read
  self.rows, self.skipped, self.read, self.seen, self.paused = {}, {}, 0, {}, false
  self.replay = upto > 0 and upto or nil
end

-- The operator's retry and delete are about messages that failed themselves.
function Model:retry(key)
  for _, row in ipairs(self.rows) do
    if row.failed and (key == nil or row.key == key) then row.status, row.count, row.at = "FAILED", 0, 0 end
  end
end

function Model:delete(key)
  for _, row in ipairs { unpack(self.rows) } do
    if row.failed and (key == nil or row.key == key) then
      self.skipped[row.position] = true
      self:remove(row)
    end
  end
end

-- --- the comparison -----------------------------------------------------------

dialect.each(function(database)
  describe("any delivery", function()
    local rig, world

    after_each(function() rig:close() end)

    local function check(what)
      local wanted, got = {}, {}
      for i, row in ipairs(world.rows) do
        wanted[i] = ("%d %s %s %d"):format(row.position, row.key, row.status, row.count)
      end
      for i, row in ipairs(rig:undelivered()) do
        got[i] = ("%d %s %s %d"):format(row.position, row.key, row.status, row.failures)
      end
      assert.same(wanted, got, what)
      if world.replay then return end -- what is old stands until the replay is over
      local states = {}
      for key, state in pairs(rig.host:read "list") do
        states[key] = {}
        for i, position in ipairs(state.seen) do states[key][i] = position end
      end
      assert.same(world.seen, states, what)
    end

    local function append(random)
      local list = {}
      for i = 1, random(10) do
        local fails = random(5) == 1 and (random(3) == 1 and EVER or random(3)) or 0
        local event = { key = KEYS[random(#KEYS)], fails = fails }
        table.insert(world.events, event)
        list[i] = { event.key, "spec.Put", { fails = fails } }
      end
      rig:append_all(list)
      return "append"
    end

    local function some_key(random)
      return random(3) == 1 and KEYS[random(#KEYS)] or nil
    end

    local ACTIONS = {
      append, append, append, append,
      function(random)
        local seconds = ({ 15, 50 })[random(2)]
        world.now = world.now + seconds
        rig.host:advance(seconds)
        return "advance " .. seconds
      end,
      function() rig.host:pause "list" world.paused = true return "pause" end,
      function() rig.host:resume "list" world.paused = false return "resume" end,
      function(random)
        local key = some_key(random)
        rig.host:retry { consumer = "list", key = key, all = true }
        world:retry(key)
        return "retry " .. tostring(key)
      end,
      function(random)
        local key = some_key(random)
        rig.host:delete { consumer = "list", key = key, all = true }
        world:delete(key)
        return "delete " .. tostring(key)
      end,
      function() rig:restart() return "restart" end,
      function(random)
        rig:reopen { batch = random(9), clock_offset = world.now } -- a new host has no memory of advance
        return "reopen"
      end,
      function() rig:redeliver() world:run() return "redeliver" end,
      function() rig.host:rebuild "list" world:rebuild() return "rebuild" end,
    }

    local base = tonumber(os.getenv "MOONTIDE_SPEC_SEED") or os.time()
    for round = 1, ROUNDS do
      local seed = base + round - 1
      it(("leaves the rows and states of the rules (seed %d)"):format(seed), function()
        local random = generator(seed)
        for _ = 1, 5 do random(2) end
        local attempts = random(3)
        local on_error = ({ "dead_letter_key", "dead_letter", "skip" })[random(3)]
        world = model(attempts, on_error)
        rig = kit.new { database = database, batch = random(9),
          handlers = HANDLERS:format(attempts, DELAY, FACTOR, on_error) }
        rig:run()
        local story = {}
        for _ = 1, STEPS do
          story[#story + 1] = ACTIONS[random(#ACTIONS)](random)
          if random(3) > 1 then
            rig:run()
            world:run()
            story[#story + 1] = "run"
          end
          check(table.concat(story, ", "))
        end
        rig.host:resume "list"
        world.paused = false
        rig:run()
        world:run()
        check "at the end"
      end)
    end
  end)
end)
