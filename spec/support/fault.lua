-- Faults of the machine: a user without rights, a disk without room.
local folder = require "spec.support.folder"
local process = require "spec.support.process"

local fault = {}

local NOBODY = "65534"

local function is_root()
  return os.execute '[ "$(id -u)" -eq 0 ]' == 0
end

--- without_rights(app): a function that runs the program in the folder as a
-- user who has only the rights that the files give to everybody.
function fault.without_rights(app)
  local program = app.root .. "/program"
  local copied = app:exec("cp", folder.program, program)
  assert(copied.code == 0, copied.err)
  assert(app:exec("chmod", "755", app.root, program).code == 0)
  return function(...)
    if not is_root() then return app:exec(program, ...) end
    return app:exec("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", program, ...)
  end
end

-- $DISK is a file system of its own where that is allowed. Elsewhere files
-- there are kept from growing, which a program sees in the same place.
local PRELUDE = [[
  set -u
  DISK=$PWD/disk; mkdir -p "$DISK"
  if [ "$1" = mounted ]; then
    mount -t tmpfs -o size=24m tmpfs "$DISK" || exit 99
    fill() { # leaves so many KiB
      local room; room=$(df --output=avail "$DISK" | tail -n 1)
      head -c $(((room - $1) * 1024)) /dev/zero >"$DISK/ballast"
    }
    make_room() { rm "$DISK/ballast"; }
  else
    trap '' XFSZ
    fill() { ulimit -S -f $(( ($(stat -c %s "$DISK"/*.db) / 1024 + $1) * 2 )); }
    make_room() { ulimit -S -f unlimited; }
  fi
]]

local function can_mount(flags)
  return os.execute(("unshare %s sh -c 'mount -t tmpfs tmpfs /mnt' >/dev/null 2>&1"):format(flags)) == 0
end

--- on_small_disk(app, script): runs a script of bash with $MOONTIDE, $DISK,
-- and the functions fill KIB and make_room. Gives { code, out, err }.
function fault.on_small_disk(app, script)
  local words = { "bash", "-c", PRELUDE .. script, "bash" }
  local unshare
  for _, flags in ipairs { "-m", "-rm" } do
    if unshare == nil and can_mount(flags) then unshare = flags end
  end
  if unshare then
    words = { "unshare", unshare, unpack(words) }
    words[#words + 1] = "mounted"
  else
    words[#words + 1] = "limited"
  end
  local rest = { unpack(words, 2) }
  rest[#rest + 1] = { env = { MOONTIDE = folder.program } }
  return app:exec(words[1], unpack(rest)), unshare ~= nil
end

--- checksum(path): of a file, to see that it was not touched.
function fault.checksum(path)
  local pipe = assert(io.popen("sha256sum < " .. process.quote(path)))
  local sum = pipe:read "*l"
  pipe:close()
  return sum
end

return fault
