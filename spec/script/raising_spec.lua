-- What jumps out of a host function, wherever it stands in it, leaves nothing
-- behind: no memory, no open result or savepoint, no lock.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local process = require "spec.support.process"

local FIRST = tonumber(os.getenv "MOONTIDE_SPEC_RAISING") or 200 -- messages; then three times as many
local LONG = 300 -- seconds

-- A message makes one of the calls with every wrong value in every place, and
-- ends by raising. Where the database is asked, ctx:try keeps the transaction.
local HANDLERS = [[
local moontide = require "moontide"

local deep = {}
for _ = 1, 600 do deep = { deep } end
local hostile = setmetatable({}, { __index = function() error { "index" } end, __call = function() error "call" end,
  __tostring = function() error "text" end })
local wrong = { false, -1, 2^53 + 2, 0/0, 1/0, "", "\255\254", "a\0b", ("x"):rep(70000), {}, { {} }, { [1.5] = 1 },
  deep, moontide.null, moontide.array(), function() error {} end, coroutine.create(function() end), hostile }

local function calls(event, ctx)
  return {
    { ctx.query, ctx, "SELECT 1 AS one", sql = true }, { ctx.query, ctx, "SELECT ? AS one", 1, sql = true },
    { ctx.update, ctx, "UPDATE notes SET n = n WHERE n = ?", 1, sql = true },
    { ctx.execute, ctx, "UPDATE notes SET n = n WHERE n = ?", 1, sql = true },
    { ctx.upsert, ctx, "notes", { n = 1 }, { note = "x" }, sql = true },
    { ctx.try, ctx, function() error(hostile) end }, { ctx.now, ctx },
    { ctx.emit, ctx, "spec.Told", {}, { key = "k", metadata = {} } },
    { ctx.publish, ctx, "mail", "spec.Sent", {}, { ordering_key = "k" } },
    { ctx.dispatch, ctx, "spec.store", "S", "put", {}, { metadata = {} }, sql = true },
    { ctx.read, ctx, "sums", "k", sql = true }, { ctx.log.debug, "text", { a = 1 } },
    { event.copy, event }, { moontide.json.decode, '[{"a":1}]' }, { moontide.json.encode, { 1 } },
    { moontide.add, 1 }, { moontide.bytes, "x" }, { moontide.array, {} }, { moontide.object, {} },
    { moontide.permanent, "x" }, { moontide.event, "t", {}, {} }, { moontide.reject, "why", {} },
    { moontide.split, {} }, { moontide.date.of, "2025-01-01T00:00:00Z" }, { moontide.date.add, "2025-01-01", 1 },
    { moontide.date.days, "2025-01-01", "2025-01-02" }, { moontide.date.weekday, "2025-01-01" },
    { string.find, "text", "t", 1 }, { string.gsub, "text", "t", function() error(hostile) end, 1 },
    { string.format, "%d %s", 1, "x" }, { string.rep, "x", 3 }, { table.concat, { "a" }, "," },
    { table.sort, { 2, 1 }, function() error(hostile) end },
  }
end

local function abuse(call, ctx)
  local raised = 0
  for place = 2, #call + 1 do
    local kept = call[place]
    for _, value in ipairs(wrong) do
      call[place] = value
      local function make() return call[1](unpack(call, 2, table.maxn(call))) end
      local good, why
      if call.sql then good, why = ctx:try(make) else good, why = pcall(make) end
      if not good then raised = raised + 1 end
    end
    call[place] = kept
  end
  return raised
end

return {
  moontide.publisher "mail" { to = "kafka:mail" },
  moontide.aggregate "spec.store" { commands = { put = function() end }, apply = {} },
  moontide.projection "sums" { on = { ["spec.Never"] = function() end } },
  moontide.listener "abused" { start = "beginning", on_error = "skip", on = {
    ["spec.Put"] = function(event, ctx)
      local all = calls(event, ctx)
      local raised = abuse(all[event.position % #all + 1], ctx)
      if raised > 0 then error(hostile) end
      error { raised }
    end,
    ["spec.Good"] = function(event, ctx) ctx:upsert("notes", { n = event.position }, { note = "good" }) end } },
}]]

dialect.each(function(database)
  describe("what raises in a host function", function()
    it("leaves nothing behind, in whichever place its argument stands", function()
      local app = application.new { database = database, config = "partitions = 3, limits = { memory = '32MiB' }",
        handlers = { ["spec.lua"] = HANDLERS } }
      app:ok("run", "--until-idle")
      app.db:command(app.db:ddl "CREATE TABLE notes (n INTEGER PRIMARY KEY, note TEXT)")
      -- a sanitizer keeps what was freed; it must not count
      local host = app:start("run", "--workers", "1",
        { timeout = 2 * LONG, env = { ASAN_OPTIONS = "quarantine_size_mb=1" } })
      local sent = 0
      local function memory_after(count)
        local list = {}
        for i = 1, count do list[i] = { aggregate_id = "k" .. i % 50, type = "spec.Put" } end
        list[#list + 1] = { aggregate_id = "good", type = "spec.Good" }
        app:append(list)
        sent = sent + count + 1
        process.wait_until(function()
          return app.db:value("SELECT count(*) FROM notes WHERE n = " .. sent) == "1"
        end, LONG, function() return "all messages to be passed\n" .. host:err():sub(1, 4000) end)
        local status = process.read_file(("/proc/%d/status"):format(host:worker()))
        return tonumber(status:match "VmRSS:%s+(%d+) kB"), host:worker()
      end
      local before, worker = memory_after(FIRST)
      local after, same = memory_after(3 * FIRST)
      assert.equal(worker, same, "the worker has died\n" .. host:err():sub(1, 4000))
      assert.is_true(after < before + 4 * 1024, ("%d KiB, then %d KiB"):format(before, after))
      assert.matches("could not apply spec.Put: error: ", host:err(), 1, true)
      host:signal "TERM"
      assert.equal(0, host:wait(60).code, host:err():sub(1, 4000))
      assert.same({}, app:json("dead-letters", "list").messages)
      assert.equal("0", app.db:value "SELECT count(*) FROM notes WHERE note <> 'good' OR note IS NULL")
      app:close()
    end)
  end)
end)
