--- Microseconds since 1970 of an RFC 3339 time as the kit gives it.
return function(time)
  local day, hours, minutes, seconds, fraction = time:match "^(%d+%-%d+%-%d+)T(%d+):(%d+):(%d+)%.?(%d*)Z$"
  local days = require("moontide").date.days("1970-01-01", day)
  return ((days * 24 + hours) * 60 + minutes) * 60000000 + seconds * 1000000
    + tonumber((fraction .. "000000"):sub(1, 6))
end
