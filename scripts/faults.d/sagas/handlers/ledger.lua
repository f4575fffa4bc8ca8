-- A saga per key that counts its events, emits one for each, and sets a
-- deadline that the next event moves. Notes every message in the transaction
-- that applies it, with the lease that it is applied under.
local moontide = require "moontide"

local VERSION = 0 -- raised by scripts/faults with each save
local BURN = 40000 -- so that handlers take long enough to be killed in one

local function burn()
  local sum = 0
  for i = 1, BURN do sum = sum + i % 7 end
  return sum
end

return moontide.saga "ledger" {
  aggregates = { "hosts.thing" },
  id = function(event) return event.key end,
  starts = { "hosts.Put" },
  initial = function() return { count = 0, last = 0, disorder = 0, ticks = 0 } end,
  on = {
    ["hosts.Put"] = function(saga, event, ctx)
      local state, n = saga.state, event.payload.n
      burn()
      state.count = state.count + 1
      if n ~= state.last + 1 then state.disorder = state.disorder + 1 end
      state.last = n
      ctx:emit("sagas.Seen", { n = n }, { key = saga.id })
      saga:deadline("tick", "50ms", { n = n })
      ctx:execute([[
        INSERT INTO entries (thing, n, position, attempt, version, partition_no, instance_id, generation)
        SELECT o.thing, o.n, o.position, o.attempt, o.version, p.partition_no, p.instance_id, p.generation
          FROM (SELECT ? AS thing, ? AS n, ? AS position, ? AS attempt, ? AS version, ? AS partition_no) AS o
          JOIN PARTITION_OWNERSHIP AS p
            ON p.consumer_type = 'saga' AND p.consumer_name = 'ledger' AND p.partition_no = o.partition_no]],
        event.key, n, event.position, ctx.attempt, VERSION, ctx.partition)
    end,
  },
  deadlines = {
    tick = function(saga, deadline, ctx)
      burn()
      saga.state.ticks = saga.state.ticks + 1
      ctx:emit("sagas.Ticked", { n = deadline.payload.n }, { key = saga.id })
    end,
  },
}
