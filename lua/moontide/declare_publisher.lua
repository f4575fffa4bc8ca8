--- Publishers: what moontide.publisher makes of its table, checked. A declaration
-- of kind publisher has the field `to`: "SCHEME:DESTINATION", or nil where the
-- script has given a function, which is in `send` then.
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)
local take = require "moontide.declare_take"

local fail, describe = take.fail, take.describe

-- By scheme, an example of what it takes; stdout takes nothing.
local EXAMPLES = {
  kafka = "kafka:payments", amqp = "amqp:carrier", nats = "nats:orders.paid", redis = "redis:orders",
  http = "http:https://mail.example/hook", https = "https://mail.example/hook", stdout = "stdout:",
}
local TO_MAX = 1000

local function check_url(d, url)
  local host = url:match "^https?://([^/?#]+)"
  if not host or url:find "[%s%c]" then
    fail(d, 'to = "%s": %s is no URL; it looks like "%s"', d.to, describe(url), EXAMPLES.http)
  end
end

local function check_to(d, to)
  if to:find "%c" then
    fail(d, "to has a control character, byte %d", to:match("%c"):byte())
  elseif not take.is_text(to, TO_MAX) then
    fail(d, "to must have 1 to %d characters", TO_MAX)
  end
  d.to = to
  local scheme, rest = to:match "^([^:]*):?(.*)$"
  if not EXAMPLES[scheme] then
    local near = native.nearest(scheme, take.sorted_keys(EXAMPLES))
    fail(d, 'to = "%s": %s is no scheme that is known%s', to, describe(scheme),
      near and ('; did you mean "%s", as in "%s"?'):format(near, EXAMPLES[near])
      or "; known are amqp, http, kafka, nats, redis, stdout, or give a function")
  elseif scheme == "http" or scheme == "https" then
    check_url(d, rest:sub(1, 2) == "//" and to or rest)
  elseif scheme == "stdout" and rest ~= "" then
    fail(d, 'to = "%s": stdout has no destination; say "%s"', to, EXAMPLES.stdout)
  elseif scheme ~= "stdout" and rest:match "^%s*$" then
    fail(d, 'to = "%s" names no destination; it looks like "%s"', to, EXAMPLES[scheme])
  end
end

--- build(d, spec): checks and fills the declaration.
return function(d, spec)
  take.only(d, spec, { "to" })
  if type(spec.to) == "function" then
    d.send = spec.to
  elseif type(spec.to) == "string" then
    check_to(d, spec.to)
  else
    fail(d, 'to is %s; it says where messages go, as in to = "kafka:payments", or is a function',
      spec.to == nil and "missing" or describe(spec.to))
  end
end
