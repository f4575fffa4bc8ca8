-- A host whose database is away: it says so in few lines, costs next to nothing,
-- and goes on by itself.
local application = require "spec.support.application"
local dialect = require "spec.support.dialect"
local ledger = require "spec.support.ledger"
local process = require "spec.support.process"
local proxy = require "spec.support.proxy"

local WATCHED = 5 -- seconds, and what a busy machine adds
-- Each process says it once; what is told again and again is told 50 times a
-- minute at most, by all of them.
local function most_lines(seconds) return 3 + 50 * seconds / 60 end

dialect.each(function(database)
  describe("a host whose database is away", function()
    local app
    local file = database.name == "sqlite"

    before_each(function()
      app = application.new {
        database = database, config = 'partitions = 12, poll = { max_interval = "20ms" }',
      }
      ledger.add(app)
      app:ok("run", "--until-idle")
    end)

    after_each(function()
      app:close()
    end)

    -- { leave, come_back, words for the host }: the server, or the file's lock
    local function outage()
      if file then
        local lock
        return {
          leave = function() lock = app.db:hold(app.db.lock_checkpoints) end,
          come_back = function() lock.release() end, words = { "run" }, workers = 1,
        }
      end
      local proxied = proxy.start(app, {})
      return {
        leave = function() proxied:leave() end, come_back = function() proxied:come_back() end,
        words = { "run", "--workers", "2", "--database", proxied.url }, workers = 2,
      }
    end

    local function applied()
      return tonumber(app.db:value "SELECT count(*) FROM ledger")
    end

    local function wait_for(count, host)
      process.wait_until(function() return applied() == count end, 60, function()
        return ("%d applied, there are %d\n%s"):format(count, applied(), host:err())
      end)
    end

    it("says so in few lines, uses little of the processor, and goes on when it is back", function()
      app:append { {}, {} }
      local away = outage()
      local host = app:start(unpack(away.words))
      wait_for(2, host)
      -- each worker is there and has said so in the database
      process.wait_until(function()
        return #host:workers() == away.workers
          and tonumber(app.db:value "SELECT count(*) FROM PARTITION_MEMBERS") == away.workers
      end, 60, function() return host:err() end)
      local function cpu()
        local sum = process.cpu(host.pid)
        for _, pid in ipairs(host:workers()) do sum = sum + process.cpu(pid) end
        return sum
      end
      local function lines()
        return select(2, host:err():gsub("\n", ""))
      end
      local workers = host:workers()
      local lines_before, cpu_before, from = lines(), cpu(), process.now()
      away.leave()
      process.wait_until(function()
        return process.now() - from > WATCHED and (file or host:err():find "%d of 2 workers: [^\n]*; trying again")
      end, 60, function() return "a word of what its workers meet\n" .. host:err() end)
      local watched = process.now() - from
      assert.is_true(lines() - lines_before <= most_lines(watched), host:err())
      assert.is_true(cpu() - cpu_before < 0.05 * watched, ("%.2f s of the processor"):format(cpu() - cpu_before))
      assert.same(workers, host:workers())
      -- what all workers meet is told once, by their supervisor
      local function count(text) return select(2, host:err():gsub(text, "")) end
      local by_workers = count "trying again" - count "heartbeats and the high%-water mark: [^\n]*trying again"
      if file then
        assert.is_true(by_workers <= 1, host:err())
      else
        assert.equal(1, by_workers, host:err())
        assert.equal(1, count "%d of 2 workers: [^\n]*; trying again", host:err())
      end
      away.come_back()
      app:append { {}, {}, {} }
      wait_for(5, host)
      if not file then
        process.wait_until(function() return count "the database works again, for each of 2 workers" == 1 end, 60,
          function() return host:err() end)
        assert.equal(1, count "the database works again", host:err())
      end
      host:signal "TERM"
      assert.equal(0, host:wait(30).code, host:err())
      assert.equal("5", app.db:value "SELECT count(DISTINCT position) FROM ledger")
    end)

    it("ends within stop_timeout all the same", function()
      app:configure 'partitions = 12, poll = { max_interval = "20ms" }, stop_timeout = "3s"'
      app:append { {} }
      local away = outage()
      local host = app:start(unpack(away.words))
      wait_for(1, host)
      away.leave()
      host:signal "TERM"
      local result = host:wait(30)
      away.come_back()
      assert.is_true(result.code == 0 or result.code == 1 or result.code == 69 or result.code == 75,
        result.code .. " " .. result.err)
      app:ok("run", "--until-idle")
      assert.equal("1", app.db:value "SELECT count(*) FROM ledger")
    end)
  end)
end)
