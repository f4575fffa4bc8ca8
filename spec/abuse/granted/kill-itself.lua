-- Kills its process.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(signal 9, Killed%)
os.execute "kill -9 $PPID" while true do end
