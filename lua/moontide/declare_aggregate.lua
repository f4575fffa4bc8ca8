--- Aggregates: what moontide.aggregate makes of its table, checked. A
-- declaration of kind aggregate has the fields initial, commands (sorted names),
-- command_functions (name -> function), types (sorted), handlers (type ->
-- function of `apply`), snapshot_every (0: none) and snapshot_version.
local take = require "moontide.declare_take"

local fail, describe = take.fail, take.describe

local KEYS = { "initial", "commands", "apply", "snapshot" }
local SNAPSHOT_KEYS = { "every", "version" }

local function take_commands(d, commands)
  if commands == nil then
    commands = {}
  elseif type(commands) ~= "table" then
    fail(d, "commands is %s; it must be a table of names and functions", describe(commands))
  end
  local names, functions = take.sorted_keys(commands), {}
  for _, command in ipairs(names) do
    if not take.is_text(command, take.NAME_MAX) then
      fail(d, "commands[%s]: a command's name is UTF-8 text of 1 to %d characters", tostring(command), take.NAME_MAX)
    elseif type(commands[command]) ~= "function" then
      fail(d, 'commands["%s"] is %s; a command is a function', command, describe(commands[command]))
    end
    functions[command] = commands[command]
  end
  return names, functions
end

local function take_snapshot(d, snapshot)
  if snapshot == nil then
    return 0, 1
  elseif type(snapshot) ~= "table" then
    fail(d, "snapshot is %s; it must be a table like { every = 200, version = 1 }", describe(snapshot))
  end
  take.only(d, snapshot, SNAPSHOT_KEYS, "snapshot: ")
  if snapshot.every == nil then
    fail(d, "snapshot.every is missing: after how many events the state is stored")
  end
  local every = take.range(d, "snapshot.every", snapshot.every, 1, take.NUMBER_MAX, true)
  local version = snapshot.version == nil and 1
    or take.range(d, "snapshot.version", snapshot.version, 1, take.NUMBER_MAX, true)
  return every, version
end

--- build(d, spec): checks and fills the declaration.
return function(d, spec)
  for _, key in ipairs { "table", "tables", "events" } do
    if spec[key] ~= nil then
      fail(d, '%s is no key of an aggregate: tables of its own are named by the configuration, as in schema = '
        .. '{ aggregates = { ["%s"] = { events = "account_events" } } }', key, d.name)
    end
  end
  take.only(d, spec, KEYS)
  d.source = "event-store"
  d.initial = take.a_function(d, spec, "initial")
  d.commands, d.command_functions = take_commands(d, spec.commands)
  if spec.apply == nil then
    fail(d, 'no apply: apply = { ["some.Type"] = function(state, event) ... end } is missing')
  end
  d.handlers, d.types = take.by_type(d, "apply", spec.apply, "an apply")
  d.snapshot_every, d.snapshot_version = take_snapshot(d, spec.snapshot)
end
