--- Tables whose unknown names raise, with the nearest known one, at the line
-- that used them: calling nil would say neither.
local name, native = ...
if type(native) ~= "table" then
  native = require "moontide.core"
end
assert(name)

--- strict(t, shown, elsewhere) -> t. `elsewhere` maps words of other languages
-- to names of t.
return function(t, shown, elsewhere)
  local names = {}
  for key in pairs(t) do
    names[#names + 1] = key
  end
  table.sort(names)
  return setmetatable(t, {
    __index = function(_, key)
      if type(key) ~= "string" or key:sub(1, 2) == "__" then
        return nil
      end
      local file, line = native.where(2)
      local where = file and ("%s:%d: "):format(file, line) or ""
      local near = elsewhere and elsewhere[key] or native.nearest(key, names)
      error(("%sthere is no %s.%s%s"):format(where, shown, key,
        near and ('; did you mean "%s"?'):format(near) or "; known are " .. table.concat(names, ", ")), 0)
    end,
  })
end
