-- A temporary folder of one spec: files, programs run in it, all gone at the
-- end, started programs included.
local process = require "spec.support.process"

local Folder = {}
Folder.__index = Folder

local folder = { class = Folder }

local working_folder = (function()
  local pipe = assert(io.popen "pwd")
  local path = pipe:read "*l"
  pipe:close()
  return path
end)()

--- program: the absolute path of the moontide under test.
folder.program = (function()
  local path = os.getenv "MOONTIDE"
  if path == nil or path == "" then path = "build/release/moontide" end
  return path:sub(1, 1) == "/" and path or working_folder .. "/" .. path
end)()

--- source(name): the path of a file of the project.
function folder.source(name)
  return working_folder .. "/" .. name
end

--- new(): a fresh folder. Files of the harness lie beside it, not in it.
function folder.new()
  local pipe = assert(io.popen "mktemp -d")
  local root = pipe:read "*l"
  pipe:close()
  assert(root and root ~= "", "cannot make a temporary folder")
  local self = setmetatable({ root = root, path = root .. "/app", runs = 0, started = {} }, Folder)
  self:shell("mkdir " .. process.quote(self.path), "/")
  return self
end

--- file(name): the absolute path of a name in the folder.
function Folder:file(name)
  return name:sub(1, 1) == "/" and name or self.path .. "/" .. name
end

--- write(name, text): folders on the way are made.
function Folder:write(name, text)
  local path = self:file(name)
  if name:find("/", 1, true) then
    assert(os.execute("mkdir -p " .. process.quote(path:match "^(.*)/")) == 0)
  end
  process.write_file(path, text)
  return path
end

--- read(name): the file's text, nil when there is none.
function Folder:read(name)
  return process.read_file(self:file(name))
end

local function complete(self, command)
  self.runs = self.runs + 1
  command.scratch = ("%s/%d-"):format(self.root, self.runs)
  command.cwd = command.cwd or self.path
  return command
end

-- Words, with a table of fields for process.run as the last one.
local function command_of(first, ...)
  local words = { ... }
  local command = type(words[#words]) == "table" and words[#words] or nil
  local result = {}
  for key, value in pairs(command or {}) do result[key] = value end
  if command then words[#words] = nil end
  result[1] = first
  for i, word in ipairs(words) do result[i + 1] = word end
  return result
end

--- exec(program, ...): any program, in the folder. See process.run.
function Folder:exec(program, ...)
  return process.run(complete(self, command_of(program, ...)))
end

--- moontide(...): the program under test, in the folder.
function Folder:moontide(...)
  return self:exec(folder.program, ...)
end

--- launch(program, ...): any program in the background; it is ended with the
-- folder at the latest.
function Folder:launch(program, ...)
  local started = process.start(complete(self, command_of(program, ...)))
  self.started[#self.started + 1] = started
  return started
end

--- start(...): the program under test in the background.
function Folder:start(...)
  return self:launch(folder.program, ...)
end

--- shell(text[, cwd]): a line of shell for what only a shell can do. MOONTIDE
-- is the program under test.
function Folder:shell(text, cwd)
  return process.run(complete(self, { "sh", "-c", text, cwd = cwd, env = { MOONTIDE = folder.program } }))
end

--- on_close(fn): called before the folder goes, the last one first.
function Folder:on_close(fn)
  self.closers = self.closers or {}
  table.insert(self.closers, 1, fn)
end

function Folder:close()
  for _, started in ipairs(self.started) do started:stop() end
  for _, fn in ipairs(self.closers or {}) do fn() end
  os.execute("chmod -R u+rwX " .. process.quote(self.root) .. " && rm -rf " .. process.quote(self.root))
end

return folder
