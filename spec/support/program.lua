-- A folder of spec.support.folder whose programs give code, output and errors
-- as three results.
local folder = require "spec.support.folder"

local program = {}

local Program = setmetatable({}, { __index = folder.class })
Program.__index = Program

--- A fresh folder; close() removes it.
function program.folder()
  return setmetatable(folder.new(), Program)
end

--- A shell command in the folder, with $MOONTIDE.
function Program:shell(command)
  local result = folder.class.shell(self, command)
  return result.code, result.out, result.err
end

--- The program with these arguments, in the environment `env` of the folder.
function Program:run(...)
  local words = { ... }
  words[#words + 1] = { env = self.env }
  local result = self:moontide(unpack(words))
  return result.code, result.out, result.err
end

--- Goes into a folder below.
function Program:enter(name)
  self.path = self:file(name)
end

return program
