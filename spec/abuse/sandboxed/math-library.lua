-- Changes the math library for others.
-- ends: ^error: .+
math.floor = function() return 0 end
