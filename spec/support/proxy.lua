-- A proxy between the program under test and the database's server, which cuts
-- connections where a spec wants it and writes down what passes
-- (scripts/lib/proxy.py).
--
--   local proxied = proxy.start(app, { cut = "after", nth = 2 })
--   app:ok("run", "--until-idle", "--database", proxied.url)
--   assert.is_true(proxied:has_cut())
local folder = require "spec.support.folder"
local json = require("moontide").json
local process = require "spec.support.process"

local proxy = {}

local Proxy = {}
Proxy.__index = Proxy

local PORTS = { postgres = 5432, mysql = 3306 }
local OPTIONS = { "cut", "at", "like", "nth", "delay" }

--- start(app, options): in front of the server of the app's database; `cut`,
-- `at`, `like`, `nth` and `delay` are the options of the program.
function proxy.start(app, options)
  local front, host, rest = app.db.url:match "^(%w+://[^/?]-)([^@/?]*)([/?].*)$"
  if not host:find ":%d+$" then host = host .. ":" .. PORTS[app.db.name] end
  local self = setmetatable({ trace_file = ("%s/trace-%d"):format(app.root, app.runs) }, Proxy)
  local words = { folder.source "scripts/lib/proxy.py", app.db.name, host, "--trace", self.trace_file }
  for _, name in ipairs(OPTIONS) do
    if options[name] then
      words[#words + 1] = "--" .. name
      words[#words + 1] = options[name]
    end
  end
  self.process = app:launch("python3", unpack(words))
  local port = process.wait_until(function()
    return self.process:out():match "^(%d+)\n"
  end, 20, function() return "the proxy's port: " .. self.process:err() end)
  self.url = ("%s127.0.0.1:%s%s"):format(front, port, rest)
  return self
end

--- trace(): what has passed, in order: { connection, turn } when the client
-- asks after an answer, with `statement` for each that it runs and `ends` where
-- that is a COMMIT: what was written; and { cut }.
function Proxy:trace()
  local events = {}
  for line in (process.read_file(self.trace_file) or ""):gmatch "[^\n]+\n" do
    events[#events + 1] = json.decode(line)
  end
  return events
end

--- has_cut(): the cut that was asked for has happened.
function Proxy:has_cut()
  for _, event in ipairs(self:trace()) do
    if event.cut then return true end
  end
  return false
end

--- transactions(): of all connections, in order of their ends: { statements,
-- turns }. A turn is what the client sends after an answer: its statements in
-- this transaction. What runs outside of one is counted to the next.
function Proxy:transactions()
  local list, open = {}, {}
  for _, event in ipairs(self:trace()) do
    local connection = event.connection or 0
    local one = open[connection] or { statements = {}, turns = {} }
    open[connection] = one
    if event.statement then
      one.statements[#one.statements + 1] = event.statement
      local turn = one.turns[#one.turns]
      if turn then turn[#turn + 1] = event.statement end
      if event.statement == "COMMIT" or event.statement == "ROLLBACK" then
        list[#list + 1] = one
        open[connection] = nil
      end
    elseif event.turn then
      one.turns[#one.turns + 1] = {}
    end
  end
  return list
end

--- leave(): cuts all connections and takes none, until come_back().
function Proxy:leave()
  self.process:signal "USR1"
end

function Proxy:come_back()
  self.process:signal "USR2"
end

function Proxy:stop()
  self.process:stop()
end

return proxy
