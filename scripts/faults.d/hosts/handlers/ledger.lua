-- Notes every message in the transaction that applies it, with the lease that
-- it is applied under as the database has it at that moment.
local moontide = require "moontide"

local VERSION = 0 -- raised by scripts/faults with each save
local BURN = 40000 -- so that handlers take long enough to be killed in one

local function burn()
  local sum = 0
  for i = 1, BURN do sum = sum + i % 7 end
  return sum
end

return moontide.sql_projection "ledger" {
  aggregates = { "hosts.thing" },
  tables = "ledger.sql",
  key = function(event) return event.key end,
  on = {
    ["hosts.Put"] = function(event, ctx)
      burn()
      ctx:execute([[
        INSERT INTO entries (thing, n, position, attempt, version, partition_no, instance_id, generation)
        SELECT o.thing, o.n, o.position, o.attempt, o.version, p.partition_no, p.instance_id, p.generation
          FROM (SELECT ? AS thing, ? AS n, ? AS position, ? AS attempt, ? AS version, ? AS partition_no) AS o
          JOIN PARTITION_OWNERSHIP AS p
            ON p.consumer_type = 'projection' AND p.consumer_name = 'ledger' AND p.partition_no = o.partition_no]],
        event.key, event.payload.n, event.position, ctx.attempt, VERSION, ctx.partition)
    end,
  },
}
