-- Fails while an error is handled, again and again.
-- ends: ^timeout: handlers/NAME%.lua:%d+: handler ran longer than limits%.time = LIMIT
local function handle() xpcall(function() error "next" end, handle) end
while true do handle() end
