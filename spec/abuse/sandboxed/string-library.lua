-- Changes the string library for others.
-- ends: ^error: .+
string.rep = function() return "mine" end
