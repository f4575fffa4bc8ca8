-- Lua as the host runs it: Lua 5.1 with LuaJIT's additions.
std = "luajit"
max_line_length = 120
-- Hostile handlers are bodies of functions, and meant to be bad.
exclude_files = { "build", "spec/abuse/sandboxed", "spec/abuse/granted" }

-- Handlers run in the sandbox: what it hides is not there for them.
files["examples/*/handlers"] = {
  not_globals = {
    "io", "os", "debug", "ffi", "jit", "package", "load", "loadstring", "loadfile", "dofile", "newproxy",
    "collectgarbage", "getfenv", "setfenv",
  },
}
files["examples/*/moontide.conf.lua"] = { globals = { "env", "file" } }
files["**/spec"] = { std = "+busted" }
files["**/*_spec.lua"] = { std = "+busted" }
-- Annotation files for editors declare parameters that no code uses.
files["lua/moontide/meta"] = { ignore = { "212", "211", "213" } }
