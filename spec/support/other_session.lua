-- Another session of a database, in a program of its own, that keeps its locks.
local process = require "spec.support.process"

--- other_session(database, command, sql, quit): runs the statements in the
-- program that the command starts, and waits until they are done. The result
-- has release() and commit(), which end the transaction and the program, and
-- said(), what the program has written. `quit` is the program's word to end.
return function(database, command, sql, quit)
  database.holds = (database.holds or 0) + 1
  local output = ("%s/hold-%d"):format(database.folder.root, database.holds)
  local pipe = assert(io.popen(("%s >%s 2>&1"):format(command, process.quote(output)), "w"))
  assert(pipe:write(sql, "\nSELECT 'it is held';\n"))
  pipe:flush()
  local held = {}

  function held.said() return process.read_file(output) or "" end

  -- The end of its input is also in the hands of programs that were started
  -- since, so it is told to quit.
  local function finish(word)
    if pipe == nil then return end
    pipe:write(word, ";\n", quit, "\n")
    pipe:close()
    pipe = nil
  end

  function held.release() finish "ROLLBACK" end
  function held.commit() finish "COMMIT" end
  database.folder:on_close(held.release)
  process.wait_until(function() return held.said():find("it is held", 1, true) end, 15,
    function() return "the lock of another session: " .. held.said() end)
  return held
end
