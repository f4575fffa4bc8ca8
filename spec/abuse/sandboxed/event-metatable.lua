-- Changes what every event has.
-- ends: ^error: .+
getmetatable(event).__index = function() return 1 end
