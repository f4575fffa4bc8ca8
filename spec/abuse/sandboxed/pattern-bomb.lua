-- A pattern that takes for ever, in C.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
state.at = (("a"):rep(30)):find(("a?"):rep(30) .. ("a"):rep(30))
