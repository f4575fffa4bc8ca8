-- Locks those of some leases that stand as they were seen, and that the
-- instance may take: they are free, or whoever held them does not live. One
-- that somebody else has locked is left for the next time.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
-- ?5 generations
-- Gives: place of the lease in the arrays (from 0).
SELECT w.place - 1
  FROM unnest(?2::text[], ?3::text[], ?4::bigint[], ?5::bigint[])
       WITH ORDINALITY AS w (type, name, partition_no, generation, place)
  JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = w.type AND o.consumer_name = w.name
   AND o.partition_no = w.partition_no
 WHERE o.generation = w.generation
   AND o.instance_id IS DISTINCT FROM ?1::text
   AND NOT EXISTS (SELECT 1 FROM ${partition_instances_table} AS i
                    WHERE i.instance_id = o.instance_id
                      AND i.expires_at > clock_timestamp())
 ORDER BY w.place
   FOR UPDATE OF o SKIP LOCKED
