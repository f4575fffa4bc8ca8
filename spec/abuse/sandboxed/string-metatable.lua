-- Changes what every string has.
-- ends: ^error: .+
getmetatable("").__index.upper = function() return "mine" end
