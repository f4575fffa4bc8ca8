--- Finds what is likely a mistake in LuaJIT's bytecode: assignments to variables
-- that outlive a function's call, and the global variables that a file uses.
-- Runs in a state of its own with all libraries (upvalue_scan.c).
local jutil = require "jit.util"
local band, rshift = require("bit").band, require("bit").rshift

-- Opcodes differ between versions: ask the compiler itself.
local assigns = {}
for _, value in ipairs { "b", '"text"', "1", "nil" } do
  local probe = assert(loadstring(("local a; return function(b) a = %s end"):format(value)))()
  assigns[band(jutil.funcbc(probe, 1), 0xff)] = true
end

local function opcode_of(source)
  return band(jutil.funcbc(assert(loadstring(source)), 1), 0xff)
end

local READS = opcode_of "return x"
local WRITES
do
  local probe = loadstring "return function(a) x = a end"()
  WRITES = band(jutil.funcbc(probe, 1), 0xff)
end

--- Calls visit(proto) for every function inside `proto`.
local function each_child(proto, visit)
  local index = -1
  while true do
    local constant = jutil.funck(proto, index)
    if constant == nil then return end
    if type(constant) == "proto" then visit(constant) end
    index = index - 1
  end
end

local function upvalue_names(proto)
  local names, index = {}, 0
  while true do
    local found = jutil.funcuvname(proto, index)
    if not found then return names end
    names[found] = true
    index = index + 1
  end
end

--- A function inside can only reach a variable outside of `outer` by an
-- upvalue of `outer` itself; another name is a local of `outer`.
local function note_assignments(proto, outer, found)
  local pc = 1
  while true do
    local instruction = jutil.funcbc(proto, pc)
    if not instruction then break end
    if assigns[band(instruction, 0xff)] then
      local variable = jutil.funcuvname(proto, band(rshift(instruction, 8), 0xff))
      if outer[variable] then
        found[#found + 1] = { name = variable, line = jutil.funcinfo(proto, pc).currentline }
      end
    end
    pc = pc + 1
  end
  each_child(proto, function(child) note_assignments(child, outer, found) end)
end

local function note_globals(proto, found)
  local pc = 1
  while true do
    local instruction = jutil.funcbc(proto, pc)
    if not instruction then break end
    local opcode = band(instruction, 0xff)
    if opcode == READS or opcode == WRITES then
      found[#found + 1] = {
        name = jutil.funck(proto, -rshift(instruction, 16) - 1),
        line = jutil.funcinfo(proto, pc).currentline,
        assigned = opcode == WRITES,
      }
    end
    pc = pc + 1
  end
  each_child(proto, function(child) note_globals(child, found) end)
end

local scan = {}

--- globals(source, chunk) -> list of { name, line, assigned }: the variables of
-- the file that are no locals, in the order of the lines, each once a line.
function scan.globals(source, chunk)
  local found, once, seen = {}, {}, {}
  local main = loadstring(source, chunk)
  if main then note_globals(main, found) end
  table.sort(found, function(a, b)
    if a.line ~= b.line then return a.line < b.line end
    return a.name < b.name
  end)
  for _, item in ipairs(found) do
    local id = item.line .. item.name .. tostring(item.assigned)
    if not seen[id] then once[#once + 1] = item end
    seen[id] = true
  end
  return once
end

--- assigned(source, chunk, first, last) -> list of { name, line }: what functions
-- defined on the lines first to last assign outside of themselves.
function scan.assigned(source, chunk, first, last)
  local found = {}
  local main = loadstring(source, chunk)

  local function search(proto)
    local info = jutil.funcinfo(proto)
    if info.linedefined == first and info.lastlinedefined == last then
      note_assignments(proto, upvalue_names(proto), found)
    else
      each_child(proto, search)
    end
  end

  if main then each_child(main, search) end
  return found
end

return scan
