-- Runs the program under test as a person would, in a folder of its own.
local program = {}

local path = os.getenv "MOONTIDE" or "moontide"

local function quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function read_all(name)
  local file = assert(io.open(name, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

local methods = {}
methods.__index = methods

--- A fresh folder; close() removes it.
function program.folder()
  local pipe = assert(io.popen "mktemp -d")
  local root = pipe:read "*l"
  pipe:close()
  return setmetatable({ root = root, path = root }, methods)
end

--- A shell command in the folder, with $MOONTIDE. Gives code, output, errors.
function methods:shell(command)
  local out, err = self.root .. "/.out", self.root .. "/.err"
  local line = ("cd %s && { unset DATABASE_URL; MOONTIDE=%s; %s\n} >%s 2>%s </dev/null"):format(
    quote(self.path), quote(path), command, quote(out), quote(err))
  local code = os.execute(line)
  if type(code) == "number" and code > 255 then code = math.floor(code / 256) end
  return code, read_all(out), read_all(err)
end

--- The program with these arguments.
function methods:run(...)
  local words = {}
  for i, word in ipairs { ... } do
    words[i] = quote(word)
  end
  return self:shell('"$MOONTIDE" ' .. table.concat(words, " "))
end

function methods:write(name, text)
  local file = assert(io.open(self.path .. "/" .. name, "wb"))
  assert(file:write(text))
  file:close()
end

function methods:enter(name)
  self.path = self.root .. "/" .. name
end

function methods:close()
  os.execute("rm -rf " .. quote(self.root))
end

return program
