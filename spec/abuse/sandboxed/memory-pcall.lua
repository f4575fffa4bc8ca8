-- Keeps everything, and catches the error of that.
-- ends: ^%a+: handlers/NAME%.lua:%d+: handler .+
while true do pcall(function()
  local kept = {}
  for i = 1, 1e9 do kept[i] = { i } end
end) end
