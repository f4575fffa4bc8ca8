-- Runs busted in this process, for `moontide test`: returns a function that
-- takes the arguments from the global `arg` and gives the exit code.

-- busted runs a test file without a test, or a folder without a file, and is
-- content. Here that is a failure: nothing was checked.
local function count_tests()
  local new_core = require "busted.core"
  local count = { tests = 0 }

  package.loaded["busted.core"] = function(...)
    local core = new_core(...)
    core.subscribe({ "test", "end" }, function()
      count.tests = count.tests + 1
      return nil, true
    end)
    return core
  end
  return count
end

local function asks_for_a_list(arguments)
  for _, argument in ipairs(arguments) do
    if argument == "--list" or argument == "-l" then return true end
  end
  return false
end

return function()
  local found, runner = pcall(require, "busted.runner")
  if not found then
    if not tostring(runner):find("module 'busted.runner' not found", 1, true) then
      error(runner, 0)
    end
    error("busted is not installed; install the package lua-busted (Debian, Ubuntu), "
      .. "or run: luarocks --lua-version 5.1 install busted", 0)
  end

  -- A .busted file may name an interpreter; this process is the one to use.
  local given = arg
  rawset(_G, "arg", { [0] = given[0], "--ignore-lua", unpack(given) })

  local count = count_tests()
  -- busted takes its name from the file of the caller, and this must be no
  -- tail call, for it looks one level up.
  local call = assert(loadstring("local run = ...; run({ standalone = false })", "@moontide test"))
  local good, problem = pcall(call, runner)
  io.stdout:flush()
  if not good then
    if problem ~= nil then io.stderr:write("moontide test: ", tostring(problem), "\n") end
    return 1
  end
  if count.tests == 0 and not asks_for_a_list(given) then
    io.stderr:write("moontide test: no test was run; specs are files spec/*_spec.lua\n")
    return 1
  end
  return 0
end
